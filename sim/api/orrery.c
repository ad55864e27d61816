/* The public face of the library, over step.h. */
#include "sim/api/orrery.h"

#include "config.h"
#include "sim/api/orrery_priv.h"
#include "sim/api/step.h"
#include "sim/report/formats.h"

#include <string.h>

struct OrreryStep {
    char *job, *calibration;
    char **words; /* group, key, value of each override, in turn */
    OrrOverride *overrides;
    OrrStepRequest request;
    OrrStepRun *run;
    const OrrRecord *record;
};

const char *orrery_version(void) {
    return PACKAGE_VERSION;
}

void orrery_error_free(OrreryError *error) {
    if (!error)
        return;
    g_free(error->message);
    g_free(error);
}

void orr_orrery__tell(OrreryError **error, GError *inner) {
    if (error) {
        *error = g_new(OrreryError, 1);
        (*error)->status = (OrreryStatus)inner->code;
        (*error)->message = g_strdup(inner->message);
    }
    g_error_free(inner);
}

static bool take_sets(OrreryStep *step, const char *const *sets, GError **error) {
    guint n = sets ? g_strv_length((char **)sets) : 0;
    step->words = g_new0(char *, 3 * (gsize)n + 1);
    step->overrides = g_new0(OrrOverride, n);
    step->request.n_overrides = n; /* now, so that what follows is freed if one of them is wrong */
    for (guint i = 0; i < n; i++) {
        const char *equals = strchr(sets[i], '='), *dot = strchr(sets[i], '.');
        if (!equals || !dot || dot > equals || dot == sets[i] || dot + 1 == equals)
            return orr_fail_usage(error, "set '%s': group.key=value would do", sets[i]);
        char **w = step->words + 3 * (gsize)i;
        w[0] = g_strndup(sets[i], (gsize)(dot - sets[i]));
        w[1] = g_strndup(dot + 1, (gsize)(equals - dot - 1));
        w[2] = g_strdup(equals + 1);
        step->overrides[i] = (OrrOverride){w[0], w[1], w[2]};
    }
    step->request.overrides = step->overrides;
    return true;
}

static bool run(OrreryStep *step, const OrreryOptions *options, GError **error) {
    if (!take_sets(step, options->sets, error))
        return false;
    step->calibration = g_strdup(options->calibration);
    step->request.job = step->job;
    step->request.calibration = step->calibration;
    step->request.seed = options->seed;
    step->request.has_seed = options->has_seed;
    step->request.is_unfolded = options->is_unfolded;
    step->request.self_check = options->self_check;
    step->run = orr_step_prepare(&step->request, error);
    if (!step->run || !orr_step_execute(step->run, NULL, NULL, 0, error))
        return false;
    static const OrrStepSensitivity usual;
    if (options->sensitivity && !orr_step_run_sensitivity(step->run, &usual, error))
        return false;
    step->record = orr_step_record(step->run);
    return true;
}

OrreryStep *orrery_step_run(const char *job, const OrreryOptions *options, OrreryError **error) {
    static const OrreryOptions defaults;
    OrreryStep *step = g_new0(OrreryStep, 1);
    step->job = g_strdup(job);
    GError *inner = NULL;
    if (run(step, options ? options : &defaults, &inner))
        return step;
    orr_orrery__tell(error, inner);
    orrery_step_free(step);
    return NULL;
}

void orrery_step_free(OrreryStep *step) {
    if (!step)
        return;
    orr_step_free(step->run);
    for (gsize i = 0; step->words && i < 3 * (gsize)step->request.n_overrides; i++)
        g_free(step->words[i]);
    g_free(step->words);
    g_free(step->overrides);
    g_free(step->calibration);
    g_free(step->job);
    g_free(step);
}

int64_t orrery_step_time_ns(const OrreryStep *step) {
    return step->record->step_time_ns;
}

double orrery_step_tokens_per_s(const OrreryStep *step) {
    return step->record->tokens_per_s;
}

double orrery_step_tflops_per_gpu(const OrreryStep *step) {
    return step->record->tflops_per_gpu;
}

double orrery_step_mfu_frac(const OrreryStep *step) {
    return step->record->mfu[0].mfu_frac;
}

double orrery_step_bubble_frac(const OrreryStep *step) {
    return step->record->bubble_of_step_frac;
}

uint32_t orrery_step_n_gpus(const OrreryStep *step) {
    return step->record->world_size;
}

bool orrery_step_fits(const OrreryStep *step) {
    return step->record->verdict != ORR_DOES_NOT_FIT;
}

uint32_t orrery_step_n_stages(const OrreryStep *step) {
    return step->record->n_stages;
}

int64_t orrery_step_peak_bytes(const OrreryStep *step, uint32_t stage) {
    return stage < step->record->n_stages ? step->record->stages[stage].peak_bytes : -1;
}

char *orrery_step_report(const OrreryStep *step, const char *format) {
    const OrrReportFormat *f = orr_report_format_find(format);
    if (!f)
        return NULL;
    GString *text = g_string_new(NULL);
    OrrOut *out = orr_out_to_string(text);
    f->write(step->record, out);
    orr_out_free(out);
    return g_string_free(text, FALSE);
}

void orrery_free(char *text) {
    g_free(text);
}
