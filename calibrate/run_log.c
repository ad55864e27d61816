#include "calibrate/run_log.h"

#include <math.h>
#include <string.h>

#include "calibrate/run_log_priv.h"

/* In the order in which they are asked: the first that takes a line names the framework. */
static const OrrRunFormat *const formats[] = {
    &orr_calibrate__megatron,
    &orr_calibrate__nemo,
    &orr_calibrate__deepspeed,
    &orr_calibrate__torchtitan,
};

double orr_calibrate__field(const char *line, const char *key) {
    for (const char *at = line; (at = strstr(at, key)); at++) {
        /* "step" is not that of "global_step", "[36mstep" is what is left of a colour code */
        bool is_word = at == line || !(g_ascii_isalnum(at[-1]) || at[-1] == '_' || at[-1] == '-') ||
                       at[-1] == 'm' || key[0] == '-';
        const char *value = at + strlen(key);
        while (*value == ' ' || *value == ':' || *value == '=')
            value++;
        double number;
        if (is_word && value > at + strlen(key) && orr_log_number(value, &number, NULL))
            return number;
    }
    return NAN;
}

/* Two digits at @text; -1: none. */
static int two(const char *text) {
    return g_ascii_isdigit(text[0]) && g_ascii_isdigit(text[1])
               ? (text[0] - '0') * 10 + text[1] - '0'
               : -1;
}

double orr_calibrate__stamp_s(const char *line) {
    for (const char *at = line; strlen(at) >= 19; at++) {
        int century = two(at), year = century < 0 ? -1 : two(at + 2);
        if (year < 0 || at[4] != '-' || at[7] != '-' || at[13] != ':' || at[16] != ':')
            continue;
        int month = two(at + 5), day = two(at + 8), hour = two(at + 11);
        int minute = two(at + 14), second = two(at + 17);
        g_autoptr(GDateTime) when =
            month > 0 && day > 0 && hour >= 0 && minute >= 0 && second >= 0
                ? g_date_time_new_utc(century * 100 + year, month, day, hour, minute, second)
                : NULL;
        if (!when)
            continue;
        double share = 0, scale = 0.1;
        if (at[19] == '.' || at[19] == ',')
            for (const char *c = at + 20; g_ascii_isdigit(*c); c++, scale /= 10)
                share += (*c - '0') * scale;
        return (double)g_date_time_to_unix(when) + share;
    }
    return NAN;
}

OrrMeasuredStep orr_calibrate__step(int64_t iteration, uint32_t line) {
    return (OrrMeasuredStep){
        .iteration = iteration,
        .time_ns = NAN,
        .tflops_per_gpu = NAN,
        .tokens_per_gpu_per_s = NAN,
        .mfu_frac = NAN,
        .samples_per_s = NAN,
        .memory_bytes = NAN,
        .line = line,
    };
}

void orr_calibrate__add_step(OrrRunReader *r, OrrMeasuredStep step, double stamp_s) {
    const OrrMeasuredStep *last =
        r->steps->len ? &g_array_index(r->steps, OrrMeasuredStep, r->steps->len - 1) : NULL;
    if (last && last->iteration == step.iteration) {
        r->n_repeated++;
        return;
    }
    if (isnan(step.time_ns) && last && step.iteration > last->iteration &&
        stamp_s > r->last_stamp_s) {
        step.time_ns =
            (stamp_s - r->last_stamp_s) / (double)(step.iteration - last->iteration) * 1e9;
        r->n_stamped++;
    }
    r->last_stamp_s = stamp_s;
    g_array_append_val(r->steps, step);
}

static void note(const OrrRunReader *r, const char *text) {
    g_string_append_printf(r->import->notes, "%s: %s\n", r->import->path, text);
}

