/* Private to sim/program: the state of a run at zero times, for the runner (check.c) and for the
 * one who explains why it stopped (hang.c). */
#ifndef ORR_PROGRAM_CHECK_PRIV_H
#define ORR_PROGRAM_CHECK_PRIV_H

#include "sim/program/intern.h"
#include "sim/program/program.h"
#include "sim/program/rendezvous.h"

#define ORR_CHECK_STEPS 2 /* waits reach one step back: the second step is like all later ones */

/* A stream of a role, at its first operation that is not done. As streams run in order, operation
 * i of stream s is done exactly if the thread of s has a place above i. */
typedef struct {
    uint32_t step, call, op;
    uint64_t place; /* place of that operation among all of the role, step after step */
    bool has_arrived;
    uint32_t n_open; /* parts of it that nobody has met yet */
    /* what it was found to wait for last: until that stream is beyond a place */
    uint32_t blocked_on; /* or ORR_NONE */
    uint64_t blocked_place;
} OrrThread;

typedef struct {
    uint32_t thread; /* role * ORR_N_STREAMS + stream, or ORR_NONE: an eager send, nobody waits */
    uint32_t part;
} OrrWaiter;

typedef struct {
    uint32_t group, comm, from, to; /* stages */
} OrrPairKey;

typedef struct {
    OrrPairKey key;
    OrrPair state;
    OrrWaiter *waiters; /* of the side that is ahead, oldest first */
    uint32_t head, n_waiters, capacity;
} OrrPairPlace;

typedef struct {
    uint8_t group, comm;
    OrrMeeting state;
    uint32_t *waiting; /* [n_roles] thread that has arrived, or ORR_NONE */
} OrrCollPlace;

typedef struct {
    const OrrProgram *program;
    uint32_t *role_of_stage;   /* [n_roles] */
    uint64_t *first_place;     /* [n_calls] of the program: place of a call's first operation */
    uint64_t *n_places;        /* [n_roles] operations of one step */
    uint32_t *segment_streams; /* [n_segments] bit set of streams */
    uint64_t *call_waiters;    /* [n_calls] bit op % 64: that operation waits for another call */
    uint32_t *canonical;       /* [n_colls] first collective that it may meet */
    OrrThread *threads;        /* [n_roles * ORR_N_STREAMS] */
    OrrPairPlace *pairs;
    uint32_t n_pairs, cap_pairs;
    OrrIntern pair_index;
    OrrCollPlace *places;
    uint32_t n_places_coll, cap_places;
    uint32_t *todo;  /* roles to look at again, a stack; each once */
    bool *is_listed; /* [n_roles] */
    uint32_t n_todo, cap_todo;
    GError *error;
} OrrCheck;

bool orr_program__spans_roles(OrrGroup group);
bool orr_program__is_member(const OrrCheck *c, OrrGroup group, uint32_t role);
/* Stage of a peer: its position in the group. */
uint32_t orr_program__peer_stage(const OrrCheck *c, const OrrP2pPart *part);
OrrPairPlace *orr_program__pair(OrrCheck *c, uint32_t role, const OrrP2pPart *part);
OrrCollPlace *orr_program__coll_place(OrrCheck *c, const OrrColl *coll);
const OrrOp *orr_program__thread_op(const OrrCheck *c, uint32_t thread);
/* Moves to the next operation of the thread's stream. */
void orr_program__thread_next(const OrrCheck *c, uint32_t thread);
bool orr_program__thread_at_end(const OrrCheck *c, uint32_t thread);
/* The stream of the same role that the thread's operation waits for, or ORR_NONE. */
uint32_t orr_program__waits_for_stream(OrrCheck *c, uint32_t thread);

/* Why the run stopped: the cycle, or the partner that never comes; g_free. */
char *orr_program__hang_text(OrrCheck *c, uint32_t role);

#endif
