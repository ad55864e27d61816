/* GPU, node and cluster files: their keys, ranges and defaults. Ranges are wide enough for any
 * machine of the last ten years and the next, and narrow enough to catch a wrong unit. */
#include "topologies/loader.h"

#include <string.h>

#include "topologies/loader_priv.h"
#include "topologies/shapes.h"

#define NUMBER(type, member, name, dimension, low, high, otherwise, flag)                          \
    {                                                                                              \
        .key = name, .kind = TOPO_NUMBER, .offset = offsetof(type, member), .dim = dimension,      \
        .min = low, .max = high, .fallback = otherwise, .flags = flag                              \
    }
#define COUNT(type, member, name, unit, low, high, otherwise, flag)                                \
    {                                                                                              \
        .key = name, .kind = TOPO_COUNT, .offset = offsetof(type, member), .noun = unit,           \
        .min = low, .max = high, .fallback = otherwise, .flags = flag                              \
    }
#define ENUM(type, member, name, table, otherwise, flag)                                           \
    {                                                                                              \
        .key = name, .kind = TOPO_ENUM, .offset = offsetof(type, member), .names = table,          \
        .fallback = otherwise, .flags = flag                                                       \
    }
#define BOOL(type, member, name, otherwise, flag)                                                  \
    {                                                                                              \
        .key = name, .kind = TOPO_BOOL, .offset = offsetof(type, member), .fallback = otherwise,   \
        .flags = flag                                                                              \
    }
#define TEXT(type, member, name, flag)                                                             \
    { .key = name, .kind = TOPO_TEXT, .offset = offsetof(type, member), .flags = flag }
#define PEAK(dtype, name)                                                                          \
    NUMBER(OrrGpu, peak_flops_per_s[dtype], name, ORR_DIM_FLOPS_RATE, 1e11, 1e18, 0, ORR_KEY_QUIET)

static const OrrTopoField gpu_fields[] = {
    TEXT(OrrGpu, source, "source", ORR_KEY_REQUIRED),
    ENUM(OrrGpu, arch, "arch", orr_arch_names, 0, ORR_KEY_REQUIRED),
    COUNT(OrrGpu, n_sms, "sms", "SMs", 1, 1024, 1, ORR_KEY_REQUIRED),
    NUMBER(OrrGpu, boost_hz, "boost", ORR_DIM_FREQ, 1e8, 1e10, 1e9, ORR_KEY_REQUIRED),
    NUMBER(OrrGpu, sustained_hz, "sustained", ORR_DIM_FREQ, 1e8, 1e10, 1e9, ORR_KEY_REQUIRED),
    /* TF32 is the least that every GPU since Ampere has; Volta has FP16 alone. */
    PEAK(ORR_FP32, "peak_fp32"),
    PEAK(ORR_TF32, "peak_tf32"),
    PEAK(ORR_BF16, "peak_bf16"),
    NUMBER(OrrGpu, peak_flops_per_s[ORR_FP16], "peak_fp16", ORR_DIM_FLOPS_RATE, 1e12, 1e18, 1e12,
           ORR_KEY_REQUIRED),
    PEAK(ORR_FP8, "peak_fp8"),
    PEAK(ORR_FP4, "peak_fp4"),
    PEAK(ORR_INT8, "peak_int8"),
    NUMBER(OrrGpu, vector_flops_per_s, "vector", ORR_DIM_FLOPS_RATE, 1e11, 1e16, 1e12,
           ORR_KEY_REQUIRED),
    NUMBER(OrrGpu, hbm_bytes, "memory", ORR_DIM_BYTES, 1e9, 1e13, 1e9, ORR_KEY_REQUIRED),
    NUMBER(OrrGpu, hbm_bytes_per_s, "memory_bandwidth", ORR_DIM_RATE, 1e10, 1e15, 1e12,
           ORR_KEY_REQUIRED),
    NUMBER(OrrGpu, mem_eff_frac, "memory_efficiency", ORR_DIM_FRACTION, 0.1, 1, 0.9,
           ORR_KEY_REQUIRED),
    NUMBER(OrrGpu, l2_bytes, "l2", ORR_DIM_BYTES, 1e5, 1e10, 1e6, ORR_KEY_REQUIRED),
    NUMBER(OrrGpu, nvlink_bytes_per_s, "nvlink", ORR_DIM_RATE, 0, 1e13, 0, ORR_KEY_QUIET),
    COUNT(OrrGpu, nvlink_links, "nvlink_links", "links", 0, 255, 0, ORR_KEY_QUIET),
    NUMBER(OrrGpu, pcie_bytes_per_s, "pcie", ORR_DIM_RATE, 1e9, 1e12, 1e10, ORR_KEY_REQUIRED),
    NUMBER(OrrGpu, power_watts, "power", ORR_DIM_POWER, 10, 1e4, 100, ORR_KEY_REQUIRED),
    NUMBER(OrrGpu, kernel_fixed_ns, "kernel_fixed", ORR_DIM_TIME, 0, 1e6, 0, ORR_KEY_REQUIRED),
    NUMBER(OrrGpu, context_bytes, "context", ORR_DIM_BYTES, 0, 1e11, 0, ORR_KEY_REQUIRED),
    TEXT(OrrGpu, surfaces, "surfaces", ORR_KEY_QUIET),
};

