/* The shipped GPUs, nodes and clusters against datasheets; loaders and shapes on bad input. */
#include "tests/near.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "topologies/loader.h"
#include "topologies/show.h"

/* Datasheet values, written down apart from the files: dense peaks and rates per direction. */
static const struct {
    const char *name;
    uint32_t sms;
    double fp16_tflops, bf16_tflops, fp8_tflops, fp4_tflops, hbm_gb_per_s, nvlink_gb_per_s, watts;
    double memory_gib_least, memory_gib_most;
} sheets[] = {
    {"v100-sxm2-16", 80, 125, 0, 0, 0, 900, 150, 300, 15.5, 16},
    {"v100-sxm2-32", 80, 125, 0, 0, 0, 900, 150, 300, 31, 32},
    {"a100-sxm-40", 108, 312, 312, 0, 0, 1555, 300, 400, 39, 40},
    {"a100-sxm-80", 108, 312, 312, 0, 0, 2039, 300, 400, 79, 80},
    {"a100-pcie-80", 108, 312, 312, 0, 0, 1935, 0, 300, 79, 80},
    {"h100-sxm-80", 132, 989.4, 989.4, 1978.9, 0, 3350, 450, 700, 79, 80},
    {"h100-hbm2e-96", 132, 989.4, 989.4, 1978.9, 0, 2400, 450, 500, 90, 96},
    {"h800-sxm-80", 132, 989.4, 989.4, 1978.9, 0, 3350, 200, 700, 79, 80},
    {"h200-sxm", 132, 989.4, 989.4, 1978.9, 0, 4800, 450, 700, 139, 141},
    {"b200-sxm", 148, 2250, 2250, 4500, 9000, 8000, 900, 1000, 167, 180},
    {"b300-sxm", 148, 2250, 2250, 4500, 13500, 8000, 900, 1100, 251, 270},
    {"gb200", 152, 2500, 2500, 5000, 10000, 8000, 900, 1200, 173, 186},
    {"gb300", 152, 2500, 2500, 5000, 15000, 8000, 900, 1400, 260, 279},
    {"a10-24", 72, 125, 125, 0, 0, 600, 0, 150, 22, 24},
};

/* Absolute difference: many of the values are 0. */
static void same(const char *name, const char *what, double seen, double sheet) {
    if (fabs(seen - sheet) > 1e-6 * fmax(1, sheet))
        fail_msg("%s: %s is %g, the datasheet says %g", name, what, seen, sheet);
}

static void test_gpu_files_equal_their_datasheets(void **state) {
    (void)state;
    for (size_t i = 0; i < G_N_ELEMENTS(sheets); i++) {
        GError *error = NULL;
        OrrGpu *g = orr_topology_gpu(sheets[i].name, NULL, &error);
        if (!g)
            fail_msg("%s", error->message);
        same(g->name, "SMs", g->n_sms, sheets[i].sms);
        same(g->name, "FP16", g->peak_flops_per_s[ORR_FP16] / 1e12, sheets[i].fp16_tflops);
        same(g->name, "BF16", g->peak_flops_per_s[ORR_BF16] / 1e12, sheets[i].bf16_tflops);
        same(g->name, "FP8", g->peak_flops_per_s[ORR_FP8] / 1e12, sheets[i].fp8_tflops);
        same(g->name, "FP4", g->peak_flops_per_s[ORR_FP4] / 1e12, sheets[i].fp4_tflops);
        same(g->name, "HBM", g->hbm_bytes_per_s / 1e9, sheets[i].hbm_gb_per_s);
        same(g->name, "NVLink", g->nvlink_bytes_per_s / 1e9, sheets[i].nvlink_gb_per_s);
        same(g->name, "power", g->power_watts, sheets[i].watts);
        double gib = g->hbm_bytes / 1073741824.0;
        assert_true(gib >= sheets[i].memory_gib_least && gib <= sheets[i].memory_gib_most);
        assert_true(g->sustained_hz > 0.6 * g->boost_hz && g->sustained_hz <= g->boost_hz);
        assert_true(g->context_bytes < 0.06 * g->hbm_bytes + 1e9);
        /* A tensor core does a whole power of two of FLOP a clock; the peak belongs to the boost.
         */
        double per_clock = g->peak_flops_per_s[ORR_FP16] / g->boost_hz / g->n_sms;
        assert_near(log2(per_clock), round(log2(per_clock)), 1e-3);
        orr_gpu_free(g);
    }
}

