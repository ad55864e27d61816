/* How far off a predicted step time is for jobs like this: from the errors on published runs.
 *
 * Regimes are nested, from runs that agree in profile, GPU generation, scale, width of TP and
 * pipelining, over profile and generation, profile, generation, to all. A regime of k sources has
 * k / (k + 1) of the weight, sources of few rows counting less; the rest goes to the wider one;
 * sources weigh equal within a regime. The interval are the quantiles of that mixture. A profile
 * that no published run used gets wider ones, so that leaving a source out still covers:
 * doc/accuracy.md has the measured coverage. Left out: what depends on the model's shape. */
#ifndef ORR_JUDGE_INTERVAL_H
#define ORR_JUDGE_INTERVAL_H

#include <stdbool.h>

#include "sim/facts/residuals.h"

#define ORR_INTERVAL_COVERAGE_FRAC 0.8

typedef struct {
    double low_ln, high_ln, median_ln; /* of measured over predicted */
    uint32_t n_rows, n_sources;        /* of the narrowest regime that has enough */
    bool has_framework, has_arch;      /* seen in any run; false: outside of what was measured */
    char *words;                       /* what that regime is; g_free */
} OrrInterval;

/**
 * orr_judge_interval: for a run of @regime. @held_out (may be NULL) says which rows not to use.
 * False: no row is left.
 */
bool orr_judge_interval(const OrrResiduals *residuals, const OrrRegime *regime,
                        bool (*held_out)(const OrrResidual *row, uint32_t i, void *data),
                        void *data, OrrInterval *out);

#endif
