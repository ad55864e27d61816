/* orrery compare: why two step times differ. */
#include "sim/cli/commands.h"

#include "calibrate/run_log.h"
#include "sim/base/units.h"
#include "sim/cli/run.h"
#include "sim/io/csv.h"
#include "sim/io/json.h"
#include "sim/io/json_write.h"
#include "sim/judge/compare.h"
#include "traces/kineto.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const OrrOption options[] = {
    ORR_OPTION_JSON, ORR_OPTION_CSV,  ORR_OPTION_OUTPUT,
    ORR_RUN_OPTIONS, ORR_OPTION_HELP, ORR_OPTION_END,
};

typedef enum { IS_RUN, IS_LOG, IS_TRACE } Operand;

/* A name or a key file is a job; JSON is a saved record or a trace; anything else is a log. */
static Operand kind_of(const char *ref) {
    bool is_json = g_str_has_suffix(ref, ".json") || g_str_has_suffix(ref, ".json.gz");
    if (!is_json)
        return g_str_has_suffix(ref, ".ini") || !g_file_test(ref, G_FILE_TEST_IS_REGULAR) ? IS_RUN
                                                                                          : IS_LOG;
    g_autoptr(OrrJson) json = orr_json_load(ref, ORR_JSON_STRICT, NULL);
    JsonNode *root = json ? orr_json_root(json) : NULL;
    bool has_schema = root && JSON_NODE_HOLDS_OBJECT(root) &&
                      json_object_has_member(json_node_get_object(root), "schema");
    return has_schema ? IS_RUN : IS_TRACE;
}

static OrrCompare *with_file(const OrrRecord *one, const char *path, Operand kind, GError **error) {
    g_autoptr(GString) notes = g_string_new(NULL);
    OrrImport import = {.path = path, .notes = notes};
    OrrCompare *c = NULL;
    if (kind == IS_LOG) {
        OrrMeasuredRun *log = orr_run_log_read(&import, error);
        if (log && !isfinite(log->step_time_ns))
            orr_fail_input(error, "%s: no line of it leads to a step time", path);
        else if (log)
            c = orr_judge_compare_log(one, log);
        orr_measured_run_free(log);
    } else {
        OrrMeasuredProfile *profile = orr_kineto_read(&import, error);
        if (profile)
            c = orr_judge_compare_profile(one, profile);
        orr_measured_profile_free(profile);
    }
    fputs(notes->str, stderr);
    return c;
}

static OrrCompare *compare(OrrCli *cli, GError **error) {
    const char *first = orr_cli_argument(cli, 0), *second = orr_cli_argument(cli, 1);
    g_autoptr(OrrCliRun) one = orr_cli_run_prepare(cli, first, error);
    if (!one || !orr_cli_run_execute(one, cli, NULL, NULL, 0, error))
        return NULL;
    Operand kind = kind_of(second);
    if (kind != IS_RUN)
        return with_file(orr_step_record(one->run), second, kind, error);
    g_autoptr(OrrCliRun) other = orr_cli_run_prepare(cli, second, error);
    if (!other || !orr_cli_run_execute(other, cli, NULL, NULL, 0, error))
        return NULL;
    return orr_judge_compare_records(orr_step_record(one->run), orr_step_record(other->run));
}

static void write_text(const OrrCompare *c, OrrOut *out) {
    char share[32];
    orr_out_printf(out, "%-34s %14s %14s %14s %9s\n", "", "first, ms", "second, ms",
                   "difference, ms", "of first");
    for (uint32_t i = 0; i <= c->n_terms; i++) {
        bool is_sum = i == c->n_terms;
        int64_t a = is_sum ? c->one_ns : c->terms[i].one_ns;
        int64_t b = is_sum ? c->other_ns : c->terms[i].other_ns;
        char x[32], y[32], z[32];
        orr_out_printf(out, "%-34s %14s %14s %14s %7s %%\n", is_sum ? "step" : c->terms[i].name,
                       g_ascii_formatd(x, sizeof x, "%.3f", (double)a * 1e-6),
                       g_ascii_formatd(y, sizeof y, "%.3f", (double)b * 1e-6),
                       g_ascii_formatd(z, sizeof z, "%+.3f", (double)(b - a) * 1e-6),
                       g_ascii_formatd(share, sizeof share, "%+.1f",
                                       100.0 * (double)(b - a) / (double)c->one_ns));
    }
    for (guint i = 0; i < c->notes->len; i++)
        orr_out_printf(out, "%s\n", (const char *)c->notes->pdata[i]);
}

