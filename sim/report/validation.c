#include "sim/report/validation.h"

#include "sim/io/csv.h"
#include "sim/io/json_write.h"

#include <stdio.h>
#include <string.h>

static const char *percent(char buffer[24], double frac, bool is_signed) {
    g_ascii_formatd(buffer, 24, is_signed ? "%+.1f" : "%.1f", 100.0 * frac);
    return buffer;
}

static void text_group(const OrrValidationGroup *g, const char *name, OrrOut *out) {
    char a[24], b[24], c[24], d[24], e[24];
    if (g->rows == 0) {
        orr_out_printf(out, "  %-44.44s %6u %7u\n", name, 0, g->skipped);
        return;
    }
    orr_out_printf(out, "  %-44.44s %6u %7u %6s %6s %6s %6s %7s\n", name, g->rows, g->skipped,
                   percent(a, g->mape_frac, false), percent(b, g->median_abs_frac, false),
                   percent(c, g->bias_frac, true), percent(d, g->p90_abs_frac, false),
                   percent(e, g->worst_frac, true));
}

static void text_kind(const OrrValidation *v, OrrValidated kind, OrrOut *out) {
    static const char *const titles[] = {"Step time", "Collectives, time by size",
                                         "Kernels, time by shape", "Memory at the peak"};
    char a[24];
    const char *by = "";
    if (v->all[kind].rows + v->all[kind].skipped == 0)
        return;
    orr_out_printf(out, "%s: predicted over measured, errors in %%\n", titles[kind]);
    orr_out_printf(out, "  %-44s %6s %7s %6s %6s %6s %6s %7s\n", "", "rows", "skipped", "mean",
                   "median", "bias", "p90", "worst");
    for (guint i = 0; i < v->groups[kind]->len; i++) {
        const OrrValidationGroup *g = &g_array_index(v->groups[kind], OrrValidationGroup, i);
        if (strcmp(by, g->by) != 0)
            orr_out_printf(out, " by %s\n", g->by);
        by = g->by;
        text_group(g, g->name, out);
    }
    orr_out_puts(out, " all\n");
    text_group(&v->all[kind], "", out);
    if (kind == ORR_VALIDATED_STEP && v->all[kind].rows > 0)
        orr_out_printf(out, "  mean over the files, single errors cut at 50 %%: %s %%\n",
                       percent(a, v->macro_mape_frac, false));
    if (kind == ORR_VALIDATED_COLLECTIVE && v->big_rows > 0)
        orr_out_printf(out, "  above 1 MiB: mean %s %% of %u rows\n",
                       percent(a, v->big_mape_frac, false), v->big_rows);
    orr_out_puts(out, "\n");
}

static void text_fits(const OrrValidationFits *f, OrrOut *out) {
    uint32_t n = f->ran_fits + f->ran_not + f->failed_fits + f->failed_not;
    char a[24];
    if (n == 0)
        return;
    orr_out_printf(out, "Trials of memory: %u of %u right (%s %%), %u skipped\n",
                   f->ran_fits + f->failed_not, n,
                   percent(a, (double)(f->ran_fits + f->failed_not) / n, false), f->skipped);
    orr_out_printf(out, "  %-16s %12s %16s\n", "", "said to fit", "said not to fit");
    orr_out_printf(out, "  %-16s %12u %16u\n", "ran", f->ran_fits, f->ran_not);
    orr_out_printf(out, "  %-16s %12u %16u\n\n", "out of memory", f->failed_fits, f->failed_not);
}

void orr_report_validation_text(const OrrValidation *v, OrrOut *out) {
    for (int k = 0; k < ORR_N_VALIDATED; k++)
        text_kind(v, (OrrValidated)k, out);
    text_fits(&v->fits, out);
    if (v->skips->len > 0)
        orr_out_puts(out, "Skipped\n");
    for (guint i = 0; i < v->skips->len; i++) {
        const OrrValidationSkip *s = &g_array_index(v->skips, OrrValidationSkip, i);
        orr_out_printf(out, "  %6u  %s (%s)\n", s->rows, s->reason, orr_validated_names[s->kind]);
    }
    for (guint i = 0; v->others[i]; i++)
        orr_out_printf(out, "  %s\n", v->others[i]);
    if (v->rules->len > 0)
        orr_out_puts(out, "\nWhat rows leave open, and how many of those compared\n");
    for (guint i = 0; i < v->rules->len; i++) {
        const OrrValidationRule *r = &g_array_index(v->rules, OrrValidationRule, i);
        orr_out_printf(out, "  %6u  %s: %s\n", r->rows, r->key, r->rule);
    }
}

