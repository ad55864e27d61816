/* From a RUN on the command line to a prepared step. */
#include "sim/cli/run.h"

#include "sim/base/units.h"
#include "sim/cluster/perturb.h"
#include "sim/io/data.h"
#include "sim/io/json.h"
#include "sim/io/progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define INPUT_LIMIT_BYTES (1 << 24) /* ours: inputs are a few kilobytes */

bool orr_cli_parse_set(const char *option, const char *example, const char *text, GPtrArray *texts,
                       OrrOverride *out, GError **error) {
    const char *equals = strchr(text, '=');
    const char *dot = strchr(text, '.');
    if (!equals || !dot || dot > equals || dot == text || dot + 1 == equals)
        return orr_fail_usage(error, "%s %s: GROUP.KEY=VALUE would do, such as %s", option, text,
                              example);
    out->group = g_strstrip(g_strndup(text, (gsize)(dot - text)));
    out->key = g_strstrip(g_strndup(dot + 1, (gsize)(equals - dot - 1)));
    out->value = g_strstrip(g_strdup(equals + 1));
    out->origin = NULL;
    g_ptr_array_add(texts, (gpointer)out->group);
    g_ptr_array_add(texts, (gpointer)out->key);
    g_ptr_array_add(texts, (gpointer)out->value);
    return true;
}

static bool add_override(OrrCliRun *run, const char *text, GError **error) {
    OrrOverride o;
    if (!orr_cli_parse_set("--set", "layout.tp=4", text, run->texts, &o, error))
        return false;
    g_array_append_val(run->overrides, o);
    return true;
}

/* A perturbation is a key of [perturb] under a label of its own, which no file is likely to have,
 * so that it comes beside the job's and a saved record brings it back with the other overrides. */
static bool add_perturb(OrrCliRun *run, const char *option, const char *text, GError **error) {
    g_autoptr(OrrPerturbs) alone = orr_perturbs_new();
    if (!orr_perturbs_add(alone, text, error)) {
        g_prefix_error(error, "%s: ", option);
        return false;
    }
    OrrOverride o = {
        .group = "perturb",
        .key = g_strdup_printf("command-line-%u", run->overrides->len + 1),
        .value = g_strdup(text),
    };
    g_ptr_array_add(run->texts, (gpointer)o.key);
    g_ptr_array_add(run->texts, (gpointer)o.value);
    g_array_append_val(run->overrides, o);
    return true;
}

/* The text of an input as the record names it: a path, or relative to a folder of data files. */
static char *read_input(const char *name, gsize *length) {
    char *text = orr_file_read(name, INPUT_LIMIT_BYTES, length, NULL);
    g_auto(GStrv) roots = orr_data_roots();
    for (guint i = 0; roots[i] && !text; i++) {
        g_autofree char *path = g_build_filename(roots[i], name, NULL);
        text = orr_file_read(path, INPUT_LIMIT_BYTES, length, NULL);
    }
    return text;
}

/* Tells which inputs of a saved record differ from what is there now; cannot fail. */
static void compare_inputs(const OrrJson *record, JsonArray *inputs) {
    for (guint i = 0; i < json_array_get_length(inputs); i++) {
        JsonNode *node = json_array_get_element(inputs, i);
        const char *name, *sha256;
        if (!JSON_NODE_HOLDS_OBJECT(node))
            continue;
        JsonObject *input = json_node_get_object(node);
        if (!orr_json_string(record, input, "name", &name, NULL) ||
            !orr_json_string(record, input, "sha256", &sha256, NULL))
            continue;
        gsize length;
        g_autofree char *text = read_input(name, &length);
        g_autofree char *now = text ? orr_file_sha256(text, length) : NULL;
        if (!now || strcmp(now, sha256) != 0)
            fprintf(stderr, "orrery: note: %s %s since %s was saved\n", name,
                    now ? "has changed" : "has gone", orr_json_name(record));
    }
}

