#include "workloads/residuals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/io/csv.h"
#include "sim/io/data.h"

enum { SOURCE, FRAMEWORK, ARCH, GPUS, TP, PP, LN, N_COLUMNS };
static const char *const columns[N_COLUMNS + 1] = {
    "source", "framework", "architecture", "gpus", "tp", "pp", "ln_measured_over_predicted", NULL};

#define LARGEST_LN 5.0 /* ours: a prediction wrong by more than 150 times is a broken cell */

static bool read_row(const OrrCsv *csv, guint row, const int *index, OrrResiduals *into,
                     GError **error) {
    int64_t gpus, tp, pp;
    if (!orr_csv_int(csv, row, index[GPUS], 1, UINT32_MAX, &gpus, error) ||
        !orr_csv_int(csv, row, index[TP], 1, UINT32_MAX, &tp, error) ||
        !orr_csv_int(csv, row, index[PP], 1, UINT32_MAX, &pp, error))
        return false;
    OrrResidual r = {.source = orr_csv_cell(csv, row, index[SOURCE]),
                     .regime = {.framework = orr_csv_cell(csv, row, index[FRAMEWORK]),
                                .arch = orr_csv_cell(csv, row, index[ARCH]),
                                .n_gpus = (uint32_t)gpus,
                                .tp = (uint32_t)tp,
                                .pp = (uint32_t)pp}};
    g_auto(GStrv) words = g_strsplit(orr_csv_cell(csv, row, index[LN]), " ", -1);
    for (guint i = 0; words[i]; i++) {
        char *end;
        r.ln = g_ascii_strtod(words[i], &end);
        if (end == words[i] || *end || !(fabs(r.ln) <= LARGEST_LN))
            return orr_csv_fail(csv, row, index[LN], error, "numbers within -5 and 5 would do");
        orr_residuals_add(into, r);
    }
    return true;
}

OrrResiduals *orr_workload_residuals(const char *path, GError **error) {
    int index[N_COLUMNS];
    g_autoptr(OrrCsv) csv = orr_csv_load(path, ORR_CSV_PLAIN, error);
    if (!csv || !orr_csv_need(csv, columns, index, error))
        return NULL;
    g_autoptr(OrrResiduals) r = orr_residuals_new();
    for (guint row = 0; row < orr_csv_n_rows(csv); row++)
        if (!read_row(csv, row, index, r, error))
            return NULL;
    return g_steal_pointer(&r);
}

char *orr_workload_residuals_shipped(GError **error) {
    return orr_data_find("workloads/residuals", "steps", ".csv", error);
}

static int by_regime(const OrrResidual *a, const OrrResidual *b) {
    int order = strcmp(a->source, b->source);
    order = order ? order : strcmp(a->regime.framework, b->regime.framework);
    order = order ? order : strcmp(a->regime.arch, b->regime.arch);
    const uint32_t x[] = {a->regime.n_gpus, a->regime.tp, a->regime.pp};
    const uint32_t y[] = {b->regime.n_gpus, b->regime.tp, b->regime.pp};
    for (int i = 0; order == 0 && i < 3; i++)
        order = x[i] != y[i] ? (x[i] < y[i] ? -1 : 1) : 0;
    return order;
}

static int by_regime_and_value(const void *one, const void *other) {
    const OrrResidual *a = one, *b = other;
    int order = by_regime(a, b);
    return order ? order : a->ln < b->ln ? -1 : a->ln > b->ln;
}

void orr_workload_residuals_write(const OrrResiduals *r, OrrOut *out) {
    OrrCsvWriter w = {.out = out};
    guint n = r->rows->len;
    OrrResidual *rows = g_memdup2(r->rows->data, n * sizeof *rows);
    if (n > 1)
        qsort(rows, n, sizeof *rows, by_regime_and_value);
    orr_csv_put_row(&w, columns);
    for (guint i = 0, end; i < n; i = end) {
        g_autoptr(GString) cell = g_string_new(NULL);
        for (end = i; end < n && by_regime(&rows[i], &rows[end]) == 0; end++) {
            char number[32];
            g_ascii_formatd(number, sizeof number, "%.3f", rows[end].ln);
            g_string_append_printf(cell, "%s%s", cell->len ? " " : "", number);
        }
        orr_csv_put(&w, rows[i].source);
        orr_csv_put(&w, rows[i].regime.framework);
        orr_csv_put(&w, rows[i].regime.arch);
        orr_csv_put_int(&w, rows[i].regime.n_gpus);
        orr_csv_put_int(&w, rows[i].regime.tp);
        orr_csv_put_int(&w, rows[i].regime.pp);
        orr_csv_put(&w, cell->str);
        orr_csv_end_row(&w);
    }
    g_free(rows);
}
