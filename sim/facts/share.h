/* A shared cluster and the jobs that are submitted to it, as a trace or a plan gives them. */
#ifndef ORR_FACTS_SHARE_H
#define ORR_FACTS_SHARE_H

#include "sim/base/error.h"

typedef enum {
    ORR_SHARE_FCFS,     /* by submission; the first that doesn't fit holds up the rest */
    ORR_SHARE_BACKFILL, /* as FCFS, but later jobs may go ahead that don't delay the first */
    ORR_SHARE_PRIORITY, /* by priority, then submission, with backfill */
    ORR_SHARE_PREEMPT,  /* as PRIORITY, and lower jobs that allow it make room */
    ORR_N_SHARE_POLICIES
} OrrSharePolicy;
extern const char *const orr_share_policy_names[]; /* NULL-terminated */

/* How close the nodes of a job must be. */
typedef enum { ORR_PLACE_ANY, ORR_PLACE_RACK, ORR_PLACE_BLOCK, ORR_N_PLACES } OrrPlace;
extern const char *const orr_place_names[];

typedef struct {
    char *name;
    int64_t submit_ns, work_ns; /* work: how long it runs undisturbed on what it asks for */
    int64_t limit_ns; /* what its user said it takes at most; the scheduler plans with it */
    uint32_t gpus;    /* whole ones; 0: slices of one */
    uint32_t slices;  /* of one GPU, where gpus is 0 */
    int32_t priority; /* larger goes first */
    OrrPlace place;
    char *selector; /* class of nodes, "" any */
    bool is_preemptible;
    int64_t save_ns;       /* work between two checkpoints; 0: none */
    int64_t save_takes_ns; /* to save on notice */
    int64_t restart_ns;    /* each time that it starts again */
} OrrShareJob;

typedef struct {
    uint32_t n_nodes, gpus_per_node, slices_per_gpu;
    uint32_t nodes_per_rack, racks_per_block; /* at least 1 */
    double slice_slow_frac; /* work in slices takes that much longer than its share says */
    char **node_class;      /* n_nodes; NULL: all "" */
    OrrSharePolicy policy;
    int64_t notice_ns; /* of a preemption */
    OrrShareJob *jobs;
    uint32_t n_jobs;
} OrrShareSpec;

OrrShareSpec *orr_share_spec_new(void);
void orr_share_spec_free(OrrShareSpec *spec);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrShareSpec, orr_share_spec_free)

#endif
