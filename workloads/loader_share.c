#include "workloads/loader_share.h"

#include "sim/cluster/cluster.h"
#include "sim/io/csv.h"
#include "topologies/loader.h"
#include "workloads/loader_priv.h"

#include <math.h>
#include <string.h>

#define LIMIT_BYTES (1u << 26) /* ours: a hundred thousand jobs are some megabytes */
#define HOURS_MAX 1e6          /* a century */
#define TIME_MAX_NS 3.2e18     /* a century */
#define MAX_JOBS 20000         /* ours: the scheduler's cost grows with the square */

void orr_share_file_free(OrrShareFile *f) {
    if (!f)
        return;
    g_free(f->name), g_free(f->summary), g_free(f->source), g_free(f->prices_ref);
    orr_share_spec_free(f->spec);
    g_free(f);
}

static uint32_t count(OrrKeys *keys, const char *key, const char *noun, int64_t fallback,
                      OrrKeyFlags flags) {
    return (uint32_t)orr_keys_int(keys, "share", key, noun, 1, 1 << 20, fallback, flags);
}

static int64_t time_of(OrrKeys *keys, const char *group, const char *key, double fallback_ns,
                       OrrKeyFlags flags) {
    return (int64_t)orr_keys_number(keys, group, key, ORR_DIM_TIME, 0, TIME_MAX_NS, fallback_ns,
                                    flags);
}

/* "h100:8, a100:8": so many nodes of each class, in that order. */
static void read_classes(OrrKeys *keys, OrrShareSpec *s) {
    g_auto(GStrv) parts = orr_keys_strings(keys, "share", "classes", ORR_KEY_QUIET);
    if (!parts)
        return;
    g_autoptr(GPtrArray) classes = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; parts[i]; i++) {
        char *colon = strchr(parts[i], ':');
        guint64 n = 0;
        if (!colon || !g_ascii_string_to_unsigned(colon + 1, 10, 1, 1 << 20, &n, NULL)) {
            orr_keys_complain(keys, "share", "classes", "\"%s\": CLASS:NODES would do", parts[i]);
            return;
        }
        *colon = '\0';
        for (guint64 k = 0; k < n && classes->len <= s->n_nodes; k++)
            g_ptr_array_add(classes, g_strdup(parts[i]));
    }
    if (classes->len != s->n_nodes) {
        orr_keys_complain(keys, "share", "classes",
                          "are of %u nodes; as many as there are, %u, would do", classes->len,
                          s->n_nodes);
        return;
    }
    g_ptr_array_add(classes, NULL);
    s->node_class = g_strdupv((char **)classes->pdata);
}

/* A number of a column that may be absent or empty. */
static bool optional(const OrrCsv *csv, guint row, const char *name, double min, double max,
                     double fallback, double *value, GError **error) {
    int column = orr_csv_column(csv, name);
    *value = fallback;
    if (column < 0 || *orr_csv_cell(csv, row, column) == '\0')
        return true;
    return orr_csv_number(csv, row, column, min, max, value, error);
}

/* A cell that may be absent; "" then. */
static const char *text_of(const OrrCsv *csv, guint row, const char *name) {
    int column = orr_csv_column(csv, name);
    return column >= 0 ? orr_csv_cell(csv, row, column) : "";
}

static bool read_place(const OrrCsv *csv, guint row, OrrPlace *place, GError **error) {
    const char *text = text_of(csv, row, "place");
    *place = ORR_PLACE_ANY;
    for (int p = 0; *text && p < ORR_N_PLACES; p++)
        if (strcmp(orr_place_names[p], text) == 0) {
            *place = (OrrPlace)p;
            return true;
        }
    return !*text || orr_csv_fail(csv, row, orr_csv_column(csv, "place"), error,
                                  "any, rack or block would do");
}