static void test_every_shipped_file_loads_and_has_a_source(void **state) {
    (void)state;
    uint32_t n[ORR_N_TOPOLOGIES];
    for (OrrTopologyKind kind = 0; kind < ORR_N_TOPOLOGIES; kind++) {
        GError *error = NULL;
        g_autoptr(GPtrArray) list = orr_topology_list(kind, &error);
        assert_non_null(list);
        n[kind] = list->len;
        for (guint i = 0; i < list->len; i++) {
            const OrrTopologyEntry *e = list->pdata[i];
            OrrGpu *gpu = NULL;
            OrrNode *node = NULL;
            OrrCluster *cluster = NULL;
            assert_true(*e->summary && strlen(e->source) > 10);
            if (kind == ORR_TOPOLOGY_GPUS)
                gpu = orr_topology_gpu(e->name, NULL, &error);
            else if (kind == ORR_TOPOLOGY_NODES)
                node = orr_topology_node(e->name, NULL, &error);
            else
                cluster = orr_topology_cluster(e->name, NULL, &error);
            if (error)
                fail_msg("%s", error->message);
            orr_gpu_free(gpu);
            orr_node_free(node);
            orr_cluster_free(cluster);
        }
    }
    assert_true(n[ORR_TOPOLOGY_GPUS] >= G_N_ELEMENTS(sheets));
    assert_true(n[ORR_TOPOLOGY_NODES] >= 12);
    assert_true(n[ORR_TOPOLOGY_CLUSTERS] >= 15);
}

static void test_no_two_files_of_a_kind_share_a_name(void **state) {
    (void)state;
    for (OrrTopologyKind kind = 0; kind < ORR_N_TOPOLOGIES; kind++) {
        g_autoptr(GPtrArray) list = orr_topology_list(kind, NULL);
        g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
        for (guint i = 0; i < list->len; i++) {
            const OrrTopologyEntry *e = list->pdata[i];
            if (!g_hash_table_add(seen, e->name))
                fail_msg("%s comes twice", e->name);
            for (char **a = e->aliases; *a; a++)
                if (!g_hash_table_add(seen, *a))
                    fail_msg("%s comes twice", *a);
        }
    }
}

static OrrCluster *load(const char *ref) {
    GError *error = NULL;
    OrrCluster *c = orr_topology_cluster(ref, NULL, &error);
    if (!c)
        fail_msg("%s", error->message);
    return c;
}

static void test_meta_cluster_is_as_the_llama3_paper_says(void **state) {
    (void)state;
    g_autoptr(OrrCluster) c = load("meta-24k-roce:16384");
    const OrrClusterSpec *s = orr_cluster_spec(c);
    assert_int_equal(s->n_gpus, 16384);
    assert_int_equal(s->max_gpus, 24576);
    assert_int_equal(s->gpus_per_leaf, 16);
    assert_int_equal(s->gpus_per_pod, 3072);
    assert_near(s->pod_oversubscription, 7, 1e-12);
    assert_near(s->node->nic_bytes_per_s, 50e9, 1e-12);
    assert_int_equal(s->node->net, ORR_NET_ROCE);
    assert_int_equal(s->routing, ORR_ROUTE_SPREAD);
    g_autoptr(OrrCluster) million = load("clos-roce-1m");
    assert_int_equal(orr_cluster_spec(million)->n_gpus, 1u << 20);
    assert_near(orr_cluster_spec(million)->pod_oversubscription, 7, 1e-12);
}

static void refused(const char *ref, const char *why) {
    GError *error = NULL;
    assert_null(orr_topology_cluster(ref, NULL, &error));
    assert_non_null(error);
    assert_int_equal(error->code, ORR_ERROR_INPUT);
    if (!strstr(error->message, why))
        fail_msg("\"%s\" does not say \"%s\"", error->message, why);
    g_error_free(error);
}

static void test_bad_cluster_names_say_what_would_do(void **state) {
    (void)state;
    refused("meta-24k-roce:32768", "32768 GPUs asked, the machine has 24576");
    refused("meta-24k-roce:0", "\"0\" is not a number of GPUs");
    refused("meta-24k-roce:-8", "\"-8\" is not a number of GPUs");
    refused("meta-24k-roce:many", "meta-24k-roce:64 would do");
    refused("meta-24-roce:64", "did you mean meta-24k-roce?");
    refused("no/such/file.ini:64", "no/such/file.ini");
    refused("", "no cluster is called");
    refused("quantum-abacus:64", "known are");
    refused("rail:64 gpu:no/such.ini", "no/such.ini");
}

