/* Job files: what is trained, on what, how (DESIGN.md, section 7). The loader reads the profile
 * that the job names as well, because what a job leaves out is the profile's to say.
 *
 * Refused here: what a single file can tell (bad values, a data-parallel size that cannot be
 * derived, unknown schedules). Whether layout, model and cluster fit together is
 * orr_layout_check's. */
#include "workloads/job_priv.h"

#include <string.h>

#include "sim/cluster/perturb.h"
#include "sim/schedule/schedules.h"
#include "topologies/loader.h"
#include "topologies/shapes.h"

static const char *const routing_names[] = {"spread", "ecmp-hash", NULL};
static const char *const clock_names[] = {"sustained", "boost", NULL};
static const char *const policy_names[] = {"none", "selective", "full", "per_op", NULL};
static const char *const placement_names[] = {"linear", "random", NULL};
static const char *const method_names[] = {"uniform", "block", NULL};
/* Groups of a job file that override keys of the files it names. */
static const char *const set_groups[] = {"model", "framework", "cluster", "node", "gpu", NULL};

/* A reference in a job file is relative to that file; on the command line, to where one stands. */
static char *read_ref(JobReader *r, const char *key) {
    const char *ref = orr_keys_string(r->keys, "job", key, NULL, ORR_KEY_REQUIRED);
    bool is_path = strchr(ref, '/') != NULL || g_str_has_suffix(ref, ".ini");
    bool is_shape = strchr(ref, ' ') != NULL;
    if (!is_path || is_shape || g_path_is_absolute(ref) || orr_job__is_overridden(r, "job", key))
        return g_strdup(ref);
    g_autofree char *folder = g_path_get_dirname(orr_keys_name(r->keys));
    return g_build_filename(folder, ref, NULL);
}

/* The GPUs in "NAME:16384", or in the first word of a one-line shape. 0 if not stated. */
static uint32_t read_gpus(JobReader *r, const char *cluster) {
    g_auto(GStrv) words = g_strsplit(cluster, " ", 2);
    const char *colon = words[0] != NULL ? strrchr(words[0], ':') : NULL;
    if (colon == NULL || strchr(colon, '/') != NULL)
        return 0;
    guint64 n;
    if (!g_ascii_string_to_unsigned(colon + 1, 10, 1, ORR_JOB_MAX_RANKS, &n, NULL)) {
        orr_keys_complain(r->keys, "job", "cluster",
                          "\"%s\" is no number of GPUs; NAME:GPUS with 1 to %d will do", colon + 1,
                          ORR_JOB_MAX_RANKS);
        return 0;
    }
    return (uint32_t)n;
}

/* The model is read later; here its name still has a line to point at. Of a path the later message
 * says enough. */
static void check_model(JobReader *r) {
    const char *ref = r->job->model_ref;
    if (*ref == '\0' || strchr(ref, '/') != NULL || g_str_has_suffix(ref, ".ini"))
        return;
    g_autoptr(GError) error = NULL;
    g_autofree char *path = orr_workloads__path("models", ref, &error);
    if (path == NULL)
        orr_keys_complain(r->keys, "job", "model", "%s", error->message);
}

/* The same of the cluster, but for its number of GPUs. */
static void check_cluster(JobReader *r) {
    const char *ref = r->job->cluster_ref;
    g_autofree char *name = g_strndup(ref, strcspn(ref, ":"));
    g_autoptr(GError) error = NULL;
    if (*ref != '\0' && !orr_shape_is(ref) &&
        !orr_topology_has(ORR_TOPOLOGY_CLUSTERS, name, &error))
        orr_keys_complain(r->keys, "job", "cluster", "%s", error->message);
}

