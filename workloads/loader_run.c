/* Run files: a job repeated until an end, with its recovery and its checkpoints. */
#include "workloads/loader_run.h"

#include "sim/io/data.h"
#include "workloads/loader_priv.h"

#include <string.h>

const char *const orr_interval_policy_names[] = {"fixed", "young", "daly", "search", NULL};

#define AT(member) offsetof(OrrRunFile, member)
#define NS_MAX (100 * 365.25 * 86400e9) /* a century, far below INT64_MAX ns */
#define TIME(g, k, m, d, flags)                                                                    \
    { g, k, ORR_FIELD_NUMBER, ORR_DIM_TIME, NULL, 0, NS_MAX, NULL, AT(m), d, flags }
#define NUMBER(g, k, dim, max, m, d)                                                               \
    { g, k, ORR_FIELD_NUMBER, dim, NULL, 0, max, NULL, AT(m), d, ORR_KEY_QUIET }
#define COUNT(g, k, noun, max, m, d)                                                               \
    { g, k, ORR_FIELD_COUNT, ORR_DIM_NONE, noun, 0, max, NULL, AT(m), d, ORR_KEY_QUIET }
#define ENUM(g, k, names, m, d, flags)                                                             \
    { g, k, ORR_FIELD_ENUM, ORR_DIM_NONE, NULL, 0, 0, names, AT(m), d, flags }

static const OrrField fields[] = {
    TIME("run", "length", length_ns, 0, ORR_KEY_QUIET),
    TIME("run", "step_time", step_ns, 0, ORR_KEY_QUIET),
    COUNT("run", "gpus", "GPUs", 1 << 24, gpus, 0),
    COUNT("run", "gpus_per_node", "GPUs", 1 << 16, gpus_per_node, 8),
    TIME("run", "queue", queue_ns, 0, ORR_KEY_QUIET),
    {"run", "noise", ORR_FIELD_NUMBER, ORR_DIM_FRACTION, NULL, 0, 10, NULL, AT(noise_frac), 0,
     ORR_KEY_OPTIONAL},
    COUNT("run", "evaluate_every", "steps", 1e9, evaluate_steps, 0),
    TIME("run", "evaluate", evaluate_ns, 0, ORR_KEY_QUIET),
    NUMBER("run", "failure_scale", ORR_DIM_NONE, 1e6, failure_scale, 1),
    ENUM("run", "contract", orr_contract_names, contract, ORR_CONTRACT_NONE, ORR_KEY_QUIET),
    TIME("recovery", "start", recovery.start_ns, 300e9, ORR_KEY_OPTIONAL),
    COUNT("recovery", "start_ranks", "ranks", 1 << 24, recovery.start_ranks, 0),
    NUMBER("recovery", "start_growth", ORR_DIM_NONE, 2, recovery.start_growth, 0),
    TIME("recovery", "in_place", recovery.in_place_ns, -1, ORR_KEY_QUIET),
    TIME("recovery", "hot_swap", recovery.hot_swap_ns, -1, ORR_KEY_QUIET),
    TIME("recovery", "swap", recovery.swap_ns, 0, ORR_KEY_OPTIONAL),
    TIME("recovery", "cold", recovery.cold_ns, 0, ORR_KEY_QUIET),
    TIME("recovery", "reshard", recovery.reshard_ns, 0, ORR_KEY_QUIET),
    COUNT("recovery", "hot_spares", "nodes", 1e6, recovery.hot_spares, 0),
    COUNT("recovery", "cold_spares", "nodes", 1e6, recovery.cold_spares, 0),
    COUNT("recovery", "repair_hands", "hands", 1e6, recovery.repair_hands, 0),
    TIME("recovery", "requeue", recovery.requeue_ns, 0, ORR_KEY_QUIET),
    ENUM("recovery", "requeue_after", orr_requeue_names, recovery.requeue_after,
         ORR_REQUEUE_REPLACED, ORR_KEY_QUIET),
    COUNT("recovery", "most_replicas_lost", "replicas", 8, recovery.max_lost, 1),
    ENUM("recovery", "elastic", orr_elastic_names, recovery.elastic, ORR_ELASTIC_NO,
         ORR_KEY_OPTIONAL),
    ENUM("checkpoint", "policy", orr_interval_policy_names, checkpoint.policy, ORR_INTERVAL_FIXED,
         ORR_KEY_QUIET),
    TIME("checkpoint", "interval", checkpoint.interval_ns, 0, ORR_KEY_QUIET),
    COUNT("checkpoint", "interval_steps", "steps", 1e9, checkpoint.interval_steps, 0),
    NUMBER("checkpoint", "bytes", ORR_DIM_BYTES, 1e18, checkpoint.bytes, 0),
    NUMBER("checkpoint", "bytes_per_parameter", ORR_DIM_BYTES, 1e3, checkpoint.bytes_per_parameter,
           0),
    NUMBER("checkpoint", "loader_state", ORR_DIM_BYTES, 1e15, checkpoint.loader_bytes, 0),
    NUMBER("checkpoint", "copy", ORR_DIM_RATE, 1e15, checkpoint.copy_bytes_per_s, 0),
    NUMBER("checkpoint", "front_end", ORR_DIM_RATE, 1e15, checkpoint.front_bytes_per_s, 0),
    COUNT("checkpoint", "writers", "writers", 1 << 24, checkpoint.writers, 0),
    {"checkpoint", "asynchronous", ORR_FIELD_BOOL, ORR_DIM_NONE, NULL, 0, 0, NULL,
     AT(checkpoint.is_async), 0, ORR_KEY_OPTIONAL},
};

