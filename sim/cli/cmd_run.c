/* orrery run: a whole run through its failures, as a report. */
#include "sim/cli/commands.h"

#include "sim/api/run.h"
#include "sim/cli/run.h"
#include "sim/cli/run_plots.h"
#include "sim/cli/run_shared.h"
#include "sim/io/journal.h"
#include "sim/io/json.h"
#include "sim/io/progress.h"
#include "sim/report/run_report.h"

#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>

#define MAX_SEEDS 1000000 /* ours: a gigabyte of results */
#define DEFAULT_SEEDS 100 /* ours: a second for a run of weeks */

static const OrrOption options[] = {
    ORR_OPTION_JSON,
    ORR_OPTION_CSV,
    ORR_OPTION_OUTPUT,
    {"seeds", 0, "N", false, "how many seeds to simulate; default: 100"},
    {"seed", 0, "N", false, "the first seed; default: 0"},
    {"threads", 0, "N", false, "seeds at a time; default: as many as there are processors"},
    {"resume", 0, "FILE", false, "keep finished seeds in FILE and go on from those that are there"},
    {"events", 0, "FILE", false, "what happens in the first seed, as CSV"},
    {"trace", 0, "FILE", false, "the same as a Chrome trace"},
    {"plots", 0, "DIR", false, "tables, scripts and pictures: progress, losses, interval, cost"},
    {"shared", 0, NULL, false, "RUN is a shared cluster (orrery list shares): its queue of jobs"},
    ORR_OPTION_SET,
    ORR_OPTION_CALIBRATION,
    ORR_OPTION_STATS,
    ORR_OPTION_HELP,
    ORR_OPTION_END,
};

typedef struct {
    OrrRunRequest request;
    char *run; /* of a saved record; NULL: as on the command line */
    bool is_shared;
    GArray *overrides;
    GPtrArray *texts;
} Request;

static void request_clear(Request *r) {
    g_array_unref(r->overrides);
    g_ptr_array_unref(r->texts);
    g_free(r->run);
}

static bool add_set(Request *r, const char *text, GError **error) {
    OrrOverride o;
    if (!orr_cli_parse_set("--set", "layout.tp=4", text, r->texts, &o, error))
        return false;
    g_array_append_val(r->overrides, o);
    return true;
}

/* A shipped run goes by its name, another one by the path of its file, which is the first input. */
static char *run_of_record(const OrrJson *json, JsonArray *inputs, const char *name) {
    JsonNode *first = json_array_get_length(inputs) > 0 ? json_array_get_element(inputs, 0) : NULL;
    const char *path;
    bool is_path = first && JSON_NODE_HOLDS_OBJECT(first) &&
                   orr_json_string(json, json_node_get_object(first), "name", &path, NULL) &&
                   !g_str_has_prefix(path, "workloads/") && !g_str_has_prefix(path, "topologies/");
    return g_strdup(is_path ? path : name);
}

/* A saved record is run again: its run, overrides and seeds, unless the command line says
 * otherwise. */
static bool from_record(Request *r, const char *path, int64_t *seed, int64_t *seeds,
                        GError **error) {
    g_autoptr(OrrJson) json = orr_json_load(path, ORR_JSON_STRICT, error);
    JsonObject *root = json ? orr_json_root_object(json, error) : NULL;
    const char *schema, *name;
    JsonArray *inputs, *overrides;
    if (!root || !orr_json_string(json, root, "schema", &schema, error))
        return false;
    bool is_share = strcmp(schema, "orrery.share/1") == 0;
    if (!is_share && (r->is_shared || strcmp(schema, "orrery.run/1") != 0))
        return orr_json_fail(json, root, "schema", error, "a record of schema orrery.%s/1 would do",
                             r->is_shared ? "share" : "run");
    r->is_shared = is_share;
    if (!orr_json_string(json, root, is_share ? "share" : "run", &name, error) ||
        !orr_json_int(json, root, "seed", 0, INT64_MAX / 2, seed, error) ||
        !orr_json_int(json, root, "seeds", 1, MAX_SEEDS, seeds, error) ||
        !orr_json_array(json, root, "inputs", &inputs, error) ||
        !orr_json_array(json, root, "overrides", &overrides, error))
        return false;
    for (guint i = 0; i < json_array_get_length(overrides); i++) {
        JsonNode *node = json_array_get_element(overrides, i);
        if (!JSON_NODE_HOLDS_VALUE(node) || json_node_get_value_type(node) != G_TYPE_STRING)
            return orr_json_fail(json, root, "overrides", error, "a list of texts would do");
        if (!add_set(r, json_node_get_string(node), error))
            return false;
    }
    r->run = run_of_record(json, inputs, name);
    return true;
}