static void read_job_group(JobReader *r) {
    OrrJob *j = r->job;
    j->source = g_strdup(orr_keys_string(r->keys, "job", "source", NULL, ORR_KEY_REQUIRED));
    orr_keys_string(r->keys, "job", "summary", NULL, ORR_KEY_QUIET);
    /* shapes of a whole model in the job file itself stand in for a file of one */
    bool is_own =
        !orr_keys_has(r->keys, "job", "model") && orr_keys_has(r->keys, "model", "layers");
    j->model_ref = is_own ? g_strdup(orr_keys_name(r->keys)) : read_ref(r, "model");
    check_model(r);
    j->cluster_ref = read_ref(r, "cluster");
    j->cluster_place = orr_keys_place(r->keys, "job", "cluster");
    check_cluster(r);
    j->framework_ref = read_ref(r, "framework");
    j->n_gpus = read_gpus(r, j->cluster_ref);
    j->is_boost = orr_keys_enum(r->keys, "job", "clocks", clock_names, 0, ORR_KEY_QUIET) == 1;
    const char *formula = orr_keys_string(r->keys, "job", "flops_formula", "", ORR_KEY_QUIET);
    if (*formula != '\0')
        orr_workloads__check_formula(r->keys, "job", formula);
    j->flops_formula = g_strdup(formula);
}

static void read_batch(JobReader *r) {
    OrrBatch *b = &r->job->batch;
    b->sequence_tokens = (uint32_t)orr_keys_int(r->keys, "batch", "sequence", "tokens", 1, 1 << 30,
                                                1, ORR_KEY_REQUIRED);
    b->micro_sequences = (uint32_t)orr_keys_int(r->keys, "batch", "micro", "sequences", 1, 1 << 24,
                                                1, ORR_KEY_REQUIRED);
    /* GBS = MBS x M x DP: a job may say M in the place of GBS. */
    bool by_count = orr_keys_has(r->keys, "batch", "micro_batches");
    int64_t count =
        orr_keys_int(r->keys, "batch", "micro_batches", NULL, 1, 1 << 24, 1, ORR_KEY_QUIET);
    int64_t global = orr_keys_int(r->keys, "batch", "global", "sequences", 1, 1 << 30, 1,
                                  by_count ? ORR_KEY_QUIET : ORR_KEY_REQUIRED);
    if (by_count && orr_keys_has(r->keys, "batch", "global")) {
        orr_keys_complain(r->keys, "batch", "micro_batches",
                          "is said twice: global = micro x micro_batches x dp; one of global and "
                          "micro_batches would do");
    } else if (by_count) {
        double product = (double)count * b->micro_sequences * r->job->layout.dp;
        if (product > 1 << 30)
            orr_keys_complain(r->keys, "batch", "micro_batches",
                              "makes a global batch above 2^30 sequences; fewer would do");
        global = (int64_t)MIN(product, 1 << 30);
        orr_job__assume(r, "batch.global", (double)global, "micro x micro_batches x dp");
    }
    b->global_sequences = (uint32_t)MIN(global, 1 << 30);
}

static void read_schedule(JobReader *r) {
    const char *fallback = r->job->layout.vpp > 1 ? "interleaved" : "1f1b";
    const char *name = orr_keys_string(r->keys, "schedule", "name", fallback, ORR_KEY_OPTIONAL);
    if (g_str_has_suffix(name, ".csv") || strchr(name, '/') != NULL) {
        g_autofree char *folder = g_path_get_dirname(orr_keys_name(r->keys));
        bool as_is = g_path_is_absolute(name) || orr_job__is_overridden(r, "schedule", "name");
        r->job->schedule_name = as_is ? g_strdup(name) : g_build_filename(folder, name, NULL);
        return;
    }
    g_autoptr(GError) flaw = NULL;
    const OrrSchedule *schedule = orr_schedule_find(name, &flaw);
    if (schedule == NULL)
        orr_keys_complain(r->keys, "schedule", "name", "%s", flaw->message);
    r->job->schedule_name = g_strdup(schedule != NULL ? schedule->name : name);
}