/* A shipped job goes by its name, another one by the path of its file, which is the first input. */
static char *job_of_record(const OrrJson *record, JsonArray *inputs, const char *job) {
    JsonNode *first = json_array_get_length(inputs) > 0 ? json_array_get_element(inputs, 0) : NULL;
    const char *name;
    bool is_path = first && JSON_NODE_HOLDS_OBJECT(first) &&
                   orr_json_string(record, json_node_get_object(first), "name", &name, NULL) &&
                   !g_str_has_prefix(name, "workloads/");
    return g_strdup(is_path ? name : job);
}

/* How many seeds the record tells of, if it does. */
static bool take_seeds(OrrCliRun *run, const OrrJson *json, JsonObject *root, GError **error) {
    JsonObject *percentiles;
    if (!json_object_has_member(root, "percentiles"))
        return true;
    return orr_json_object(json, root, "percentiles", &percentiles, error) &&
           orr_json_int(json, percentiles, "n_seeds", 2, ORR_CLI_MAX_SEEDS, &run->n_seeds, error);
}

static bool from_record(OrrCliRun *run, const char *path, GError **error) {
    g_autoptr(OrrJson) json = orr_json_load(path, ORR_JSON_STRICT, error);
    JsonObject *root = json ? orr_json_root_object(json, error) : NULL;
    const char *schema, *job;
    int64_t seed;
    JsonArray *overrides, *inputs;
    if (!root || !orr_json_string(json, root, "schema", &schema, error))
        return false;
    if (strcmp(schema, "orrery.step/1") != 0)
        return orr_json_fail(json, root, "schema", error,
                             "a record of schema orrery.step/1 would do");
    if (!orr_json_string(json, root, "job", &job, error) ||
        !orr_json_int(json, root, "seed", INT64_MIN, INT64_MAX, &seed, error) ||
        !orr_json_array(json, root, "inputs", &inputs, error) ||
        !orr_json_array(json, root, "overrides", &overrides, error))
        return false;
    run->job = job_of_record(json, inputs, job);
    run->is_varied = json_object_has_member(root, "sensitivity");
    run->request.seed = (uint64_t)seed, run->request.has_seed = true;
    for (guint i = 0; i < json_array_get_length(overrides); i++) {
        JsonNode *node = json_array_get_element(overrides, i);
        if (!JSON_NODE_HOLDS_VALUE(node) || json_node_get_value_type(node) != G_TYPE_STRING)
            return orr_json_fail(json, root, "overrides", error, "a list of texts would do");
        if (!add_override(run, json_node_get_string(node), error))
            return false;
    }
    compare_inputs(json, inputs);
    return take_seeds(run, json, root, error);
}

static bool take_options(OrrCliRun *run, const OrrCli *cli, GError **error) {
    for (guint i = 0; i < orr_cli_n_values(cli, "set"); i++)
        if (!add_override(run, orr_cli_nth_value(cli, "set", i), error))
            return false;
    for (guint i = 0; i < orr_cli_n_values(cli, "perturb"); i++)
        if (!add_perturb(run, "--perturb", orr_cli_nth_value(cli, "perturb", i), error))
            return false;
    const char *jitter = orr_cli_value(cli, "jitter");
    g_autofree char *text = jitter ? g_strconcat("jitter=", jitter, NULL) : NULL;
    if (text && !add_perturb(run, "--jitter", text, error))
        return false;
    int64_t seed = -1;
    if (!orr_cli_int(cli, "seed", 0, INT64_MAX, &seed, error))
        return false;
    if (seed >= 0)
        run->request.seed = (uint64_t)seed, run->request.has_seed = true;
    run->request.calibration = orr_cli_value(cli, "calibration");
    run->request.is_unfolded = orr_cli_has(cli, "unfold");
    run->request.self_check = orr_cli_has(cli, "self-check");
    return true;
}

static void show_note(void *data, const char *text) {
    (void)data;
    fprintf(stderr, "orrery: %s\n", text);
}

