/* Warm-up, samples and their summary. Every process takes the same decisions, because they follow
 * from times that all agree on. */
#include "calibrate/sample.h"

#include "sim/base/stats.h"

#include <math.h>

/* A median of 9 with a 10th and 90th percentile tells a stray sample from a wide spread; the
 * warm-up is longer than the ramp of the clocks from idle (about 20 ms on data centre GPUs). */
const OrrSampling orr_sampling_quick = {
    .warm_up_ns = 3e6,
    .sample_ns = 1e6,
    .n_samples = 9,
    .n_min_samples = 3,
    .n_max_repeats = 200,
    .limit_ns = 1e8,
};
const OrrSampling orr_sampling_full = {
    .warm_up_ns = 3e7,
    .sample_ns = 3e6,
    .n_samples = 25,
    .n_min_samples = 5,
    .n_max_repeats = 1000,
    .limit_ns = 2e9,
};

static bool time_agreed(OrrDevice *d, OrrWork *w, OrrRanks *ranks, uint32_t n, OrrTiming *t,
                        GError **error) {
    GError *mine = NULL;
    *t = (OrrTiming){.compute_ns = NAN, .compute_beside_ns = NAN};
    d->kind->time(d, w, n, t, &mine);
    if (!orr_ranks_agree(ranks, mine, error))
        return false;
    t->ns = ranks->max(ranks, t->ns);
    if (!(t->ns > 0) || !isfinite(t->ns)) {
        g_set_error(error, ORR_ERROR, ORR_ERROR_NO, "the clock of the device shows no time");
        return false;
    }
    return true;
}

/* Doubles the repeats until the warm-up is over; *@ns is then the time of one. */
static bool warm_up(OrrDevice *d, OrrWork *w, OrrRanks *ranks, const OrrSampling *s, double *ns,
                    GError **error) {
    double spent = 0;
    OrrTiming t;
    for (uint32_t n = 1;; n = MIN(2 * n, s->n_max_repeats)) {
        if (!time_agreed(d, w, ranks, n, &t, error))
            return false;
        spent += t.ns * n;
        if (spent >= s->warm_up_ns && (n > 1 || t.ns > s->sample_ns))
            break;
    }
    *ns = t.ns;
    return true;
}

static void summarise(const double *ns, uint32_t n, OrrSummary *summary) {
    summary->n_samples = n;
    summary->median_ns = orr_stats_median(ns, n);
    summary->mean_ns = orr_stats_mean(ns, n);
    summary->min_ns = orr_stats_percentile(ns, n, 0);
    summary->p10_ns = orr_stats_percentile(ns, n, 0.1);
    summary->p90_ns = orr_stats_percentile(ns, n, 0.9);
    summary->spread_frac = (summary->p90_ns - summary->p10_ns) / summary->median_ns;
}

bool orr_sample(OrrDevice *d, OrrWork *w, OrrRanks *ranks, const OrrSampling *s, bool flushes_l2,
                OrrSummary *summary, GError **error) {
    *summary = (OrrSummary){.compute_ns = NAN, .compute_beside_ns = NAN};
    double one_ns;
    if (!warm_up(d, w, ranks, s, &one_ns, error))
        return false;
    double wanted = ceil(s->sample_ns / one_ns);
    uint32_t repeats = flushes_l2 ? 1 : (uint32_t)CLAMP(wanted, 1, s->n_max_repeats);
    g_autofree double *ns = g_new(double, s->n_samples);
    g_autofree double *alone = g_new(double, s->n_samples);
    g_autofree double *beside = g_new(double, s->n_samples);
    double spent = 0;
    uint32_t n = 0;
    while (n < s->n_samples && (n < s->n_min_samples || spent < s->limit_ns)) {
        OrrTiming t;
        if (!time_agreed(d, w, ranks, repeats, &t, error))
            return false;
        ns[n] = t.ns;
        alone[n] = t.compute_ns;
        beside[n] = t.compute_beside_ns;
        spent += t.ns * repeats;
        n++;
    }
    summarise(ns, n, summary);
    summary->n_repeats = repeats;
    if (isfinite(alone[0]) && isfinite(beside[0])) {
        summary->compute_ns = orr_stats_median(alone, n);
        summary->compute_beside_ns = orr_stats_median(beside, n);
    }
    return true;
}