void orr_run_file_free(OrrRunFile *f) {
    if (!f)
        return;
    for (uint32_t i = 0; i < f->n_stores; i++)
        g_free(f->stores[i].name);
    for (uint32_t i = 0; i < f->n_stages; i++)
        g_free(f->stages[i].name), g_free(f->stages[i].sets);
    g_free(f->stores), g_free(f->stages);
    g_free(f->name), g_free(f->summary), g_free(f->source), g_free(f->job_ref);
    g_free(f->failures_ref), g_free(f->prices_ref), g_free(f->sets);
    g_free(f);
}

static char *text_of(OrrKeys *keys, const char *key, OrrKeyFlags flags) {
    return g_strdup(orr_keys_string(keys, "run", key, "", flags));
}

/* "15.6e12 tokens": more than a whole number of 2^53 can hold is fine, an exponent too. */
static double amount(OrrKeys *keys, const char *group, const char *key, const char *noun,
                     OrrKeyFlags flags) {
    const char *text = orr_keys_string(keys, group, key, "", flags), *rest;
    if (*text == '\0')
        return 0;
    double value;
    g_autoptr(GError) flaw = NULL;
    if (!orr_units_split(text, &value, &rest, &flaw)) {
        orr_keys_complain(keys, group, key, "%s; from 1 to 1e18 %s would do", flaw->message, noun);
        return 0;
    }
    if (value < 1 || value > 1e18 || (*rest && strcmp(rest, noun) != 0)) {
        orr_keys_complain(keys, group, key, "from 1 to 1e18 %s would do", noun);
        return 0;
    }
    return value;
}

static bool is_file_group(const char *group) {
    return strcmp(group, "run") == 0 || strcmp(group, "recovery") == 0 ||
           strcmp(group, "checkpoint") == 0;
}

bool orr_run_file_owns(const OrrRunFile *f, const char *group) {
    if (is_file_group(group))
        return true;
    for (uint32_t i = 0; i < f->n_stores; i++)
        if (strcmp(f->stores[i].name, group) == 0)
            return true;
    for (uint32_t i = 0; i < f->n_stages; i++)
        if (strcmp(f->stages[i].name, group) == 0)
            return true;
    return false;
}

/* Names in a list become groups; the override of one may come only then. */
static char **group_list(OrrKeys *keys, const char *group, const char *key,
                         const OrrOverride *overrides, uint32_t n_overrides) {
    char **names = orr_keys_strings(keys, group, key, ORR_KEY_QUIET);
    for (guint i = 0; names && names[i]; i++) {
        if (is_file_group(names[i]))
            orr_keys_complain(keys, group, key,
                              "%s is a group of every run file; another name "
                              "would do",
                              names[i]);
        for (guint j = 0; j < i; j++)
            if (strcmp(names[i], names[j]) == 0)
                orr_keys_complain(keys, group, key, "%s stands there twice; one would do",
                                  names[i]);
        for (uint32_t o = 0; o < n_overrides; o++)
            if (strcmp(overrides[o].group, names[i]) == 0 && !is_file_group(names[i]))
                orr_keys_override(keys, overrides[o].group, overrides[o].key, overrides[o].value,
                                  "--set");
        if (!orr_keys_has_group(keys, names[i]))
            orr_keys_complain(keys, group, key, "there is no group [%s]; the name of one would do",
                              names[i]);
    }
    return names;
}

