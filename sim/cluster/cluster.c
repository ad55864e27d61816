/* Building and checking the graph; lookups by GPU. Links, names and routes are in their own files.
 * Cost: a few hundred bytes whatever the number of GPUs; every question is arithmetic. */
#include "sim/cluster/cluster.h"

#include <stdarg.h>

#include "sim/base/units.h"
#include "sim/cluster/cluster_priv.h"

const char *const orr_nvlink_names[] = {"none", "mesh", "switch", NULL};
const char *const orr_net_names[] = {"none", "ib", "roce", "ethernet", "efa", "tcpxo", NULL};
const char *const orr_routing_names[] = {"spread", "ecmp-hash", NULL};
const char *const orr_fabric_names[] = {"none", "rail", "clos", "flat", NULL};

void orr_node_free(OrrNode *node) {
    if (!node)
        return;
    g_free(node->name);
    g_free(node->source);
    g_free(node->mesh_links);
    orr_gpu_free(node->gpu);
    g_free(node);
}

void orr_cluster_spec_clear(OrrClusterSpec *spec) {
    g_free(spec->name);
    g_free(spec->source);
    orr_node_free(spec->node);
    *spec = (OrrClusterSpec){0};
}

static OrrNode *copy_node(const OrrNode *node) {
    OrrNode *copy = g_new(OrrNode, 1);
    *copy = *node;
    copy->name = g_strdup(node->name);
    copy->source = g_strdup(node->source);
    copy->gpu = orr_gpu_copy(node->gpu);
    copy->mesh_links = g_memdup2(node->mesh_links, (gsize)node->gpus * node->gpus);
    return copy;
}

OrrClusterSpec orr_cluster_spec_copy(const OrrClusterSpec *spec) {
    OrrClusterSpec copy = *spec;
    copy.name = g_strdup(spec->name);
    copy.source = g_strdup(spec->source);
    copy.node = copy_node(spec->node);
    return copy;
}

void orr_cluster_free(OrrCluster *cluster) {
    if (!cluster)
        return;
    orr_cluster_spec_clear(&cluster->spec);
    g_free(cluster->mesh_link);
    g_free(cluster->mesh_pair);
    g_free(cluster->mesh_via);
    g_free(cluster);
}

const OrrClusterSpec *orr_cluster_spec(const OrrCluster *c) {
    return &c->spec;
}

