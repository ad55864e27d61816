/* orrery step: one training step, as a report. */
#include "sim/cli/commands.h"

#include "sim/cli/run.h"
#include "sim/cli/step_replay.h"
#include "sim/cli/step_vary.h"
#include "sim/cli/step_waits.h"
#include "sim/io/progress.h"
#include "sim/report/formats.h"

#include <stdio.h>
#include <string.h>

static const OrrOption options[] = {
    ORR_OPTION_JSON,
    ORR_OPTION_CSV,
    ORR_OPTION_OUTPUT,
    ORR_RUN_OPTIONS,
    {"seeds", 0, "N", false,
     "step times over N seeds from the job's on: percentiles beside the report of the first"},
    {"sensitivity", 0, NULL, false,
     "what 10 % more of each thing that the machine has would make of the step, a run each"},
    {"vary", 0, "GROUP.KEY=V1,V2,...", true,
     "a table of the job with each of these values, and all combinations if it comes again: "
     "which is fastest, what does not fit or cannot be"},
    {"threads", 0, "N", false,
     "seeds, or runs of --sensitivity and --vary, at a time; default: as many as there are "
     "processors"},
    {"waits", 0, "FILE", false,
     "write how long each rank idled for others, a row a rank of the job, as CSV"},
    {"dump-program", 0, "FILE", false, "write the program that is executed, one operation a line"},
    ORR_OPTION_HELP,
    ORR_OPTION_END,
};

/* The program's text form; it is written with stdio, so it goes through a temporary stream. */
static bool dump_program(const OrrCliRun *run, const char *path, GError **error) {
    g_autoptr(OrrOut) out = orr_out_open(path, error);
    if (!out)
        return false;
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    g_assert(stream);
    orr_program_dump(orr_step_program(run->run), stream);
    fclose(stream);
    orr_out_write(out, text, length);
    free(text);
    return orr_out_commit(out, error);
}

static bool write_record(const OrrCli *cli, const OrrRecord *record, GError **error) {
    const char *format = orr_cli_has(cli, "json")  ? "json"
                         : orr_cli_has(cli, "csv") ? "csv"
                                                   : "text";
    g_autoptr(OrrOut) out = orr_cli_output(cli, error);
    if (!out)
        return false;
    orr_report_format_find(format)->write(record, out);
    return orr_out_commit(out, error);
}

static bool run_sensitivity(OrrCliRun *run, int64_t threads, GError **error) {
    g_autoptr(OrrProgress) progress =
        orr_progress_new("varying", orr_step_n_sensitivities(run->run), "runs");
    OrrStepSensitivity in = {
        .n_threads = (uint32_t)threads, .progress = orr_progress_show, .progress_data = progress};
    return orr_step_run_sensitivity(run->run, &in, error);
}

/* What is run besides: as the options say, else as in the saved record that is run again. */
static bool run_others(const OrrCli *cli, OrrCliRun *run, GError **error) {
    int64_t seeds = run->n_seeds, threads = 0;
    bool is_varied = orr_cli_has(cli, "sensitivity") || run->is_varied;
    if (!orr_cli_int(cli, "seeds", 2, ORR_CLI_MAX_SEEDS, &seeds, error) ||
        !orr_cli_int(cli, "threads", 1, 1024, &threads, error))
        return false;
    if (seeds == 0 && !is_varied && orr_cli_has(cli, "threads"))
        return orr_fail_usage(error,
                              "orrery step: --threads goes with --seeds, --sensitivity or --vary");
    if (is_varied && !run_sensitivity(run, threads, error))
        return false;
    if (seeds == 0)
        return true;
    g_autoptr(OrrProgress) progress = orr_progress_new("simulating", (uint64_t)seeds, "seeds");
    OrrStepSeeds in = {(uint32_t)seeds, (uint32_t)threads, orr_progress_show, progress};
    return orr_step_run_seeds(run->run, &in, error);
}

static bool is_standard_output(const char *path) {
    return path && strcmp(path, "-") == 0;
}

