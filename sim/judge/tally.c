#include "sim/judge/tally.h"

#include <math.h>
#include <string.h>

#include "sim/base/stats.h"

#define CUT_FRAC 0.5                 /* single errors in the macro mean (issue 4) */
#define BIG_BYTES (INT64_C(1) << 20) /* where bandwidth, not latency, decides (issue 4) */

double orr_judge_error(const OrrValidationRow *row) {
    return row->predicted / row->measured - 1.0;
}

static const char *name_by(const OrrValidation *v, const OrrValidationRow *row, const char *by) {
    if (strcmp(by, "file") == 0)
        return v->files[row->file];
    return strcmp(by, "gpu") == 0 ? row->gpu : row->group;
}

/* Errors of the rows of @kind whose @by is @name (NULL: all) into @errors; fills the group. */
static void fill(const OrrValidation *v, OrrValidated kind, OrrValidationGroup *g) {
    g_autofree double *error = g_new(double, v->rows->len + 1);
    g_autofree double *size = g_new(double, v->rows->len + 1);
    g->rows = g->skipped = 0;
    for (guint i = 0; i < v->rows->len; i++) {
        const OrrValidationRow *row = &g_array_index(v->rows, OrrValidationRow, i);
        if (row->kind != kind || (g->name && strcmp(name_by(v, row, g->by), g->name) != 0))
            continue;
        if (row->reason) {
            g->skipped++;
            continue;
        }
        error[g->rows] = orr_judge_error(row);
        size[g->rows] = fabs(error[g->rows]);
        if (size[g->rows] >= fabs(g->worst_frac))
            g->worst_frac = error[g->rows];
        g->rows++;
    }
    if (g->rows == 0)
        return;
    g->mape_frac = orr_stats_mean(size, g->rows);
    g->median_abs_frac = orr_stats_median(size, g->rows);
    g->bias_frac = orr_stats_mean(error, g->rows);
    g->p90_abs_frac = orr_stats_percentile(size, g->rows, 0.9);
}

static void add_groups(OrrValidation *v, OrrValidated kind, const char *by) {
    GArray *groups = v->groups[kind];
    guint first = groups->len;
    for (guint i = 0; i < v->rows->len; i++) {
        const OrrValidationRow *row = &g_array_index(v->rows, OrrValidationRow, i);
        if (row->kind != kind)
            continue;
        const char *name = name_by(v, row, by);
        bool is_known = false;
        for (guint j = first; j < groups->len && !is_known; j++)
            is_known = strcmp(g_array_index(groups, OrrValidationGroup, j).name, name) == 0;
        if (is_known)
            continue;
        OrrValidationGroup g = {.by = by, .name = name};
        fill(v, kind, &g);
        g_array_append_val(groups, g);
    }
}

/* Mean over the files of the mean of cut errors. */
static double macro_mape(const OrrValidation *v) {
    double sum = 0;
    uint32_t n_files = 0;
    for (uint32_t f = 0; v->files[f]; f++) {
        double cut = 0;
        uint32_t n = 0;
        for (guint i = 0; i < v->rows->len; i++) {
            const OrrValidationRow *row = &g_array_index(v->rows, OrrValidationRow, i);
            if (row->kind != ORR_VALIDATED_STEP || row->file != f || row->reason)
                continue;
            cut += fmin(fabs(orr_judge_error(row)), CUT_FRAC);
            n++;
        }
        if (n > 0) {
            sum += cut / n;
            n_files++;
        }
    }
    return n_files > 0 ? sum / n_files : 0;
}

static void tally_big(OrrValidation *v) {
    double sum = 0;
    v->big_rows = 0;
    for (guint i = 0; i < v->rows->len; i++) {
        const OrrValidationRow *row = &g_array_index(v->rows, OrrValidationRow, i);
        if (row->kind != ORR_VALIDATED_COLLECTIVE || row->reason || row->bytes <= BIG_BYTES)
            continue;
        sum += fabs(orr_judge_error(row));
        v->big_rows++;
    }
    v->big_mape_frac = v->big_rows > 0 ? sum / v->big_rows : 0;
}

static gint by_rows(gconstpointer a, gconstpointer b) {
    const OrrValidationSkip *one = a, *other = b;
    if (one->kind != other->kind)
        return one->kind < other->kind ? -1 : 1;
    if (one->rows != other->rows)
        return one->rows > other->rows ? -1 : 1;
    return strcmp(one->reason, other->reason);
}

static void tally_skips(OrrValidation *v) {
    for (guint i = 0; i < v->rows->len; i++) {
        const OrrValidationRow *row = &g_array_index(v->rows, OrrValidationRow, i);
        if (!row->reason)
            continue;
        OrrValidationSkip *found = NULL;
        for (guint j = 0; j < v->skips->len && !found; j++) {
            OrrValidationSkip *s = &g_array_index(v->skips, OrrValidationSkip, j);
            if (s->kind == row->kind && strcmp(s->reason, row->reason) == 0)
                found = s;
        }
        if (!found) {
            OrrValidationSkip s = {row->reason, row->kind, 0};
            g_array_append_val(v->skips, s);
            found = &g_array_index(v->skips, OrrValidationSkip, v->skips->len - 1);
        }
        found->rows++;
    }
    g_array_sort(v->skips, by_rows);
}

void orr_judge_tally(OrrValidation *v) {
    static const char *const by[ORR_N_VALIDATED][4] = {
        [ORR_VALIDATED_STEP] = {"file", "gpu", "framework", NULL},
        [ORR_VALIDATED_COLLECTIVE] = {"file", "gpu", "system", NULL},
        [ORR_VALIDATED_KERNEL] = {"file", "gpu", "kernel", NULL},
        [ORR_VALIDATED_MEMORY] = {"file", "gpu", "framework", NULL},
    };
    for (int k = 0; k < ORR_N_VALIDATED; k++) {
        for (int b = 0; by[k][b]; b++)
            add_groups(v, (OrrValidated)k, by[k][b]);
        fill(v, (OrrValidated)k, &v->all[k]);
    }
    v->macro_mape_frac = macro_mape(v);
    tally_big(v);
    tally_skips(v);
}

OrrResiduals *orr_judge_residuals(const OrrValidation *v) {
    OrrResiduals *out = orr_residuals_new();
    for (guint i = 0; i < v->rows->len; i++) {
        const OrrValidationRow *row = &g_array_index(v->rows, OrrValidationRow, i);
        if (row->kind != ORR_VALIDATED_STEP || row->reason)
            continue;
        orr_residuals_add(out, (OrrResidual){.source = row->source,
                                             .regime = {.framework = row->group,
                                                        .arch = row->arch,
                                                        .n_gpus = row->n_gpus,
                                                        .tp = row->tp,
                                                        .pp = row->pp},
                                             .ln = log(row->measured / row->predicted)});
    }
    return out;
}