static void refuse(GString *why, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void refuse(GString *why, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (why->len)
        g_string_append(why, "; ");
    g_string_append_vprintf(why, format, args);
    va_end(args);
}

/* Upper bounds keep every product below 2^32. */
enum { MAX_NODE_GPUS = 64, MAX_CLUSTER_GPUS = 1 << 24, MAX_UPLINKS = 4096 };

static void check_mesh(const OrrNode *n, GString *why) {
    if (n->gpus > ORR_MAX_MESH_GPUS)
        refuse(why, "node.gpus = %u with nvlink = mesh, at most %u", n->gpus, ORR_MAX_MESH_GPUS);
    if (n->mesh_link_bytes_per_s <= 0)
        refuse(why, "node.mesh_link must be above 0 for nvlink = mesh");
    for (uint32_t i = 0; n->mesh_links && i < n->gpus; i++) {
        uint32_t sum = 0;
        for (uint32_t j = 0; j < n->gpus; j++) {
            sum += n->mesh_links[i * n->gpus + j];
            if (n->mesh_links[i * n->gpus + j] != n->mesh_links[j * n->gpus + i])
                refuse(why, "node.mesh is not symmetric between GPUs %u and %u", i, j);
        }
        if (n->mesh_links[i * n->gpus + i])
            refuse(why, "node.mesh links GPU %u to itself", i);
        if (sum > n->gpu->nvlink_links)
            refuse(why, "node.mesh gives GPU %u %u links, it has %u (gpu.nvlink_links)", i, sum,
                   n->gpu->nvlink_links);
    }
}

static void check_node(const OrrNode *n, GString *why) {
    if (!n->gpus || n->gpus > MAX_NODE_GPUS) {
        refuse(why, "node.gpus = %u, 1 to %d would do", n->gpus, MAX_NODE_GPUS);
        return;
    }
    if (n->nvlink != ORR_NVLINK_NONE && n->gpu->nvlink_bytes_per_s <= 0)
        refuse(why, "node.nvlink = %s, but %s has no NVLink", orr_nvlink_names[n->nvlink],
               n->gpu->name);
    if (n->nvlink == ORR_NVLINK_MESH)
        check_mesh(n, why);
    if (!n->domain_nodes || (n->domain_nodes > 1 && n->nvlink != ORR_NVLINK_SWITCH))
        refuse(why, "node.domain_nodes = %u: 1, or more with nvlink = switch", n->domain_nodes);
    if (n->has_nvls && n->nvlink != ORR_NVLINK_SWITCH)
        refuse(why, "node.nvls needs nvlink = switch");
    if (n->nics > 2 * n->gpus || (n->nics && n->nics % n->gpus && n->gpus % n->nics))
        refuse(why, "node.nics = %u with %u GPUs: a divisor of it, or once or twice as many",
               n->nics, n->gpus);
    if (n->nics && (n->nic_bytes_per_s <= 0 || n->net == ORR_NET_NONE))
        refuse(why, "node.nics = %u needs node.nic above 0 and node.net other than none", n->nics);
    if (n->pcie_bytes_per_s <= 0)
        refuse(why, "node.pcie must be above 0");
}

static void check_tiers(const OrrClusterSpec *s, uint32_t leaf_gpus, GString *why) {
    if (s->leaf_oversubscription < 1 || s->pod_oversubscription < 1) {
        g_autofree char *leaf = orr_units_double(s->leaf_oversubscription);
        g_autofree char *pod = orr_units_double(s->pod_oversubscription);
        refuse(why, "cluster.leaf_oversubscription = %s and pod_oversubscription = %s: 1 or more",
               leaf, pod);
    }
    if (s->gpus_per_pod && s->gpus_per_pod % leaf_gpus)
        refuse(why, "cluster.gpus_per_pod = %u is not a multiple of %u, the GPUs under one %s",
               s->gpus_per_pod, leaf_gpus,
               s->fabric == ORR_FABRIC_RAIL ? "set of rail leaves" : "leaf");
    if (s->routing == ORR_ROUTE_ECMP_HASH && (!s->leaf_uplinks || s->leaf_uplinks > MAX_UPLINKS))
        refuse(why, "cluster.leaf_uplinks = %u: routing = ecmp-hash needs 1 to %d", s->leaf_uplinks,
               MAX_UPLINKS);
    if (s->routing == ORR_ROUTE_ECMP_HASH && s->gpus_per_pod &&
        (!s->pod_uplinks || s->pod_uplinks > (uint32_t)MAX_CLUSTER_GPUS))
        refuse(why, "cluster.pod_uplinks = %u: routing = ecmp-hash needs 1 to %d", s->pod_uplinks,
               MAX_CLUSTER_GPUS);
}

static void check_fabric(const OrrClusterSpec *s, GString *why) {
    const OrrNode *n = s->node;
    bool is_one_domain = s->n_gpus <= n->gpus * n->domain_nodes;

    if (s->use_management && n->management_bytes_per_s <= 0)
        refuse(why, "sockets over the management network are asked, but node.management is 0");
    if (s->fabric == ORR_FABRIC_NONE || !n->nics) {
        if (!is_one_domain && n->management_bytes_per_s <= 0)
            refuse(why,
                   "%u GPUs in more than one NVLink domain, but nothing connects them: "
                   "cluster.fabric, node.nics or node.management would",
                   s->n_gpus);
        return;
    }
    if (s->hop_latency_ns < 0 || s->nic_latency_ns < 0)
        refuse(why, "cluster.hop_latency and cluster.nic_latency must not be negative");
    if (s->fabric == ORR_FABRIC_FLAT)
        return;
    if (!s->gpus_per_leaf || s->gpus_per_leaf > (uint32_t)MAX_CLUSTER_GPUS) {
        refuse(why, "cluster.%s must be above 0",
               s->fabric == ORR_FABRIC_RAIL ? "nodes_per_leaf" : "gpus_per_leaf");
        return;
    }
    if (s->fabric == ORR_FABRIC_CLOS && s->gpus_per_leaf % n->gpus) {
        refuse(why, "cluster.gpus_per_leaf = %u is not a multiple of the node's %u GPUs",
               s->gpus_per_leaf, n->gpus);
        return;
    }
    check_tiers(s, s->fabric == ORR_FABRIC_RAIL ? s->gpus_per_leaf * n->gpus : s->gpus_per_leaf,
                why);
}

static bool check(const OrrClusterSpec *s, GError **error) {
    g_autoptr(GString) why = g_string_new(NULL);
    g_assert(s->node && s->node->gpu);
    if (!s->n_gpus)
        refuse(why, "0 GPUs asked, 1 to %u would do", s->max_gpus);
    if (s->n_gpus > s->max_gpus)
        refuse(why, "%u GPUs asked, the machine has %u", s->n_gpus, s->max_gpus);
    if (s->max_gpus > (uint32_t)MAX_CLUSTER_GPUS)
        refuse(why, "cluster.gpus = %u, at most %d", s->max_gpus, MAX_CLUSTER_GPUS);
    check_node(s->node, why);
    if (!why->len)
        check_fabric(s, why);
    if (!why->len)
        return true;
    return orr_fail_input(error, "cluster %s: %s", s->name ? s->name : "(unnamed)", why->str);
}

static uint32_t mesh_count(const OrrNode *n, uint32_t i, uint32_t j) {
    return i == j ? 0 : n->mesh_links ? n->mesh_links[i * n->gpus + j] : 1;
}

/* Numbers the pairs of a mesh and finds for each unconnected pair the GPU between with the widest
 * two-hop path, the lowest id on ties. */
static void build_mesh(OrrCluster *c) {
    const OrrNode *n = c->spec.node;
    uint32_t g = n->gpus;
    c->mesh_link = g_new0(uint16_t, g * g);
    c->mesh_pair = g_new0(uint16_t, g * g);
    c->mesh_via = g_new0(uint16_t, g * g);
    for (uint32_t pair = 0; pair < g * g; pair++) {
        uint32_t i = pair / g, j = pair % g, best = 0;
        if (mesh_count(n, i, j)) {
            c->mesh_pair[c->n_mesh] = (uint16_t)pair;
            c->mesh_link[pair] = (uint16_t)++c->n_mesh;
            continue;
        }
        for (uint32_t via = 0; i != j && via < g; via++) {
            uint32_t width = MIN(mesh_count(n, i, via), mesh_count(n, via, j));
            if (width > best) {
                best = width;
                c->mesh_via[pair] = (uint16_t)(via + 1);
            }
        }
    }
}

static void build_tier(OrrCluster *c, OrrTier *tier, uint32_t n, uint32_t uplinks, double total) {
    tier->n = n;
    tier->has_links = n > 1;
    tier->first_link = c->n_links;
    tier->width = c->spec.routing == ORR_ROUTE_ECMP_HASH ? uplinks : 1;
    tier->bytes_per_s = tier->has_links ? total / tier->width : 0;
    c->n_links += tier->has_links ? n * 2 * tier->width : 0;
}

static void build_fabric(OrrCluster *c) {
    const OrrClusterSpec *s = &c->spec;
    const OrrNode *n = s->node;
    if (s->fabric == ORR_FABRIC_NONE || !n->nics)
        return;
    if (s->fabric == ORR_FABRIC_FLAT) {
        c->leaf.n = c->pod.n = 1;
        return;
    }
    bool is_rail = s->fabric == ORR_FABRIC_RAIL;
    c->nodes_per_leaf = is_rail ? s->gpus_per_leaf : s->gpus_per_leaf / n->gpus;
    c->nodes_per_pod = s->gpus_per_pod / n->gpus;
    uint32_t sets = (c->n_nodes + c->nodes_per_leaf - 1) / c->nodes_per_leaf;
    uint32_t ports = c->nodes_per_leaf * (is_rail ? 1 : n->nics);
    double node_up = n->nics * n->nic_bytes_per_s / s->leaf_oversubscription;
    uint32_t n_pods = c->nodes_per_pod ? (c->n_nodes + c->nodes_per_pod - 1) / c->nodes_per_pod : 1;
    build_tier(c, &c->leaf, sets * (is_rail ? n->nics : 1), s->leaf_uplinks,
               ports * n->nic_bytes_per_s / s->leaf_oversubscription);
    build_tier(c, &c->pod, n_pods, s->pod_uplinks,
               c->nodes_per_pod * node_up / s->pod_oversubscription);
}

OrrCluster *orr_cluster_new(OrrClusterSpec *spec, GError **error) {
    if (!check(spec, error)) {
        orr_cluster_spec_clear(spec);
        return NULL;
    }
    OrrCluster *c = g_new0(OrrCluster, 1);
    c->spec = *spec;
    *spec = (OrrClusterSpec){0};
    const OrrNode *n = c->spec.node;
    c->n_nodes = (c->spec.n_gpus + n->gpus - 1) / n->gpus;
    if (n->nvlink == ORR_NVLINK_MESH)
        build_mesh(c);
    c->at_pcie = n->nvlink == ORR_NVLINK_SWITCH ? 2 * n->gpus : c->n_mesh;
    c->at_nic = c->at_pcie + 2 * n->gpus;
    c->at_mgmt = c->at_nic + 2 * n->nics;
    c->node_links = c->at_mgmt + 2;
    c->n_links = c->n_nodes * c->node_links;
    build_fabric(c);
    c->hash[ORR_HASH_LEAF_UP] = orr_random(c->spec.seed, "ecmp leaf up");
    c->hash[ORR_HASH_POD_UP] = orr_random(c->spec.seed, "ecmp pod up");
    c->hash[ORR_HASH_LEAF_DOWN] = orr_random(c->spec.seed, "ecmp leaf down");
    return c;
}

uint32_t orr_cluster_n_nodes(const OrrCluster *c) {
    return c->n_nodes;
}

uint32_t orr_cluster_n_leaves(const OrrCluster *c) {
    return c->leaf.n;
}

uint32_t orr_cluster_n_pods(const OrrCluster *c) {
    return c->pod.n;
}

uint32_t orr_cluster_gpus_per_leaf(const OrrCluster *c) {
    return c->nodes_per_leaf * c->spec.node->gpus;
}

uint32_t orr_cluster_domain_of_gpu(const OrrCluster *c, uint32_t gpu) {
    return gpu / (c->spec.node->gpus * c->spec.node->domain_nodes);
}

uint32_t orr_cluster_nic_of_gpu(const OrrCluster *c, uint32_t gpu, uint32_t *n_nics) {
    const OrrNode *n = c->spec.node;
    uint32_t local = gpu % n->gpus;
    *n_nics = n->nics > n->gpus ? n->nics / n->gpus : n->nics ? 1 : 0;
    return (uint32_t)((uint64_t)local * n->nics / n->gpus);
}

uint32_t orr_cluster_leaf_of_gpu(const OrrCluster *c, uint32_t gpu) {
    if (!c->nodes_per_leaf)
        return 0;
    uint32_t n_nics, nic = orr_cluster_nic_of_gpu(c, gpu, &n_nics);
    uint32_t set = orr_node_of_gpu(&c->spec, gpu) / c->nodes_per_leaf;
    return c->spec.fabric == ORR_FABRIC_RAIL ? set * c->spec.node->nics + nic : set;
}

uint32_t orr_cluster_pod_of_gpu(const OrrCluster *c, uint32_t gpu) {
    return c->nodes_per_pod ? orr_node_of_gpu(&c->spec, gpu) / c->nodes_per_pod : 0;
}

bool orr_cluster_is_inside(const OrrCluster *c, uint32_t src_gpu, uint32_t dst_gpu) {
    return orr_cluster_domain_of_gpu(c, src_gpu) == orr_cluster_domain_of_gpu(c, dst_gpu);
}