static bool take_options(Request *r, const OrrCli *cli, GError **error) {
    r->is_shared = orr_cli_has(cli, "shared");
    int64_t seeds = r->is_shared ? 1 : DEFAULT_SEEDS, seed = 0, threads = 0;
    r->overrides = g_array_new(FALSE, FALSE, sizeof(OrrOverride));
    r->texts = g_ptr_array_new_with_free_func(g_free);
    if (orr_cli_has(cli, "json") && orr_cli_has(cli, "csv"))
        return orr_fail_usage(error, "orrery run: --json or --csv, not both");
    static const char *const outputs[] = {"output", "resume", "events", "trace", "plots", NULL};
    static const char *const files[] = {"output", "events", "trace", NULL};
    if (!orr_cli_are_apart(cli, "run", outputs, error) || !orr_cli_can_write(cli, files, error))
        return false;
    const char *ref = orr_cli_argument(cli, 0);
    bool is_record = g_str_has_suffix(ref, ".json") || g_str_has_suffix(ref, ".json.gz");
    if (is_record && !from_record(r, ref, &seed, &seeds, error))
        return false;
    if (!orr_cli_int(cli, "seeds", 1, MAX_SEEDS, &seeds, error) ||
        !orr_cli_int(cli, "seed", 0, INT64_MAX / 2, &seed, error) ||
        !orr_cli_int(cli, "threads", 1, 1024, &threads, error))
        return false;
    for (guint i = 0; i < orr_cli_n_values(cli, "set"); i++)
        if (!add_set(r, orr_cli_nth_value(cli, "set", i), error))
            return false;
    r->request = (OrrRunRequest){.run = is_record ? r->run : ref,
                                 .overrides = (const OrrOverride *)(void *)r->overrides->data,
                                 .n_overrides = r->overrides->len,
                                 .calibration = orr_cli_value(cli, "calibration"),
                                 .seed = (uint64_t)seed,
                                 .n_seeds = (uint32_t)seeds,
                                 .n_threads = (uint32_t)threads};
    return true;
}

/* Finished seeds in a journal. */
typedef struct {
    OrrJournal *journal;
    GHashTable *by_seed; /* guint64 -> line, borrowed from the journal */
    uint32_t n_causes;
} Store;

static bool store_get(void *data, OrrRunSeed *seed) {
    const Store *s = data;
    const char *line = g_hash_table_lookup(s->by_seed, &seed->seed);
    if (!line)
        return false;
    uint64_t wanted = seed->seed;
    bool is_fine = orr_run_seed_parse(seed, s->n_causes, line);
    if (is_fine && seed->seed == wanted)
        return true;
    orr_run_seed_clear(seed);
    orr_run_seed_init(seed, wanted, s->n_causes);
    return false;
}

static bool store_put(void *data, const OrrRunSeed *seed, GError **error) {
    const Store *s = data;
    g_autofree char *line = orr_run_seed_line(seed, s->n_causes);
    return orr_journal_append(s->journal, line, error);
}

