/* orrery trace: the steady step of chosen ranks, for viewers and analysers. */
#include "sim/cli/commands.h"

#include "sim/base/units.h"
#include "sim/cli/trace_context.h"
#include "traces/exporters.h"

#include <stdio.h>
#include <string.h>

static const OrrOption options[] = {
    {"ranks", 'r', "LIST", false, "ranks, such as 0-7,64 (default: rank 0)"},
    {"window", 'w', "FROM..TO", false,
     "spans that touch this part of the step, such as 1.0s..1.2s"},
    {"format", 'f', "NAME", false, "chrome, csv, passes or chakra (default: chrome)"},
    {"per-rank", 0, "DIR", false,
     "a file a rank in DIR, as a profiler would leave them (chrome, chakra)"},
    ORR_OPTION_OUTPUT,
    ORR_RUN_OPTIONS,
    ORR_OPTION_HELP,
    ORR_OPTION_END,
};

static bool read_time(const char *text, const char *whole, int64_t *ns, GError **error) {
    double value;
    GError *inner = NULL;
    if (orr_units_parse(text, ORR_DIM_TIME, &value, &inner) && value >= 0 && value < 9e18) {
        *ns = (int64_t)(value + 0.5);
        return true;
    }
    orr_fail_usage(error, "orrery trace: --window %s: %s%sFROM..TO such as 1.0s..1.2s would do",
                   whole, inner ? inner->message : "", inner ? "; " : "");
    g_clear_error(&inner);
    return false;
}

static bool read_window(const OrrCli *cli, OrrTraceRequest *request, GError **error) {
    const char *text = orr_cli_value(cli, "window");
    request->from_ns = 0, request->to_ns = INT64_MAX;
    if (!text)
        return true;
    g_auto(GStrv) ends = g_strsplit(text, "..", 2);
    if (g_strv_length(ends) != 2)
        return orr_fail_usage(
            error, "orrery trace: --window %s: FROM..TO such as 1.0s..1.2s would do", text);
    if (!read_time(ends[0], text, &request->from_ns, error) ||
        !read_time(ends[1], text, &request->to_ns, error))
        return false;
    return request->from_ns < request->to_ns ||
           orr_fail_usage(error, "orrery trace: --window %s: it must end after it begins", text);
}

/* How long a step is, is only known once it has run. */
static bool check_window(const OrrCli *cli, const OrrTraceRequest *request, int64_t step_time_ns,
                         GError **error) {
    if (request->from_ns < step_time_ns)
        return true;
    g_autofree char *length = orr_units_time(step_time_ns);
    return orr_fail_usage(error,
                          "orrery trace: --window %s: the step is over after %s, so nothing is in "
                          "it; times are from the begin of the step",
                          orr_cli_value(cli, "window"), length);
}

static void say_counts(const OrrCli *cli, const OrrTraceCounts *c, uint32_t n_ranks) {
    const char *where = orr_cli_value(cli, "per-rank");
    if (!where)
        where = orr_cli_value(cli, "output");
    fprintf(stderr,
            "orrery: %s: %" G_GUINT64_FORMAT " spans of %u ranks; left out: %" G_GUINT64_FORMAT
            " outside of the window, %u other ranks\n",
            where ? where : "stdout", c->n_spans, n_ranks, c->n_outside, c->n_other_ranks);
}

static bool run_trace(OrrCli *cli, GError **error) {
    OrrTraceRequest request = {.path = orr_cli_value(cli, "output"),
                               .directory = orr_cli_value(cli, "per-rank")};
    const char *format = orr_cli_value(cli, "format"), *list = orr_cli_value(cli, "ranks");
    if (request.path && request.directory)
        return orr_fail_usage(error, "orrery trace: --output or --per-rank, not both");
    request.exporter = orr_exporter_find(format ? format : "chrome", error);
    if (!request.exporter || !read_window(cli, &request, error))
        return false;
    if (request.directory && format && strcmp(format, "chrome") != 0 &&
        !request.exporter->is_per_rank)
        return orr_fail_usage(error,
                              "orrery trace: --format %s: --per-rank writes chrome and chakra "
                              "alone; drop one of the two",
                              format);
    g_autoptr(OrrCliRun) run = orr_cli_run_prepare(cli, orr_cli_argument(cli, 0), error);
    if (!run)
        return false;
    g_autofree uint32_t *ranks = NULL;
    if (!orr_trace_ranks(list ? list : "0", orr_step_n_ranks(run->run), &ranks, &request.n_ranks,
                         error))
        return false;
    OrrTraceContext context = orr_cli_trace_context(run);
    request.ranks = ranks, request.context = &context;
    g_autoptr(OrrTrace) trace = orr_trace_open(&request, error);
    if (!trace)
        return false;
    OrrProbe probe = orr_trace_probe(trace);
    OrrTraceCounts counts;
    if (!orr_cli_run_execute(run, cli, &probe, ranks, request.n_ranks, error))
        return false;
    context.step_time_ns = orr_step_record(run->run)->step_time_ns;
    if (!check_window(cli, &request, context.step_time_ns, error) ||
        !orr_trace_close(trace, &counts, error))
        return false;
    say_counts(cli, &counts, request.n_ranks);
    return true;
}

const OrrCommand orr_cmd_trace = {
    .name = "trace",
    .summary = "the spans of chosen ranks in one steady step, for trace viewers",
    .synopsis = "RUN",
    .description =
        "RUN is a job (orrery list jobs), the path of a job file, or a report saved with --json; "
        "it is "
        "simulated (again), which gives the same nanoseconds. A name that ends in .gz is "
        "compressed. Chrome JSON opens in Perfetto (ui.perfetto.dev) and chrome://tracing; with "
        "--per-rank the folder loads in HolisticTraceAnalysis. Chakra has one rank a file, so that "
        "several need --per-rank. What is left out is said on stderr and in the file.\n\n"
        "  orrery trace llama3-405b-16k --ranks 0-7 -o trace.json.gz\n"
        "  orrery trace llama3-405b-16k --ranks 0,1024,2048 --window 1.0s..1.2s -o part.json\n"
        "  orrery trace llama3-8b-8 --ranks 0-7 --per-rank profile/\n"
        "  orrery trace llama3-8b-8 --ranks 0-7 --format chakra --per-rank et/",
    .min_arguments = 1,
    .max_arguments = 1,
    .options = options,
    .run = run_trace,
};
