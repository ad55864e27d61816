#include "sim/report/sweep.h"

#include "sim/io/csv.h"
#include "sim/io/json_write.h"
#include "sim/report/report_priv.h"

#include <string.h>

#define SCHEMA "orrery.sweep/1"

static const OrrSweepAxis *axis_of(const OrrSweep *s, guint i) {
    return &g_array_index(s->axes, OrrSweepAxis, i);
}

/* Keys without their group, where that tells them apart. */
static const char *head_of(const OrrSweep *s, guint axis) {
    const char *key = axis_of(s, axis)->key, *own = strchr(key, '.') + 1;
    for (guint a = 0; a < s->axes->len; a++)
        if (a != axis && strcmp(strchr(axis_of(s, a)->key, '.') + 1, own) == 0)
            return key;
    return own;
}

/* Column widths of the keys: the longest of head and values. */
static int *widths_of(const OrrSweep *s) {
    int *width = g_new0(int, s->axes->len + 1);
    for (guint a = 0; a < s->axes->len; a++) {
        width[a] = (int)g_utf8_strlen(head_of(s, a), -1);
        for (uint32_t v = 0; v < axis_of(s, a)->n; v++)
            width[a] = MAX(width[a], (int)g_utf8_strlen(axis_of(s, a)->values[v], -1));
    }
    return width;
}

/* What the text says of all rows. */
typedef struct {
    uint32_t n_fit, n_unfit, n_refused;
    uint32_t n_gpus;           /* of all; 0: they differ */
    bool has_dp, has_formulas; /* they differ */
    const char *formula;
    GHashTable *reasons; /* number of each, from 1 */
} Summary;

static void summarise(const OrrSweep *s, Summary *sum) {
    const OrrSweepRow *first = NULL;
    *sum = (Summary){.reasons = g_hash_table_new(g_str_hash, g_str_equal), .formula = ""};
    for (uint32_t i = 0; i < s->n_rows; i++) {
        const OrrSweepRow *r = &s->rows[i];
        sum->n_refused += r->refused != NULL;
        if (r->refused && !g_hash_table_contains(sum->reasons, r->refused))
            g_hash_table_insert(sum->reasons, r->refused,
                                GUINT_TO_POINTER(g_hash_table_size(sum->reasons) + 1));
        if (r->refused)
            continue;
        sum->n_fit += r->verdict != ORR_DOES_NOT_FIT;
        sum->n_unfit += r->verdict == ORR_DOES_NOT_FIT;
        if (!first) {
            first = r;
            sum->n_gpus = r->n_gpus, sum->formula = r->flops_formula;
        }
        sum->n_gpus = r->n_gpus == sum->n_gpus ? sum->n_gpus : 0;
        sum->has_dp |= r->dp != first->dp;
        sum->has_formulas |= strcmp(r->flops_formula, first->flops_formula) != 0;
    }
}

static void put_right(OrrOut *out, const char *text, int width) {
    int length = (int)g_utf8_strlen(text, -1);
    orr_out_printf(out, "  %*s%s", MAX(width - length, 0), "", text);
}

static const char *const verdicts[ORR_N_VERDICTS] = {"fits", "tight", "does not fit"};

static void text_row(const OrrSweep *s, const Summary *sum, uint32_t i, OrrOut *out) {
    const OrrSweepRow *r = &s->rows[i];
    if (r->refused) {
        orr_out_printf(out, "  refused (%u)\n",
                       GPOINTER_TO_UINT(g_hash_table_lookup(sum->reasons, r->refused)));
        return;
    }
    OrrFixed gpus = orr_report__count(r->n_gpus), dp = orr_report__count(r->dp);
    OrrFixed time = orr_report__time((double)r->step_time_ns);
    OrrFixed tokens = orr_report__count(r->tokens_per_s);
    OrrFixed tflops = orr_report__fixed(r->tflops_per_gpu, 1);
    OrrFixed mfu = orr_report__percent(r->mfu_frac);
    OrrFixed bubble = orr_report__percent(r->bubble_of_step_frac);
    OrrFixed exposed = orr_report__percent(r->communication_share_frac);
    OrrFixed peak = orr_report__fixed((double)r->peak_bytes / 0x1p30, 2);
    if (sum->n_gpus == 0)
        put_right(out, gpus.text, 7);
    if (sum->has_dp)
        put_right(out, dp.text, 5);
    orr_out_printf(out, "  %9s %11s %8s %7s %7s %7s %9s  %s%s%s\n", time.text, tokens.text,
                   tflops.text, mfu.text, bubble.text, exposed.text, peak.text,
                   verdicts[r->verdict], sum->has_formulas ? "  " : "",
                   sum->has_formulas ? r->flops_formula : "");
}