static bool store_open(Store *s, const OrrRun *run, const char *path, GError **error) {
    GStatBuf st;
    if (g_stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
        fprintf(stderr, "orrery: %s: is empty; nothing is finished there yet\n", path);
    s->n_causes = orr_run_n_causes(orr_run_spec(run));
    s->journal = orr_journal_open(path, orr_run_key(run), error);
    if (!s->journal)
        return false;
    s->by_seed = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    for (guint i = 0; i < orr_journal_n_lines(s->journal); i++) {
        const char *line = orr_journal_line(s->journal, i);
        gint64 *seed = g_new(gint64, 1);
        *seed = (gint64)g_ascii_strtoull(line, NULL, 10);
        g_hash_table_insert(s->by_seed, seed, (gpointer)line);
    }
    return true;
}

static void store_clear(Store *s) {
    g_clear_pointer(&s->by_seed, g_hash_table_unref);
    g_clear_pointer(&s->journal, orr_journal_free);
}

static bool simulate(OrrRun *run, const Request *r, const OrrCli *cli, GError **error) {
    Store store = {0};
    OrrSeedStore seeds = {store_get, store_put, &store};
    const char *path = orr_cli_value(cli, "resume");
    if (path && !store_open(&store, run, path, error))
        return false;
    g_autoptr(OrrProgress) progress = orr_progress_new("simulating", r->request.n_seeds, "seeds");
    bool is_done = orr_run_execute(run, path ? &seeds : NULL, orr_progress_show, progress, error);
    store_clear(&store);
    return is_done;
}

static const char *cause_name(const void *run, uint32_t cause) {
    return orr_run_cause_name(run, cause);
}

/* The first seed again, seen by a writer. */
static bool write_events(const OrrRun *run, const Request *r, const char *path, bool is_trace,
                         GError **error) {
    if (!path)
        return true;
    g_autoptr(OrrOut) out = orr_out_open(path, error);
    if (!out)
        return false;
    OrrRunNames names = {r->request.run, cause_name, run};
    OrrRunEventWriter *w =
        is_trace ? orr_run_events_trace(out, &names) : orr_run_events_csv(out, &names);
    OrrRunProbe probe = {orr_run_events_write, w};
    OrrRunSeed seed;
    orr_run_seed_init(&seed, r->request.seed, orr_run_n_causes(orr_run_spec(run)));
    orr_run_simulate(orr_run_spec(run), r->request.seed, &probe, &seed);
    orr_run_seed_clear(&seed);
    orr_run_events_close(w);
    return orr_out_commit(out, error);
}

static bool write_record(const OrrRunRecord *record, const OrrCli *cli, GError **error) {
    const char *format = orr_cli_has(cli, "json")  ? "json"
                         : orr_cli_has(cli, "csv") ? "csv"
                                                   : "text";
    g_autoptr(OrrOut) out = orr_cli_output(cli, error);
    if (!out)
        return false;
    orr_run_format_find(format)->write(record, out);
    return orr_out_commit(out, error);
}

static bool answer(const OrrRunRecord *record, GError **error) {
    for (uint32_t i = 0; i < record->head->n_warnings; i++)
        if (strcmp(record->head->warnings[i].code, "does_not_fit") == 0) {
            g_set_error(error, ORR_ERROR, ORR_ERROR_NO, "the answer is no: %s",
                        record->head->warnings[i].text);
            return false;
        }
    return true;
}

static bool run_all(const Request *r, const OrrCli *cli, GError **error) {
    int64_t begin_us = g_get_monotonic_time();
    g_autoptr(OrrRun) run = orr_run_prepare(&r->request, error);
    if (!run)
        return false;
    int64_t prepared_us = g_get_monotonic_time();
    if (!simulate(run, r, cli, error) ||
        !write_events(run, r, orr_cli_value(cli, "events"), false, error) ||
        !write_events(run, r, orr_cli_value(cli, "trace"), true, error) ||
        !write_record(orr_run_record(run), cli, error) ||
        (orr_cli_has(cli, "plots") && !orr_cli_run_plots(run, orr_cli_value(cli, "plots"), error)))
        return false;
    if (orr_cli_has(cli, "stats"))
        fprintf(stderr,
                "orrery: loaded and priced in %" G_GINT64_FORMAT
                " ms; %u seeds in %" G_GINT64_FORMAT " ms\n",
                (prepared_us - begin_us) / 1000, r->request.n_seeds,
                (g_get_monotonic_time() - prepared_us) / 1000);
    return answer(orr_run_record(run), error);
}

static bool run_run(OrrCli *cli, GError **error) {
    Request request = {0};
    bool is_done = take_options(&request, cli, error);
    if (is_done && request.is_shared)
        is_done = orr_cli_run_shared(cli, &request.request, error);
    else if (is_done)
        is_done = run_all(&request, cli, error);
    request_clear(&request);
    return is_done;
}

const OrrCommand orr_cmd_run = {
    .name = "run",
    .summary = "simulate a whole run: weeks of steps, failures, checkpoints, and what they cost",
    .synopsis = "RUN",
    .description =
        "RUN is a name (orrery list runs), the path of a run file, a report saved with --json, "
        "which is "
        "run again, or a job whose end is given by --set run.length=30d, run.tokens=1e12 or "
        "run.steps=1000. The step of its job is simulated "
        "once for each state that the run can be in, then each seed goes through failures, "
        "checkpoints and recovery. Every nanosecond of the wall time is useful or lost to a "
        "cause.\n\n"
        "Groups run, recovery and checkpoint, those of the causes of failure and those of prices "
        "can "
        "be set; all other groups are the job's. With --resume a run that was killed goes on and "
        "ends with the same bytes. --events and --trace are of the first seed: --seed 17 --seeds 1 "
        "replays that one alone. Exit status 1: the step does not fit in memory.\n\n"
        "With --shared RUN is a name (orrery list shares) or the path of a file of several jobs "
        "that wait for one cluster: gangs, places, priority, backfill and preemption, failures of "
        "nodes, spot, slices of GPUs and a shared store, each hour of each GPU accounted for. One "
        "seed unless --seeds says more; groups share, failures, spot, store, those of clusters and "
        "those of prices can be set.\n\n"
        "  orrery run llama3-405b-54d\n"
        "  orrery run llama3-405b-54d --seeds 1000 --resume seeds.journal --json -o run.json\n"
        "  orrery run llama3-8b-8 --set run.tokens=15e9 --set run.noise=2%\n"
        "  orrery run --shared two-racks-a-day --set share.policy=fcfs\n"
        "  orrery run --shared spot-ablations --seeds 200 --plots out",
    .min_arguments = 1,
    .max_arguments = 1,
    .options = options,
    .run = run_run,
};