static void test_shapes_build_what_they_say(void **state) {
    (void)state;
    g_autoptr(OrrCluster) a = load("fat_tree:256 node:8 gpu:h100");
    const OrrClusterSpec *s = orr_cluster_spec(a);
    assert_int_equal(s->fabric, ORR_FABRIC_RAIL);
    assert_int_equal(s->n_gpus, 256);
    assert_string_equal(s->node->gpu->name, "h100-sxm-80");
    assert_near(s->node->nic_bytes_per_s, 50e9, 1e-12);
    assert_true(s->node->has_nvls);
    g_autoptr(OrrCluster) b =
        load("clos:512 gpu:a100 node:8 nics:4 nic:100G leaf:32 pod:256 oversub:2 pod_oversub:7");
    s = orr_cluster_spec(b);
    assert_int_equal(orr_cluster_n_leaves(b), 16);
    assert_int_equal(orr_cluster_n_pods(b), 2);
    assert_near(s->node->nic_bytes_per_s, 12.5e9, 1e-12);
    assert_near(s->leaf_oversubscription, 2, 1e-12);
    g_autoptr(OrrCluster) e = load("ethernet:4 node:2 gpu:a10 nics:1 nic:10G");
    assert_int_equal(orr_cluster_spec(e)->node->net, ORR_NET_ETHERNET);
    assert_int_equal(orr_cluster_spec(e)->node->nvlink, ORR_NVLINK_NONE);
    g_autoptr(OrrCluster) r = load("rail:64 routing:ecmp-hash seed:7");
    assert_int_equal(orr_cluster_spec(r)->routing, ORR_ROUTE_ECMP_HASH);
    assert_int_equal(orr_cluster_spec(r)->seed, 7);
}

static void test_bad_shapes_name_the_token(void **state) {
    (void)state;
    refused("fat_tree", "KIND:GPUS");
    refused("fat_tree:x", "\"fat_tree:x\"");
    refused("fat_tree:64 nodes:8",
            "\"nodes:8\" is not NAME:VALUE of a known name: did you mean node?");
    refused("fat_tree:64 node", "\"node\" is not NAME:VALUE");
    refused("fat_tree:64 node:0", "\"node:0\": a whole number from 1 to 64");
    refused("fat_tree:64 node:8 node:4", "node is said twice");
    refused("fat_tree:64 gpu:h1000", "did you mean h100");
    refused("fat_tree:64 gpu:", "a name would do");
    refused("fat_tree:64 nic:400", "lacks its unit");
    refused("fat_tree:64 nic:0G", "400G");
    refused("fat_tree:64 oversub:0.5", "from 1 to 1000");
    refused("fat_tree:64 oversub:nan", "from 1 to 1000");
    refused("clos:64 leaf:12", "gpus_per_leaf = 12");
    refused("fat_tree:64 nvlink:yes", "none, mesh or switch would do");
    refused("torus:64", "torus is not built yet");
    refused("fatter_tree:64 node:8", "no kind of network");
    refused(" ", "empty");
    refused("rail:64 gpu:a10 nvlink:switch", "has no NVLink");
}

/* Broken files: a shipped one with a line replaced or added, and what must be said. */
typedef struct {
    OrrTopologyKind kind;
    const char *name, *from, *to, *why;
} Broken;

