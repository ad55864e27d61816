/* The page of text, and the figures that both drawings share. */
#include "topologies/show.h"

#include <stdarg.h>
#include <string.h>

#include "sim/base/units.h"
#include "topologies/show_priv.h"

char *orr_show__bits(double bytes_per_s) {
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    double gb = bytes_per_s * 8 / 1e9;
    g_ascii_formatd(text, sizeof text, "%.4g", gb >= 1000 ? gb / 1000 : gb);
    return g_strdup_printf("%s %s", text, gb >= 1000 ? "Tb/s" : "Gb/s");
}

char *orr_show__count(uint32_t n) {
    return orr_units_count(n);
}

char *orr_show__oversubscription(double ratio) {
    if (ratio <= 1)
        return g_strdup("full bisection");
    g_autofree char *text = orr_units_double(ratio);
    return g_strdup_printf("oversubscribed 1:%s", text);
}

bool orr_show__has_fabric(const OrrCluster *c) {
    const OrrClusterSpec *s = orr_cluster_spec(c);
    return s->fabric != ORR_FABRIC_NONE && s->node->nics && !s->use_management;
}

static double node_out(const OrrClusterSpec *s) {
    return s->node->nics * s->node->nic_bytes_per_s;
}

double orr_show__leaf_up_bytes_per_s(const OrrCluster *c) {
    const OrrClusterSpec *s = orr_cluster_spec(c);
    if (orr_cluster_n_leaves(c) < 2)
        return 0;
    double nics = s->fabric == ORR_FABRIC_RAIL
                      ? s->gpus_per_leaf
                      : (double)s->gpus_per_leaf / s->node->gpus * s->node->nics;
    return nics * s->node->nic_bytes_per_s / s->leaf_oversubscription;
}

double orr_show__pod_up_bytes_per_s(const OrrCluster *c) {
    const OrrClusterSpec *s = orr_cluster_spec(c);
    if (orr_cluster_n_pods(c) < 2)
        return 0;
    return (double)s->gpus_per_pod / s->node->gpus * node_out(s) / s->leaf_oversubscription /
           s->pod_oversubscription;
}

uint32_t orr_show__nodes_per_leaf(const OrrCluster *c) {
    const OrrClusterSpec *s = orr_cluster_spec(c);
    uint32_t nodes = orr_cluster_n_nodes(c);
    if (s->fabric == ORR_FABRIC_RAIL)
        return MIN(nodes, s->gpus_per_leaf);
    return s->fabric == ORR_FABRIC_CLOS ? MIN(nodes, s->gpus_per_leaf / s->node->gpus) : nodes;
}

uint32_t orr_show__nodes_per_pod(const OrrCluster *c) {
    const OrrClusterSpec *s = orr_cluster_spec(c);
    uint32_t nodes = orr_cluster_n_nodes(c);
    return s->gpus_per_pod ? MIN(nodes, s->gpus_per_pod / s->node->gpus) : nodes;
}

double orr_show__bisection_bytes_per_s(const OrrCluster *c) {
    const OrrClusterSpec *s = orr_cluster_spec(c);
    const OrrNode *n = s->node;
    double nodes = (double)s->n_gpus / n->gpus;
    if (nodes <= n->domain_nodes) /* meshes and PCIe: not told */
        return n->nvlink == ORR_NVLINK_SWITCH ? s->n_gpus / 2 * n->gpu->nvlink_bytes_per_s : 0;
    if (!orr_show__has_fabric(c))
        return nodes / 2 * n->management_bytes_per_s;
    double half = nodes / 2 * node_out(s);
    if (orr_cluster_n_leaves(c) > 1)
        half /= s->leaf_oversubscription;
    return orr_cluster_n_pods(c) > 1 ? half / s->pod_oversubscription : half;
}

/* One line of the page: a heading column of 12, then the text. */
static void line(GString *out, const char *head, const char *format, ...) G_GNUC_PRINTF(3, 4);
static void line(GString *out, const char *head, const char *format, ...) {
    va_list args;
    va_start(args, format);
    g_string_append_printf(out, "%-12s", head);
    g_string_append_vprintf(out, format, args);
    g_string_append_c(out, '\n');
    va_end(args);
}