/* Columns with numbers. */
enum {
    C_SUBMIT,
    C_HOURS,
    C_STEPS,
    C_TOKENS,
    C_LIMIT,
    C_GPUS,
    C_SLICES,
    C_PRIORITY,
    C_PREEMPTIBLE,
    C_SAVE_EVERY,
    C_SAVE_TAKES,
    C_SAVE_BYTES,
    C_ASYNC,
    C_WRITERS,
    C_RESTART,
    N_NUMBERS
};
static const struct {
    const char *name;
    double min, max;
    bool is_whole;
} numbers[N_NUMBERS] = {
    [C_SUBMIT] = {"submit_h", 0, HOURS_MAX, false},
    [C_HOURS] = {"hours", 0, HOURS_MAX, false},
    [C_STEPS] = {"steps", 0, 1e12, true},
    [C_TOKENS] = {"tokens", 0, 1e16, false},
    [C_LIMIT] = {"limit_h", 0, HOURS_MAX, false},
    [C_GPUS] = {"gpus", 0, 1 << 20, true},
    [C_SLICES] = {"slices", 0, 1024, true},
    [C_PRIORITY] = {"priority", -1000000, 1000000, true},
    [C_PREEMPTIBLE] = {"preemptible", 0, 1, true},
    [C_SAVE_EVERY] = {"save_every_min", 0, 1e6, false},
    [C_SAVE_TAKES] = {"save_takes_s", 0, 1e6, false},
    [C_SAVE_BYTES] = {"checkpoint_gb", 0, 1e6, false},
    [C_ASYNC] = {"asynchronous", 0, 1, true},
    [C_WRITERS] = {"writers", 0, 1 << 20, true},
    [C_RESTART] = {"restart_min", 0, 1e6, false},
};
static const char *const texts[] = {"name", "job", "set", "place", "selector", NULL};

static bool check_columns(const OrrCsv *csv, GError **error) {
    const char *const *columns = orr_csv_columns(csv);
    for (guint c = 0; columns[c]; c++) {
        bool is_known = g_strv_contains(texts, columns[c]);
        for (int i = 0; i < N_NUMBERS && !is_known; i++)
            is_known = strcmp(numbers[i].name, columns[c]) == 0;
        if (is_known)
            continue;
        g_autoptr(GString) all = g_string_new("name, job, set, place, selector");
        for (int i = 0; i < N_NUMBERS; i++)
            g_string_append_printf(all, ", %s", numbers[i].name);
        return orr_fail_input(error, "%s:1: column %s is unknown; there are %s", orr_csv_name(csv),
                              columns[c], all->str);
    }
    return true;
}

static bool read_numbers(const OrrCsv *csv, guint row, double *x, GError **error) {
    for (int i = 0; i < N_NUMBERS; i++) {
        if (!optional(csv, row, numbers[i].name, numbers[i].min, numbers[i].max, 0, &x[i], error))
            return false;
        if (numbers[i].is_whole && x[i] != floor(x[i]))
            return orr_csv_fail(csv, row, orr_csv_column(csv, numbers[i].name), error,
                                "a whole number would do");
    }
    return true;
}

/* Which of hours, steps and tokens says how long it is. */
static bool check_work(const OrrCsv *csv, guint row, const OrrShareSpec *s, const OrrShareJob *j,
                       const double *x, GError **error) {
    int n = (x[C_HOURS] > 0) + (x[C_STEPS] > 0) + (x[C_TOKENS] > 0);
    if (n != 1)
        return orr_csv_fail(csv, row, 0, error,
                            "one of hours, steps and tokens must be above 0, not %d", n);
    if (*j->job_ref == '\0' && !(x[C_HOURS] > 0))
        return orr_csv_fail(csv, row, 0, error,
                            "steps and tokens are of a job file; name it in job");
    if (*j->job_ref == '\0' && *j->sets)
        return orr_csv_fail(csv, row, 0, error, "set is of a job file; name it in job");
    if (*j->job_ref == '\0' && (x[C_GPUS] > 0) == (x[C_SLICES] > 0))
        return orr_csv_fail(csv, row, 0, error,
                            "gpus, or slices of one, must be above 0, not both");
    if (x[C_SAVE_BYTES] > 0 && s->store_bytes_per_s == 0 && s->writer_bytes_per_s == 0)
        return orr_csv_fail(csv, row, orr_csv_column(csv, "checkpoint_gb"), error,
                            "the store has no speed; [store] bandwidth = 100 GB/s would do");
    return true;
}

static bool read_job(const OrrCsv *csv, guint row, const OrrShareSpec *s, OrrShareJob *j,
                     GError **error) {
    double x[N_NUMBERS];
    j->name = g_strdup(text_of(csv, row, "name"));
    j->line = orr_csv_line(csv, row);
    j->job_ref = g_strdup(text_of(csv, row, "job"));
    j->sets = g_strdup(text_of(csv, row, "set"));
    j->selector = g_strdup(text_of(csv, row, "selector"));
    if (*j->name == '\0')
        return orr_csv_fail(csv, row, orr_csv_column(csv, "name"), error, "a name would do");
    if (!read_numbers(csv, row, x, error) || !read_place(csv, row, &j->place, error) ||
        !check_work(csv, row, s, j, x, error))
        return false;
    j->submit_ns = (int64_t)(x[C_SUBMIT] * 3600e9);
    j->work_ns = (int64_t)(x[C_HOURS] * 3600e9);
    j->steps = x[C_STEPS];
    j->tokens = x[C_TOKENS];
    j->limit_ns = (int64_t)(x[C_LIMIT] * 3600e9);
    j->gpus = (uint32_t)x[C_GPUS];
    j->slices = (uint32_t)x[C_SLICES];
    j->priority = (int32_t)x[C_PRIORITY];
    j->is_preemptible = x[C_PREEMPTIBLE] > 0;
    j->save_ns = (int64_t)(x[C_SAVE_EVERY] * 60e9);
    j->save_takes_ns = (int64_t)(x[C_SAVE_TAKES] * 1e9);
    j->save_bytes = floor(x[C_SAVE_BYTES] * 1e9);
    j->is_async = x[C_ASYNC] > 0;
    j->writers = (uint32_t)x[C_WRITERS];
    j->restart_ns = (int64_t)(x[C_RESTART] * 60e9);
    return true;
}

