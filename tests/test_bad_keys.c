/* Every key that a loader of key files knows, with values that can't be: of another type, of
 * another unit, out of any range, an unknown name, nothing. What is refused must name file, line,
 * group, key and value, and say what would do. Which keys there are is asked of the loaders
 * themselves: what they say of a group or key that nobody knows lists those that are. */
#include "tests/near.h"

#include "sim/api/calibration.h"
#include "sim/io/keys.h"
#include "topologies/loader.h"
#include "workloads/loader_run.h"
#include "workloads/loader_share.h"

#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>

#define NOBODY "zzqqxx" /* near to no name */
#define LEAST_KEYS 400  /* of all loaders; fewer: they were not asked */

typedef struct {
    const char *name;
    const char *base; /* a shipped file, or the text of one */
    bool (*load)(const char *path, GError **error);
} Loader;

static bool load_gpu(const char *path, GError **error) {
    OrrGpu *gpu = orr_topology_gpu(path, NULL, error);
    bool is_sound = gpu != NULL;
    orr_gpu_free(gpu);
    return is_sound;
}

static bool load_node(const char *path, GError **error) {
    OrrNode *node = orr_topology_node(path, NULL, error);
    bool is_sound = node != NULL;
    orr_node_free(node);
    return is_sound;
}

static bool load_cluster(const char *path, GError **error) {
    g_autoptr(OrrCluster) cluster = orr_topology_cluster(path, NULL, error);
    return cluster != NULL;
}

static bool load_model(const char *path, GError **error) {
    g_autoptr(OrrModel) model = orr_workload_model(path, NULL, 0, NULL, error);
    return model != NULL;
}

static bool load_framework(const char *path, GError **error) {
    g_autoptr(OrrFramework) framework = orr_workload_framework(path, NULL, 0, NULL, error);
    return framework != NULL;
}

/* With the files that it names and has groups for. */
static bool load_job(const char *path, GError **error) {
    g_autoptr(OrrJob) job = orr_workload_job(path, NULL, 0, NULL, error);
    if (!job)
        return false;
    uint32_t n;
    g_autofree OrrOverride *all = orr_workload_job_overrides(job, NULL, 0, &n);
    g_autofree OrrTopologySet *sets = g_new0(OrrTopologySet, n + 1);
    for (uint32_t i = 0; i < n; i++)
        sets[i] = (OrrTopologySet){all[i].group, all[i].key, all[i].value, all[i].origin};
    OrrTopologyOptions options = {.sets = sets, .n_sets = n};
    g_autoptr(OrrModel) model = orr_workload_model(job->model_ref, all, n, NULL, error);
    g_autoptr(OrrCluster) cluster =
        model ? orr_topology_cluster(job->cluster_ref, &options, error) : NULL;
    if (model && !cluster)
        g_prefix_error(error, "%s: ", job->cluster_place);
    return cluster != NULL;
}

static bool load_run(const char *path, GError **error) {
    g_autoptr(OrrRunFile) run = orr_workload_run(path, NULL, 0, NULL, error);
    return run != NULL;
}

static bool load_failures(const char *path, GError **error) {
    g_autoptr(OrrFailureSet) failures = orr_workload_failures(path, NULL, 0, NULL, error);
    return failures != NULL;
}

static bool load_prices(const char *path, GError **error) {
    g_autoptr(OrrPrices) prices = orr_workload_prices(path, NULL, 0, NULL, error);
    return prices != NULL;
}

static bool load_share(const char *path, GError **error) {
    g_autoptr(OrrShareFile) share = orr_workload_share(path, NULL, 0, NULL, error);
    return share != NULL;
}

static bool load_calibration(const char *path, GError **error) {
    OrrCalibration *c = orr_calibration_load(path, error);
    bool is_sound = c != NULL;
    orr_calibration_free(c);
    return is_sound;
}

static const char calibration[] =
    "[calibration]\nsource = test\n[table]\ngpu = x\nname = x\nsource = test\nclock_share = 0.9\n"
    "surfaces = gemm.bf16, attention.bf16.causal\n"
    "[gemm.bf16]\npeak = 900 TFLOP/s\nsms = 132\nhbm = 3000 GB/s\nfixed = 2000 ns\n"
    "efficiency = 0.8\nhbm_share = 0.9\nwave_share = 0.5\nk_extra = 1\nefficiency_128x128 = 1\n"
    "efficiency_128x64 = 1\nefficiency_64x64 = 1\nsplit_k = 0 ns\nquantise_bytes = 0\n"
    "quantise_fixed = 0 ns\naxis0 = 1, 2\naxis1 = 1\naxis2 = 1\nratio.0 = 1\nratio.1 = 1\n"
    "[attention.bf16.causal]\npeak = 900 TFLOP/s\nsms = 132\nhbm = 3000 GB/s\nfixed = 2000 ns\n"
    "efficiency = 0.8\nhbm_share = 0.9\nwave_share = 0.5\nkv_extra = 1\nprepare_bytes = 0\n"
    "axis0 = 1\naxis1 = 1\naxis2 = 1\nratio.0 = 1\n"
    "[streaming]\nfixed = 2000 ns\n[collectives]\nhopper.ring.ll.launch_ns = 9000 ns\n"
    "ib.launch_ns = 9000 ns\nhopper.copy_bytes_per_s = 1 GB/s\nib.eff_frac = 0.9\n"
    "[launches]\nrate = 2000 ns\n[overlap]\nproducts_beside_sends = 0.9\n";