static void show_gpu(const OrrGpu *g, GString *out) {
    g_autofree char *boost = orr_units_format(g->boost_hz, ORR_DIM_FREQ);
    g_autofree char *sustained = orr_units_format(g->sustained_hz, ORR_DIM_FREQ);
    g_autofree char *memory = orr_units_bytes(g->hbm_bytes);
    g_autofree char *rate = orr_units_rate(g->hbm_bytes_per_s);
    g_autofree char *l2 = orr_units_bytes(g->l2_bytes);
    g_autofree char *watts = orr_units_format(g->power_watts, ORR_DIM_POWER);
    g_autoptr(GString) peaks = g_string_new(NULL);
    for (int d = 0; d < ORR_N_DTYPES; d++)
        if (g->peak_flops_per_s[d] > 0) {
            g_autofree char *value = orr_units_double(g->peak_flops_per_s[d] / 1e12);
            g_string_append_printf(peaks, "%s%s %s", peaks->len ? ", " : "",
                                   orr_dtype_name((OrrDtype)d), value);
        }
    line(out, "GPU", "%s (%s), %u SMs, %s", g->name, orr_arch_names[g->arch], g->n_sms, watts);
    line(out, "", "clock %s, %s sustained in a long step", boost, sustained);
    line(out, "", "dense peaks in TFLOP/s: %s", peaks->str);
    line(out, "", "memory %s at %s (%.0f %% of it reached), L2 %s", memory, rate,
         g->mem_eff_frac * 100, l2);
}

static void show_nvlink(const OrrNode *n, GString *out) {
    g_autofree char *rate = orr_units_rate(n->gpu->nvlink_bytes_per_s);
    g_autofree char *mesh = orr_units_rate(n->mesh_link_bytes_per_s);
    switch (n->nvlink) {
    case ORR_NVLINK_SWITCH:
        line(out, "", "NVLink switch, %s a GPU each way%s", rate, n->has_nvls ? ", NVLS" : "");
        break;
    case ORR_NVLINK_MESH:
        line(out, "", "NVLink mesh, links of %s each way between pairs", mesh);
        break;
    case ORR_NVLINK_NONE:
    case ORR_N_NVLINKS:
        line(out, "", "no NVLink: PCIe between GPUs");
        break;
    }
    if (n->domain_nodes > 1)
        line(out, "", "one NVLink domain spans %u nodes, %u GPUs", n->domain_nodes,
             n->domain_nodes * n->gpus);
    for (uint32_t i = 0; n->mesh_links && i < n->gpus; i++) {
        g_autoptr(GString) row = g_string_new(NULL);
        for (uint32_t j = 0; j < n->gpus; j++)
            g_string_append_printf(row, " %u", n->mesh_links[i * n->gpus + j]);
        line(out, "", "  GPU %u: links%s", i, row->str);
    }
}

static void show_node(const OrrNode *n, GString *out) {
    g_autofree char *pcie = orr_units_rate(n->pcie_bytes_per_s);
    g_autofree char *nic = orr_show__bits(n->nic_bytes_per_s);
    g_autofree char *management = orr_show__bits(n->management_bytes_per_s);
    line(out, "Node", "%s, %u GPUs", n->name, n->gpus);
    show_nvlink(n, out);
    line(out, "", "PCIe %s a GPU each way", pcie);
    if (n->nics)
        line(out, "", "%u %s of %s (%s)%s", n->nics, n->nics == 1 ? "NIC" : "NICs", nic,
             orr_net_names[n->net], n->nics < n->gpus ? ", shared by GPUs" : "");
    line(out, "", "management Ethernet %s", management);
}

static void branch(GString *out, uint32_t depth, const char *format, ...) G_GNUC_PRINTF(3, 4);
static void branch(GString *out, uint32_t depth, const char *format, ...) {
    va_list args;
    va_start(args, format);
    g_string_append_printf(out, "%12s%*s%s", "", (int)(depth ? depth * 3 - 3 : 0), "",
                           depth ? "└─ " : "");
    g_string_append_vprintf(out, format, args);
    g_string_append_c(out, '\n');
    va_end(args);
}

