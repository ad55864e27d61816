/* Runs a list of cases on a device and records them: skips what is recorded already, stops when it
 * is told to, when its time is over, or when the device or the disk fails. */
#ifndef ORR_CALIBRATE_RUNNER_H
#define ORR_CALIBRATE_RUNNER_H

#include "calibrate/records.h"

typedef struct {
    const OrrCase *cases;
    guint n_cases;
    OrrSampling sampling;
    double budget_s;                /* no new case after so long; 0: no limit */
    bool (*is_stopped)(void *data); /* asked between cases; may be NULL */
    void *data;
    OrrRecords *records; /* NULL but in process 0 */
    bool shows_progress;
} OrrPlan;

typedef struct {
    guint n_before; /* recorded by earlier runs */
    guint n_ok, n_wrong, n_refused;
    guint n_left; /* not reached */
    bool is_stopped, is_out_of_time;
} OrrOutcome;

/* The outcome counts even if this returns false. Errors: ORR_ERROR_ENV of the device or disk. */
bool orr_run(const OrrPlan *plan, OrrDevice *d, OrrRanks *ranks, OrrOutcome *outcome,
             GError **error);

#endif