/* Steps that the optimizer skipped lack its time: they count only if there are no others. */
static void settle_skipped(OrrRunReader *r) {
    guint n_skipped = 0;
    for (guint i = 0; i < r->steps->len; i++)
        n_skipped += g_array_index(r->steps, OrrMeasuredStep, i).is_dropped;
    if (n_skipped == 0)
        return;
    bool is_all = n_skipped == r->steps->len;
    for (guint i = 0; is_all && i < r->steps->len; i++)
        g_array_index(r->steps, OrrMeasuredStep, i).is_dropped = false;
    g_autofree char *text = g_strdup_printf(
        is_all
            ? "all %u steps have iterations without an optimizer step (overflow): used as they are"
            : "%u lines have iterations without an optimizer step (overflow): left out",
        n_skipped);
    note(r, text);
}

static void finish(OrrRunReader *r, const char *framework) {
    OrrMeasuredRun *run = r->run;
    bool is_mixed = r->is_deepspeed && strcmp(framework, "Megatron") == 0;
    run->framework = g_strdup(is_mixed ? "Megatron-DeepSpeed" : framework);
    settle_skipped(r);
    if (run->dp == 0 && run->n_gpus > 0 && run->tp > 0)
        run->dp = run->n_gpus / MAX(1, run->tp * MAX(1, run->pp) * MAX(1, run->cp));
    run->n_steps = r->steps->len;
    run->steps = (OrrMeasuredStep *)(void *)g_array_free(g_steal_pointer(&r->steps), FALSE);
    orr_measured_run_settle(run);
    orr_calibrate__timers_settle(r->timers, run);
    if (r->n_repeated > 0) {
        g_autofree char *text = g_strdup_printf(
            "%u lines repeat the step before (other ranks): left out", r->n_repeated);
        note(r, text);
    }
    if (r->n_stamped > 0)
        note(r, "step times are differences of time stamps: the log gives none");
    if (isnan(run->step_time_ns))
        note(r, "no step time: the log gives rates but neither times nor batch, sequence and "
                "number of GPUs");
}

static OrrMeasuredRun *read(const OrrImport *import, const OrrLog *log, GError **error) {
    OrrRunReader r = {.import = import, .last_stamp_s = NAN, .last_samples = -1};
    g_autoptr(OrrMeasuredRun) run = g_new0(OrrMeasuredRun, 1);
    const OrrRunFormat *format = NULL;
    run->name = g_strdup(import->path);
    run->zero_stage = -1;
    run->is_recompute = -1;
    run->step_time_ns = NAN;
    r.run = run;
    r.steps = g_array_new(FALSE, FALSE, sizeof(OrrMeasuredStep));
    r.timers = orr_calibrate__timers_new();
    for (guint i = 0; i < log->n_lines; i++) {
        if (strstr(log->lines[i], "[deepspeed]") || strstr(log->lines[i], "DeepSpeed"))
            r.is_deepspeed = true;
        for (guint k = 0; k < G_N_ELEMENTS(formats); k++) {
            /* once the framework is known, only its lines are steps */
            if ((!format || format == formats[k]) && formats[k]->line(&r, log->lines[i], i + 1)) {
                format = formats[k];
                break;
            }
        }
        orr_calibrate__timers_line(r.timers, log->lines[i], r.steps->len);
    }
    if (r.steps->len == 0) {
        g_array_unref(r.steps);
        orr_calibrate__timers_free(r.timers);
        orr_fail_input(error,
                       "%s: %u lines, but none reports a step as Megatron, Megatron-DeepSpeed, "
                       "DeepSpeed, NeMo or torchtitan do (\"elapsed time per iteration\", "
                       "\"CurrSamplesPerSec\", \"train_step_timing\", \"tps:\")",
                       import->path, log->n_lines);
        return NULL;
    }
    finish(&r, format->framework);
    orr_calibrate__timers_free(r.timers);
    return g_steal_pointer(&run);
}

OrrMeasuredRun *orr_run_log_parse(const OrrImport *import, const char *text, gsize length,
                                  GError **error) {
    g_autoptr(OrrLog) log = orr_log_parse(import->path, text, length, error);
    return log ? read(import, log, error) : NULL;
}

OrrMeasuredRun *orr_run_log_read(const OrrImport *import, GError **error) {
    g_autoptr(OrrLog) log = orr_log_load(import->path, error);
    return log ? read(import, log, error) : NULL;
}