/* The tiers as a tree, top first; returns the depth at which the nodes hang. */
static uint32_t show_tiers(const OrrCluster *c, GString *out) {
    const OrrClusterSpec *s = orr_cluster_spec(c);
    uint32_t depth = 0, pods = orr_cluster_n_pods(c), leaves = orr_cluster_n_leaves(c);
    g_autofree char *pod_up = orr_show__bits(orr_show__pod_up_bytes_per_s(c));
    g_autofree char *leaf_up = orr_show__bits(orr_show__leaf_up_bytes_per_s(c));
    g_autofree char *pod_over = orr_show__oversubscription(s->pod_oversubscription);
    g_autofree char *leaf_over = orr_show__oversubscription(s->leaf_oversubscription);
    g_autofree char *n_pods = orr_show__count(pods), *n_leaves = orr_show__count(leaves);
    if (pods > 1) {
        branch(out, depth++, "core");
        branch(out, depth++, "%s pods, each %s up, %s", n_pods, pod_up, pod_over);
    } else if (leaves > 1) {
        branch(out, depth++, "spine");
    }
    if (leaves > 1)
        branch(out, depth++, "%s leaves%s, each %s up, %s", n_leaves,
               s->fabric == ORR_FABRIC_RAIL ? " (one a rail in each set of nodes)" : "", leaf_up,
               leaf_over);
    else
        branch(out, depth++, "one switch");
    return depth;
}

static void show_network(const OrrCluster *c, GString *out) {
    const OrrClusterSpec *s = orr_cluster_spec(c);
    g_autofree char *nodes = orr_show__count(orr_cluster_n_nodes(c));
    g_autofree char *gpus = orr_show__count(s->n_gpus);
    uint32_t depth = 0;
    if (!orr_show__has_fabric(c)) {
        line(out, "Network", "management Ethernet alone: sockets");
        branch(out, depth++, "one switch");
    } else {
        line(out, "Network", "%s, %s routing", orr_fabric_names[s->fabric],
             orr_routing_names[s->routing]);
        depth = show_tiers(c, out);
    }
    g_autofree char *under = orr_show__count(orr_show__nodes_per_leaf(c));
    g_autofree char *each =
        orr_cluster_n_leaves(c) > 1 ? g_strdup_printf(", %s under a leaf", under) : g_strdup("");
    branch(out, depth, "%s nodes%s", nodes, each);
    branch(out, depth + 1, "%s GPUs, %u a node", gpus, s->node->gpus);
    double cut = orr_show__bisection_bytes_per_s(c);
    g_autofree char *bisection = orr_show__bits(cut);
    g_autofree char *share = orr_show__bits(cut / (s->n_gpus > 1 ? s->n_gpus / 2.0 : 1));
    if (cut > 0)
        line(out, "", "bisection %s each way, %s a GPU", bisection, share);
}

/* The nearest other GPU of GPU 0 at @hops; ORR_NONE if there is none. */
static uint32_t peer_at(const OrrCluster *c, uint32_t hops) {
    const OrrClusterSpec *s = orr_cluster_spec(c);
    uint32_t nodes = orr_cluster_n_nodes(c), step = s->node->gpus;
    if (!hops)
        return s->n_gpus > 1 && orr_cluster_is_inside(c, 0, 1) ? 1 : ORR_NONE;
    for (uint32_t node = 1; node < nodes; node++)
        if (orr_cluster_hops(c, 0, node * step) == hops)
            return node * step;
    return ORR_NONE;
}

static void show_latencies(const OrrCluster *c, GString *out) {
    static const struct {
        uint32_t hops;
        const char *text;
    } rows[] = {{0, "inside the NVLink domain or node"},
                {1, "through one switch"},
                {3, "through leaf, spine and leaf"},
                {5, "through leaf, spine, core, spine and leaf"}};
    const char *head = "Latency";
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        uint32_t peer = peer_at(c, rows[i].hops);
        if (peer == ORR_NONE)
            continue;
        g_autofree char *time = orr_units_time((int64_t)orr_cluster_route_latency_ns(c, 0, peer));
        line(out, head, "%s %s", time, rows[i].text);
        head = "";
    }
    line(out, "", "one way, hardware alone: what NCCL adds is not in it");
}

void orr_topology_show_text(const OrrCluster *c, GString *out) {
    const OrrClusterSpec *s = orr_cluster_spec(c);
    g_autofree char *gpus = orr_show__count(s->n_gpus), *max = orr_show__count(s->max_gpus);
    g_autofree char *links = orr_show__count(orr_cluster_n_links(c));
    line(out, "Cluster", "%s, %s of %s GPUs", s->name, gpus, max);
    line(out, "", "%s links in the model", links);
    show_gpu(s->node->gpu, out);
    show_node(s->node, out);
    show_network(c, out);
    show_latencies(c, out);
    line(out, "Sources", "cluster: %s", s->source);
    if (strcmp(s->node->source, s->source))
        line(out, "", "node: %s", s->node->source);
    line(out, "", "GPU: %s", s->node->gpu->source);
}
