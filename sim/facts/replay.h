/* A recorded execution of one rank as plain facts: operations with durations, their streams, and
 * who waits for whom. Importers of traces fill it, lower makes a program of it. */
#ifndef ORR_FACTS_REPLAY_H
#define ORR_FACTS_REPLAY_H

#include "sim/terms/terms.h"

#include <glib.h>
#include <stdbool.h>

typedef enum {
    ORR_REPLAY_HOST,
    ORR_REPLAY_COMPUTE,
    ORR_REPLAY_COLLECTIVE,
    ORR_REPLAY_SEND,
    ORR_REPLAY_RECEIVE,
    ORR_REPLAY_OTHER /* memory, metadata */
} OrrReplayKind;

typedef struct {
    uint64_t id; /* in the trace */
    char *name;
    OrrReplayKind kind;
    bool has_duration;
    int64_t duration_ns;        /* 0: takes no time, or not recorded */
    int64_t stream;             /* thread or stream of the trace; operations of one run in order */
    bool is_host;               /* stream is a host thread: numbers of both kinds may be equal */
    OrrCollective collective;   /* ORR_N_COLLECTIVES: none, or not known */
    int64_t bytes;              /* of communication; 0: not known */
    uint32_t first_dep, n_deps; /* in deps: indices of nodes; all earlier ones once sorted */
} OrrReplayNode;

typedef struct {
    char *name;           /* of the file */
    char *source;         /* format and version */
    int32_t rank;         /* -1: not known */
    OrrReplayNode *nodes; /* in an order that keeps to the dependencies */
    uint32_t *deps;
    uint32_t n_nodes, n_deps;
    uint32_t n_untimed; /* communication without a duration */
} OrrReplay;

void orr_replay_free(OrrReplay *replay);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrReplay, orr_replay_free)

#endif