static void put_count(GString *text, const char *key, double value) {
    if (value > 0)
        g_string_append_printf(text, "%s = %.0f\n", key, value);
}

static void put_number(GString *text, const char *key, double value, const char *unit) {
    char digits[G_ASCII_DTOSTR_BUF_SIZE];
    if (isfinite(value))
        g_string_append_printf(text, "%s = %s%s\n", key,
                               g_ascii_formatd(digits, sizeof digits, "%.6g", value), unit);
}

static void put_text(GString *text, const char *key, const char *value) {
    if (value)
        g_string_append_printf(text, "%s = %s\n", key, value);
}

char *orr_run_log_format(const OrrMeasuredRun *run) {
    GString *text = g_string_new("[run]\n");
    g_autofree char *base = g_path_get_basename(run->name);
    put_text(text, "source", base);
    put_text(text, "framework", run->framework);
    put_text(text, "gpu", run->gpu);
    put_text(text, "model", run->model);
    put_count(text, "gpus", run->n_gpus);
    g_string_append(text, "[layout]\n");
    put_count(text, "tp", run->tp);
    put_count(text, "pp", run->pp);
    put_count(text, "dp", run->dp);
    put_count(text, "cp", run->cp);
    put_count(text, "ep", run->ep);
    put_count(text, "vpp", run->vpp);
    if (run->zero_stage >= 0)
        g_string_append_printf(text, "zero_stage = %d\n", run->zero_stage);
    g_string_append(text, "[model]\n");
    put_count(text, "layers", run->layers);
    put_count(text, "hidden", run->hidden);
    put_count(text, "heads", run->heads);
    put_count(text, "ffn", (double)run->ffn);
    put_count(text, "vocab", run->vocab);
    g_string_append(text, "[batch]\n");
    put_count(text, "global", (double)run->global_batch);
    put_count(text, "micro", (double)run->micro_batch);
    put_count(text, "sequence", (double)run->sequence_tokens);
    if (run->is_recompute >= 0)
        g_string_append_printf(text, "[recompute]\nfull = %s\n", run->is_recompute ? "yes" : "no");
    g_string_append(text, "[measured]\n");
    put_number(text, "step_time", run->step_time_ns / 1e6, " ms");
    put_number(text, "step_time_p10", run->step_p10_ns / 1e6, " ms");
    put_number(text, "step_time_p90", run->step_p90_ns / 1e6, " ms");
    put_number(text, "step_time_deviation", run->step_deviation_ns / 1e6, " ms");
    put_number(text, "tflops_per_gpu", run->tflops_per_gpu, "");
    put_number(text, "tokens_per_gpu_per_s", run->tokens_per_gpu_per_s, "");
    put_number(text, "samples_per_s", run->samples_per_s, "");
    put_number(text, "mfu_frac", run->mfu_frac, "");
    put_number(text, "memory", run->memory_bytes / 1073741824, " GiB");
    put_text(text, "memory_is", run->memory_what);
    g_string_append_printf(text, "steps_logged = %u\nsteps_used = %u\n", run->n_steps, run->n_used);
    if (run->n_timers > 0)
        g_string_append_printf(text, "[timers] # of %s\n", run->timers_of);
    for (uint32_t i = 0; i < run->n_timers; i++)
        put_number(text, run->timers[i].name, run->timers[i].time_ns / 1e6, " ms");
    return g_string_free(text, FALSE);
}

static char *run_importer(const OrrImport *import, GError **error) {
    g_autoptr(OrrMeasuredRun) run = orr_run_log_read(import, error);
    return run ? orr_run_log_format(run) : NULL;
}

const OrrImporter orr_importer_log = {
    .name = "log",
    .summary = "a training log (Megatron, Megatron-DeepSpeed, DeepSpeed, NeMo, torchtitan) to a "
               "measured run",
    .source = "training_log() of Megatron-LM, ThroughputTimer of DeepSpeed, NeMo, torchtitan",
    .run = run_importer,
};