/* One hop over NVLink and half a PCIe path: NCCL's own hardware latencies for its LL protocol, 0.6
 * us and 1.0 us (NCCL 2.19, src/graph/tuning.cc). */
#define NVLINK_LATENCY_NS 600.0
#define PCIE_LATENCY_NS 500.0

static const OrrTopoField node_fields[] = {
    TEXT(OrrNode, source, "source", ORR_KEY_REQUIRED),
    COUNT(OrrNode, gpus, "gpus", "GPUs", 1, 64, 1, ORR_KEY_REQUIRED),
    ENUM(OrrNode, nvlink, "nvlink", orr_nvlink_names, 0, ORR_KEY_REQUIRED),
    COUNT(OrrNode, domain_nodes, "domain_nodes", "nodes", 1, 1024, 1, ORR_KEY_QUIET),
    BOOL(OrrNode, has_nvls, "nvls", false, ORR_KEY_QUIET),
    NUMBER(OrrNode, mesh_link_bytes_per_s, "mesh_link", ORR_DIM_RATE, 0, 1e13, 0, ORR_KEY_QUIET),
    COUNT(OrrNode, nics, "nics", "NICs", 0, 128, 0, ORR_KEY_REQUIRED),
    NUMBER(OrrNode, nic_bytes_per_s, "nic", ORR_DIM_RATE, 0, 1e12, 0, ORR_KEY_QUIET),
    ENUM(OrrNode, net, "net", orr_net_names, 0, ORR_KEY_REQUIRED),
    NUMBER(OrrNode, nic_pcie_bytes_per_s, "nic_pcie", ORR_DIM_RATE, 0, 1e12, 0, ORR_KEY_QUIET),
    NUMBER(OrrNode, management_bytes_per_s, "management", ORR_DIM_RATE, 0, 1e12, 0,
           ORR_KEY_REQUIRED),
    NUMBER(OrrNode, nvlink_latency_ns, "nvlink_latency", ORR_DIM_TIME, 0, 1e6, NVLINK_LATENCY_NS,
           0),
    NUMBER(OrrNode, pcie_latency_ns, "pcie_latency", ORR_DIM_TIME, 0, 1e6, PCIE_LATENCY_NS, 0),
    NUMBER(OrrNode, host_speed, "host_speed", ORR_DIM_NONE, 0.1, 10, 1, 0),
};

static const OrrTopoField cluster_fields[] = {
    TEXT(OrrClusterSpec, source, "source", ORR_KEY_REQUIRED),
    COUNT(OrrClusterSpec, max_gpus, "gpus", "GPUs", 1, 1 << 24, 1, ORR_KEY_REQUIRED),
    ENUM(OrrClusterSpec, fabric, "fabric", orr_fabric_names, 0, ORR_KEY_REQUIRED),
    COUNT(OrrClusterSpec, gpus_per_pod, "gpus_per_pod", "GPUs", 0, 1 << 24, 0, ORR_KEY_QUIET),
    NUMBER(OrrClusterSpec, leaf_oversubscription, "leaf_oversubscription", ORR_DIM_NONE, 1, 1000, 1,
           0),
    NUMBER(OrrClusterSpec, pod_oversubscription, "pod_oversubscription", ORR_DIM_NONE, 1, 1000, 1,
           ORR_KEY_QUIET),
    COUNT(OrrClusterSpec, leaf_uplinks, "leaf_uplinks", "links", 1, 4096, 0, ORR_KEY_QUIET),
    COUNT(OrrClusterSpec, pod_uplinks, "pod_uplinks", "links", 1, 1 << 24, 0, ORR_KEY_QUIET),
    NUMBER(OrrClusterSpec, nic_latency_ns, "nic_latency", ORR_DIM_TIME, 0, 1e6, 0,
           ORR_KEY_REQUIRED),
    NUMBER(OrrClusterSpec, hop_latency_ns, "hop_latency", ORR_DIM_TIME, 0, 1e6, 0,
           ORR_KEY_REQUIRED),
    ENUM(OrrClusterSpec, routing, "routing", orr_routing_names, ORR_ROUTE_SPREAD, 0),
    {.key = "seed",
     .kind = TOPO_SEED,
     .offset = offsetof(OrrClusterSpec, seed),
     .fallback = 1,
     .flags = ORR_KEY_QUIET},
    BOOL(OrrClusterSpec, use_management, "use_management", false, ORR_KEY_QUIET),
};