static bool read_table(const OrrCsv *csv, OrrShareSpec *s, GError **error) {
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);
    guint n = orr_csv_n_rows(csv);
    if (n == 0 || n > MAX_JOBS)
        return orr_fail_input(error, "%s: has %u jobs; 1 to %d would do", orr_csv_name(csv), n,
                              MAX_JOBS);
    if (!check_columns(csv, error))
        return false;
    s->jobs = g_new0(OrrShareJob, n);
    for (guint i = 0; i < n; i++) {
        s->n_jobs = i + 1; /* a job that is cut short is freed with the rest */
        if (!read_job(csv, i, s, &s->jobs[i], error))
            return false;
        if (!g_hash_table_add(names, s->jobs[i].name))
            return orr_csv_fail(csv, i, orr_csv_column(csv, "name"), error,
                                "another job has that name");
    }
    return true;
}

/* Found beside the file, as written in it. */
static char *beside(const char *folder, const char *ref) {
    return g_path_is_absolute(ref) ? g_strdup(ref) : g_build_filename(folder, ref, NULL);
}

static bool read_jobs(const OrrKeys *keys, const char *ref, OrrShareSpec *s, OrrSources *sources,
                      GError **error) {
    static const char *const names[] = {"name", "submit_h", NULL};
    g_autofree char *folder = g_path_get_dirname(orr_keys_name(keys));
    int need[2];
    gsize length;
    s->table = beside(folder, ref);
    g_autoptr(GError) flaw = NULL;
    g_autofree char *text = orr_file_read(s->table, LIMIT_BYTES, &length, &flaw);
    if (!text)
        return orr_fail_input(error, "%s; a CSV of jobs beside the file would do", flaw->message);
    g_autoptr(OrrCsv) csv = orr_csv_parse(s->table, text, length, ORR_CSV_PLAIN, error);
    if (!csv || !orr_csv_need(csv, names, need, error))
        return false;
    if (sources)
        orr_sources_add_input(sources, ref, text, length);
    if (!read_table(csv, s, error))
        return false;
    for (uint32_t i = 0; i < s->n_jobs; i++) { /* a path is beside the table, too */
        char *job = s->jobs[i].job_ref;
        if (*job && (strchr(job, '/') || g_str_has_suffix(job, ".ini"))) {
            s->jobs[i].job_ref = beside(folder, job);
            g_free(job);
        }
    }
    return true;
}

static void note_input(void *data, const char *name, const char *text, gsize length) {
    orr_sources_add_input(data, name, text, length);
}

static void note_assumption(void *data, const char *key, const char *value, const char *origin) {
    orr_sources_add_assumption(data, key, value, origin);
}

static uint32_t nodes_of(uint32_t gpus, uint32_t per_node, uint32_t otherwise) {
    return gpus > 0 ? MAX(1, gpus / per_node) : otherwise;
}

/* Nodes, racks and blocks of a cluster file: a rack is an NVLink domain of several nodes, or else
 * what is below one leaf switch; a block what is below one pod. */
