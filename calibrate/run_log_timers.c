/* Timers that frameworks log behind a step: "time (ms) | forward-compute: 306.62 | ..." of Megatron
 * until 2022 (of the last rank) and of DeepSpeed's wall_clock_breakdown, and the blocks "(min, max)
 * time across ranks (ms):" and "max time across ranks (ms):" of Megatron since, a timer a line.
 * Of a pair the middle is taken. Left out: the "minmax" over intervals, energy. Source:
 * NVIDIA/Megatron-LM, megatron/core/timers.py; deepspeedai/DeepSpeed, utils/timer.py. */
#include "calibrate/run_log_priv.h"

#include <math.h>
#include <string.h>

#include "sim/base/stats.h"

#define MAX_TIMERS 64   /* ours: Megatron at its finest has about 30 */
#define LONGEST_NAME 64 /* ours */

typedef struct {
    char *name;
    GArray *times_ns; /* double, NAN where a step lacks it; index: step */
} Timer;

struct OrrLogTimers {
    Timer timers[MAX_TIMERS];
    guint n;
    const char *of; /* static */
    bool is_block;  /* within a block of one timer a line */
};

OrrLogTimers *orr_calibrate__timers_new(void) {
    return g_new0(OrrLogTimers, 1);
}

void orr_calibrate__timers_free(OrrLogTimers *t) {
    for (guint i = 0; i < t->n; i++) {
        g_free(t->timers[i].name);
        g_array_unref(t->timers[i].times_ns);
    }
    g_free(t);
}

static bool is_name(const char *name) {
    gsize n = strlen(name);
    for (const char *c = name; *c; c++)
        if (!g_ascii_isalnum(*c) && !strchr("-_/", *c))
            return false;
    return n > 0 && n <= LONGEST_NAME && g_ascii_isalpha(name[0]);
}

static void add(OrrLogTimers *t, const char *name, double time_ms, guint n_steps) {
    Timer *timer = NULL;
    for (guint i = 0; i < t->n && !timer; i++)
        if (strcmp(t->timers[i].name, name) == 0)
            timer = &t->timers[i];
    if (!timer && t->n == MAX_TIMERS)
        return;
    if (!timer) {
        timer = &t->timers[t->n++];
        timer->name = g_strdup(name);
        timer->times_ns = g_array_new(FALSE, FALSE, sizeof(double));
    }
    double none = NAN, time_ns = time_ms * 1e6;
    while (timer->times_ns->len < n_steps)
        g_array_append_val(timer->times_ns, none);
    g_array_index(timer->times_ns, double, n_steps - 1) = time_ns;
}

/* "NAME: 306.62" or "NAME ....: (306.62, 310.00)" */
static bool read_one(OrrLogTimers *t, const char *text, guint n_steps) {
    const char *colon = strchr(text, ':'), *end;
    double low, high;
    if (!colon)
        return false;
    g_autofree char *name = g_strndup(text, (gsize)(colon - text));
    g_strstrip(name);
    gsize length = strlen(name);
    while (length > 0 && (name[length - 1] == '.' || name[length - 1] == ' '))
        name[--length] = 0;
    const char *value = colon + 1;
    while (*value == ' ' || *value == '(')
        value++;
    if (!is_name(name) || !orr_log_number(value, &low, &end) || low < 0 || low > 1e12)
        return false;
    while (*end == ' ' || *end == ',')
        end++;
    bool is_pair = orr_log_number(end, &high, NULL) && high >= low && high <= 1e12;
    add(t, name, is_pair ? (low + high) / 2 : low, n_steps);
    return true;
}

void orr_calibrate__timers_line(OrrLogTimers *t, const char *line, guint n_steps) {
    if (n_steps == 0)
        return;
    const char *row = strstr(line, "time (ms) | ");
    if (row) {
        g_auto(GStrv) parts = g_strsplit(row, "|", MAX_TIMERS + 2);
        for (guint i = 1; parts[i]; i++)
            if (read_one(t, parts[i], n_steps) && !t->of)
                t->of = "the rank that logs, usually one of the last stage";
        t->is_block = false;
    } else if (strstr(line, "time across ranks (ms):")) {
        t->is_block = true;
        t->of = strstr(line, "(min, max)") ? "all ranks, the middle of least and most"
                                           : "all ranks, the most";
    } else if (t->is_block)
        t->is_block = read_one(t, line, n_steps);
}

void orr_calibrate__timers_settle(const OrrLogTimers *t, OrrMeasuredRun *run) {
    run->timers = g_new0(OrrMeasuredTimer, t->n + 1);
    g_autofree double *x = g_new(double, run->n_steps + 1);
    for (guint i = 0; i < t->n; i++) {
        const GArray *times = t->timers[i].times_ns;
        uint32_t n = 0;
        for (guint s = 0; s < times->len && s < run->n_steps; s++)
            if (!run->steps[s].is_dropped && isfinite(g_array_index(times, double, s)))
                x[n++] = g_array_index(times, double, s);
        if (n > 0)
            run->timers[run->n_timers++] =
                (OrrMeasuredTimer){g_strdup(t->timers[i].name), orr_stats_median(x, n), n};
    }
    run->timers_of = run->n_timers > 0 ? t->of : NULL;
}
