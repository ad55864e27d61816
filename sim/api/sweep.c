#include "sim/api/sweep.h"

#include "config.h"
#include "sim/base/parallel.h"

#include <string.h>

typedef struct {
    OrrSweep *sweep;
    const OrrSweepRequest *in;
    GError **errors; /* [n_rows] */
    char **groups, **keys;
} Work;

static void fill(const OrrRecord *r, OrrSweepRow *row) {
    row->flops_formula = g_strdup(r->flops_formula);
    row->n_gpus = r->world_size;
    row->dp = r->layout.dp;
    row->step_time_ns = r->step_time_ns;
    row->tokens_per_step = r->tokens_per_step;
    row->tokens_per_s = r->tokens_per_s;
    row->tflops_per_gpu = r->tflops_per_gpu;
    row->mfu_frac = r->mfu[0].mfu_frac;
    row->hfu_frac = r->mfu[0].hfu_frac;
    row->bubble_of_step_frac = r->bubble_of_step_frac;
    row->communication_share_frac = r->communication_share_frac;
    row->capacity_bytes = r->capacity_bytes;
    row->verdict = r->verdict;
    for (uint32_t s = 0; s < r->n_stages; s++)
        row->peak_bytes = MAX(row->peak_bytes, r->stages[s].peak_bytes);
}

static void run_piece(void *data, uint32_t i) {
    Work *w = data;
    const OrrStepRequest *base = w->in->request;
    uint32_t n = base->n_overrides, n_axes = w->sweep->axes->len;
    g_autofree OrrOverride *overrides = g_new0(OrrOverride, n + n_axes + 1);
    for (uint32_t k = 0; k < n; k++)
        overrides[k] = base->overrides[k];
    for (uint32_t a = 0; a < n_axes; a++)
        overrides[n + a] =
            (OrrOverride){w->groups[a], w->keys[a], orr_sweep_value(w->sweep, i, a), "--vary"};
    OrrStepRequest request = *base;
    request.overrides = overrides;
    request.n_overrides = n + n_axes;
    request.progress = NULL, request.note = NULL;
    g_autoptr(OrrStepRun) run = orr_step_prepare(&request, &w->errors[i]);
    if (!run || !orr_step_execute(run, NULL, NULL, 0, &w->errors[i]))
        return;
    fill(orr_step_record(run), &w->sweep->rows[i]);
}

static void split_keys(Work *w) {
    guint n = w->sweep->axes->len;
    w->groups = g_new0(char *, n + 1);
    w->keys = g_new0(char *, n + 1);
    for (guint i = 0; i < n; i++) {
        const char *key = g_array_index(w->sweep->axes, OrrSweepAxis, i).key;
        const char *dot = strchr(key, '.');
        g_assert(dot);
        w->groups[i] = g_strndup(key, (gsize)(dot - key));
        w->keys[i] = g_strdup(dot + 1);
    }
}

/* Of several lines the first, which is about what comes first in the file. */
static char *first_line(const char *text) {
    const char *end = strchr(text, '\n');
    return end ? g_strndup(text, (gsize)(end - text)) : g_strdup(text);
}

static void judge(Work *w) {
    OrrSweep *s = w->sweep;
    for (uint32_t i = 0; i < s->n_rows; i++) {
        OrrSweepRow *row = &s->rows[i];
        if (w->errors[i])
            row->refused = first_line(w->errors[i]->message);
        else if (row->verdict != ORR_DOES_NOT_FIT &&
                 (s->fastest == ORR_SWEEP_NONE ||
                  row->tokens_per_s > s->rows[s->fastest].tokens_per_s))
            s->fastest = i;
    }
}

static bool check_any(Work *w, GError **error) {
    for (uint32_t i = 0; i < w->sweep->n_rows; i++)
        if (!w->errors[i])
            return true;
    g_propagate_error(error, g_steal_pointer(&w->errors[0]));
    if (w->sweep->n_rows > 1)
        g_prefix_error(error, "none of the %u combinations can be; the first: ", w->sweep->n_rows);
    return false;
}

bool orr_sweep_run(OrrSweep *s, const OrrSweepRequest *in, GError **error) {
    uint64_t n = orr_sweep_n(s);
    if (n > ORR_MOST_SWEEP_ROWS)
        return orr_fail_usage(error,
                              "--vary: %" G_GUINT64_FORMAT " combinations; at most %u would do", n,
                              ORR_MOST_SWEEP_ROWS);
    Work w = {.sweep = s, .in = in};
    s->version = PACKAGE_VERSION;
    s->job = g_strdup(in->request->job);
    s->n_rows = (uint32_t)n;
    s->rows = g_new0(OrrSweepRow, n + 1);
    w.errors = g_new0(GError *, n + 1);
    split_keys(&w);
    OrrParallelProgress progress = {in->progress, in->progress_data};
    orr_parallel(s->n_rows, in->n_threads, run_piece, &w, &progress);
    bool is_fine = check_any(&w, error);
    if (is_fine)
        judge(&w);
    for (uint32_t i = 0; i < s->n_rows; i++)
        g_clear_error(&w.errors[i]);
    g_free(w.errors);
    g_strfreev(w.groups);
    g_strfreev(w.keys);
    return is_fine;
}