static bool read_cluster(OrrKeys *keys, OrrShareSpec *s, const OrrOverride *overrides,
                         uint32_t n_overrides, OrrSources *sources, GError **error) {
    static const char *const given[] = {"nodes", "gpus_per_node", "nodes_per_rack",
                                        "racks_per_block", NULL};
    for (int i = 0; given[i]; i++)
        if (orr_keys_has(keys, "share", given[i]))
            orr_keys_complain(keys, "share", given[i],
                              "is the cluster's; it or cluster alone would do");
    g_autofree OrrTopologySet *sets = g_new0(OrrTopologySet, n_overrides + 1);
    for (uint32_t i = 0; i < n_overrides; i++)
        sets[i] = (OrrTopologySet){overrides[i].group, overrides[i].key, overrides[i].value};
    OrrTopologyNotes notes = {sources, note_input, note_assumption};
    OrrTopologyOptions options = {sets, n_overrides, sources ? &notes : NULL};
    g_autoptr(OrrCluster) c = orr_topology_cluster(s->cluster_ref, &options, error);
    if (!c) {
        g_autofree char *place = orr_keys_place(keys, "share", "cluster");
        g_prefix_error(error, "%s: ", place);
        return false;
    }
    const OrrClusterSpec *k = orr_cluster_spec(c);
    s->gpus_per_node = k->node->gpus;
    s->n_nodes = MAX(1, k->n_gpus / k->node->gpus);
    uint32_t of_leaf = k->fabric == ORR_FABRIC_RAIL ? 1 : k->node->gpus; /* a node a rail switch */
    s->nodes_per_rack = k->node->domain_nodes > 1 ? k->node->domain_nodes
                                                  : nodes_of(k->gpus_per_leaf, of_leaf, s->n_nodes);
    uint32_t block = nodes_of(k->gpus_per_pod, k->node->gpus, s->n_nodes);
    s->racks_per_block = MAX(1, (block + s->nodes_per_rack - 1) / s->nodes_per_rack);
    return true;
}

static void read_failures(OrrKeys *keys, OrrShareSpec *s) {
    s->node_mtbf_ns =
        orr_keys_number(keys, "failures", "node_mtbf", ORR_DIM_TIME, 1e9, 1e20, 0, ORR_KEY_QUIET);
    double rate = orr_keys_number(keys, "failures", "per_1000_node_days", ORR_DIM_NONE, 1e-6, 1e8,
                                  0, ORR_KEY_QUIET);
    if (rate > 0 && s->node_mtbf_ns > 0)
        orr_keys_complain(keys, "failures", "per_1000_node_days",
                          "says what node_mtbf says; one of them would do");
    if (rate > 0)
        s->node_mtbf_ns = 1000 * 86400e9 / rate;
    OrrKeyFlags flags = s->node_mtbf_ns > 0 ? ORR_KEY_OPTIONAL : ORR_KEY_QUIET;
    /* a day: ours, a node swapped by hand; 10 min: a watchdog on collectives, PyTorch's default */
    s->repair_ns = time_of(keys, "failures", "repair", 86400e9, flags);
    s->detect_ns = time_of(keys, "failures", "detect", 600e9, flags);
    s->spot_classes = orr_keys_strings(keys, "spot", "classes", ORR_KEY_QUIET);
    for (guint i = 0; s->spot_classes && s->spot_classes[i]; i++)
        if (!s->node_class ||
            !g_strv_contains((const char *const *)s->node_class, s->spot_classes[i]))
            orr_keys_complain(keys, "spot", "classes",
                              "no node is of class %s; one of [share] classes would do",
                              s->spot_classes[i]);
}

static void read_store(OrrKeys *keys, OrrShareSpec *s) {
    double store =
        orr_keys_number(keys, "store", "bandwidth", ORR_DIM_RATE, 1, 1e18, 0, ORR_KEY_QUIET);
    double writer =
        orr_keys_number(keys, "store", "writer", ORR_DIM_RATE, 1, 1e18, 0, ORR_KEY_QUIET);
    s->store_bytes_per_s = (int64_t)store;
    s->writer_bytes_per_s = (int64_t)writer;
}

/* Spot keys that are left out are the prices'. */
static void read_money(OrrKeys *keys, OrrShareFile *f) {
    OrrShareSpec *s = f->spec;
    f->prices_ref = g_strdup(orr_keys_string(keys, "share", "prices", "", ORR_KEY_QUIET));
    orr_workloads__check_ref(keys, "share", "prices", "workloads/prices", f->prices_ref);
    f->contract =
        (OrrContract)orr_keys_enum(keys, "share", "contract", orr_contract_names,
                                   *f->prices_ref ? ORR_CONTRACT_ON_DEMAND : ORR_CONTRACT_NONE,
                                   *f->prices_ref ? ORR_KEY_OPTIONAL : ORR_KEY_QUIET);
    if (f->contract != ORR_CONTRACT_NONE && !*f->prices_ref)
        orr_keys_complain(keys, "share", "contract", "needs prices; prices = NAME would do");
    f->has_reclaim = orr_keys_has(keys, "spot", "reclaim_mtbf");
    s->reclaim_mtbf_ns =
        orr_keys_number(keys, "spot", "reclaim_mtbf", ORR_DIM_TIME, 1e9, 1e20, 0, ORR_KEY_QUIET);
    OrrKeyFlags flags = f->has_reclaim ? ORR_KEY_OPTIONAL : ORR_KEY_QUIET;
    /* 2 min and 20 min: as workloads/prices */
    s->reclaim_notice_ns = time_of(keys, "spot", "reclaim_notice", 120e9, flags);
    s->reclaim_wait_ns = time_of(keys, "spot", "reclaim_wait", 1200e9, flags);
    if (f->has_reclaim && (!s->spot_classes || !*s->spot_classes))
        orr_keys_complain(keys, "spot", "reclaim_mtbf", "of which nodes? classes = spot would do");
    if (s->spot_classes && !f->has_reclaim && !*f->prices_ref)
        orr_keys_complain(
            keys, "spot", "classes",
            "how often are they taken back? reclaim_mtbf = 720 h, or prices, would do");
}

