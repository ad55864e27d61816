/* What a whole run holds; private to sim/api. */
#ifndef ORR_API_RUN_PRIV_H
#define ORR_API_RUN_PRIV_H

#include "sim/api/run.h"
#include "sim/api/step.h"

/* What the run needs to know of its cluster and model. */
typedef struct {
    uint32_t gpus, gpus_per_node, nodes, switches, racks;
    uint32_t nodes_per_switch; /* that hang on one, with all or some of their GPUs */
    uint32_t replicas;         /* that can be dropped one by one; of nodes_per_replica nodes */
    uint32_t nodes_per_replica;
    double parameters, state_bytes_per_parameter, copy_bytes_per_s;
} OrrRunShape;

struct OrrRun {
    const OrrRunRequest *request;
    OrrRunFile *file;
    OrrFailureSet *failures; /* NULL: none */
    OrrPrices *prices;       /* NULL: none */
    OrrRunSpec *spec;
    OrrRunShape shape;
    OrrRecord *head;
    OrrSources *sources;
    GPtrArray *texts;            /* of overrides that the file makes */
    GArray *job_overrides;       /* OrrOverride: of the file, then of the command line */
    OrrStepRequest step_request; /* of the nominal step, which is kept while the run is prepared */
    OrrStepRun *step;            /* NULL: none was simulated */
    char *key;
    OrrRunRecord *record;
};

/* Simulates the steps that the run is made of: fills spec->phases, shape, head and the factors of
 * degradations. */
bool orr_run__price(OrrRun *run, GError **error);
/* The nominal step with more perturbations, "gpu:17:speed=0.8", NULL at the end. Threads may share
 * @run. */
bool orr_run__perturbed_ns(const OrrRun *run, char *const *texts, int64_t *step_ns, GError **error);
/* Sizes and times of checkpoints, shared links included: fills spec->checkpoint. */
bool orr_run__set_checkpoint(OrrRun *run, GError **error);
/* Factors of a kind that has a slow_part. */
bool orr_run__price_part(OrrRun *run, OrrFailureKind *kind, GError **error);
/* Fills run->record from everything else. */
void orr_run__fill(OrrRun *run);

#endif
