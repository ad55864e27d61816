#include "sim/report/sweep.h"

#include "sim/io/csv.h"
#include "sim/io/json_write.h"
#include "sim/report/report_priv.h"

#include <string.h>

static const OrrSweepAxis *axis_of(const OrrSweep *s, guint i) {
    return &g_array_index(s->axes, OrrSweepAxis, i);
}

/* Column widths of the keys: the longest of name and values. */
static int *widths_of(const OrrSweep *s) {
    int *width = g_new0(int, s->axes->len + 1);
    for (guint a = 0; a < s->axes->len; a++) {
        width[a] = (int)g_utf8_strlen(axis_of(s, a)->key, -1);
        for (uint32_t v = 0; v < axis_of(s, a)->n; v++)
            width[a] = MAX(width[a], (int)g_utf8_strlen(axis_of(s, a)->values[v], -1));
    }
    return width;
}

static void put_right(OrrOut *out, const char *text, int width) {
    int length = (int)g_utf8_strlen(text, -1);
    orr_out_printf(out, "  %*s%s", MAX(width - length, 0), "", text);
}

static const char *const verdicts[ORR_N_VERDICTS] = {"fits", "tight", "does not fit"};

static void text_row(const OrrSweep *s, uint32_t i, OrrOut *out) {
    const OrrSweepRow *r = &s->rows[i];
    if (r->refused) {
        orr_out_puts(out, "   refused\n");
        return;
    }
    OrrFixed gpus = orr_report__count(r->n_gpus);
    OrrFixed time = orr_report__time((double)r->step_time_ns);
    OrrFixed tokens = orr_report__count(r->tokens_per_s + 0.5);
    OrrFixed tflops = orr_report__fixed(r->tflops_per_gpu, 1);
    OrrFixed mfu = orr_report__percent(r->mfu_frac);
    OrrFixed bubble = orr_report__percent(r->bubble_of_step_frac);
    OrrFixed exposed = orr_report__percent(r->communication_share_frac);
    OrrFixed peak = orr_report__gib((double)r->peak_bytes);
    orr_out_printf(out, "  %7s %10s %13s %8s %7s %7s %7s %11s  %s%s\n", gpus.text, time.text,
                   tokens.text, tflops.text, mfu.text, bubble.text, exposed.text, peak.text,
                   verdicts[r->verdict], i == s->fastest ? "  <- most tokens/s" : "");
}

/* Reasons, each once, with the number of rows. */
static void text_refused(const OrrSweep *s, OrrOut *out) {
    g_autoptr(GHashTable) count = g_hash_table_new(g_str_hash, g_str_equal);
    for (uint32_t i = 0; i < s->n_rows; i++) {
        char *why = s->rows[i].refused;
        if (why)
            g_hash_table_insert(
                count, why,
                GUINT_TO_POINTER(GPOINTER_TO_UINT(g_hash_table_lookup(count, why)) + 1));
    }
    if (g_hash_table_size(count) > 0)
        orr_out_puts(out, "\nRefused\n");
    for (uint32_t i = 0; i < s->n_rows; i++) {
        gpointer n = s->rows[i].refused ? g_hash_table_lookup(count, s->rows[i].refused) : NULL;
        if (!n)
            continue;
        g_autofree char *first = g_strdup_printf("  %5u  ", GPOINTER_TO_UINT(n));
        orr_report__wrap(out, first, s->rows[i].refused);
        g_hash_table_remove(count, s->rows[i].refused);
    }
}

void orr_report_sweep_text(const OrrSweep *s, OrrOut *out) {
    g_autofree int *width = widths_of(s);
    uint32_t n_refused = 0, n_unfit = 0;
    for (uint32_t i = 0; i < s->n_rows; i++) {
        n_refused += s->rows[i].refused != NULL;
        n_unfit += !s->rows[i].refused && s->rows[i].verdict == ORR_DOES_NOT_FIT;
    }
    orr_out_printf(out, "%s: %u combination%s; %u fit, %u do not fit, %u refused\n\n", s->job,
                   s->n_rows, s->n_rows == 1 ? "" : "s", s->n_rows - n_refused - n_unfit, n_unfit,
                   n_refused);
    for (guint a = 0; a < s->axes->len; a++)
        put_right(out, axis_of(s, a)->key, width[a]);
    orr_out_printf(out, "  %7s %10s %13s %8s %7s %7s %7s %11s  %s\n", "GPUs", "step time",
                   "tokens/s", "TFLOP/s", "MFU", "bubble", "exposed", "peak", "memory");
    for (uint32_t i = 0; i < s->n_rows; i++) {
        for (guint a = 0; a < s->axes->len; a++)
            put_right(out, orr_sweep_value(s, i, a), width[a]);
        text_row(s, i, out);
    }
    text_refused(s, out);
    if (s->flops_formula[0])
        orr_out_printf(out,
                       "\nTFLOP/s a GPU and MFU by formula: %s; bubble and exposed communication "
                       "of the step;\npeak of the worst stage.\n",
                       s->flops_formula);
}

