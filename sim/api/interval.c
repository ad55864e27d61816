/* The interval of a step's record. Not for specs made in memory: validation sets what it rests on.
 */
#include <math.h>

#include "sim/api/step_priv.h"
#include "sim/judge/interval.h"
#include "workloads/residuals.h"

/* What of the job no published run had that is compared. */
static char *outside_of(const OrrStepRun *run, const OrrInterval *interval) {
    const OrrDtype compute = run->job->precision.compute;
    g_autoptr(GString) text = g_string_new(NULL);
    const struct {
        bool is_outside;
        const char *what;
    } parts[] = {{!interval->has_framework, "this framework profile"},
                 {!interval->has_arch, "this generation of GPUs"},
                 {compute == ORR_FP8 || compute == ORR_FP4, "FP8 and below"},
                 {run->job->layout.cp > 1, "context parallelism"}};
    for (size_t i = 0; i < G_N_ELEMENTS(parts); i++)
        if (parts[i].is_outside)
            g_string_append_printf(text, "%s%s", text->len > 0 ? ", " : "", parts[i].what);
    return g_strdup(text->str);
}

static int64_t scaled(int64_t ns, double ln) {
    return (int64_t)ceil((double)ns * exp(ln));
}

bool orr_step__fill_interval(OrrStepRun *run, GError **error) {
    g_autofree char *path = orr_workload_residuals_shipped(error);
    g_autoptr(OrrResiduals) residuals = path ? orr_workload_residuals(path, error) : NULL;
    OrrInterval interval;
    OrrRecord *r = run->record;
    if (!residuals)
        return false;
    OrrRegime regime = {.framework = r->framework,
                        .arch = orr_arch_names[run->gpu->arch],
                        .n_gpus = r->world_size,
                        .tp = r->layout.tp,
                        .pp = r->layout.pp};
    if (!orr_judge_interval(residuals, &regime, NULL, NULL, &interval))
        return true;
    g_autofree char *outside = outside_of(run, &interval);
    r->interval.coverage_frac = ORR_INTERVAL_COVERAGE_FRAC;
    r->interval.low_ns = scaled(r->step_time_ns, interval.low_ln);
    r->interval.median_ns = scaled(r->step_time_ns, interval.median_ln);
    r->interval.high_ns = scaled(r->step_time_ns, interval.high_ln);
    r->interval.n_rows = interval.n_rows;
    r->interval.n_sources = interval.n_sources;
    orr_record_set(&r->interval.regime, interval.words);
    orr_record_set(&r->interval.outside, outside);
    g_free(interval.words);
    return true;
}
