/* The loop over cases. All processes go through it in step: process 0 says which cases are left and
 * when to stop, errors are agreed on. */
#include "calibrate/runner.h"

#include "sim/io/progress.h"

#include <math.h>

/* A case that can't be measured is a row with the reason; a lost device ends the run. */
static bool is_refusal(const GError *error) {
    return error->code == ORR_ERROR_NO;
}

static bool check_result(OrrDevice *d, OrrWork *w, OrrRanks *ranks, OrrCaseRecord *record,
                         GError **error) {
    GError *mine = NULL;
    double error_frac = NAN, tolerance_frac = 0;
    d->kind->check(d, w, &error_frac, &tolerance_frac, &mine);
    if (!orr_ranks_agree(ranks, mine, error))
        return false;
    bool is_compared = ranks->max(ranks, isnan(error_frac) ? -1 : 1) > 0;
    double worst = ranks->max(ranks, isnan(error_frac) ? -1 : error_frac);
    double excess = ranks->max(ranks, isnan(error_frac) ? -1 : error_frac - tolerance_frac);
    record->error_frac = is_compared ? worst : NAN;
    if (is_compared && excess > 0) {
        record->status = ORR_STATUS_WRONG;
        record->reason = "differs from the reference by more than rounding explains";
    }
    return true;
}

static bool measure(const OrrPlan *plan, OrrDevice *d, OrrRanks *ranks, const OrrCase *c,
                    OrrCaseRecord *record, GError **error) {
    GError *mine = NULL;
    OrrWork *w = d->kind->prepare(d, c, &mine);
    bool is_good = orr_ranks_agree(ranks, mine, error);
    is_good = is_good && check_result(d, w, ranks, record, error) &&
              orr_sample(d, w, ranks, &plan->sampling, c->flushes_l2, &record->summary, error);
    d->kind->read(d, &record->readings);
    if (w)
        d->kind->release(d, w);
    return is_good;
}

static bool do_case(const OrrPlan *plan, OrrDevice *d, OrrRanks *ranks, const OrrCase *c,
                    OrrOutcome *outcome, GError **error) {
    g_autoptr(GError) local = NULL;
    OrrCaseRecord record = {.status = ORR_STATUS_OK, .error_frac = NAN, .reason = ""};
    if (!measure(plan, d, ranks, c, &record, &local)) {
        if (!is_refusal(local)) {
            g_propagate_error(error, g_steal_pointer(&local));
            return false;
        }
        record.status = ORR_STATUS_REFUSED;
        record.reason = local->message;
    }
    outcome->n_ok += record.status == ORR_STATUS_OK;
    outcome->n_wrong += record.status == ORR_STATUS_WRONG;
    outcome->n_refused += record.status == ORR_STATUS_REFUSED;
    GError *mine = NULL;
    if (plan->records)
        orr_records_add(plan->records, c, &record, &mine);
    return orr_ranks_agree(ranks, mine, error);
}

/* Which cases are to be measured, a byte each, the same in all processes; g_free. */
static uint8_t *find_left(const OrrPlan *plan, OrrRanks *ranks, guint *n_left) {
    uint8_t *left = g_new0(uint8_t, plan->n_cases + 1);
    for (guint i = 0; plan->records && i < plan->n_cases; i++)
        left[i] = !orr_records_has(plan->records, &plan->cases[i]);
    ranks->broadcast(ranks, left, plan->n_cases + 1);
    *n_left = 0;
    for (guint i = 0; i < plan->n_cases; i++)
        *n_left += left[i];
    return left;
}

static bool must_end(const OrrPlan *plan, OrrDevice *d, OrrRanks *ranks, int64_t begin_us,
                     OrrOutcome *outcome) {
    double seconds = (double)(d->kind->now_us(d) - begin_us) / 1e6;
    bool is_over = plan->budget_s > 0 && seconds >= plan->budget_s;
    bool is_stopped = plan->is_stopped && plan->is_stopped(plan->data);
    outcome->is_stopped = ranks->max(ranks, is_stopped) > 0;
    outcome->is_out_of_time = ranks->max(ranks, is_over) > 0;
    return outcome->is_stopped || outcome->is_out_of_time;
}

bool orr_run(const OrrPlan *plan, OrrDevice *d, OrrRanks *ranks, OrrOutcome *outcome,
             GError **error) {
    *outcome = (OrrOutcome){0};
    guint n_left;
    g_autofree uint8_t *left = find_left(plan, ranks, &n_left);
    outcome->n_before = plan->n_cases - n_left;
    outcome->n_left = n_left;
    g_autoptr(OrrProgress) progress =
        plan->shows_progress ? orr_progress_new("measuring", n_left, "cases") : NULL;
    int64_t begin_us = d->kind->now_us(d);
    for (guint i = 0; i < plan->n_cases; i++) {
        if (!left[i])
            continue;
        if (must_end(plan, d, ranks, begin_us, outcome))
            break;
        if (!do_case(plan, d, ranks, &plan->cases[i], outcome, error))
            return false;
        outcome->n_left--;
        if (progress)
            orr_progress_set(progress, n_left - outcome->n_left);
    }
    return true;
}
