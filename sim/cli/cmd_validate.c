/* orrery validate: published measurements against predictions. */
#include "sim/cli/commands.h"

#include "plots/plot.h"
#include "sim/api/validate.h"
#include "sim/base/units.h"
#include "sim/io/progress.h"
#include "sim/judge/tally.h"
#include "sim/report/validation.h"
#include "workloads/published.h"
#include "workloads/residuals.h"

static const OrrOption options[] = {
    ORR_OPTION_JSON,
    {"csv", 0, NULL, false,
     "a line for each row: measured, predicted, error, or why it was skipped"},
    ORR_OPTION_OUTPUT,
    {"all-rows", 0, NULL, false, "rows too that their tables do not recommend"},
    {"plot", 0, "DIR", false, "draw predicted against measured into a folder"},
    {"residuals", 0, "FILE", false,
     "write the errors of step times by regime: what intervals of reports rest on"},
    {"hold-out", 0, "SHARE", false,
     "collectives: fit the smaller sizes of each system, judge this share, the larger ones"},
    {"threads", 0, "N", false, "how many rows at a time; default: as many as processors"},
    ORR_OPTION_CALIBRATION,
    ORR_OPTION_HELP,
    ORR_OPTION_END,
};

static bool read_facts(const OrrCli *cli, OrrPublished *facts, GError **error) {
    const char *path;
    for (guint i = 0; (path = orr_cli_argument(cli, i)); i++)
        if (!orr_workload_published(path, facts, error))
            return false;
    bool has_rows = facts->runs->len > 0 || facts->calls->len > 0 || facts->kernels->len > 0;
    if (orr_cli_argument(cli, 0) && !has_rows)
        return orr_fail_input(error,
                              "%s: no row of runs, collectives or kernels in %u tables; "
                              "doc/validate.md lists the columns",
                              orr_cli_argument(cli, 0), g_strv_length(facts->files));
    if (has_rows)
        return true;
    g_autofree char *shipped = orr_workload_published_shipped(error);
    return shipped && orr_workload_published(shipped, facts, error);
}

static OrrValidation *validate(const OrrCli *cli, const OrrPublished *facts, GError **error) {
    int64_t n_threads = 0;
    double hold_out_frac = 0;
    const char *share = orr_cli_value(cli, "hold-out");
    if (share && (!orr_units_parse(share, ORR_DIM_FRACTION, &hold_out_frac, NULL) ||
                  !(hold_out_frac > 0 && hold_out_frac < 1))) {
        orr_fail_usage(error, "--hold-out %s: a share such as 50%% or 0.5 would do", share);
        return NULL;
    }
    if (!orr_cli_int(cli, "threads", 1, 1024, &n_threads, error))
        return NULL;
    g_autoptr(OrrProgress) progress = orr_progress_new("validating", facts->runs->len, "rows");
    OrrValidateRequest request = {.facts = facts,
                                  .is_all_rows = orr_cli_has(cli, "all-rows"),
                                  .calibration = orr_cli_value(cli, "calibration"),
                                  .hold_out_frac = hold_out_frac,
                                  .n_threads = (uint32_t)n_threads,
                                  .progress = orr_progress_show,
                                  .data = progress};
    return orr_validate(&request, error);
}

static bool write_result(const OrrCli *cli, const OrrValidation *v, GError **error) {
    g_autoptr(OrrOut) out = orr_cli_output(cli, error);
    if (!out)
        return false;
    if (orr_cli_has(cli, "json"))
        orr_report_validation_json(v, out);
    else if (orr_cli_has(cli, "csv"))
        orr_report_validation_csv(v, out);
    else
        orr_report_validation_text(v, out);
    return orr_out_commit(out, error);
}

static bool draw(const OrrValidation *v, const char *folder, GError **error) {
    static const OrrPlot plot = {"validation", "predicted against measured step time"};
    const OrrPlotName names[] = {{"rows", NULL, v->all[ORR_VALIDATED_STEP].rows},
                                 {"mape", NULL, v->all[ORR_VALIDATED_STEP].mape_frac * 100}};
    g_autofree char *table = g_build_filename(folder, "validation.csv", NULL);
    g_autoptr(OrrFolder) made = orr_folder_make(folder, error);
    if (!made)
        return false;
    g_autoptr(OrrOut) out = orr_out_open(table, error);
    if (!out)
        return false;
    orr_report_validation_plot(v, out);
    return orr_out_commit(out, error) &&
           orr_plot_names(folder, names, G_N_ELEMENTS(names), error) &&
           orr_plot_draw(&plot, folder, error);
}

static bool write_residuals(const OrrValidation *v, const char *path, GError **error) {
    g_autoptr(OrrResiduals) residuals = orr_judge_residuals(v);
    g_autoptr(OrrOut) out = orr_out_open(path, error);
    if (!out)
        return false;
    orr_workload_residuals_write(residuals, out);
    return orr_out_commit(out, error);
}

static bool run_validate(OrrCli *cli, GError **error) {
    if (orr_cli_has(cli, "json") && orr_cli_has(cli, "csv"))
        return orr_fail_usage(error, "orrery validate: --json or --csv, not both");
    static const char *const files[] = {"output", "residuals", NULL};
    if (!orr_cli_can_write(cli, files, error))
        return false;
    g_autoptr(OrrPublished) facts = orr_published_new();
    if (!read_facts(cli, facts, error))
        return false;
    g_autoptr(OrrValidation) v = validate(cli, facts, error);
    if (!v)
        return false;
    const char *folder = orr_cli_value(cli, "plot");
    const char *residuals = orr_cli_value(cli, "residuals");
    return write_result(cli, v, error) && (!residuals || write_residuals(v, residuals, error)) &&
           (!folder || draw(v, folder, error));
}

const OrrCommand orr_cmd_validate = {
    .name = "validate",
    .summary = "hold the simulator against published measurements and print its errors",
    .synopsis = "[DIR|FILE...]",
    .description =
        "Each row of the tables (CSV, columns by name; orrery's doc/validate.md lists them) "
        "becomes "
        "a job, is simulated and compared with what was measured: step times, collectives, "
        "kernels, "
        "memory. What a row leaves open is chosen by rules that are printed; rows that cannot be "
        "expressed are counted by reason. Without an argument the shipped table of published runs "
        "is used. Rows run in parallel; the result does not depend on it.\n\n"
        "  orrery validate\n"
        "  orrery validate runs/ --csv -o errors.csv\n"
        "  orrery validate runs.csv --json --plot pictures/",
    .min_arguments = 0,
    .max_arguments = 4096,
    .options = options,
    .run = run_validate,
};