static const Broken broken[] = {
    {ORR_TOPOLOGY_GPUS, "h100-sxm-80", "power = 700 W", "power = 700", "power = 700"},
    {ORR_TOPOLOGY_GPUS, "h100-sxm-80", "power = 700 W", "power = 700 GB", "W, kW or MW"},
    {ORR_TOPOLOGY_GPUS, "h100-sxm-80", "power = 700 W", "power = 0 W", "out of range"},
    {ORR_TOPOLOGY_GPUS, "h100-sxm-80", "power = 700 W", "wattage = 700 W", "wattage"},
    {ORR_TOPOLOGY_GPUS, "h100-sxm-80", "arch = hopper", "arch = hooper", "did you mean hopper"},
    {ORR_TOPOLOGY_GPUS, "h100-sxm-80", "sms = 132 SMs", "sms = 13.2 SMs", "whole number"},
    {ORR_TOPOLOGY_GPUS, "h100-sxm-80", "boost = 1830 MHz", "boost = 1130 MHz", "is above boost"},
    {ORR_TOPOLOGY_GPUS, "h100-sxm-80", "nvlink_links = 18 links", "", "needs the other"},
    {ORR_TOPOLOGY_NODES, "dgx-h100", "gpu = h100-sxm-80", "gpu = h100-sxm-81", "did you mean"},
    {ORR_TOPOLOGY_NODES, "dgx-h100", "gpus = 8 GPUs", "gpus = 8 NICs", "GPUs"},
    {ORR_TOPOLOGY_NODES, "dgx-1v", "2 1 2 0 #", "2 1 2 #", "row 7 has 7 numbers; 8 would do"},
    {ORR_TOPOLOGY_NODES, "dgx-1v", "mesh = 0 1 1", "mesh = 0 x 1", "\"x\"; a number of links"},
    {ORR_TOPOLOGY_NODES, "dgx-1v", "mesh = 0 1 1", "mesh = 0 1 1; 0 1 1", "9 rows"},
    {ORR_TOPOLOGY_NODES, "dgx-h100", "net = ib", "net = infiniband", "ib"},
    {ORR_TOPOLOGY_CLUSTERS, "meta-24k-roce", "fabric = clos", "fabric = fat", "rail, clos"},
    {ORR_TOPOLOGY_CLUSTERS, "meta-24k-roce", "gpus = 24576 GPUs", "gpus = -1 GPUs", "range"},
    {ORR_TOPOLOGY_CLUSTERS, "meta-24k-roce", "gpus_per_leaf", "nodes_per_leaf", "nodes_per_leaf"},
    {ORR_TOPOLOGY_CLUSTERS, "meta-24k-roce", "pod_oversubscription = 7",
     "pod_oversubscription = 0.7", "pod_oversubscription"},
    {ORR_TOPOLOGY_CLUSTERS, "meta-24k-roce", "gpus_per_leaf = 16 GPUs", "gpus_per_leaf = 12 GPUs",
     "not a multiple"},
    {ORR_TOPOLOGY_CLUSTERS, "meta-24k-roce", "hop_latency = 800 ns", "hop_latency = 800 parsec",
     "hop_latency"},
    {ORR_TOPOLOGY_CLUSTERS, "meta-24k-roce", "[cluster]", "[clutter]", "clutter"},
};

static char *shipped_text(OrrTopologyKind kind, const char *name) {
    const char *dir = g_getenv("ORRERY_DATA") ? g_getenv("ORRERY_DATA") : ORR_SRCDIR;
    char *text = NULL;
    g_autofree char *path =
        g_strdup_printf("%s/topologies/%s/%s.ini", dir, orr_topology_kind_names[kind], name);
    assert_true(g_file_get_contents(path, &text, NULL, NULL));
    return text;
}

static char *with_change(const char *text, const Broken *b) {
    g_auto(GStrv) parts = g_strsplit(text, b->from, 2);
    if (!parts[0] || !parts[1])
        fail_msg("%s no longer has \"%s\"", b->name, b->from);
    return g_strconcat(parts[0], b->to, parts[1], NULL);
}

static void load_path(OrrTopologyKind kind, const char *path, GError **error) {
    if (kind == ORR_TOPOLOGY_GPUS)
        orr_gpu_free(orr_topology_gpu(path, NULL, error));
    else if (kind == ORR_TOPOLOGY_NODES)
        orr_node_free(orr_topology_node(path, NULL, error));
    else
        orr_cluster_free(orr_topology_cluster(path, NULL, error));
}

static void test_broken_files_are_refused_with_the_reason(void **state) {
    (void)state;
    g_autofree char *dir = g_dir_make_tmp("orrery-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "broken.ini", NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(broken); i++) {
        const Broken *b = &broken[i];
        g_autofree char *text = shipped_text(b->kind, b->name);
        g_autofree char *changed = with_change(text, b);
        g_autoptr(GError) error = NULL;
        assert_true(g_file_set_contents(path, changed, -1, NULL));
        load_path(b->kind, path, &error);
        if (!error)
            fail_msg("\"%s\" was taken", b->to);
        assert_int_equal(error->code, ORR_ERROR_INPUT);
        if (!strstr(error->message, b->why))
            fail_msg("\"%s\" does not say \"%s\"", error->message, b->why);
    }
    unlink(path);
    rmdir(dir);
}

typedef struct {
    uint32_t inputs, assumptions;
    char last_input[64];
    bool has_routing;
} Seen;

static void note_input(void *data, const char *name, const char *text, gsize length) {
    Seen *seen = data;
    assert_true(length > 0 && text[0] == '[');
    seen->inputs++;
    g_strlcpy(seen->last_input, name, sizeof seen->last_input);
}

static void note_assumption(void *data, const char *key, const char *value, const char *origin) {
    Seen *seen = data;
    assert_true(*value && *origin);
    seen->assumptions++;
    seen->has_routing |= !strcmp(key, "node.nvlink_latency");
}

