/* orrery plot: tables, gnuplot scripts and pictures of a step. */
#include "sim/cli/commands.h"

#include "plots/plot.h"
#include "sim/base/units.h"
#include "sim/base/words.h"
#include "sim/cli/trace_context.h"
#include "sim/report/plot_tables.h"
#include "traces/exporters.h"

#include <stdio.h>
#include <string.h>

static const char *const kinds[] = {"timeline", "time_account", "memory", NULL};

static const OrrOption options[] = {
    {"output", 'o', "DIR", false, "folder for tables, scripts and pictures; made if need be"},
    {"no-draw", 0, NULL, false, "tables and scripts only; gnuplot is not needed"},
    ORR_RUN_OPTIONS,
    ORR_OPTION_HELP,
    ORR_OPTION_END,
};

typedef void (*WriteTable)(const OrrRecord *record, OrrOut *out);

static bool write_table(const char *folder, const char *file, const OrrRecord *record,
                        WriteTable write, GError **error) {
    g_autofree char *path = g_build_filename(folder, file, NULL);
    g_autoptr(OrrOut) out = orr_out_open(path, error);
    if (!out)
        return false;
    write(record, out);
    return orr_out_commit(out, error);
}

static bool write_names(const char *folder, const char *job, const OrrRecord *r, GError **error) {
    static const char *const verdicts[] = {"it fits", "it fits, but it is tight",
                                           "it does not fit"};
    g_autofree char *time = orr_units_time(r->step_time_ns);
    const OrrPlotName names[] = {{"job", job, 0},
                                 {"step_time", time, 0},
                                 {"step_ms", NULL, (double)r->step_time_ns * 1e-6},
                                 {"verdict", verdicts[r->verdict], 0}};
    return orr_plot_names(folder, names, G_N_ELEMENTS(names), error);
}

/* Runs the step and writes the passes of the pipeline that rank 0 is in, a row a stage. */
static bool run_with_timeline(OrrCliRun *run, const OrrCli *cli, const char *folder,
                              GError **error) {
    OrrTraceContext context = orr_cli_trace_context(run);
    uint32_t n_stages = orr_step_layout(run->run)->pp;
    g_autofree uint32_t *ranks = g_new(uint32_t, n_stages);
    for (uint32_t s = 0; s < n_stages; s++)
        ranks[s] = n_stages > 1 ? orr_step_peer(run->run, 0, ORR_GROUP_PP, s) : 0;
    g_autofree char *path = g_build_filename(folder, "timeline.csv", NULL);
    OrrTraceRequest request = {.exporter = orr_exporter_find("passes", NULL),
                               .context = &context,
                               .path = path,
                               .ranks = ranks,
                               .n_ranks = n_stages,
                               .to_ns = INT64_MAX};
    g_autoptr(OrrTrace) trace = orr_trace_open(&request, error);
    if (!trace)
        return false;
    OrrProbe probe = orr_trace_probe(trace);
    return orr_cli_run_execute(run, cli, &probe, ranks, n_stages, error) &&
           orr_trace_close(trace, NULL, error);
}

static bool draw(const OrrCli *cli, const char *folder, GError **error) {
    const char *only = orr_cli_argument(cli, 1);
    /* every script first: they are there when gnuplot is not */
    for (const OrrPlot *p = orr_plots; p->name; p++)
        if ((!only || strcmp(only, p->name) == 0) && !orr_plot_script(p, folder, error))
            return false;
    for (const OrrPlot *p = orr_plots; p->name; p++) {
        if (only && strcmp(only, p->name) != 0)
            continue;
        if (!orr_cli_has(cli, "no-draw") && !orr_plot_draw(p, folder, error))
            return false;
        fprintf(stderr, "orrery: %s/%s.csv, .gp%s: %s\n", folder, p->name,
                orr_cli_has(cli, "no-draw") ? "" : ", .png, .svg", p->summary);
    }
    return true;
}

static bool run_plot(OrrCli *cli, GError **error) {
    const char *folder = orr_cli_value(cli, "output"), *only = orr_cli_argument(cli, 1);
    if (!folder)
        return orr_fail_usage(error,
                              "orrery plot: --output DIR is missing: a plot is several files");
    if (only && !g_strv_contains(kinds, only)) {
        g_autofree char *hint = orr_words_hint(only, kinds);
        return orr_fail_usage(error, "orrery plot: unknown plot '%s'; %s", only, hint);
    }
    g_autoptr(OrrCliRun) run = orr_cli_run_prepare(cli, orr_cli_argument(cli, 0), error);
    g_autoptr(OrrFolder) made = run ? orr_folder_make(folder, error) : NULL;
    if (!made || !run_with_timeline(run, cli, folder, error))
        return false;
    const OrrRecord *record = orr_step_record(run->run);
    return write_names(folder, record->job, record, error) &&
           write_table(folder, "time_account.csv", record, orr_report_account_table, error) &&
           write_table(folder, "memory.csv", record, orr_report_memory_table, error) &&
           draw(cli, folder, error);
}

const OrrCommand orr_cmd_plot = {
    .name = "plot",
    .summary = "pictures of a step: pipeline timeline, time account, memory by stage",
    .synopsis = "RUN [PLOT] --output DIR",
    .description =
        "RUN is a job (orrery list jobs), the path of a job file, or a report saved with --json. "
        "PLOT "
        "is timeline, time_account or memory; all of them if it is not given. Each plot is a table "
        "(CSV), a gnuplot script beside it that can be edited and run again, and the pictures (PNG "
        "and SVG). The timeline is that of the pipeline that rank 0 is in.\n\n"
        "  orrery plot llama3-405b-16k -o plots/",
    .kinds = kinds,
    .min_arguments = 1,
    .max_arguments = 2,
    .options = options,
    .run = run_plot,
};