static void text_head(const OrrSweep *s, const Summary *sum, const int *width, OrrOut *out) {
    OrrFixed gpus = orr_report__count(sum->n_gpus);
    orr_out_printf(out, "%s: %u combination%s of", s->job, s->n_rows, s->n_rows == 1 ? "" : "s");
    for (guint a = 0; a < s->axes->len; a++)
        orr_out_printf(out, "%s %s", a > 0 ? "," : "", axis_of(s, a)->key);
    orr_out_printf(out, "\n%s%s%s%u fit, %u do%s not fit, %u refused\n\n",
                   sum->n_gpus > 0 ? "on " : "", sum->n_gpus > 0 ? gpus.text : "",
                   sum->n_gpus > 1    ? " GPUs: "
                   : sum->n_gpus == 1 ? " GPU: "
                                      : "",
                   sum->n_fit, sum->n_unfit, sum->n_unfit == 1 ? "es" : "", sum->n_refused);
    orr_out_puts(out, " ");
    for (guint a = 0; a < s->axes->len; a++)
        put_right(out, head_of(s, a), width[a]);
    if (sum->n_gpus == 0)
        put_right(out, "GPUs", 7);
    if (sum->has_dp)
        put_right(out, "DP", 5);
    orr_out_printf(out, "  %9s %11s %8s %7s %7s %7s %9s  %s%s\n", "step time", "tokens/s",
                   "TFLOP/s", "MFU", "bubble", "exposed", "peak GiB", "memory",
                   sum->has_formulas ? "  formula" : "");
}

/* Each reason once, by its number. */
static void text_refused(const OrrSweep *s, const Summary *sum, OrrOut *out) {
    uint32_t next = 1;
    if (sum->n_refused > 0)
        orr_out_puts(out, "\nRefused\n");
    for (uint32_t i = 0; i < s->n_rows; i++) {
        const char *why = s->rows[i].refused;
        if (!why || GPOINTER_TO_UINT(g_hash_table_lookup(sum->reasons, why)) != next)
            continue;
        g_autofree char *first = g_strdup_printf("  (%u)  ", next++);
        orr_report__wrap(out, first, why);
    }
}

static void text_foot(const OrrSweep *s, const Summary *sum, OrrOut *out) {
    g_autofree char *text = g_strdup_printf(
        "%sTFLOP/s a GPU and MFU by formula%s%s; bubble, and exposed communication, of the step; "
        "peak of the worst stage.",
        s->fastest == ORR_SWEEP_NONE ? "" : "* Most tokens/s of those that fit. ",
        sum->has_formulas ? "" : " ", sum->has_formulas ? "" : sum->formula);
    orr_out_puts(out, "\n");
    orr_report__wrap(out, "", text);
}

void orr_report_sweep_text(const OrrSweep *s, OrrOut *out) {
    g_autofree int *width = widths_of(s);
    Summary sum;
    summarise(s, &sum);
    text_head(s, &sum, width, out);
    for (uint32_t i = 0; i < s->n_rows; i++) {
        orr_out_puts(out, i == s->fastest ? "*" : " ");
        for (guint a = 0; a < s->axes->len; a++)
            put_right(out, orr_sweep_value(s, i, a), width[a]);
        text_row(s, &sum, i, out);
    }
    text_refused(s, &sum, out);
    text_foot(s, &sum, out);
    g_hash_table_unref(sum.reasons);
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
        orr_json_put_int(w, "dp", r->dp);
        orr_json_put_string(w, "flops_formula", r->flops_formula);
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
    orr_json_put_string(&w, "schema", SCHEMA);
    orr_json_put_string(&w, "version", s->version);
    orr_json_put_string(&w, "job", s->job);
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
    static const char *const columns[] = {"world_size",
                                          "dp",
                                          "flops_formula",
                                          "step_time_ns",
                                          "tokens_per_step",
                                          "tokens_per_s",
                                          "tflops_per_gpu",
                                          "mfu_frac",
                                          "hfu_frac",
                                          "bubble_of_step_frac",
                                          "communication_share_frac",
                                          "peak_bytes",
                                          "capacity_bytes",
                                          "verdict",
                                          "refused"};
    OrrCsvWriter w = {.out = out};
    orr_csv_put(&w, "schema");
    for (guint a = 0; a < s->axes->len; a++)
        orr_csv_put(&w, axis_of(s, a)->key);
    for (size_t i = 0; i < G_N_ELEMENTS(columns); i++)
        orr_csv_put(&w, columns[i]);
    orr_csv_end_row(&w);
    for (uint32_t i = 0; i < s->n_rows; i++) {
        const OrrSweepRow *r = &s->rows[i];
        orr_csv_put(&w, SCHEMA);
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
        orr_csv_put_int(&w, r->dp);
        orr_csv_put(&w, r->flops_formula);
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