static void read_stores(OrrKeys *keys, OrrRunFile *f, char **names) {
    f->n_stores = names ? g_strv_length(names) : 0;
    f->stores = g_new0(OrrRunStore, f->n_stores + 1);
    if (f->n_stores > 4)
        orr_keys_complain(keys, "checkpoint", "stores",
                          "names more than four stores; four would do");
    for (uint32_t i = 0; i < f->n_stores; i++) {
        OrrRunStore *s = &f->stores[i];
        const char *g = s->name = g_strdup(names[i]);
        s->bytes_per_s =
            orr_keys_number(keys, g, "bandwidth", ORR_DIM_RATE, 0, 1e18, 0, ORR_KEY_QUIET);
        s->writer_bytes_per_s =
            orr_keys_number(keys, g, "writer", ORR_DIM_RATE, 0, 1e18, 0, ORR_KEY_QUIET);
        s->node_bytes_per_s =
            orr_keys_number(keys, g, "node", ORR_DIM_RATE, 0, 1e18, 0, ORR_KEY_QUIET);
        s->read_bytes_per_s =
            orr_keys_number(keys, g, "read", ORR_DIM_RATE, 0, 1e18, 0, ORR_KEY_QUIET);
        s->latency_ns =
            orr_keys_number(keys, g, "latency", ORR_DIM_TIME, 0, 3600e9, 0, ORR_KEY_OPTIONAL);
        s->every =
            (uint32_t)orr_keys_int(keys, g, "every", "checkpoints", 1, 1 << 20, 1, ORR_KEY_QUIET);
        s->keep =
            (uint32_t)orr_keys_int(keys, g, "keep", "checkpoints", 1, 1 << 20, 2, ORR_KEY_OPTIONAL);
        s->survives = (OrrScope)orr_keys_enum(keys, g, "survives", orr_scope_names, ORR_SCOPE_ALL,
                                              ORR_KEY_OPTIONAL);
        s->network = (OrrStoreNetwork)orr_keys_enum(keys, g, "network", orr_store_network_names,
                                                    ORR_STORE_OWN, ORR_KEY_OPTIONAL);
        if (!(s->bytes_per_s > 0) && !(s->writer_bytes_per_s > 0) && !(s->node_bytes_per_s > 0))
            orr_keys_complain(keys, g, "bandwidth",
                              "the store has no speed; bandwidth = 200 GB/s of the whole, node = 6 "
                              "GB/s of a node, "
                              "or writer = 2 GB/s of one writer would do");
    }
}

static void read_stages(OrrKeys *keys, OrrRunFile *f, char **names) {
    f->n_stages = names ? g_strv_length(names) : 0;
    f->stages = g_new0(OrrRunStage, f->n_stages + 1);
    for (uint32_t i = 0; i < f->n_stages; i++) {
        OrrRunStage *s = &f->stages[i];
        s->name = g_strdup(names[i]);
        s->tokens = amount(keys, s->name, "tokens", "tokens", ORR_KEY_REQUIRED);
        s->sets = g_strdup(orr_keys_string(keys, s->name, "set", "", ORR_KEY_REQUIRED));
    }
}

/* A policy of the command line takes the place of the file's interval, an interval that of its
 * policy; the last one counts. */
static void choose_interval(OrrRunFile *f, const OrrOverride *overrides, uint32_t n) {
    const char *chosen = "";
    for (uint32_t i = 0; i < n; i++) {
        const char *key = overrides[i].key;
        if (strcmp(overrides[i].group, "checkpoint") == 0 &&
            (strcmp(key, "policy") == 0 ||
             (strcmp(key, "interval") == 0 && f->checkpoint.interval_ns > 0) ||
             (strcmp(key, "interval_steps") == 0 && f->checkpoint.interval_steps > 0)))
            chosen = key;
    }
    bool is_policy = strcmp(chosen, "policy") == 0;
    if (is_policy && f->checkpoint.policy == ORR_INTERVAL_FIXED)
        return; /* with the interval of the file */
    if (is_policy || strcmp(chosen, "interval") == 0)
        f->checkpoint.interval_steps = 0;
    if (is_policy || strcmp(chosen, "interval_steps") == 0)
        f->checkpoint.interval_ns = 0;
    if (!is_policy && *chosen)
        f->checkpoint.policy = ORR_INTERVAL_FIXED;
}