/* Keys for people and for finding the file: asked here so that they count as known. */
static void read_about(OrrKeys *keys, const char *group) {
    orr_keys_string(keys, group, "summary", "", ORR_KEY_REQUIRED);
    g_strfreev(orr_keys_strings(keys, group, "aliases", ORR_KEY_QUIET));
}

/* A path that a file names is meant from where that file lies. @ref as it is if it is a name. */
static char *beside(const OrrKeys *keys, const char *ref) {
    bool is_path = strchr(ref, '/') || g_str_has_suffix(ref, ".ini");
    if (!is_path || g_path_is_absolute(ref))
        return g_strdup(ref);
    g_autofree char *folder = g_path_get_dirname(orr_keys_name(keys));
    return g_build_filename(folder, g_str_has_prefix(ref, "./") ? ref + 2 : ref, NULL);
}

OrrGpu *orr_topologies__gpu(OrrKeys *keys, const char *name, const OrrTopologyOptions *options,
                            GError **error) {
    OrrGpu *gpu = g_new0(OrrGpu, 1);
    gpu->name = g_strdup(name);
    read_about(keys, "gpu");
    orr_topologies__read(keys, "gpu", gpu_fields, G_N_ELEMENTS(gpu_fields), gpu);
    char *surfaces = beside(keys, gpu->surfaces);
    g_free(gpu->surfaces);
    gpu->surfaces = surfaces;
    if (gpu->sustained_hz > gpu->boost_hz)
        orr_keys_complain(keys, "gpu", "sustained", "is above boost; at most that would do");
    if ((gpu->nvlink_bytes_per_s > 0) != (gpu->nvlink_links > 0))
        orr_keys_complain(keys, "gpu", gpu->nvlink_links ? "nvlink_links" : "nvlink",
                          "needs the other of nvlink and nvlink_links; both or none would do");
    if (orr_topologies__close(keys, options, error))
        return gpu;
    orr_gpu_free(gpu);
    return NULL;
}

OrrGpu *orr_topology_gpu(const char *ref, const OrrTopologyOptions *options, GError **error) {
    g_autofree char *name = NULL;
    g_autoptr(OrrKeys) keys =
        orr_topologies__open(ORR_TOPOLOGY_GPUS, "gpu", ref, options, &name, error);
    return keys ? orr_topologies__gpu(keys, name, options, error) : NULL;
}

/* What the key names is at fault: where that stands. */
static void say_where(const OrrKeys *keys, const char *group, const char *key, GError **error) {
    g_autofree char *place = orr_keys_place(keys, group, key);
    g_prefix_error(error, "%s: ", place);
}