static void json_row(const OrrSweep *s, uint32_t i, OrrJsonWriter *w) {
    const OrrSweepRow *r = &s->rows[i];
    orr_json_begin_object_inline(w, NULL);
    orr_json_begin_object(w, "values");
    for (guint a = 0; a < s->axes->len; a++)
        orr_json_put_string(w, axis_of(s, a)->key, orr_sweep_value(s, i, a));
    orr_json_end_object(w);
    if (r->refused) {
        orr_json_put_string(w, "refused", r->refused);
    } else {
        orr_json_put_int(w, "world_size", r->n_gpus);
        orr_json_put_int(w, "step_time_ns", r->step_time_ns);
        orr_json_put_int(w, "tokens_per_step", r->tokens_per_step);
        orr_json_put_double(w, "tokens_per_s", r->tokens_per_s);
        orr_json_put_double(w, "tflops_per_gpu", r->tflops_per_gpu);
        orr_json_put_double(w, "mfu_frac", r->mfu_frac);
        orr_json_put_double(w, "hfu_frac", r->hfu_frac);
        orr_json_put_double(w, "bubble_of_step_frac", r->bubble_of_step_frac);
        orr_json_put_double(w, "communication_share_frac", r->communication_share_frac);
        orr_json_put_int(w, "peak_bytes", r->peak_bytes);
        orr_json_put_int(w, "capacity_bytes", r->capacity_bytes);
        orr_json_put_string(w, "verdict", orr_verdict_name(r->verdict));
    }
    orr_json_end_object(w);
}

void orr_report_sweep_json(const OrrSweep *s, OrrOut *out) {
    OrrJsonWriter w = {.out = out, .is_pretty = true};
    orr_json_begin_object(&w, NULL);
    orr_json_put_string(&w, "schema", "orrery.sweep/1");
    orr_json_put_string(&w, "version", s->version);
    orr_json_put_string(&w, "job", s->job);
    orr_json_put_string(&w, "flops_formula", s->flops_formula);
    orr_json_begin_array(&w, "axes");
    for (guint a = 0; a < s->axes->len; a++) {
        orr_json_begin_object_inline(&w, NULL);
        orr_json_put_string(&w, "key", axis_of(s, a)->key);
        orr_json_begin_array(&w, "values");
        for (uint32_t v = 0; v < axis_of(s, a)->n; v++)
            orr_json_put_string(&w, NULL, axis_of(s, a)->values[v]);
        orr_json_end_array(&w);
        orr_json_end_object(&w);
    }
    orr_json_end_array(&w);
    orr_json_begin_array(&w, "rows");
    for (uint32_t i = 0; i < s->n_rows; i++)
        json_row(s, i, &w);
    orr_json_end_array(&w);
    if (s->fastest != ORR_SWEEP_NONE)
        orr_json_put_int(&w, "fastest_row", s->fastest);
    orr_json_end_object(&w);
    orr_out_puts(out, "\n");
}

void orr_report_sweep_csv(const OrrSweep *s, OrrOut *out) {
    static const char *const columns[] = {
        "world_size",   "step_time_ns",        "tokens_per_step",
        "tokens_per_s", "tflops_per_gpu",      "mfu_frac",
        "hfu_frac",     "bubble_of_step_frac", "communication_share_frac",
        "peak_bytes",   "capacity_bytes",      "verdict",
        "refused"};
    OrrCsvWriter w = {.out = out};
    for (guint a = 0; a < s->axes->len; a++)
        orr_csv_put(&w, axis_of(s, a)->key);
    for (size_t i = 0; i < G_N_ELEMENTS(columns); i++)
        orr_csv_put(&w, columns[i]);
    orr_csv_end_row(&w);
    for (uint32_t i = 0; i < s->n_rows; i++) {
        const OrrSweepRow *r = &s->rows[i];
        for (guint a = 0; a < s->axes->len; a++)
            orr_csv_put(&w, orr_sweep_value(s, i, a));
        for (size_t k = 0; r->refused && k + 1 < G_N_ELEMENTS(columns); k++)
            orr_csv_put(&w, "");
        if (r->refused) {
            orr_csv_put(&w, r->refused);
            orr_csv_end_row(&w);
            continue;
        }
        orr_csv_put_int(&w, r->n_gpus);
        orr_csv_put_int(&w, r->step_time_ns);
        orr_csv_put_int(&w, r->tokens_per_step);
        orr_csv_put_double(&w, r->tokens_per_s);
        orr_csv_put_double(&w, r->tflops_per_gpu);
        orr_csv_put_double(&w, r->mfu_frac);
        orr_csv_put_double(&w, r->hfu_frac);
        orr_csv_put_double(&w, r->bubble_of_step_frac);
        orr_csv_put_double(&w, r->communication_share_frac);
        orr_csv_put_int(&w, r->peak_bytes);
        orr_csv_put_int(&w, r->capacity_bytes);
        orr_csv_put(&w, orr_verdict_name(r->verdict));
        orr_csv_put(&w, "");
        orr_csv_end_row(&w);
    }
}