static void check(OrrKeys *keys, const OrrRunFile *f) {
    if (!(f->length_ns > 0) && !(f->tokens > 0) && !(f->steps > 0))
        orr_keys_complain(keys, "run", "length",
                          "the run has no end; length = 54 d, tokens = 15e12 "
                          "tokens or steps = 1000 steps would do");
    bool is_given = f->step_ns > 0;
    if (is_given == (*f->job_ref != '\0'))
        orr_keys_complain(keys, "run", "job",
                          "either the job whose step is simulated, or "
                          "step_time, gpus and tokens_per_step would do");
    if (is_given && (f->gpus == 0 || !(f->tokens_per_step > 0)))
        orr_keys_complain(keys, "run", "step_time",
                          "needs gpus and tokens_per_step beside it; with all three it would do");
    if (is_given && f->n_stores > 0 && !(f->checkpoint.bytes > 0))
        orr_keys_complain(keys, "checkpoint", "bytes",
                          "is needed where no model says it; bytes = 2.3 TB would do");
    if (is_given && f->n_stages > 0)
        orr_keys_complain(keys, "run", "phases", "need a job to simulate; job = NAME would do");
    bool has_interval = f->checkpoint.interval_ns > 0 || f->checkpoint.interval_steps > 0;
    bool is_fixed = f->checkpoint.policy == ORR_INTERVAL_FIXED;
    if (!is_fixed && has_interval)
        orr_keys_complain(keys, "checkpoint", "policy", "an interval is given too; one would do");
    if (f->n_stores > 0 && is_fixed && !has_interval)
        orr_keys_complain(keys, "checkpoint", "interval",
                          "interval = 30 min, interval_steps = 100 "
                          "steps, or one of the policies young, daly, search would do");
    if (f->checkpoint.interval_ns > 0 && f->checkpoint.interval_steps > 0)
        orr_keys_complain(keys, "checkpoint", "interval_steps",
                          "interval is given too; one would do");
    if (f->contract != ORR_CONTRACT_NONE && *f->prices_ref == '\0')
        orr_keys_complain(keys, "run", "contract",
                          "needs prices; prices = NAME (orrery list prices) would do");
    if ((f->evaluate_steps > 0) != (f->evaluate_ns > 0))
        orr_keys_complain(keys, "run", f->evaluate_ns > 0 ? "evaluate" : "evaluate_every",
                          "evaluate_every = 1000 steps and evaluate = 5 min together would do");
    if (f->gpus > 0 && f->checkpoint.writers > f->gpus)
        orr_keys_complain(keys, "checkpoint", "writers",
                          "the run has %u ranks to write; at most that would do", f->gpus);
}

/* What is read later is looked for here, where there is a line to point at. */
static void check_refs(OrrKeys *keys, const OrrRunFile *f) {
    g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GArray) sets = g_array_new(FALSE, FALSE, sizeof(OrrOverride));
    g_autoptr(GError) flaw = NULL;
    orr_workloads__check_ref(keys, "run", "job", "workloads/jobs", f->job_ref);
    orr_workloads__check_ref(keys, "run", "failures", "topologies/failures", f->failures_ref);
    orr_workloads__check_ref(keys, "run", "prices", "workloads/prices", f->prices_ref);
    if (!orr_run_parse_sets(f->sets, texts, sets, &flaw))
        orr_keys_complain(keys, "run", "set", "%s", flaw->message);
}

static void read_all(OrrKeys *keys, OrrRunFile *f, const OrrOverride *overrides, uint32_t n) {
    f->summary = text_of(keys, "summary", ORR_KEY_QUIET);
    f->source = text_of(keys, "source", ORR_KEY_REQUIRED);
    f->job_ref = text_of(keys, "job", ORR_KEY_QUIET);
    f->failures_ref = text_of(keys, "failures", ORR_KEY_QUIET);
    f->prices_ref = text_of(keys, "prices", ORR_KEY_QUIET);
    f->sets = text_of(keys, "set", ORR_KEY_QUIET);
    check_refs(keys, f);
    f->tokens = amount(keys, "run", "tokens", "tokens", ORR_KEY_QUIET);
    f->steps = amount(keys, "run", "steps", "steps", ORR_KEY_QUIET);
    f->tokens_per_step = amount(keys, "run", "tokens_per_step", "tokens", ORR_KEY_QUIET);
    orr_workloads__read_fields(keys, fields, G_N_ELEMENTS(fields), f);
    if (!orr_keys_has(keys, "recovery", "in_place"))
        f->recovery.in_place_ns = f->recovery.start_ns;
    if (!orr_keys_has(keys, "recovery", "hot_swap"))
        f->recovery.hot_swap_ns = -1; /* as start */
    if (!orr_keys_has(keys, "recovery", "hot_spares"))
        f->recovery.hot_spares = UINT32_MAX;
    g_auto(GStrv) stores = group_list(keys, "checkpoint", "stores", overrides, n);
    g_auto(GStrv) stages = group_list(keys, "run", "phases", overrides, n);
    read_stores(keys, f, stores);
    read_stages(keys, f, stages);
    choose_interval(f, overrides, n);
    check(keys, f);
}