static const Loader loaders[] = {
    {"gpu", "topologies/gpus/h100-sxm-80.ini", load_gpu},
    {"node", "topologies/nodes/dgx-h100.ini", load_node},
    {"cluster", "topologies/clusters/meta-24k-roce.ini", load_cluster},
    {"model", "workloads/models/llama3-8b.ini", load_model},
    {"framework", "workloads/frameworks/megatron-2021.ini", load_framework},
    {"job", "workloads/jobs/tiny-pipeline.ini", load_job},
    {"run", "workloads/runs/llama3-405b-54d-peers.ini", load_run},
    {"failures", "topologies/failures/llama3-54d.ini", load_failures},
    {"prices", "workloads/prices/h100-specialty-2026-05.ini", load_prices},
    {"share", "workloads/shares/spot-ablations.ini", load_share},
    {"calibration", calibration, load_calibration},
};

/* Folders whose tables base files name. */
static const char *const beside[] = {"workloads/shares", "topologies/failures"};

static char *text_of(const Loader *l) {
    g_autofree char *path = g_build_filename(ORR_SRCDIR, l->base, NULL);
    char *text = NULL;
    if (strchr(l->base, '\n'))
        return g_strdup(l->base);
    if (!g_file_get_contents(path, &text, NULL, NULL))
        fail_msg("cannot read %s", path);
    return text;
}

/* Whether @line sets @key. */
static bool sets(const char *line, const char *key) {
    g_auto(GStrv) side = g_strsplit(line, "=", 2);
    return side[0] && side[1] && strcmp(g_strstrip(side[0]), key) == 0;
}

/* @text with the key of this value, in its place or at the begin of its group; @line: where. */
static char *with_key(const char *text, const char *group, const char *key, const char *value,
                      guint *line) {
    g_auto(GStrv) old = g_strsplit(text, "\n", -1);
    g_autofree char *header = g_strdup_printf("[%s]", group);
    g_autofree char *pair = g_strdup_printf("%s = %s", key, value);
    guint head = 0, at = 0;
    while (old[head] && strcmp(g_strchomp(old[head]), header) != 0)
        head++;
    if (!old[head]) {
        *line = head + 2;
        return g_strdup_printf("%s\n%s\n%s\n", text, header, pair);
    }
    for (guint i = head + 1; old[i] && old[i][0] != '[' && at == 0; i++)
        at = sets(old[i], key) ? i : 0;
    char **where = &old[at > 0 ? at : head];
    char *now = at > 0 ? g_strdup(pair) : g_strdup_printf("%s\n%s", header, pair);
    g_free(*where);
    *where = now;
    *line = at > 0 ? at + 1 : head + 2;
    return g_strjoinv("\n", old);
}

/* What the loader says of @text; NULL: nothing is wrong. */
static char *says(const Loader *l, const char *path, const char *text) {
    g_autoptr(GError) error = NULL;
    FILE *file = fopen(path, "w"); /* thousands: not to be synchronised with the disk each */
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    if (l->load(path, &error)) {
        assert_null(error);
        return NULL;
    }
    assert_non_null(error);
    assert_int_equal(error->code, ORR_ERROR_INPUT);
    return g_strdup(error->message);
}

/* The names that @text lists behind "@before known are ". */
static GStrv known(const char *text, const char *before) {
    g_autofree char *mark = g_strdup_printf("%s; known are ", before);
    const char *at = text ? strstr(text, mark) : NULL;
    if (!at)
        return g_new0(char *, 1);
    g_autofree char *list = g_strdup(at + strlen(mark));
    g_strdelimit(list, "\n", '\0');
    g_autoptr(GString) words = g_string_new(list);
    g_string_replace(words, " or ", ", ", 0);
    assert_null(strstr(words->str, "...")); /* else some would be left out */
    return g_strsplit(words->str, ", ", -1);
}

static const char *const hints[] = {"will do", "would do", "did you mean", "known are"};

static bool says_what_would_do(const char *text) {
    for (guint i = 0; i < G_N_ELEMENTS(hints); i++)
        if (strstr(text, hints[i]))
            return true;
    return false;
}

typedef struct {
    const Loader *loader;
    const char *path, *base;
    guint n_keys, n_values, n_flaws;
} Sweep;

