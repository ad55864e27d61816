/* What belongs to one stream of one rank; private to sim/exec. */
#ifndef ORR_EXEC_LANE_TYPES_H
#define ORR_EXEC_LANE_TYPES_H

#include "sim/terms/terms.h"

#include <glib.h>
#include <stdint.h>

typedef enum {
    ORR_LANE_BLOCKED,
    ORR_LANE_ISSUING,
    ORR_LANE_RUNNING,
    ORR_LANE_DONE,
    ORR_LANE_CHECKED /* waits for its island to take the pass as a whole */
} OrrLaneState;
typedef enum { ORR_PRED_PREVIOUS, ORR_PRED_WAIT, ORR_PRED_HOST, ORR_PRED_HOST_SYNC } OrrPred;

/* The last item of a stream that has ended: who waits for the stream asks what it was. */
typedef struct {
    int64_t start_ns, arrived_ns;
    uint32_t step;
    uint32_t what : 26, type : 2; /* OrrItemType */
    uint32_t is_issue_bound : 1, is_set : 1;
    uint32_t slot : 1; /* where what it had waited for is kept */
} OrrEnded;

/* Communication that an item waited for, if it did. */
typedef struct {
    OrrEnded ended;
    int64_t end_ns;
} OrrBlocker;

/* Where a stream is in its program; its times lie apart, see stored.h. The members of an island are
 * at one place as a rule, and then the first of them stands for all (lanes.c). */
typedef struct {
    uint32_t head;       /* item of the compiled program; valid unless the lane is done */
    uint32_t call, item; /* the same */
    uint32_t step;
    uint32_t completed;     /* items ended since the beginning */
    uint32_t need;          /* items of blocked_on that must end */
    uint16_t pending;       /* parts of the current item yet to end */
    uint8_t blocked_on : 4; /* stream that the head waits for; ORR_N_STREAMS: none */
    uint8_t state : 3;      /* OrrLaneState */
    uint8_t is_held : 1; /* a local stream that waits for an external one: counted by its island */
    /* of the first member only, for all */
    uint8_t is_apart; /* each member has its own lane */
    uint16_t waiting; /* streams that are not apart whose heads wait for this one, a bit each */
    uint16_t waiting_apart; /* the same of the others, of some member: see orr_exec__waiting_apart;
                               or more */
} OrrLane;

G_STATIC_ASSERT(sizeof(OrrLane) == 32 && ORR_N_STREAMS < 16);

/* What the item at the head of a stream, or the one that ended last, waited for last. */
typedef struct {
    uint32_t index; /* item of the stream */
    uint8_t stream;
    uint8_t pred; /* OrrPred */
    uint8_t is_issue_bound;
} OrrPredecessor;

/* For the path: see cause.h. */
typedef struct {
    uint32_t last;   /* record of the last item that has ended */
    uint32_t waited; /* of what the item under way waited for */
} OrrLaneCause;

#endif
