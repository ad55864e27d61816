/* A bound program: the program with its durations, load vectors and interference. Written by
 * sim/lower, folded and executed by sim/exec, which need nothing else.
 *
 * Ranks are 0..n_ranks-1. After folding a rank stands for `weight` equal ones, a group instance for
 * equal groups; `members` then lists each representative once. */
#ifndef ORR_BOUND_BOUND_H
#define ORR_BOUND_BOUND_H

#include "sim/core/use.h"
#include "sim/program/program.h"

#define ORR_RATE_ONE 65536u

/* What one call costs a communicator: latency, then `work_bytes` moved at up to the cap, sharing
 * the links of its load vector. Bytes and cap are in the unit of the busiest resource (the NIC if
 * it leaves the domain, else NVLink), so that a load vector does not depend on the collective. */
typedef struct {
    int64_t latency_ns;
    uint64_t work_bytes;
    uint64_t cap_bytes_per_s; /* at least 1 if work_bytes > 0 */
    uint32_t weight;          /* connections */
    uint32_t load;            /* load vector of the group, below n_loads */
    uint8_t algo, proto;      /* OrrAlgo, OrrProto */
    uint16_t n_channels;
} OrrPlan;

/* Load vector v of place p: uses[first[p * n_loads + v] .. first[p * n_loads + v + 1]); empty where
 * none of its links can saturate. constraint = link of OrrBound. */
typedef struct {
    uint32_t n_loads;
    uint32_t *first;
    OrrUse *uses;
} OrrLoads;

/* Instances of one kind of group. */
typedef struct {
    uint32_t n_groups;      /* 0: kind not used by the program */
    uint32_t size;          /* ranks of a group as the user counts them */
    uint32_t *group_of;     /* [n_ranks]; ORR_NONE: in none */
    uint32_t *first_member; /* [n_groups + 1] */
    uint32_t *members;      /* ranks, ascending */
    uint32_t *class_of;     /* [n_groups]: groups of a class cost the same */
    uint32_t *weight;       /* [n_groups] real groups that one stands for; NULL: itself */
    uint32_t n_classes;     /* 0: only pairs */
    OrrPlan *plans;         /* [n_classes * n_colls of the program] */
    OrrLoads loads;
    /* Directed pairs of positions that send (pipelines). */
    uint32_t n_pairs;
    uint32_t *pair_index;  /* [size * size] source, destination -> pair, or ORR_NONE */
    uint32_t *position_of; /* [n_ranks] position in its group; kept where pairs are */
    uint32_t *pair_rank;   /* [n_groups * n_pairs * 2]: source rank, destination rank */
    uint32_t *pair_class;  /* [n_groups * n_pairs] */
    uint32_t n_pair_classes;
    OrrPlan *pair_plans; /* [n_pair_classes * n_parts of the program] */
    OrrLoads pair_loads; /* places are group * n_pairs + pair; plans' load is 0 */
} OrrBoundGroup;

typedef struct {
    const OrrProgram *program; /* borrowed */
    uint32_t n_ranks;
    uint32_t n_real_ranks; /* sum of weights */
    uint32_t *weight;      /* [n_ranks] real ranks that a rank stands for */
    uint32_t *rep_of;      /* [n_real_ranks] rank here that stands for a real one; NULL: itself */
    uint16_t *role;        /* [n_ranks] */
    uint32_t *hw;          /* [n_ranks] hardware kind: row of kernel_ns */
    uint32_t n_hw;
    int64_t *kernel_ns;      /* [n_hw * n_kernels of the program], at least 1 */
    uint32_t host_launch_ns; /* host time to issue one device kernel */
    uint32_t host_comm_ns;   /* to issue a collective or a batch of sends */
    uint64_t eager_bytes;    /* unbatched sends up to this complete without the receiver */
    /* Rate of a kernel while a communication kernel of that purpose is resident on its GPU:
     * [0] matrix products and attention, [1] memory-bound kernels; in 1/ORR_RATE_ONE. */
    uint32_t rate[2][ORR_N_COMM_KINDS];
    OrrBoundGroup groups[ORR_N_GROUPS];
    uint32_t n_links;
    uint64_t *capacity;    /* [n_links] bytes per second */
    uint32_t *link_weight; /* [n_links] real links that one stands for; NULL: itself */
} OrrBound;

void orr_bound_free(OrrBound *bound);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrBound, orr_bound_free)
/* Ranks whose kernels take 1 / @speed [n_ranks] of their time, in 1/ORR_RATE_ONE and above 0: each
 * speed of each hardware kind becomes a kind of its own, in the order of ranks. Times round up. */
void orr_bound_set_speeds(OrrBound *bound, const uint32_t *speed);
/* NULL if sound (indices, sizes, plans), else what is wrong; g_free. */
char *orr_bound_flaw(const OrrBound *bound);

#endif