OrrCliRun *orr_cli_run_request(const OrrCli *cli, const char *ref, GError **error) {
    g_autoptr(OrrCliRun) run = g_new0(OrrCliRun, 1);
    run->overrides = g_array_new(FALSE, FALSE, sizeof(OrrOverride));
    run->texts = g_ptr_array_new_with_free_func(g_free);
    run->begin_us = g_get_monotonic_time();
    bool is_record = g_str_has_suffix(ref, ".json") || g_str_has_suffix(ref, ".json.gz");
    if (!is_record)
        run->job = g_strdup(ref);
    else if (!from_record(run, ref, error))
        return NULL;
    if (!take_options(run, cli, error))
        return NULL;
    run->request.job = run->job;
    run->request.overrides = (const OrrOverride *)(void *)run->overrides->data;
    run->request.n_overrides = run->overrides->len;
    run->request.note = show_note;
    return g_steal_pointer(&run);
}

OrrCliRun *orr_cli_run_prepare(const OrrCli *cli, const char *ref, GError **error) {
    g_autoptr(OrrCliRun) run = orr_cli_run_request(cli, ref, error);
    if (!run)
        return NULL;
    run->run = orr_step_prepare(&run->request, error);
    run->prepared_us = g_get_monotonic_time();
    return run->run ? g_steal_pointer(&run) : NULL;
}

void orr_cli_run_free(OrrCliRun *run) {
    if (!run)
        return;
    if (run->run)
        orr_step_free(run->run);
    g_array_unref(run->overrides);
    g_ptr_array_unref(run->texts);
    g_free(run->job);
    g_free(run);
}

static void say_stats(const OrrCliRun *run, int64_t done_us) {
    const OrrRecord *r = orr_step_record(run->run);
    int64_t prepare_ns = (run->prepared_us - run->begin_us) * 1000;
    int64_t execute_ns = MAX((done_us - run->prepared_us) * 1000, 1);
    uint32_t steps = MAX(r->simulated_steps, 1);
    double per_s = steps / ((double)execute_ns * 1e-9);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    g_autofree char *prepare = orr_units_time(prepare_ns), *execute = orr_units_time(execute_ns);
    g_autofree char *one = orr_units_time(execute_ns / steps);
    g_autofree char *memory = orr_units_bytes((double)usage.ru_maxrss * 1024);
    g_autofree char *ops = orr_units_count((double)r->simulation.operations);
    g_autofree char *ops_per_s = orr_units_count((double)r->simulation.operations * per_s);
    g_autofree char *events = orr_units_count((double)r->simulation.events);
    g_autofree char *events_per_s = orr_units_count((double)r->simulation.events * per_s);
    fprintf(stderr,
            "orrery: loaded and lowered in %s; executed %u steps in %s (%s a step); peak "
            "memory %s\n",
            prepare, steps, execute, one, memory);
    fprintf(stderr,
            "orrery: a step is %s operations and %s events of %" G_GUINT64_FORMAT
            " executed ranks (of %" G_GUINT64_FORMAT "): %s operations/s, %s events/s\n",
            ops, events, r->simulation.representatives, r->simulation.ranks, ops_per_s,
            events_per_s);
}

#define USUAL_STEPS 3u /* that a run simulates until two agree */

static void show_progress(void *data, uint64_t thousandths) {
    orr_progress_set(data, MIN(thousandths / (10 * USUAL_STEPS), 99));
}

bool orr_cli_run_execute(OrrCliRun *run, const OrrCli *cli, const OrrProbe *probe,
                         const uint32_t *ranks, uint32_t n_ranks, GError **error) {
    g_autoptr(OrrProgress) progress = orr_progress_new("simulating", 100, "%");
    run->request.progress = show_progress;
    run->request.progress_data = progress;
    bool is_done = orr_step_execute(run->run, probe, ranks, n_ranks, error);
    run->request.progress = NULL;
    if (!is_done)
        return false;
    if (orr_cli_has(cli, "stats"))
        say_stats(run, g_get_monotonic_time());
    return true;
}
