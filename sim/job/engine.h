/* The engine of whole runs: steps, strikes, checkpoints, recovery, every nanosecond booked.
 *
 * Training goes in stretches of equal steps up to the next thing that can change something (a
 * checkpoint, a strike, a slow part healed, the end), so that the cost is that of the events and
 * not of the steps: a run of weeks takes milliseconds. doc/models/runs.md says what is left out. */
#ifndef ORR_JOB_ENGINE_H
#define ORR_JOB_ENGINE_H

#include "sim/job/spec.h"
#include "sim/result/run_record.h"

typedef enum {
    ORR_RUN_TRAIN,    /* a stretch of @steps steps */
    ORR_RUN_LOST,     /* a stretch lost to @cause by @loss */
    ORR_RUN_STRIKE,   /* an instant: @cause strikes */
    ORR_RUN_SAVED,    /* an instant: a checkpoint was taken; whole at end_ns */
    ORR_RUN_ROLLBACK, /* an instant: back by @steps steps, because of @cause */
    ORR_RUN_FINISHED, /* an instant */
    ORR_N_RUN_EVENTS
} OrrRunEventKind;
extern const char *const orr_run_event_names[];

typedef struct {
    OrrRunEventKind kind;
    int64_t begin_ns, end_ns;
    uint32_t cause; /* of orr_run_n_causes */
    OrrLoss loss;   /* ORR_RUN_LOST */
    int64_t steps;
    int64_t step, tokens; /* kept so far, when it ends */
    uint32_t lost_replicas;
} OrrRunEvent;

typedef struct {
    void (*event)(void *data, const OrrRunEvent *event);
    void *data;
} OrrRunProbe;

/**
 * orr_run_simulate: one seed of @spec, which orr_run_spec_check has passed.
 * @probe: may be NULL.  @out: initialised for orr_run_n_causes(@spec) causes; filled but for money.
 * Pure: seeds may run in parallel on one spec.
 */
void orr_run_simulate(const OrrRunSpec *spec, uint64_t seed, const OrrRunProbe *probe,
                      OrrRunSeed *out);

#endif
