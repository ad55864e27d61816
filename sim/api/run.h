/* A whole run from file to record: load, price its steps, simulate its seeds. */
#ifndef ORR_API_RUN_H
#define ORR_API_RUN_H

#include "sim/plan/monte_carlo.h"
#include "sim/result/run_record.h"
#include "workloads/loader_run.h"

typedef struct {
    const char *run; /* a file of workloads/runs, a path, or a job's name */
    const OrrOverride *overrides;
    uint32_t n_overrides;
    const char *calibration;
    uint64_t seed; /* the first */
    uint32_t n_seeds;
    uint32_t n_threads; /* 0: as many as there are processors */
} OrrRunRequest;

typedef struct OrrRun OrrRun;
/* Everything but the seeds; the request is borrowed until the run is freed. NULL with @error. */
OrrRun *orr_run_prepare(const OrrRunRequest *request, GError **error);
void orr_run_free(OrrRun *run);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrRun, orr_run_free)

/* What its seeds depend on, as a checksum: the key of a store of them. */
const char *orr_run_key(const OrrRun *run);
const OrrRunSpec *orr_run_spec(const OrrRun *run);
const char *orr_run_cause_name(const OrrRun *run, uint32_t cause);

/* Simulates what the store has not. @store and @progress may be NULL. */
bool orr_run_execute(OrrRun *run, const OrrSeedStore *store,
                     void (*progress)(void *data, uint64_t done), void *progress_data,
                     GError **error);
/* After execute. Owned by the run. */
const OrrRunRecord *orr_run_record(const OrrRun *run);

/* Goodput by checkpoint interval: the run again at @n intervals, geometric between a sixteenth and
 * sixteen times its own. @interval_ns, @goodput_frac (over the seeds, at most 48) and
 * @expected_frac (Daly's, of failures and checkpoints alone) have @n. Returns: how many differ, 0
 * without checkpoints. */
uint32_t orr_run_intervals(const OrrRun *run, uint32_t n, int64_t *interval_ns,
                           double *goodput_frac, double *expected_frac);

#endif
