#include "sim/cli/run_shared.h"

#include "plots/plot.h"
#include "sim/api/share.h"
#include "sim/io/progress.h"

#include <stdio.h>

/* Options of one run that a shared cluster has not. */
static bool refuse_others(const OrrCli *cli, GError **error) {
    if (orr_cli_has(cli, "resume"))
        return orr_fail_usage(error, "orrery run --shared: seeds take milliseconds and are not "
                                     "kept; --resume does not apply");
    return true;
}

static bool simulate(OrrShareRun *run, uint32_t n_seeds, GError **error) {
    if (n_seeds == 1)
        return orr_share_execute(run, NULL, NULL, error);
    g_autoptr(OrrProgress) progress = orr_progress_new("simulating", n_seeds, "seeds");
    return orr_share_execute(run, orr_progress_show, progress, error);
}

/* The first seed again, through one writer of its events. */
typedef OrrShareWriter *(*OpenWriter)(const OrrShareSpec *spec, const char *name, OrrOut *out);

static OrrShareWriter *open_csv(const OrrShareSpec *spec, const char *name, OrrOut *out) {
    (void)name;
    return orr_share_events_csv(spec, out);
}

static OrrShareWriter *open_levels(const OrrShareSpec *spec, const char *name, OrrOut *out) {
    (void)name;
    return orr_share_events_levels(spec, out);
}

static OrrShareWriter *open_spans(const OrrShareSpec *spec, const char *name, OrrOut *out) {
    (void)name;
    return orr_share_events_spans(spec, out);
}

static bool write_events(OrrShareRun *run, const char *path, OpenWriter open, GError **error) {
    if (!path)
        return true;
    g_autoptr(OrrOut) out = orr_out_open(path, error);
    if (!out)
        return false;
    const OrrShareReport *r = orr_share_report(run);
    OrrShareWriter *w = open(r->spec, r->name, out);
    OrrShareProbe probe = {orr_share_events_write, w};
    bool is_done = orr_share_replay(run, &probe, error);
    orr_share_events_close(w);
    return is_done && orr_out_commit(out, error);
}

static bool write_in(OrrShareRun *run, const char *folder, const char *name, OpenWriter open,
                     GError **error) {
    g_autofree char *path = g_build_filename(folder, name, NULL);
    return write_events(run, path, open, error);
}

static bool write_waits(const OrrShareReport *r, const char *folder, GError **error) {
    g_autofree char *path = g_build_filename(folder, "share_wait.csv", NULL);
    g_autoptr(OrrOut) out = orr_out_open(path, error);
    if (!out)
        return false;
    orr_share_waits_table(r, out);
    return orr_out_commit(out, error);
}

static bool draw(OrrShareRun *run, const char *folder, GError **error) {
    const OrrShareReport *r = orr_share_report(run);
    const OrrShareSpec *s = r->spec;
    const OrrPlotName names[] = {
        {"share", r->name, 0},
        {"policy", orr_share_policy_names[s->policy], 0},
        {"seed", NULL, (double)r->head->seed},
        {"n_seeds", NULL, r->n_seeds},
        {"n_jobs", NULL, s->n_jobs},
        {"n_gpus", NULL, (double)s->n_nodes * s->gpus_per_node},
    };
    g_autoptr(OrrFolder) made = orr_folder_make(folder, error);
    if (!made || !write_in(run, folder, "share_occupancy.csv", open_levels, error) ||
        !write_in(run, folder, "share_jobs.csv", open_spans, error) ||
        !write_waits(r, folder, error) ||
        !orr_plot_names(folder, names, G_N_ELEMENTS(names), error))
        return false;
    for (const OrrPlot *p = orr_share_plots; p->name; p++) /* there when gnuplot is not */
        if (!orr_plot_script(p, folder, error))
            return false;
    for (const OrrPlot *p = orr_share_plots; p->name; p++) {
        if (!orr_plot_draw(p, folder, error))
            return false;
        fprintf(stderr, "orrery: %s/%s.csv, .gp, .png, .svg: %s\n", folder, p->name, p->summary);
    }
    return true;
}

static bool write_report(const OrrShareReport *report, const OrrCli *cli, GError **error) {
    g_autoptr(OrrOut) out = orr_cli_output(cli, error);
    if (!out)
        return false;
    if (orr_cli_has(cli, "json"))
        orr_share_json(report, out);
    else if (orr_cli_has(cli, "csv"))
        orr_share_csv(report, out);
    else
        orr_share_text(report, out);
    return orr_out_commit(out, error);
}

bool orr_cli_run_shared(const OrrCli *cli, const OrrRunRequest *run_request, GError **error) {
    if (!refuse_others(cli, error))
        return false;
    OrrShareRequest request = {.share = run_request->run,
                               .overrides = run_request->overrides,
                               .n_overrides = run_request->n_overrides,
                               .calibration = run_request->calibration,
                               .seed = run_request->seed,
                               .n_seeds = run_request->n_seeds,
                               .n_threads = run_request->n_threads};
    int64_t begin_us = g_get_monotonic_time();
    g_autoptr(OrrShareRun) run = orr_share_prepare(&request, error);
    if (!run || !simulate(run, request.n_seeds, error) ||
        !write_events(run, orr_cli_value(cli, "events"), open_csv, error) ||
        !write_events(run, orr_cli_value(cli, "trace"), orr_share_events_trace, error) ||
        !write_report(orr_share_report(run), cli, error) ||
        (orr_cli_has(cli, "plots") && !draw(run, orr_cli_value(cli, "plots"), error)))
        return false;
    if (orr_cli_has(cli, "stats"))
        fprintf(stderr, "orrery: %u seeds in %" G_GINT64_FORMAT " ms\n", request.n_seeds,
                (g_get_monotonic_time() - begin_us) / 1000);
    return true;
}