/* "0 1 1 2; 1 0 2 1; ...": a row a GPU, links to each GPU. */
static void read_mesh(OrrKeys *keys, OrrNode *node) {
    g_auto(GStrv) rows = orr_keys_strings(keys, "node", "mesh", ORR_KEY_QUIET);
    if (!rows)
        return;
    if (g_strv_length(rows) != node->gpus) {
        orr_keys_complain(keys, "node", "mesh",
                          "has %u rows; one for each of the %u GPUs, such as \"0 2; 2 0\" for two, "
                          "would do",
                          g_strv_length(rows), node->gpus);
        return;
    }
    node->mesh_links = g_new0(uint8_t, node->gpus * node->gpus);
    for (uint32_t i = 0; i < node->gpus; i++) {
        g_auto(GStrv) cells = g_strsplit_set(rows[i], " \t", -1);
        uint32_t n = 0;
        for (char **cell = cells; *cell; cell++) {
            guint64 links = 0;
            if (!**cell)
                continue;
            if (n < node->gpus && g_ascii_string_to_unsigned(*cell, 10, 0, UINT8_MAX, &links, NULL))
                node->mesh_links[i * node->gpus + n] = (uint8_t)links;
            else if (n < node->gpus)
                orr_keys_complain(keys, "node", "mesh",
                                  "row %u has \"%s\"; a number of links, 0 to 255, would do", i,
                                  *cell);
            n++;
        }
        if (n != node->gpus)
            orr_keys_complain(keys, "node", "mesh", "row %u has %u numbers; %u would do", i, n,
                              node->gpus);
    }
}

/* All of a node but the verdict on its file. NULL with @error if its GPU can't be had. */
static OrrNode *read_node(OrrKeys *keys, const char *name, const OrrTopologyOptions *options,
                          GError **error) {
    OrrNode *node = g_new0(OrrNode, 1);
    node->name = g_strdup(name);
    read_about(keys, "node");
    orr_topologies__read(keys, "node", node_fields, G_N_ELEMENTS(node_fields), node);
    read_mesh(keys, node);
    g_autofree char *gpu = beside(keys, orr_keys_string(keys, "node", "gpu", "", ORR_KEY_REQUIRED));
    node->gpu = *gpu ? orr_topology_gpu(gpu, options, error) : NULL;
    if (node->gpu || !*gpu)
        node->pcie_bytes_per_s =
            orr_keys_number(keys, "node", "pcie", ORR_DIM_RATE, 1e9, 1e12,
                            node->gpu ? node->gpu->pcie_bytes_per_s : 1e9, ORR_KEY_OPTIONAL);
    if (node->gpu || !*gpu)
        return node;
    say_where(keys, "node", "gpu", error);
    orr_node_free(node);
    return NULL;
}

OrrNode *orr_topologies__node(OrrKeys *keys, const char *name, const OrrTopologyOptions *options,
                              GError **error) {
    OrrNode *node = read_node(keys, name, options, error);
    if (node && orr_topologies__close(keys, options, error))
        return node;
    orr_node_free(node);
    return NULL;
}

OrrNode *orr_topology_node(const char *ref, const OrrTopologyOptions *options, GError **error) {
    g_autofree char *name = NULL;
    g_autoptr(OrrKeys) keys =
        orr_topologies__open(ORR_TOPOLOGY_NODES, "node", ref, options, &name, error);
    return keys ? orr_topologies__node(keys, name, options, error) : NULL;
}

/* Ports of a leaf and of a pod that look down: the default number of links up at 1:1. */
void orr_topologies__default_uplinks(OrrClusterSpec *s) {
    const OrrNode *n = s->node;
    double leaf_ports = s->fabric == ORR_FABRIC_RAIL ? s->gpus_per_leaf
                                                     : (double)s->gpus_per_leaf * n->nics / n->gpus;
    double pod_ports = (double)s->gpus_per_pod * n->nics / n->gpus / s->leaf_oversubscription;
    if (!s->leaf_uplinks)
        s->leaf_uplinks = (uint32_t)MAX(1, leaf_ports / s->leaf_oversubscription);
    if (!s->pod_uplinks)
        s->pod_uplinks = (uint32_t)MAX(1, pod_ports / s->pod_oversubscription);
}

/* Rail fabrics count nodes under a leaf, others GPUs. */
static void read_leaf(OrrKeys *keys, OrrClusterSpec *s, OrrKeyFlags flags) {
    bool is_rail = s->fabric == ORR_FABRIC_RAIL;
    s->gpus_per_leaf = (uint32_t)orr_keys_int(
        keys, "cluster", is_rail ? "nodes_per_leaf" : "gpus_per_leaf", is_rail ? "nodes" : "GPUs",
        1, 1 << 20, flags & ORR_KEY_REQUIRED ? 1 : s->gpus_per_leaf, flags);
}