/* One document on standard output, not two. */
static bool check_outputs(const OrrCli *cli, GError **error) {
    const char *output = orr_cli_value(cli, "output");
    const struct {
        const char *name;
        bool is_there;
    } outputs[] = {{"the report", !output || is_standard_output(output)},
                   {"--waits", is_standard_output(orr_cli_value(cli, "waits"))},
                   {"--dump-program", is_standard_output(orr_cli_value(cli, "dump-program"))}};
    const char *first = NULL;
    for (size_t i = 0; i < G_N_ELEMENTS(outputs); i++) {
        if (outputs[i].is_there && first)
            return orr_fail_usage(error,
                                  "orrery step: %s and %s would both go to standard output; a "
                                  "file for one of them would do (the report: -o FILE)",
                                  first, outputs[i].name);
        first = outputs[i].is_there ? outputs[i].name : first;
    }
    return true;
}

static bool run_step(OrrCli *cli, GError **error) {
    if (orr_cli_has(cli, "json") && orr_cli_has(cli, "csv"))
        return orr_fail_usage(error, "orrery step: --json or --csv, not both");
    static const char *const outputs[] = {"output", "waits", "dump-program", NULL};
    if (!check_outputs(cli, error) || !orr_cli_are_apart(cli, "step", outputs, error) ||
        !orr_cli_can_write(cli, outputs, error))
        return false;
    const char *waits = orr_cli_value(cli, "waits");
    bool is_trace = orr_cli_is_trace(orr_cli_argument(cli, 0));
    if (is_trace && (waits || orr_cli_has(cli, "sensitivity")))
        return orr_fail_usage(error, "orrery step: --%s goes with a job, not with a trace",
                              waits ? "waits" : "sensitivity");
    if (is_trace && orr_cli_has(cli, "vary"))
        return orr_fail_usage(error, "orrery step: --vary goes with a job, not with a trace");
    if (is_trace)
        return orr_cli_step_replay(cli, orr_cli_argument(cli, 0), error);
    if (orr_cli_has(cli, "vary"))
        return orr_cli_step_vary(cli, orr_cli_argument(cli, 0), error);
    g_autoptr(OrrCliRun) run = orr_cli_run_prepare(cli, orr_cli_argument(cli, 0), error);
    if (!run)
        return false;
    const char *dump = orr_cli_value(cli, "dump-program");
    if (dump && !dump_program(run, dump, error))
        return false;
    if (!orr_cli_run_execute(run, cli, NULL, NULL, 0, error))
        return false;
    if (!run_others(cli, run, error))
        return false;
    const OrrRecord *record = orr_step_record(run->run);
    if (waits && !orr_cli_step_waits(run->run, waits, error))
        return false;
    if (!write_record(cli, record, error))
        return false;
    if (record->verdict != ORR_DOES_NOT_FIT)
        return true;
    g_set_error_literal(error, ORR_ERROR, ORR_ERROR_NO,
                        "the answer is no: it does not fit in the memory of its GPUs");
    return false;
}

const OrrCommand orr_cmd_step = {
    .name = "step",
    .summary = "simulate one training step of a job and report what it takes and why",
    .synopsis = "JOB",
    .description =
        "JOB is a name (orrery list jobs), the path of a job file, or a report saved with --json, "
        "which is run again. The report goes to standard output. A Chakra execution trace (a name "
        "that ends in .et, or JSON with nodes) is run with the durations that it records.\n\n"
        "Keys of the job's own groups (layout, batch, schedule, precision, recompute, network, "
        "nccl) "
        "and of the files it names (model, framework, cluster, node, gpu) can be set on the "
        "command "
        "line. Exit status 1: it does not fit in memory.\n\n"
        "  orrery step llama3-405b-16k\n"
        "  orrery step llama3-405b-16k --sensitivity\n"
        "  orrery step llama3-8b-128 --set layout.dp=auto --vary layout.tp=1,2,4,8 "
        "--vary batch.micro=1,2\n"
        "  orrery step llama3-8b-8 --set batch.micro=2 --set recompute.policy=full --json -o "
        "run.json",
    .min_arguments = 1,
    .max_arguments = 1,
    .options = options,
    .run = run_step,
};
