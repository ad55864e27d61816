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

/* How a GPU is shared by jobs that take slices of it. */
typedef enum {
    ORR_SLICING_MPS,  /* a fixed share, in any number: CUDA MPS with a percentage of the threads */
    ORR_SLICING_MIG,  /* a fixed share, at the places that NVIDIA's MIG allows */
    ORR_SLICING_TIME, /* turns by weight: who is alone on a GPU has all of it */
    ORR_N_SLICINGS
} OrrSlicing;
extern const char *const orr_slicing_names[];

/* How close the nodes of a job must be. */
typedef enum { ORR_PLACE_ANY, ORR_PLACE_RACK, ORR_PLACE_BLOCK, ORR_N_PLACES } OrrPlace;
extern const char *const orr_place_names[];

typedef struct {
    char *name;
    uint32_t line; /* of the table, for messages; 0: none */
    /* A job file whose step is simulated; "": the table gives the time. @sets: "group.key=value;
     * ..." on top of it. The work is @steps, or as many as @tokens take, or @work_ns. */
    char *job_ref, *sets;
    double steps, tokens;
    int64_t step_ns;            /* of the job file in the closest place; 0: none */
    int64_t submit_ns, work_ns; /* work: how long it runs undisturbed on what it asks for */
    int64_t limit_ns; /* what its user said it takes at most; the scheduler plans with it. 0: twice
                         the work */
    uint32_t gpus;    /* whole ones; 0: slices of one */
    uint32_t slices;  /* of one GPU, where gpus is 0 */
    int32_t priority; /* larger goes first */
    OrrPlace place;
    char *selector; /* class of nodes, "" any */
    bool is_preemptible;
    int64_t save_ns;       /* work between two checkpoints; 0: none */
    int64_t save_takes_ns; /* the job stands, each time */
    double save_bytes;     /* then this goes to the store; the job stands unless is_async */
    bool is_async;
    uint32_t writers;   /* connections to the store; 0: one a node */
    int64_t restart_ns; /* each time that it starts again, before it reads its checkpoint */
} OrrShareJob;

typedef struct {
    char *cluster_ref; /* whose nodes these are; "" unless given */
    char *table;       /* of the jobs, for messages */
    uint32_t n_nodes, gpus_per_node, slices_per_gpu;
    uint32_t nodes_per_rack, racks_per_block; /* at least 1 */
    OrrSlicing slicing;
    double slice_slow_frac; /* work in slices takes that much longer than its share says */
    char **node_class;      /* n_nodes; NULL: all "" */
    OrrSharePolicy policy;
    int64_t notice_ns; /* of a preemption */
    /* failures of nodes: exponential, each node by itself */
    double node_mtbf_ns; /* 0: never */
    int64_t repair_ns;   /* from the failure until the node is back */
    int64_t detect_ns;   /* the jobs on it stand that long before they are taken off */
    /* spot: nodes of these classes are taken back by their owner */
    char **spot_classes;                        /* NULL: none */
    double reclaim_mtbf_ns;                     /* of a node; 0: never */
    int64_t reclaim_notice_ns, reclaim_wait_ns; /* wait: until another takes its place */
    /* the store of checkpoints, a link that all share; 0: no limit */
    int64_t store_bytes_per_s, writer_bytes_per_s;
    OrrShareJob *jobs;
    uint32_t n_jobs;
} OrrShareSpec;

OrrShareSpec *orr_share_spec_new(void);
void orr_share_spec_free(OrrShareSpec *spec);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrShareSpec, orr_share_spec_free)
bool orr_share_node_is_spot(const OrrShareSpec *spec, uint32_t node);

#endif