static void read_recompute(JobReader *r) {
    OrrRecomputeSpec *s = &r->job->recompute;
    s->policy = (OrrRecompute)orr_keys_enum(r->keys, "recompute", "policy", policy_names, 0,
                                            ORR_KEY_OPTIONAL);
    bool full = s->policy == ORR_RECOMPUTE_FULL;
    s->method = (OrrRecomputeMethod)orr_keys_enum(r->keys, "recompute", "method", method_names, 0,
                                                  full ? ORR_KEY_OPTIONAL : ORR_KEY_QUIET);
    bool block = full && s->method == ORR_RECOMPUTE_BLOCK;
    OrrKeyFlags flags = block ? ORR_KEY_REQUIRED : full ? ORR_KEY_OPTIONAL : ORR_KEY_QUIET;
    s->layers =
        (uint32_t)orr_keys_int(r->keys, "recompute", "layers", "layers", 1, 1 << 20, 1, flags);
    if (!full && (orr_keys_has(r->keys, "recompute", "layers") ||
                  orr_keys_has(r->keys, "recompute", "method")))
        orr_keys_complain(
            r->keys, "recompute", "policy",
            "method and layers belong to policy = full; full, or none of these, would do");
}

static void read_network(JobReader *r) {
    int routing = orr_keys_enum(r->keys, "network", "routing", routing_names, 0, ORR_KEY_QUIET);
    bool has_routing = orr_keys_has(r->keys, "network", "routing");
    r->job->routing = g_strdup(has_routing ? routing_names[routing] : "");
    r->job->is_random_placement =
        orr_keys_enum(r->keys, "network", "placement", placement_names, 0, ORR_KEY_QUIET) == 1;
    r->job->has_seed = orr_keys_has(r->keys, "network", "seed");
    r->job->seed = (uint64_t)orr_keys_int(r->keys, "network", "seed", NULL, 0, INT64_C(1) << 53, 0,
                                          ORR_KEY_QUIET);
}

/* The table of speeds of a perturbation, as read_ref() has references. */
static char *read_perturb_text(JobReader *r, const char *key) {
    const char *text = orr_keys_string(r->keys, "perturb", key, NULL, ORR_KEY_QUIET);
    const char *table = text ? strstr(text, "=@") : NULL;
    if (!table || g_path_is_absolute(table + 2) || orr_job__is_overridden(r, "perturb", key))
        return g_strdup(text);
    g_autofree char *folder = g_path_get_dirname(orr_keys_name(r->keys));
    g_autofree char *path = g_build_filename(folder, table + 2, NULL);
    return g_strdup_printf("%.*s=@%s", (int)(table - text), text, path);
}

/* Every key of [perturb] is a label of one's own for a perturbation. */
static void read_perturb(JobReader *r) {
    g_auto(GStrv) names = orr_keys_list(r->keys, "perturb");
    g_autoptr(OrrPerturbs) tried = orr_perturbs_new();
    GPtrArray *texts = g_ptr_array_new();
    for (guint i = 0; names != NULL && names[i] != NULL; i++) {
        g_autoptr(GError) flaw = NULL;
        char *text = read_perturb_text(r, names[i]);
        if (!orr_perturbs_add(tried, text, &flaw))
            orr_keys_complain(r->keys, "perturb", names[i], "%s", flaw->message);
        g_ptr_array_add(texts, text);
    }
    g_ptr_array_add(texts, NULL);
    r->job->perturbs = (char **)g_ptr_array_free(texts, FALSE);
}

static void read_nccl(JobReader *r) {
    char **names = orr_keys_list(r->keys, "nccl");
    guint n = names != NULL ? g_strv_length(names) : 0;
    r->job->nccl_names = names != NULL ? names : g_new0(char *, 1);
    r->job->nccl_values = g_new0(char *, n + 1);
    for (guint i = 0; i < n; i++) {
        if (!g_str_has_prefix(names[i], "NCCL_"))
            orr_keys_complain(r->keys, "nccl", names[i],
                              "is no variable of NCCL; names such as NCCL_ALGO will do");
        r->job->nccl_values[i] =
            g_strdup(orr_keys_string(r->keys, "nccl", names[i], NULL, ORR_KEY_QUIET));
    }
}