static bool is_job_file(const char *path) {
    g_autoptr(OrrKeys) keys = orr_keys_load(path, NULL);
    return keys && orr_keys_has_group(keys, "job") && !orr_keys_has_group(keys, "run");
}

/* The run file of that name or path; or, for a job, a run of it. */
static OrrKeys *open_run(const char *ref, OrrSources *sources, GError **error) {
    g_autofree char *run = orr_workloads__path("runs", ref, NULL);
    g_autofree char *job = run ? NULL : orr_workloads__path("jobs", ref, NULL);
    g_autofree char *share = run || job ? NULL : orr_workloads__path("shares", ref, NULL);
    if (share) {
        orr_fail_input(error, "%s: no such run, but a shared cluster; --shared would do", ref);
        return NULL;
    }
    if (!job && !(run && is_job_file(run)))
        return orr_workloads__open("runs", ref, sources, error);
    g_autofree char *text =
        g_strdup_printf("[run]\njob = %s\nsource = the job of that name\n", ref);
    return orr_keys_parse(ref, text, strlen(text), error);
}

OrrRunFile *orr_workload_run(const char *ref, const OrrOverride *overrides, uint32_t n_overrides,
                             OrrSources *sources, GError **error) {
    g_autoptr(OrrKeys) keys = open_run(ref, sources, error);
    if (!keys)
        return NULL;
    for (uint32_t i = 0; i < n_overrides; i++)
        if (is_file_group(overrides[i].group))
            orr_keys_override(keys, overrides[i].group, overrides[i].key, overrides[i].value,
                              "--set");
    g_autoptr(OrrRunFile) f = g_new0(OrrRunFile, 1);
    f->name = orr_workloads__stem(orr_keys_name(keys));
    read_all(keys, f, overrides, n_overrides);
    if (!orr_keys_finish(keys, error))
        return NULL;
    if (sources)
        orr_workloads__note_defaults(sources, keys, NULL, "default of run files");
    return g_steal_pointer(&f);
}

bool orr_run_parse_sets(const char *sets, GPtrArray *texts, GArray *overrides, GError **error) {
    g_auto(GStrv) parts = g_strsplit(sets, ";", -1);
    for (guint i = 0; parts[i]; i++) {
        const char *text = g_strstrip(parts[i]);
        if (*text == '\0')
            continue;
        const char *equals = strchr(text, '='), *dot = strchr(text, '.');
        if (!equals || !dot || dot > equals || dot == text || dot + 1 == equals)
            return orr_fail_input(error, "set = %s: group.key=value; group.key=value would do",
                                  text);
        OrrOverride o = {.group = g_strstrip(g_strndup(text, (gsize)(dot - text))),
                         .key = g_strstrip(g_strndup(dot + 1, (gsize)(equals - dot - 1))),
                         .value = g_strstrip(g_strdup(equals + 1))};
        g_ptr_array_add(texts, (gpointer)o.group);
        g_ptr_array_add(texts, (gpointer)o.key);
        g_ptr_array_add(texts, (gpointer)o.value);
        g_array_append_val(overrides, o);
    }
    return true;
}

static void free_listed(gpointer p) {
    OrrListed *l = p;
    g_free(l->name), g_free(l->summary), g_free(l->source);
    g_free(l);
}

GPtrArray *orr_run_list(const char *kind, GError **error) {
    bool is_failures = strcmp(kind, "failures") == 0;
    const char *group = is_failures                   ? kind
                        : strcmp(kind, "prices") == 0 ? kind
                        : strcmp(kind, "shares") == 0 ? "share"
                                                      : "run";
    g_autofree char *folder = g_strconcat(is_failures ? "topologies/" : "workloads/", kind, NULL);
    g_auto(GStrv) names = orr_data_list(folder, ".ini");
    g_autoptr(GPtrArray) out = g_ptr_array_new_with_free_func(free_listed);
    for (guint i = 0; names[i] != NULL; i++) {
        g_autofree char *path = orr_data_find(folder, names[i], ".ini", error);
        g_autoptr(OrrKeys) keys = path ? orr_keys_load(path, error) : NULL;
        if (!keys)
            return NULL;
        OrrListed *l = g_new0(OrrListed, 1);
        l->name = g_strdup(names[i]);
        l->summary = g_strdup(orr_keys_string(keys, group, "summary", NULL, ORR_KEY_QUIET));
        l->source = g_strdup(orr_keys_string(keys, group, "source", NULL, ORR_KEY_QUIET));
        g_ptr_array_add(out, l);
    }
    return g_steal_pointer(&out);
}