static void json_group(OrrJsonWriter *w, const OrrValidationGroup *g) {
    orr_json_begin_object_inline(w, NULL);
    orr_json_put_string(w, "by", g->by);
    orr_json_put_string(w, "name", g->name);
    orr_json_put_int(w, "rows", g->rows);
    orr_json_put_int(w, "skipped", g->skipped);
    if (g->rows > 0) {
        orr_json_put_double(w, "mape_frac", g->mape_frac);
        orr_json_put_double(w, "median_abs_frac", g->median_abs_frac);
        orr_json_put_double(w, "bias_frac", g->bias_frac);
        orr_json_put_double(w, "p90_abs_frac", g->p90_abs_frac);
        orr_json_put_double(w, "worst_frac", g->worst_frac);
    }
    orr_json_end_object(w);
}

static void json_groups(OrrJsonWriter *w, const OrrValidation *v, OrrValidated kind) {
    orr_json_begin_array(w, "groups");
    for (guint i = 0; i < v->groups[kind]->len; i++)
        json_group(w, &g_array_index(v->groups[kind], OrrValidationGroup, i));
    orr_json_end_array(w);
    const OrrValidationGroup *all = &v->all[kind];
    orr_json_begin_object(w, "all");
    orr_json_put_int(w, "rows", all->rows);
    orr_json_put_int(w, "skipped", all->skipped);
    if (all->rows > 0) {
        orr_json_put_double(w, "mape_frac", all->mape_frac);
        orr_json_put_double(w, "median_abs_frac", all->median_abs_frac);
        orr_json_put_double(w, "bias_frac", all->bias_frac);
        orr_json_put_double(w, "p90_abs_frac", all->p90_abs_frac);
        if (kind == ORR_VALIDATED_STEP)
            orr_json_put_double(w, "macro_mape_frac", v->macro_mape_frac);
    }
    if (kind == ORR_VALIDATED_COLLECTIVE && v->big_rows > 0) {
        orr_json_put_int(w, "above_1mib_rows", v->big_rows);
        orr_json_put_double(w, "above_1mib_mape_frac", v->big_mape_frac);
    }
    orr_json_end_object(w);
}

