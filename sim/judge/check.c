#include "sim/judge/check.h"

#include <math.h>

#include "sim/base/stats.h"
#include "sim/collective/timed.h"

#define PLATEAU_SPAN 4   /* ours: sizes within this of the largest make the plateau */
#define RISING_FRAC 0.10 /* ours: what a doubling brings beyond the expected, and is no plateau */
#define RISING_SIZES 2
#define MIDDLE_FRAC                                                                                \
    0.5 /* ours: below, times of middle sizes need a cause: the model itself is off                \
           15 % on average there, 40 % at worst (doc/accuracy.md) */

double orr_check__expected_ns(const OrrCheckCase *c, const OrrMeasuredCollective *row,
                              OrrCollPlan *plan, GError **error) {
    OrrDtype dtype = row->dtype < ORR_N_DTYPES ? row->dtype : ORR_FP32;
    if (!orr_collective_plan(c->table->kind, row->bytes, dtype, &c->place, &c->force, plan, error))
        return 0;
    return orr_collective_timed_ns(plan, row->bytes, &c->place, c->table->timed,
                                   c->force.constants);
}

double orr_check__error(const OrrCheckCase *c) {
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->table->n_rows; i++) {
        const OrrMeasuredCollective *row = &c->table->rows[i];
        double measured = orr_measured_time_ns(row);
        OrrCollPlan plan;
        if (measured <= 0 || row->bytes < ORR_CHECK_FROM_BYTES)
            continue;
        double expected = orr_check__expected_ns(c, row, &plan, NULL);
        if (expected <= 0)
            return -1;
        sum += fabs(log(measured / expected));
        n++;
    }
    return n > 0 ? sum / n : -1;
}

static bool fill_rows(OrrCheck *k, const OrrCheckCase *c, GError **error) {
    const OrrMeasuredTable *t = c->table;
    double factor = orr_measured_bus_factor(t->kind, c->place.n_ranks);
    k->rows = g_new0(OrrCheckRow, t->n_rows + 1);
    for (uint32_t i = 0; i < t->n_rows; i++) {
        const OrrMeasuredCollective *row = &t->rows[i];
        OrrCheckRow *out = &k->rows[k->n_rows];
        OrrCollPlan plan;
        out->measured_ns = orr_measured_time_ns(row);
        if (out->measured_ns <= 0 || row->bytes <= 0)
            continue;
        out->expected_ns = orr_check__expected_ns(c, row, &plan, error);
        if (out->expected_ns <= 0)
            return false;
        out->bytes = row->bytes;
        out->measured_busbw_bytes_per_s = (double)row->bytes / out->measured_ns * 1e9 * factor;
        out->expected_busbw_bytes_per_s = (double)row->bytes / out->expected_ns * 1e9 * factor;
        out->ratio = out->expected_ns / out->measured_ns;
        out->algo = plan.algo;
        out->proto = plan.proto;
        k->n_rows++;
    }
    return k->n_rows > 0 || orr_fail_input(error, "%s: no row that can be used", t->name);
}

static const OrrCheckRow *largest_below(const OrrCheck *k, int64_t bytes) {
    const OrrCheckRow *found = NULL;
    for (uint32_t i = 0; i < k->n_rows; i++)
        if (k->rows[i].bytes < bytes && (!found || k->rows[i].bytes > found->bytes))
            found = &k->rows[i];
    return found;
}

/* Per doubling of the size, how much the bandwidth still grows over the last sizes. */
static bool still_rises(const OrrCheck *k, const OrrCheckRow *largest) {
    const OrrCheckRow *before = largest;
    for (int i = 0; i < RISING_SIZES && before; i++)
        before = largest_below(k, before->bytes);
    if (!before)
        return false;
    double doublings = log2((double)largest->bytes / (double)before->bytes);
    double rise = log(largest->measured_busbw_bytes_per_s / before->measured_busbw_bytes_per_s);
    double should = log(largest->expected_busbw_bytes_per_s / before->expected_busbw_bytes_per_s);
    return rise - should > doublings * log1p(RISING_FRAC);
}

static void fill_ratios(OrrCheck *k) {
    const OrrCheckRow *largest = largest_below(k, INT64_MAX);
    double best = 0;
    g_autofree double *top = g_new(double, k->n_rows);
    g_autofree double *middle = g_new(double, k->n_rows);
    uint32_t n_top = 0, n_middle = 0;
    k->is_plateau = !still_rises(k, largest);
    int64_t from = k->is_plateau ? largest->bytes / PLATEAU_SPAN : largest->bytes;
    for (uint32_t i = 0; i < k->n_rows; i++) {
        const OrrCheckRow *row = &k->rows[i];
        best = fmax(best, row->measured_busbw_bytes_per_s);
        if (row->bytes >= from)
            top[n_top++] = row->ratio;
        else if (row->bytes >= ORR_CHECK_FROM_BYTES)
            middle[n_middle++] = row->ratio;
    }
    k->plateau_ratio = orr_stats_median(top, n_top);
    k->middle_ratio = orr_stats_median(middle, n_middle);
    k->is_faster_than_wire = k->wire_bytes_per_s > 0 && best > k->wire_bytes_per_s;
}

OrrCheck *orr_judge_check(const OrrCheckCase *c, double tolerance_frac, GError **error) {
    g_autoptr(OrrCheck) k = g_new0(OrrCheck, 1);
    const OrrCommPlace *p = &c->place;
    if (p->n_ranks < 2) {
        orr_fail_input(error, "%s: one GPU moves nothing; a log of two or more would do",
                       c->table->name);
        return NULL;
    }
    k->wire_bytes_per_s =
        p->n_domains > 1 ? p->nic_bytes_per_s * p->nics_per_domain : p->nvlink_bytes_per_s;
    if (!fill_rows(k, c, error))
        return NULL;
    fill_ratios(k);
    bool is_plateau_within = fabs(log(k->plateau_ratio)) <= log1p(tolerance_frac);
    bool is_middle_slow = k->middle_ratio < MIDDLE_FRAC; /* false for NAN */
    k->is_within = is_plateau_within && !is_middle_slow;
    k->error_frac = orr_check__error(c);
    if (is_middle_slow || (!is_plateau_within && k->plateau_ratio < 1))
        orr_judge_causes(c, 1, &k->found);
    return g_steal_pointer(&k);
}

void orr_check_free(OrrCheck *k) {
    if (!k)
        return;
    orr_check_causes_clear(&k->found);
    g_free(k->rows);
    g_free(k);
}
