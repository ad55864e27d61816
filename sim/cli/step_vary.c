#include "sim/cli/step_vary.h"

#include "sim/api/sweep.h"
#include "sim/cli/run.h"
#include "sim/io/progress.h"
#include "sim/report/sweep.h"

#include <stdio.h>
#include <string.h>

/* "GROUP.KEY=V1,V2,...", told apart from the axes before it. */
static bool add_axis(OrrSweep *sweep, const char *text, GError **error) {
    g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(g_free);
    OrrOverride o;
    if (!orr_cli_parse_set("--vary", "layout.tp=1,2,4", text, texts, &o, error))
        return false;
    g_autofree char *key = g_strdup_printf("%s.%s", o.group, o.key);
    for (guint i = 0; i < sweep->axes->len; i++)
        if (strcmp(g_array_index(sweep->axes, OrrSweepAxis, i).key, key) == 0)
            return orr_fail_usage(error, "--vary %s: %s is varied twice; one list would do", text,
                                  key);
    for (const char *c = text; *c; c++)
        if (g_ascii_iscntrl(*c))
            return orr_fail_usage(error,
                                  "--vary %s: a value has a control character; none would "
                                  "do",
                                  key);
    g_auto(GStrv) values = g_strsplit(o.value, ",", -1);
    for (guint i = 0; values[i]; i++) {
        g_strstrip(values[i]);
        if (!*values[i])
            return orr_fail_usage(error, "--vary %s: a value is empty; layout.tp=1,2,4 would do",
                                  text);
        for (guint k = 0; k < i; k++)
            if (strcmp(values[i], values[k]) == 0)
                return orr_fail_usage(error, "--vary %s: %s comes twice; once would do", text,
                                      values[i]);
    }
    if (!values[0])
        return orr_fail_usage(error, "--vary %s: no values; layout.tp=1,2,4 would do", text);
    orr_sweep_add_axis(sweep, key, (const char *const *)values);
    return true;
}

static bool check_options(const OrrCli *cli, GError **error) {
    static const char *const alone[] = {"seeds", "sensitivity", "waits", "dump-program", "stats"};
    for (size_t i = 0; i < G_N_ELEMENTS(alone); i++)
        if (orr_cli_has(cli, alone[i]))
            return orr_fail_usage(error,
                                  "orrery step: --%s goes with one step, not with --vary; run it "
                                  "for the combination that matters",
                                  alone[i]);
    return true;
}

static bool write_sweep(const OrrCli *cli, const OrrSweep *sweep, GError **error) {
    g_autoptr(OrrOut) out = orr_cli_output(cli, error);
    if (!out)
        return false;
    if (orr_cli_has(cli, "json"))
        orr_report_sweep_json(sweep, out);
    else if (orr_cli_has(cli, "csv"))
        orr_report_sweep_csv(sweep, out);
    else
        orr_report_sweep_text(sweep, out);
    return orr_out_commit(out, error);
}

bool orr_cli_step_vary(const OrrCli *cli, const char *job, GError **error) {
    int64_t threads = 0;
    if (!check_options(cli, error) || !orr_cli_int(cli, "threads", 1, 1024, &threads, error))
        return false;
    g_autoptr(OrrSweep) sweep = orr_sweep_new();
    for (guint i = 0; i < orr_cli_n_values(cli, "vary"); i++)
        if (!add_axis(sweep, orr_cli_nth_value(cli, "vary", i), error))
            return false;
    g_autoptr(OrrCliRun) run = orr_cli_run_request(cli, job, error);
    if (!run)
        return false;
    g_autoptr(OrrProgress) progress =
        orr_progress_new("varying", MIN(orr_sweep_n(sweep), ORR_MOST_SWEEP_ROWS), "combinations");
    OrrSweepRequest in = {.request = &run->request,
                          .n_threads = (uint32_t)threads,
                          .progress = orr_progress_show,
                          .progress_data = progress};
    bool is_done = orr_sweep_run(sweep, &in, error);
    g_clear_pointer(&progress, orr_progress_free);
    if (!is_done || !write_sweep(cli, sweep, error))
        return false;
    if (sweep->fastest != ORR_SWEEP_NONE)
        return true;
    g_set_error_literal(error, ORR_ERROR, ORR_ERROR_NO,
                        "the answer is no: no combination fits in the memory of its GPUs");
    return false;
}
