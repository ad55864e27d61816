/* Passes that an island takes as a whole; private to sim/exec. */
#ifndef ORR_EXEC_PASS_H
#define ORR_EXEC_PASS_H

#include "sim/exec/exec_priv.h"

#define ORR_PASS_LANES 2 /* 0: compute, 1: TP */

/* What an island is at. */
typedef struct {
    uint32_t n_ready; /* members that have checked in to call `key` */
    uint32_t key;
    uint32_t generation; /* of the event of the pass */
    uint32_t released;   /* calls up to this one go event by event */
} OrrIslandPass;

/* What a collective of a pass cost a member. */
typedef struct {
    int64_t transfer_ns, wait_ns, exposed_ns;
} OrrPassWait;

/* A member while the recursion runs, and what has come out for it; times are absolute. */
typedef struct {
    uint32_t rank;
    uint32_t same_as; /* first member that is equal in all: only that is evaluated */
    const OrrBlockTime *times;
    const int64_t *kernel_ns;
    int64_t free_ns;        /* compute: end of the last block */
    int64_t tp_free_ns;     /* end of the last collective */
    int64_t start_ns;       /* launch of the collective in hand */
    bool is_block_bound;    /* which waited for a block */
    uint32_t done;          /* blocks */
    OrrEnded last, blocker; /* the last collective, what that had waited for */
    int64_t blocker_end_ns;
    OrrEnded next_blocker; /* of the collective in hand */
    int64_t next_blocker_end_ns;
    /* the block in flight, when the rate of kernels has changed in it */
    bool is_walking;
    uint32_t kernel;
    int64_t block_start_ns, at_ns;
    bool has_waited; /* the block in hand, for a collective */
    uint64_t left;
    uint32_t n_touched; /* owners with time */
    uint8_t touched[ORR_N_OWNERS];
    int64_t owner_ns[ORR_N_OWNERS];
    int64_t *end_ns[ORR_PASS_LANES];      /* [most_items] */
    OrrPassWait *waits;                   /* [most_items], by collective */
    uint32_t outside_index, outside_step; /* of sums: exposed before the pass' first collective */
    int64_t outside_ns;
} OrrPassMember;

struct OrrPasses {
    uint8_t *is_pass;       /* [n_segments] */
    uint8_t **is_pass_call; /* [n_roles][n_calls] */
    uint32_t *need;         /* [items] of the other lane that must have ended */
    uint32_t most_items;
    OrrIslandPass *islands;
    OrrBegin *begins;
    OrrPassMember *members; /* [ORR_MAX_ISLAND]: work space, as are the next two */
    int64_t *ends;
    OrrPassWait *waits;
};

/* Evaluates the pass for @list, whose begins are known: fills x->passes->members and adds to the
 * sums of communication. */
void orr_exec__recursion(OrrExec *x, const OrrCompiledSegment *cs, uint32_t n,
                         const uint32_t *list);

/* The same for the log: writes what the items of the pass were, of call @row in step @step; @all:
 * the totals of a step. */
void orr_exec__recursion_log(const OrrExec *x, const OrrCompiledSegment *cs, uint32_t n,
                             const uint32_t *list, uint32_t step, const OrrCallRow *row,
                             const OrrCallRow *all);

#endif