/* Whether the value is refused; if so, that it is as it should be. */
static bool is_refused(Sweep *s, const char *group, const char *key, const char *value,
                       char **message) {
    guint line;
    g_autofree char *text = with_key(s->base, group, key, value, &line);
    *message = says(s->loader, s->path, text);
    s->n_values++;
    if (!*message)
        return false;
    g_autofree char *place =
        g_strdup_printf("%s:%u: [%s] %s = %s: ", s->path, line, group, key, value);
    g_auto(GStrv) lines = g_strsplit(*message, "\n", -1);
    const char *found = NULL;
    for (guint i = 0; lines[i] && !found; i++)
        found = (found = strstr(lines[i], place)) ? found + strlen(place) : NULL;
    if (!found || !says_what_would_do(found)) {
        print_message("%s: [%s] %s = %s: %s\n", s->loader->name, group, key, value, *message);
        s->n_flaws++;
    }
    return true;
}

/* The first unit of those that a message lists. */
static char *unit_of(const char *message) {
    const char *at = message ? strstr(message, "lacks its unit; ") : NULL;
    if (!at)
        return NULL;
    at += strlen("lacks its unit; ");
    return g_strndup(at, strcspn(at, ", "));
}

/* Keys whose value is a text for people, or the name of another file that is looked for later. */
static bool takes_any_text(const char *key) {
    static const char *const texts[] = {"source", "summary", "name",     "aliases",
                                        "family", "gpu",     "surfaces", NULL};
    return g_strv_contains(texts, key);
}

static void sweep_key(Sweep *s, const char *group, const char *key) {
    static const char *const values[] = {"zq!7", "12 parsecs", "1e300", "-1e300"};
    guint n_refused = 0;
    g_autofree char *unit = NULL;
    for (guint i = 0; i < G_N_ELEMENTS(values); i++) {
        g_autofree char *message = NULL;
        n_refused += is_refused(s, group, key, values[i], &message);
        if (!unit)
            unit = unit_of(message);
    }
    for (guint i = 2; unit && i < G_N_ELEMENTS(values); i++) {
        g_autofree char *value = g_strdup_printf("%s %s", values[i], unit), *message = NULL;
        n_refused += is_refused(s, group, key, value, &message);
    }
    s->n_keys++;
    if (n_refused == 0 && !takes_any_text(key)) {
        print_message("%s: [%s] %s takes anything\n", s->loader->name, group, key);
        s->n_flaws++;
    }
}

static void sweep_group(Sweep *s, const char *group) {
    guint line;
    g_autofree char *text = with_key(s->base, group, NOBODY, "1", &line);
    g_autofree char *message = says(s->loader, s->path, text);
    g_auto(GStrv) keys = known(message, "unknown key");
    if (message && !keys[0]) { /* names that are made of parts: those in the file */
        g_autoptr(OrrKeys) file = orr_keys_parse("base", s->base, strlen(s->base), NULL);
        assert_true(says_what_would_do(message));
        g_strfreev(keys);
        keys = orr_keys_list(file, group);
    }
    for (guint i = 0; keys[i]; i++)
        sweep_key(s, group, keys[i]);
}

static void copy_tables(const char *folder, bool is_back) {
    for (guint i = 0; i < G_N_ELEMENTS(beside); i++) {
        g_autofree char *from = g_build_filename(ORR_SRCDIR, beside[i], NULL);
        GDir *dir = g_dir_open(from, 0, NULL);
        for (const char *name; dir && (name = g_dir_read_name(dir));) {
            g_autofree char *a = g_build_filename(from, name, NULL), *text = NULL;
            g_autofree char *b = g_build_filename(folder, name, NULL);
            gsize length;
            if (!g_str_has_suffix(name, ".csv"))
                continue;
            if (is_back)
                g_remove(b);
            else if (g_file_get_contents(a, &text, &length, NULL))
                assert_true(g_file_set_contents(b, text, (gssize)length, NULL));
        }
        g_dir_close(dir);
    }
}

static void test_every_key_says_what_would_do(void **state) {
    (void)state;
    g_autofree char *folder = g_dir_make_tmp("orrery-keys-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "bad.ini", NULL);
    guint n_keys = 0, n_flaws = 0;
    copy_tables(folder, false);
    for (guint i = 0; i < G_N_ELEMENTS(loaders); i++) {
        g_autofree char *base = text_of(&loaders[i]), *sound = says(&loaders[i], path, base);
        if (sound)
            fail_msg("%s: %s", loaders[i].name, sound);
        guint line;
        Sweep s = {.loader = &loaders[i], .path = path, .base = base};
        g_autofree char *text = with_key(base, NOBODY, "key", "1", &line);
        g_autofree char *message = says(&loaders[i], path, text);
        g_auto(GStrv) groups = known(message, "unknown group");
        if (!groups[0])
            fail_msg("%s: does not list its groups: %s", loaders[i].name, message);
        for (guint k = 0; groups[k]; k++)
            sweep_group(&s, groups[k]);
        print_message("%s: %u keys, %u values\n", loaders[i].name, s.n_keys, s.n_values);
        n_keys += s.n_keys;
        n_flaws += s.n_flaws;
    }
    copy_tables(folder, true);
    g_remove(path);
    g_rmdir(folder);
    assert_int_equal(n_flaws, 0);
    assert_true(n_keys >= LEAST_KEYS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_key_says_what_would_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