static void write_json(const OrrCompare *c, OrrOut *out) {
    OrrJsonWriter w = {.out = out, .is_pretty = true};
    orr_cli_json_begin(&w, "orrery.compare/1");
    orr_json_put_int(&w, "first_ns", c->one_ns);
    orr_json_put_int(&w, "second_ns", c->other_ns);
    orr_json_put_int(&w, "difference_ns", c->other_ns - c->one_ns);
    orr_json_begin_array(&w, "terms");
    for (uint32_t i = 0; i < c->n_terms; i++) {
        const OrrCompareTerm *t = &c->terms[i];
        orr_json_begin_object_inline(&w, NULL);
        orr_json_put_string(&w, "name", t->name);
        orr_json_put_int(&w, "first_ns", t->one_ns);
        orr_json_put_int(&w, "second_ns", t->other_ns);
        orr_json_put_int(&w, "difference_ns", t->other_ns - t->one_ns);
        orr_json_end_object(&w);
    }
    orr_json_end_array(&w);
    orr_json_begin_array(&w, "notes");
    for (guint i = 0; i < c->notes->len; i++)
        orr_json_put_string(&w, NULL, c->notes->pdata[i]);
    orr_json_end_array(&w);
    orr_json_end_object(&w);
    orr_out_puts(out, "\n");
}

static void write_csv(const OrrCompare *c, OrrOut *out) {
    static const char *const header[] = {"schema",    "term",          "first_ns",
                                         "second_ns", "difference_ns", NULL};
    OrrCsvWriter w = {.out = out};
    orr_csv_put_row(&w, header);
    for (uint32_t i = 0; i < c->n_terms; i++) {
        orr_csv_put(&w, "orrery.compare/1");
        orr_csv_put(&w, c->terms[i].name);
        orr_csv_put_int(&w, c->terms[i].one_ns);
        orr_csv_put_int(&w, c->terms[i].other_ns);
        orr_csv_put_int(&w, c->terms[i].other_ns - c->terms[i].one_ns);
        orr_csv_end_row(&w);
    }
}

static bool run_compare(OrrCli *cli, GError **error) {
    if (orr_cli_has(cli, "json") && orr_cli_has(cli, "csv"))
        return orr_fail_usage(error, "orrery compare: --json or --csv, not both");
    g_autoptr(OrrCompare) c = compare(cli, error);
    if (!c)
        return false;
    g_autoptr(OrrOut) out = orr_cli_output(cli, error);
    if (!out)
        return false;
    (orr_cli_has(cli, "json")  ? write_json
     : orr_cli_has(cli, "csv") ? write_csv
                               : write_text)(c, out);
    return orr_out_commit(out, error);
}

const OrrCommand orr_cmd_compare = {
    .name = "compare",
    .summary = "say term by term why two step times differ",
    .synopsis = "RUN RUN|LOG|TRACE",
    .description =
        "The first RUN is a job, a job file or a saved report; the second one too, or a training "
        "log (Megatron-LM, DeepSpeed, NeMo, torchtitan), or a profiler trace (Kineto JSON). The "
        "terms add up to the difference: owners of the compute stream's time for two runs; kernels "
        "by kind, exposed communication by collective, the host and other idle time for a trace; "
        "the "
        "framework's own timers for a log that has them, else the whole only; and which settings "
        "differ.\n\n"
        "  orrery compare llama3-8b-8 llama3-8b-128\n"
        "  orrery compare megatron-22b-8 run.json --csv\n"
        "  orrery compare my-job.ini train.log",
    .min_arguments = 2,
    .max_arguments = 2,
    .options = options,
    .run = run_compare,
};