static void read_machine(OrrKeys *keys, OrrShareSpec *s) {
    if (*s->cluster_ref == '\0') {
        s->n_nodes = count(keys, "nodes", "nodes", 1, ORR_KEY_REQUIRED);
        s->gpus_per_node = count(keys, "gpus_per_node", "GPUs", 8, ORR_KEY_OPTIONAL);
        s->nodes_per_rack = count(keys, "nodes_per_rack", "nodes", 4, ORR_KEY_OPTIONAL);
        s->racks_per_block = count(keys, "racks_per_block", "racks", 8, ORR_KEY_OPTIONAL);
    }
    s->slices_per_gpu =
        (uint32_t)orr_keys_int(keys, "share", "slices", "slices", 1, 1024, 1, ORR_KEY_QUIET);
    s->slicing =
        (OrrSlicing)orr_keys_enum(keys, "share", "slicing", orr_slicing_names, ORR_SLICING_MPS,
                                  s->slices_per_gpu > 1 ? ORR_KEY_OPTIONAL : ORR_KEY_QUIET);
    if (s->slicing == ORR_SLICING_MIG && s->slices_per_gpu != 7)
        orr_keys_complain(keys, "share", "slicing", "MIG has 7 slices a GPU; slices = 7 would do");
    s->slice_slow_frac =
        orr_keys_number(keys, "share", "slice_slow", ORR_DIM_FRACTION, 0, 10, 0, ORR_KEY_QUIET);
    s->policy = (OrrSharePolicy)orr_keys_enum(keys, "share", "policy", orr_share_policy_names,
                                              ORR_SHARE_FCFS, ORR_KEY_OPTIONAL);
    s->notice_ns = time_of(keys, "share", "notice", 0, ORR_KEY_QUIET);
    read_classes(keys, s);
    read_store(keys, s);
    read_failures(keys, s);
}

bool orr_share_file_owns(const char *group) {
    static const char *const groups[] = {"share", "failures", "spot", "store", NULL};
    return g_strv_contains(groups, group);
}

OrrShareFile *orr_workload_share(const char *ref, const OrrOverride *overrides,
                                 uint32_t n_overrides, OrrSources *sources, GError **error) {
    g_autoptr(OrrKeys) keys = orr_workloads__open("shares", ref, sources, error);
    if (!keys)
        return NULL;
    for (uint32_t i = 0; i < n_overrides; i++)
        if (orr_share_file_owns(overrides[i].group))
            orr_keys_override(keys, overrides[i].group, overrides[i].key, overrides[i].value,
                              "--set");
    g_autoptr(OrrShareFile) f = g_new0(OrrShareFile, 1);
    OrrShareSpec *s = f->spec = orr_share_spec_new();
    f->name = orr_workloads__stem(orr_keys_name(keys));
    f->summary = g_strdup(orr_keys_string(keys, "share", "summary", "", ORR_KEY_QUIET));
    f->source = g_strdup(orr_keys_string(keys, "share", "source", "", ORR_KEY_REQUIRED));
    s->cluster_ref = g_strdup(orr_keys_string(keys, "share", "cluster", "", ORR_KEY_QUIET));
    if (*s->cluster_ref && !read_cluster(keys, s, overrides, n_overrides, sources, error))
        return NULL;
    read_machine(keys, s);
    read_money(keys, f);
    const char *jobs = orr_keys_string(keys, "share", "jobs", "", ORR_KEY_REQUIRED);
    if (!orr_keys_finish(keys, error))
        return NULL;
    if (!read_jobs(keys, jobs, s, sources, error)) {
        g_autofree char *place = orr_keys_place(keys, "share", "jobs");
        g_prefix_error(error, "%s: ", place);
        return NULL;
    }
    if (sources)
        orr_workloads__note_defaults(sources, keys, NULL, "default of share files");
    return g_steal_pointer(&f);
}
