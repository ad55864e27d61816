/* How long a checkpoint takes on a store: the slower of the whole store and of one writer's share.
 */
#ifndef ORR_JOB_CHECKPOINT_H
#define ORR_JOB_CHECKPOINT_H

#include "sim/job/spec.h"

/* What is saved, and how. */
typedef struct {
    double bytes;            /* of the whole state */
    uint32_t writers;        /* that share it evenly: every rank, or one */
    bool is_async;           /* copied to the host first, written behind the training */
    double copy_bytes_per_s; /* device to host, a writer; above 0 where is_async */
} OrrSave;

/* Where to; a speed of 0 is no limit. */
typedef struct {
    double bytes_per_s, writer_bytes_per_s;         /* of the store; of one writer */
    double read_bytes_per_s;                        /* of the store; 0: as bytes_per_s */
    double latency_ns;                              /* a save or a load: files opened, metadata */
    double path_bytes_per_s, read_path_bytes_per_s; /* what the links to it leave all writers */
} OrrStore;

/* Fills block_ns, write_ns, load_ns, bytes and bytes_per_s of @tier. */
void orr_store_times(const OrrSave *save, const OrrStore *store, OrrTier *tier);

/* What a save costs the training on average: it stands, or its steps are longer. */
double orr_tier_cost_ns(const OrrTier *tier);

/* The work between two checkpoints that the policies choose, ns, for what blocks and for @mtbf_ns.
 */
int64_t orr_plan_young_ns(const OrrCheckpointPlan *plan, double mtbf_ns);
int64_t orr_plan_daly_ns(const OrrCheckpointPlan *plan, double mtbf_ns);

#endif