static void read_sets(JobReader *r) {
    GPtrArray *groups = g_ptr_array_new(), *keys = g_ptr_array_new(), *values = g_ptr_array_new();
    GPtrArray *origins = g_ptr_array_new();
    for (guint g = 0; set_groups[g] != NULL; g++) {
        g_auto(GStrv) names = orr_keys_list(r->keys, set_groups[g]);
        for (guint i = 0; names != NULL && names[i] != NULL; i++) {
            g_ptr_array_add(groups, g_strdup(set_groups[g]));
            g_ptr_array_add(keys, g_strdup(names[i]));
            g_ptr_array_add(values, g_strdup(orr_keys_string(r->keys, set_groups[g], names[i], NULL,
                                                             ORR_KEY_QUIET)));
            g_ptr_array_add(origins, orr_keys_origin(r->keys, set_groups[g], names[i]));
        }
    }
    r->job->n_sets = groups->len;
    g_ptr_array_add(groups, NULL);
    g_ptr_array_add(keys, NULL);
    g_ptr_array_add(values, NULL);
    g_ptr_array_add(origins, NULL);
    r->job->set_groups = (char **)g_ptr_array_free(groups, FALSE);
    r->job->set_keys = (char **)g_ptr_array_free(keys, FALSE);
    r->job->set_values = (char **)g_ptr_array_free(values, FALSE);
    r->job->set_origins = (char **)g_ptr_array_free(origins, FALSE);
}

/* The profile that the job names, for its defaults. Its flaws count as the job's. */
static void read_defaults(JobReader *r, const OrrOverride *overrides, uint32_t n_overrides) {
    if (*r->job->framework_ref == '\0')
        return; /* missing: reported with the rest of the file */
    uint32_t n;
    g_autofree OrrOverride *all = orr_workload_job_overrides(r->job, overrides, n_overrides, &n);
    g_autoptr(GError) flaw = NULL;
    r->framework = orr_workload_framework(r->job->framework_ref, all, n, NULL, &flaw);
    if (r->framework == NULL)
        orr_keys_complain(r->keys, "job", "framework", "%s", flaw->message);
}

static bool is_set_group(const char *group) {
    return g_strv_contains(set_groups, group);
}

OrrOverride *orr_workload_job_overrides(const OrrJob *job, const OrrOverride *overrides,
                                        uint32_t n_overrides, uint32_t *n_out) {
    OrrOverride *all = g_new0(OrrOverride, job->n_sets + n_overrides + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < job->n_sets; i++)
        all[n++] = (OrrOverride){job->set_groups[i], job->set_keys[i], job->set_values[i],
                                 job->set_origins[i]};
    for (uint32_t i = 0; i < n_overrides; i++)
        if (is_set_group(overrides[i].group))
            all[n++] = overrides[i];
    *n_out = n;
    return all;
}

OrrJob *orr_workload_job(const char *ref, const OrrOverride *overrides, uint32_t n_overrides,
                         OrrSources *sources, GError **error) {
    g_autoptr(OrrKeys) keys = orr_workloads__open("jobs", ref, sources, error);
    if (keys == NULL)
        return NULL;
    g_autoptr(OrrJob) job = g_new0(OrrJob, 1);
    g_autoptr(OrrSources) derived = orr_sources_new();
    JobReader r = {.keys = keys,
                   .job = job,
                   .overrides = overrides,
                   .n_overrides = n_overrides,
                   .derived = derived};
    job->name = orr_workloads__stem(orr_keys_name(keys));
    job->file = g_strdup(orr_keys_name(keys));
    for (uint32_t i = 0; i < n_overrides; i++)
        if (!is_set_group(overrides[i].group))
            orr_job__override(&r, &overrides[i]);
    read_job_group(&r);
    read_sets(&r);
    read_defaults(&r, overrides, n_overrides);
    g_autoptr(OrrFramework) framework G_GNUC_UNUSED = r.framework; /* frees it */
    orr_job__read_layout(&r);
    read_batch(&r);
    read_schedule(&r);
    orr_job__read_precision(&r);
    read_recompute(&r);
    read_network(&r);
    read_perturb(&r);
    read_nccl(&r);
    if (!orr_keys_finish(keys, error))
        return NULL;
    orr_job__note_assumptions(&r, sources);
    return g_steal_pointer(&job);
}
