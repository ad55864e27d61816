#include "config.h"

#include "sim/cli/run_shared.h"

#include "sim/report/share_report.h"
#include "workloads/loader_share.h"

/* Options that are of one run with its seeds. */
static bool refuse_others(const OrrCli *cli, GError **error) {
    static const char *const others[] = {"seeds", "seed",  "threads",     "resume", "events",
                                         "trace", "plots", "calibration", NULL};
    for (int i = 0; others[i]; i++)
        if (orr_cli_has(cli, others[i]))
            return orr_fail_usage(error,
                                  "orrery run --shared: nothing is drawn or traced; --%s does "
                                  "not apply",
                                  others[i]);
    return true;
}

bool orr_cli_run_shared(const OrrCli *cli, const OrrOverride *overrides, uint32_t n_overrides,
                        GError **error) {
    if (!refuse_others(cli, error))
        return false;
    g_autoptr(OrrShareFile) file =
        orr_workload_share(orr_cli_argument(cli, 0), overrides, n_overrides, NULL, error);
    if (!file || !orr_share_check(file->spec, error))
        return false;
    g_autofree OrrShareResult *results = g_new0(OrrShareResult, file->spec->n_jobs);
    OrrShareAccount account;
    orr_share_simulate(file->spec, results, &account);
    OrrShareReport report = {file->name, file->summary, PACKAGE_VERSION,
                             file->spec, results,       &account};
    g_autoptr(OrrOut) out = orr_cli_output(cli, error);
    if (!out)
        return false;
    if (orr_cli_has(cli, "json"))
        orr_share_json(&report, out);
    else if (orr_cli_has(cli, "csv"))
        orr_share_csv(&report, out);
    else
        orr_share_text(&report, out);
    return orr_out_commit(out, error);
}