static void test_what_was_read_and_assumed_is_told(void **state) {
    (void)state;
    Seen seen = {0};
    const OrrTopologyNotes notes = {&seen, note_input, note_assumption};
    const OrrTopologyOptions options = {.notes = &notes};
    orr_cluster_free(orr_topology_cluster("meta-24k-roce:64", &options, NULL));
    assert_int_equal(seen.inputs, 3);
    assert_string_equal(seen.last_input, "topologies/gpus/h100-sxm-80.ini");
    assert_true(seen.has_routing);
}

static void test_overrides_reach_cluster_node_and_gpu(void **state) {
    (void)state;
    const OrrTopologySet sets[] = {{"cluster", "pod_oversubscription", "3"},
                                   {"node", "nic", "200 Gb/s"},
                                   {"gpu", "sustained", "1.4 GHz"},
                                   {"layout", "tp", "8"}};
    const OrrTopologyOptions options = {.sets = sets, .n_sets = G_N_ELEMENTS(sets)};
    const char *const refs[] = {"meta-24k-roce:64", "clos:64 leaf:16 gpu:h100"};
    for (size_t i = 0; i < G_N_ELEMENTS(refs); i++) {
        g_autoptr(OrrCluster) c = orr_topology_cluster(refs[i], &options, NULL);
        assert_non_null(c);
        const OrrClusterSpec *s = orr_cluster_spec(c);
        assert_near(s->pod_oversubscription, 3, 1e-12);
        assert_near(s->node->nic_bytes_per_s, 25e9, 1e-12);
        assert_near(s->node->gpu->sustained_hz, 1.4e9, 1e-12);
        assert_int_equal(s->gpus_per_leaf, 16);
    }
    const OrrTopologySet bad[] = {{"node", "nic", "200"}};
    const OrrTopologyOptions worse = {.sets = bad, .n_sets = 1};
    GError *error = NULL;
    for (size_t i = 0; i < G_N_ELEMENTS(refs); i++) {
        assert_null(orr_topology_cluster(refs[i], &worse, &error));
        assert_non_null(strstr(error->message, "--set"));
        g_clear_error(&error);
    }
}

static void test_pages_say_the_figures_of_the_cluster(void **state) {
    (void)state;
    g_autoptr(OrrCluster) c = load("meta-24k-roce:16384");
    g_autoptr(GString) page = g_string_new(NULL);
    static const char *const said[] = {
        "16,384 of 24,576 GPUs", "6 pods",           "1:7",       "1,024 leaves",
        "8 NICs of 400 Gb/s",    "57.14 Gb/s a GPU", "bf16 989.4"};
    orr_topology_show_text(c, page);
    for (size_t i = 0; i < G_N_ELEMENTS(said); i++)
        if (!strstr(page->str, said[i]))
            fail_msg("the page lacks \"%s\"", said[i]);
}

static void test_pictures_are_well_formed(void **state) {
    (void)state;
    static const char *const refs[] = {"meta-24k-roce:16384",
                                       "h100-ib:512",
                                       "v100-ib:64",
                                       "gb200-ib:72",
                                       "a10-ethernet:1",
                                       "flat:4 node:4",
                                       "fat_tree:64 gpu:a10 nics:16",
                                       "clos-roce-1m"};
    const GMarkupParser parser = {0};
    for (size_t i = 0; i < G_N_ELEMENTS(refs); i++) {
        g_autoptr(OrrCluster) c = load(refs[i]);
        g_autoptr(GString) svg = g_string_new(NULL);
        orr_topology_show_svg(c, svg);
        GMarkupParseContext *xml = g_markup_parse_context_new(&parser, 0, NULL, NULL);
        GError *error = NULL;
        assert_true(g_markup_parse_context_parse(xml, svg->str, (gssize)svg->len, &error));
        assert_true(g_markup_parse_context_end_parse(xml, &error));
        g_markup_parse_context_free(xml);
        assert_true(svg->len < 60000); /* whatever the number of GPUs */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpu_files_equal_their_datasheets),
        cmocka_unit_test(test_every_shipped_file_loads_and_has_a_source),
        cmocka_unit_test(test_no_two_files_of_a_kind_share_a_name),
        cmocka_unit_test(test_meta_cluster_is_as_the_llama3_paper_says),
        cmocka_unit_test(test_bad_cluster_names_say_what_would_do),
        cmocka_unit_test(test_shapes_build_what_they_say),
        cmocka_unit_test(test_bad_shapes_name_the_token),
        cmocka_unit_test(test_broken_files_are_refused_with_the_reason),
        cmocka_unit_test(test_what_was_read_and_assumed_is_told),
        cmocka_unit_test(test_overrides_reach_cluster_node_and_gpu),
        cmocka_unit_test(test_pages_say_the_figures_of_the_cluster),
        cmocka_unit_test(test_pictures_are_well_formed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
