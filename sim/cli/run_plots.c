#include "sim/cli/run_plots.h"

#include "plots/plot.h"
#include "sim/io/file.h"
#include "sim/report/run_report.h"

#include <stdio.h>
#include <string.h>

#define N_INTERVALS 17 /* half octaves from a sixteenth to sixteen times the run's own */

/* Work kept after each event of the first seed. */
typedef struct {
    OrrOut *out;
    const OrrRunSpec *spec;
    bool has_shrunk;
} Progress;

static void write_point(void *data, const OrrRunEvent *e) {
    Progress *p = data;
    if (e->kind != ORR_RUN_TRAIN && e->kind != ORR_RUN_ROLLBACK && e->kind != ORR_RUN_FINISHED)
        return;
    const OrrRunPhase *last = &p->spec->phases[p->spec->n_phases - 1];
    double steps = (double)e->tokens / (double)last->tokens_per_step;
    orr_out_double(p->out, (double)e->end_ns / 86400e9);
    orr_out_puts(p->out, ",");
    orr_out_double(p->out, steps * (double)last->step_ns[0] / 86400e9);
    orr_out_printf(p->out, ",%u\n", e->lost_replicas);
    p->has_shrunk |= e->lost_replicas > 0;
}

static OrrOut *open_table(const char *folder, const char *name, GError **error) {
    g_autofree char *path = g_build_filename(folder, name, NULL);
    return orr_out_open(path, error);
}

static bool write_progress(const OrrRun *run, const char *folder, bool *has_shrunk,
                           GError **error) {
    g_autoptr(OrrOut) out = open_table(folder, "run_progress.csv", error);
    if (!out)
        return false;
    const OrrRunSpec *spec = orr_run_spec(run);
    Progress p = {out, spec, false};
    OrrRunProbe probe = {write_point, &p};
    OrrRunSeed seed;
    orr_out_puts(out, "time_d,useful_d,lost_replicas\n0,0,0\n");
    orr_run_seed_init(&seed, 0, orr_run_n_causes(spec));
    orr_run_simulate(spec, orr_run_record(run)->head->seed, &probe, &seed);
    orr_run_seed_clear(&seed);
    *has_shrunk = p.has_shrunk;
    return orr_out_commit(out, error);
}

static bool write_intervals(const OrrRun *run, const char *folder, uint32_t *n, GError **error) {
    int64_t interval_ns[N_INTERVALS];
    double goodput[N_INTERVALS], daly[N_INTERVALS];
    *n = orr_run_intervals(run, N_INTERVALS, interval_ns, goodput, daly);
    if (*n == 0)
        return true;
    g_autoptr(OrrOut) out = open_table(folder, "run_interval.csv", error);
    if (!out)
        return false;
    orr_out_puts(out, "interval_min,goodput_percent,daly_percent\n");
    for (uint32_t i = 0; i < *n; i++) {
        orr_out_double(out, (double)interval_ns[i] / 60e9);
        orr_out_puts(out, ",");
        orr_out_double(out, 100 * goodput[i]);
        orr_out_puts(out, ",");
        orr_out_double(out, 100 * daly[i]);
        orr_out_puts(out, "\n");
    }
    return orr_out_commit(out, error);
}

typedef void (*WriteTable)(const OrrRunRecord *record, OrrOut *out);

static bool write_table(const OrrRunRecord *r, const char *folder, const char *name,
                        WriteTable write, GError **error) {
    g_autoptr(OrrOut) out = open_table(folder, name, error);
    if (!out)
        return false;
    write(r, out);
    return orr_out_commit(out, error);
}

static bool write_names(const OrrRunRecord *r, const char *folder, bool has_shrunk,
                        GError **error) {
    g_autofree char *prices = g_strdup_printf("%s of %s", r->prices, r->prices_date);
    const OrrRunSeed *first = &r->seeds[0];
    const OrrPlotName names[] = {
        {"run", r->run, 0},
        {"seed", NULL, (double)r->head->seed},
        {"seed_goodput", NULL, (double)first->useful_ns / (double)first->wall_ns},
        {"goodput", NULL, (double)r->useful_ns / (double)r->wall_ns},
        {"wall_d", NULL, (double)r->wall_ns / 86400e9},
        {"interval_min", NULL, (double)r->interval_ns / 60e9},
        {"has_shrunk", NULL, has_shrunk},
        {"prices", prices, 0},
    };
    return orr_plot_names(folder, names, G_N_ELEMENTS(names), error);
}

static bool is_drawn(const OrrPlot *p, const OrrRunRecord *r, uint32_t n_intervals) {
    if (strcmp(p->name, "run_interval") == 0)
        return n_intervals > 0;
    return strcmp(p->name, "run_cost") != 0 || r->n_costs > 0;
}

bool orr_cli_run_plots(const OrrRun *run, const char *folder, GError **error) {
    const OrrRunRecord *r = orr_run_record(run);
    bool has_shrunk = false;
    uint32_t n_intervals = 0;
    g_autoptr(OrrFolder) made = orr_folder_make(folder, error);
    if (!made || !write_progress(run, folder, &has_shrunk, error) ||
        !write_intervals(run, folder, &n_intervals, error) ||
        !write_table(r, folder, "run_losses.csv", orr_run_losses_table, error) ||
        (r->n_costs > 0 && !write_table(r, folder, "run_cost.csv", orr_run_costs_table, error)) ||
        !write_names(r, folder, has_shrunk, error))
        return false;
    for (const OrrPlot *p = orr_run_plots; p->name; p++) /* they are there when gnuplot is not */
        if (is_drawn(p, r, n_intervals) && !orr_plot_script(p, folder, error))
            return false;
    for (const OrrPlot *p = orr_run_plots; p->name; p++) {
        if (!is_drawn(p, r, n_intervals))
            continue;
        if (!orr_plot_draw(p, folder, error))
            return false;
        fprintf(stderr, "orrery: %s/%s.csv, .gp, .png, .svg: %s\n", folder, p->name, p->summary);
    }
    return true;
}