bool orr_topologies__set(OrrClusterSpec *s, const char *name, const OrrTopologyOptions *options,
                         GError **error) {
    g_autoptr(OrrKeys) keys = orr_keys_parse(name, "", 0, error);
    if (!keys)
        return false;
    orr_topologies__override(keys, "cluster", options);
    orr_topologies__override(keys, "node", options);
    orr_topologies__update(keys, "cluster", cluster_fields, G_N_ELEMENTS(cluster_fields), s);
    orr_topologies__update(keys, "node", node_fields, G_N_ELEMENTS(node_fields), s->node);
    if (s->fabric == ORR_FABRIC_RAIL || s->fabric == ORR_FABRIC_CLOS)
        read_leaf(keys, s, ORR_KEY_QUIET);
    s->node->has_sharp = orr_keys_bool(keys, "cluster", "sharp", s->node->has_sharp, ORR_KEY_QUIET);
    s->node->pcie_bytes_per_s = orr_keys_number(keys, "node", "pcie", ORR_DIM_RATE, 1e9, 1e12,
                                                s->node->pcie_bytes_per_s, ORR_KEY_QUIET);
    return orr_keys_finish(keys, error);
}

static bool read_cluster(OrrKeys *keys, OrrClusterSpec *s, const OrrTopologyOptions *options,
                         GError **error) {
    read_about(keys, "cluster");
    orr_topologies__read(keys, "cluster", cluster_fields, G_N_ELEMENTS(cluster_fields), s);
    bool has_tiers = s->fabric == ORR_FABRIC_RAIL || s->fabric == ORR_FABRIC_CLOS;
    if (has_tiers)
        read_leaf(keys, s, ORR_KEY_REQUIRED);
    bool has_sharp = orr_keys_bool(keys, "cluster", "sharp", false, ORR_KEY_QUIET);
    if (orr_keys_has_group(keys, "node") && !orr_keys_has(keys, "cluster", "node")) {
        orr_topologies__override(keys, "node", options);
        s->node = read_node(keys, "node", options, error);
        if (!s->node || !orr_topologies__close(keys, options, error))
            return false;
    } else {
        g_autofree char *node =
            beside(keys, orr_keys_string(keys, "cluster", "node", "", ORR_KEY_REQUIRED));
        if (!orr_topologies__close(keys, options, error))
            return false;
        s->node = orr_topology_node(node, options, error);
        if (!s->node) {
            say_where(keys, "cluster", "node", error);
            return false;
        }
    }
    s->node->has_sharp = has_sharp;
    if (has_tiers)
        orr_topologies__default_uplinks(s);
    return true;
}

OrrCluster *orr_topologies__cluster(OrrKeys *keys, const char *name, uint32_t n_gpus,
                                    const OrrTopologyOptions *options, GError **error) {
    OrrClusterSpec spec = {0};
    if (!read_cluster(keys, &spec, options, error)) {
        orr_cluster_spec_clear(&spec);
        return NULL;
    }
    spec.name = g_strdup(name);
    spec.n_gpus = n_gpus ? n_gpus : spec.max_gpus;
    OrrCluster *c = orr_cluster_new(&spec, error);
    if (!c)
        g_prefix_error(error, "%s: ", orr_keys_name(keys));
    return c;
}

/* Splits "NAME:GPUS"; *@n_gpus 0 if there is no number. */
static bool split_ref(const char *ref, char **name, uint32_t *n_gpus, GError **error) {
    const char *colon = strrchr(ref, ':');
    guint64 n = 0;
    *n_gpus = 0;
    *name = colon ? g_strndup(ref, (gsize)(colon - ref)) : g_strdup(ref);
    if (!colon)
        return true;
    if (!g_ascii_string_to_unsigned(colon + 1, 10, 1, UINT32_MAX, &n, NULL))
        return orr_fail_input(error,
                              "cluster \"%s\": \"%s\" is not a number of GPUs; NAME:GPUS "
                              "such as %s:64 would do",
                              ref, colon + 1, *name);
    *n_gpus = (uint32_t)n;
    return true;
}

OrrCluster *orr_topology_cluster(const char *ref, const OrrTopologyOptions *options,
                                 GError **error) {
    g_autofree char *name = NULL, *stem = NULL;
    uint32_t n_gpus;
    if (orr_shape_is(ref))
        return orr_shape_cluster(ref, options, error);
    if (!split_ref(ref, &name, &n_gpus, error))
        return NULL;
    g_autoptr(OrrKeys) keys =
        orr_topologies__open(ORR_TOPOLOGY_CLUSTERS, "cluster", name, options, &stem, error);
    return keys ? orr_topologies__cluster(keys, stem, n_gpus, options, error) : NULL;
}
