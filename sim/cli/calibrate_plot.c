/* Measured against fitted, by series of kernels and by algorithm of collectives. Blocks of the
 * tables are two empty lines apart, as gnuplot counts them. */
#include "sim/cli/calibrate_parts.h"

#include "plots/plot.h"
#include "sim/io/csv.h"

#include <string.h>

static void put_kernels(const OrrRecordFit *k, OrrOut *out) {
    OrrCsvWriter w = {.out = out};
    static const char *const header[] = {
        "series", "work", "measured_us", "fitted_us", "fitted_over_measured", NULL};
    orr_csv_put_row(&w, header);
    for (guint s = 0; s < k->residuals->len; s++) {
        const char *series = g_array_index(k->residuals, OrrFitResidual, s).series;
        if (s)
            orr_out_puts(out, "\n\n");
        for (guint i = 0; i < k->points->len; i++) {
            const OrrFitPoint *p = &g_array_index(k->points, OrrFitPoint, i);
            if (strcmp(p->series, series) != 0)
                continue;
            orr_csv_put(&w, series);
            orr_csv_put_double(&w, p->work);
            orr_csv_put_double(&w, p->measured_ns / 1e3);
            orr_csv_put_double(&w, p->fitted_ns / 1e3);
            orr_csv_put_double(&w, p->fitted_ns / p->measured_ns);
            orr_csv_end_row(&w);
        }
    }
}

static void put_call(OrrCsvWriter *w, const char *series, const OrrFitCall *c) {
    const OrrMeasuredCollective *row = &c->table->table->rows[c->row];
    double bus = orr_measured_bus_factor(c->table->table->kind, c->table->place.n_ranks);
    orr_csv_put(w, series);
    orr_csv_put_int(w, row->bytes);
    orr_csv_put_double(w, c->measured_ns / 1e3);
    orr_csv_put_double(w, c->after_ns / 1e3);
    orr_csv_put_double(w, (double)row->bytes * bus / c->measured_ns);
    orr_csv_put_double(w, (double)row->bytes * bus / c->after_ns);
    orr_csv_put(w, c->is_held ? "held out" : "fitted");
    orr_csv_end_row(w);
}

static void put_calls(const OrrFit *fit, OrrOut *out) {
    OrrCsvWriter w = {.out = out};
    static const char *const header[] = {"series",
                                         "size_bytes",
                                         "measured_us",
                                         "fitted_us",
                                         "measured_busbw_gb_per_s",
                                         "fitted_busbw_gb_per_s",
                                         "used",
                                         NULL};
    orr_csv_put_row(&w, header);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_direct_hash, g_direct_equal);
    bool is_first = true;
    for (uint32_t i = 0; i < fit->n_rows + fit->n_held; i++) {
        const OrrFitTable *t = fit->calls[i].table;
        if (!g_hash_table_add(seen, (gpointer)t))
            continue;
        g_autofree char *series =
            g_strdup_printf("%s over %u GPUs on %u node%s", orr_collective_name(t->table->kind),
                            t->place.n_ranks, t->place.n_nodes, t->place.n_nodes > 1 ? "s" : "");
        if (!is_first)
            orr_out_puts(out, "\n\n");
        is_first = false;
        for (uint32_t j = i; j < fit->n_rows + fit->n_held; j++)
            if (fit->calls[j].table == t)
                put_call(&w, series, &fit->calls[j]);
    }
}

static bool draw(const char *name, const char *folder, const OrrPlotName *names, guint n,
                 OrrOut *table, GError **error) {
    const OrrPlot plot = {name, ""};
    return orr_out_commit(table, error) && orr_plot_names(folder, names, n, error) &&
           orr_plot_draw(&plot, folder, error);
}

static OrrOut *open_table(const char *folder, const char *name, GError **error) {
    g_autofree char *file = g_strdup_printf("%s.csv", name);
    g_autofree char *path = g_build_filename(folder, file, NULL);
    return orr_out_open(path, error);
}

bool orr_cli_fit_plot(const OrrCalibrateFit *f, const char *folder, GError **error) {
    const char *machine = f->gpu ? f->gpu->name : f->cluster_name;
    const OrrPlotName names[] = {{"machine", machine ? machine : "", 0}};
    g_autoptr(OrrFolder) made = orr_folder_make(folder, error);
    if (!made)
        return false;
    if (f->kernels && f->kernels->points->len) {
        g_autoptr(OrrOut) out = open_table(folder, "calibration_kernels", error);
        if (!out)
            return false;
        put_kernels(f->kernels, out);
        if (!draw("calibration_kernels", folder, names, G_N_ELEMENTS(names), out, error))
            return false;
    }
    if (!f->collectives)
        return true;
    g_autoptr(OrrOut) out = open_table(folder, "calibration_collectives", error);
    if (!out)
        return false;
    put_calls(f->collectives, out);
    return draw("calibration_collectives", folder, names, G_N_ELEMENTS(names), out, error);
}
