#include "workloads/loader_share.h"

#include "sim/io/csv.h"
#include "workloads/loader_priv.h"

#include <string.h>

#define LIMIT_BYTES (1u << 26) /* ours: a hundred thousand jobs are some megabytes */
#define HOURS_MAX 1e6          /* a century */
#define MAX_JOBS 20000         /* ours: the scheduler's cost grows with the square */

void orr_share_file_free(OrrShareFile *f) {
    if (!f)
        return;
    g_free(f->name), g_free(f->summary), g_free(f->source);
    orr_share_spec_free(f->spec);
    g_free(f);
}

static uint32_t count(OrrKeys *keys, const char *key, const char *noun, int64_t fallback,
                      OrrKeyFlags flags) {
    return (uint32_t)orr_keys_int(keys, "share", key, noun, 1, 1 << 20, fallback, flags);
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
        orr_keys_complain(keys, "share", "classes", "are of %u nodes, but there are %u",
                          classes->len, s->n_nodes);
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

static bool read_place(const OrrCsv *csv, guint row, OrrPlace *place, GError **error) {
    int column = orr_csv_column(csv, "place");
    const char *text = column >= 0 ? orr_csv_cell(csv, row, column) : "";
    *place = ORR_PLACE_ANY;
    for (int p = 0; *text && p < ORR_N_PLACES; p++)
        if (strcmp(orr_place_names[p], text) == 0) {
            *place = (OrrPlace)p;
            return true;
        }
    return !*text || orr_csv_fail(csv, row, column, error, "any, rack or block would do");
}

static bool read_job(const OrrCsv *csv, guint row, const int *need, OrrShareJob *j,
                     GError **error) {
    double submit, hours, limit, gpus, slices, priority, preemptible, save, takes, restart;
    if (!orr_csv_number(csv, row, need[1], 0, HOURS_MAX, &submit, error) ||
        !orr_csv_number(csv, row, need[2], 1e-6, HOURS_MAX, &hours, error) ||
        !optional(csv, row, "limit_h", hours, HOURS_MAX, 2 * hours, &limit, error) ||
        !optional(csv, row, "gpus", 0, 1 << 20, 0, &gpus, error) ||
        !optional(csv, row, "slices", 0, 1024, 0, &slices, error) ||
        !optional(csv, row, "priority", -1000000, 1000000, 0, &priority, error) ||
        !optional(csv, row, "preemptible", 0, 1, 0, &preemptible, error) ||
        !optional(csv, row, "save_every_min", 0, 1e6, 0, &save, error) ||
        !optional(csv, row, "save_takes_s", 0, 1e6, 0, &takes, error) ||
        !optional(csv, row, "restart_min", 0, 1e6, 0, &restart, error) ||
        !read_place(csv, row, &j->place, error))
        return false;
    int selector = orr_csv_column(csv, "selector");
    j->name = g_strdup(orr_csv_cell(csv, row, need[0]));
    j->selector = g_strdup(selector >= 0 ? orr_csv_cell(csv, row, selector) : "");
    j->submit_ns = (int64_t)(submit * 3600e9);
    j->work_ns = (int64_t)(hours * 3600e9);
    j->limit_ns = (int64_t)(limit * 3600e9);
    j->gpus = (uint32_t)gpus;
    j->slices = (uint32_t)slices;
    j->priority = (int32_t)priority;
    j->is_preemptible = preemptible > 0;
    j->save_ns = (int64_t)(save * 60e9);
    j->save_takes_ns = (int64_t)(takes * 1e9);
    j->restart_ns = (int64_t)(restart * 60e9);
    return true;
}

static bool read_jobs(const OrrKeys *keys, const char *ref, OrrShareSpec *s, OrrSources *sources,
                      GError **error) {
    static const char *const names[] = {"name", "submit_h", "hours", NULL};
    g_autofree char *folder = g_path_get_dirname(orr_keys_name(keys));
    g_autofree char *path =
        g_path_is_absolute(ref) ? g_strdup(ref) : g_build_filename(folder, ref, NULL);
    int need[3];
    gsize length;
    g_autofree char *text = orr_file_read(path, LIMIT_BYTES, &length, error);
    if (!text)
        return false;
    g_autoptr(OrrCsv) csv = orr_csv_parse(path, text, length, ORR_CSV_PLAIN, error);
    if (!csv || !orr_csv_need(csv, names, need, error))
        return false;
    orr_sources_add_input(sources, ref, text, length);
    guint n = orr_csv_n_rows(csv);
    if (n == 0 || n > MAX_JOBS)
        return orr_fail_input(error, "%s: has %u jobs; 1 to %d would do", path, n, MAX_JOBS);
    s->jobs = g_new0(OrrShareJob, n);
    for (; s->n_jobs < n; s->n_jobs++) /* a job that is cut short is freed with the rest */
        if (!read_job(csv, s->n_jobs, need, &s->jobs[s->n_jobs], error))
            return false;
    return true;
}

OrrShareFile *orr_workload_share(const char *ref, const OrrOverride *overrides,
                                 uint32_t n_overrides, OrrSources *sources, GError **error) {
    g_autoptr(OrrKeys) keys = orr_workloads__open("shares", ref, sources, error);
    if (!keys)
        return NULL;
    for (uint32_t i = 0; i < n_overrides; i++)
        orr_keys_override(keys, overrides[i].group, overrides[i].key, overrides[i].value, "--set");
    g_autoptr(OrrShareFile) f = g_new0(OrrShareFile, 1);
    OrrShareSpec *s = f->spec = orr_share_spec_new();
    f->name = orr_workloads__stem(orr_keys_name(keys));
    f->summary = g_strdup(orr_keys_string(keys, "share", "summary", "", ORR_KEY_QUIET));
    f->source = g_strdup(orr_keys_string(keys, "share", "source", "", ORR_KEY_REQUIRED));
    s->n_nodes = count(keys, "nodes", "nodes", 1, ORR_KEY_REQUIRED);
    s->gpus_per_node = count(keys, "gpus_per_node", "GPUs", 8, ORR_KEY_OPTIONAL);
    s->slices_per_gpu = count(keys, "slices", "slices", 1, ORR_KEY_QUIET);
    s->nodes_per_rack = count(keys, "nodes_per_rack", "nodes", 4, ORR_KEY_OPTIONAL);
    s->racks_per_block = count(keys, "racks_per_block", "racks", 8, ORR_KEY_OPTIONAL);
    s->slice_slow_frac =
        orr_keys_number(keys, "share", "slice_slow", ORR_DIM_FRACTION, 0, 10, 0, ORR_KEY_QUIET);
    s->policy = (OrrSharePolicy)orr_keys_enum(keys, "share", "policy", orr_share_policy_names,
                                              ORR_SHARE_FCFS, ORR_KEY_OPTIONAL);
    s->notice_ns = (int64_t)orr_keys_number(keys, "share", "notice", ORR_DIM_TIME, 0, 86400e9, 0,
                                            ORR_KEY_QUIET);
    read_classes(keys, s);
    const char *jobs = orr_keys_string(keys, "share", "jobs", "", ORR_KEY_REQUIRED);
    if (!orr_keys_finish(keys, error) || !read_jobs(keys, jobs, s, sources, error))
        return NULL;
    if (sources)
        orr_workloads__note_defaults(sources, keys, NULL, "default of share files");
    return g_steal_pointer(&f);
}
