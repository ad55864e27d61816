/* A sweep: one job with every combination of other values for some of its keys. */
#ifndef ORR_API_SWEEP_H
#define ORR_API_SWEEP_H

#include "sim/api/step.h"
#include "sim/result/sweep.h"

#define ORR_MOST_SWEEP_ROWS 100000u /* ours: an hour or so of small jobs */

typedef struct {
    const OrrStepRequest *request; /* of the job; specs, progress and notes do not count */
    uint32_t n_threads; /* 0: as many as there are processors; the result does not depend on it */
    void (*progress)(void *data, uint64_t done); /* rows; on the caller's thread; may be NULL */
    void *progress_data;
} OrrSweepRequest;

/**
 * orr_sweep_run: simulates a step of each combination of the axes that @sweep has, into its rows.
 * A combination that cannot be is a row with the reason. Errors: more combinations than
 * ORR_MOST_SWEEP_ROWS (ORR_ERROR_USAGE), or all are refused (the first one's reason).
 */
bool orr_sweep_run(OrrSweep *sweep, const OrrSweepRequest *request, GError **error);

#endif