static void json_inputs(OrrJsonWriter *w, const OrrValidation *v) {
    orr_json_begin_array(w, "inputs");
    for (guint i = 0; v->files[i]; i++) {
        orr_json_begin_object_inline(w, NULL);
        orr_json_put_string(w, "name", v->files[i]);
        orr_json_put_string(w, "sha256", v->hashes[i]);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    orr_json_put_string(w, "calibration", v->calibration);
    orr_json_begin_array(w, "assumptions");
    for (guint i = 0; i < v->rules->len; i++) {
        const OrrValidationRule *r = &g_array_index(v->rules, OrrValidationRule, i);
        orr_json_begin_object_inline(w, NULL);
        orr_json_put_string(w, "key", r->key);
        orr_json_put_string(w, "rule", r->rule);
        orr_json_put_int(w, "rows", r->rows);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

static void json_skips(OrrJsonWriter *w, const OrrValidation *v) {
    orr_json_begin_array(w, "skipped");
    for (guint i = 0; i < v->skips->len; i++) {
        const OrrValidationSkip *s = &g_array_index(v->skips, OrrValidationSkip, i);
        orr_json_begin_object_inline(w, NULL);
        orr_json_put_string(w, "of", orr_validated_names[s->kind]);
        orr_json_put_string(w, "reason", s->reason);
        orr_json_put_int(w, "rows", s->rows);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    orr_json_begin_array(w, "not_compared");
    for (guint i = 0; v->others[i]; i++)
        orr_json_put_string(w, NULL, v->others[i]);
    orr_json_end_array(w);
}

void orr_report_validation_json(const OrrValidation *v, OrrOut *out) {
    OrrJsonWriter w = {.out = out, .is_pretty = true};
    orr_json_begin_object(&w, NULL);
    orr_json_put_string(&w, "schema", "orrery.validate/1");
    orr_json_put_string(&w, "version", v->version);
    orr_json_put_int(&w, "seed", 0); /* nothing is drawn */
    orr_json_put_bool(&w, "all_rows", v->is_all_rows);
    json_inputs(&w, v);
    json_groups(&w, v, ORR_VALIDATED_STEP);
    for (int k = ORR_VALIDATED_COLLECTIVE; k < ORR_N_VALIDATED; k++) {
        orr_json_begin_object(&w, orr_validated_names[k]);
        json_groups(&w, v, (OrrValidated)k);
        orr_json_end_object(&w);
    }
    orr_json_begin_object(&w, "fits");
    orr_json_put_int(&w, "ran_said_to_fit", v->fits.ran_fits);
    orr_json_put_int(&w, "ran_said_not_to_fit", v->fits.ran_not);
    orr_json_put_int(&w, "out_of_memory_said_to_fit", v->fits.failed_fits);
    orr_json_put_int(&w, "out_of_memory_said_not_to_fit", v->fits.failed_not);
    orr_json_put_int(&w, "skipped", v->fits.skipped);
    orr_json_end_object(&w);
    json_skips(&w, v);
    orr_json_end_object(&w);
    orr_out_puts(out, "\n");
}

void orr_report_validation_csv(const OrrValidation *v, OrrOut *out) {
    static const char *const header[] = {
        "schema",     "of",       "file",      "line", "id",         "gpu",     "group",  "cluster",
        "size_bytes", "measured", "predicted", "unit", "error_frac", "skipped", "detail", NULL};
    OrrCsvWriter w = {.out = out};
    orr_csv_put_row(&w, header);
    for (guint i = 0; i < v->rows->len; i++) {
        const OrrValidationRow *r = &g_array_index(v->rows, OrrValidationRow, i);
        bool is_compared = !r->reason;
        orr_csv_put(&w, "orrery.validate/1");
        orr_csv_put(&w, orr_validated_names[r->kind]);
        orr_csv_put(&w, v->files[r->file]);
        orr_csv_put_int(&w, r->line);
        orr_csv_put(&w, r->id);
        orr_csv_put(&w, r->gpu);
        orr_csv_put(&w, r->group);
        orr_csv_put(&w, r->cluster ? r->cluster : "");
        r->bytes > 0 ? orr_csv_put_int(&w, r->bytes) : orr_csv_put(&w, "");
        is_compared ? orr_csv_put_double(&w, r->measured) : orr_csv_put(&w, "");
        is_compared ? orr_csv_put_double(&w, r->predicted) : orr_csv_put(&w, "");
        orr_csv_put(&w, r->kind == ORR_VALIDATED_MEMORY ? "bytes" : "ns");
        is_compared ? orr_csv_put_double(&w, r->predicted / r->measured - 1.0)
                    : orr_csv_put(&w, "");
        orr_csv_put(&w, is_compared ? "" : r->reason);
        orr_csv_put(&w, r->detail ? r->detail : "");
        orr_csv_end_row(&w);
    }
}

void orr_report_validation_plot(const OrrValidation *v, OrrOut *out) {
    OrrCsvWriter w = {.out = out};
    static const char *const header[] = {"framework", "measured_ms", "predicted_ms", NULL};
    bool is_first = true;
    orr_csv_put_row(&w, header);
    for (guint g = 0; g < v->groups[ORR_VALIDATED_STEP]->len; g++) {
        const OrrValidationGroup *group =
            &g_array_index(v->groups[ORR_VALIDATED_STEP], OrrValidationGroup, g);
        if (strcmp(group->by, "framework") != 0 || group->rows == 0)
            continue;
        if (!is_first)
            orr_out_puts(out, "\n\n"); /* gnuplot: a new block */
        is_first = false;
        for (guint i = 0; i < v->rows->len; i++) {
            const OrrValidationRow *r = &g_array_index(v->rows, OrrValidationRow, i);
            if (r->kind != ORR_VALIDATED_STEP || r->reason || strcmp(r->group, group->name) != 0)
                continue;
            orr_csv_put(&w, r->group);
            orr_csv_put_double(&w, r->measured * 1e-6);
            orr_csv_put_double(&w, r->predicted * 1e-6);
            orr_csv_end_row(&w);
        }
    }
}
