/* Routes. Inside an NVLink domain: NVLink (a mesh without a direct link goes over the GPU between);
 * without NVLink: PCIe. Between domains: PCIe to the NIC, leaf, spine, core as far up as needed.
 * In rail fabrics a sender first hands the bytes over NVLink to the GPU on the receiver's rail, as
 * NCCL does since 2.12 (PXN, NCCL_P2P_PXN_LEVEL = 2), so that they stay on one rail.
 * Spread: one bundle a tier. ecmp-hash: each flow takes one uplink of its leaf (one spine, which
 * also fixes the link down to the other leaf of the pod), one of its pod, by a hash of the flow.
 * Left out: rerouting, congestion control, what two GPUs of one PCIe switch share. */
#include "sim/cluster/cluster_priv.h"

typedef struct {
    OrrLinkShare *out;
    uint32_t n;
} Route;

/* Two NICs of one GPU may meet on a link: it then carries the sum. */
static void add(Route *r, uint32_t link, float frac) {
    for (uint32_t i = 0; i < r->n; i++)
        if (r->out[i].link == link) {
            r->out[i].frac += frac;
            return;
        }
    g_assert(r->n < ORR_MAX_ROUTE);
    r->out[r->n++] = (OrrLinkShare){link, frac};
}

static uint32_t node_link(const OrrCluster *c, uint32_t gpu, uint32_t offset) {
    return orr_node_of_gpu(&c->spec, gpu) * c->node_links + offset;
}

static void add_pcie(const OrrCluster *c, Route *r, uint32_t gpu, bool is_in) {
    uint32_t g = c->spec.node->gpus;
    add(r, node_link(c, gpu, c->at_pcie + (is_in ? g : 0) + gpu % g), 1);
}

static void add_mesh(const OrrCluster *c, Route *r, uint32_t src, uint32_t dst) {
    uint32_t g = c->spec.node->gpus, pair = src % g * g + dst % g;
    if (c->mesh_link[pair]) {
        add(r, node_link(c, src, c->mesh_link[pair] - 1u), 1);
    } else if (c->mesh_via[pair]) {
        uint32_t via = c->mesh_via[pair] - 1u;
        add(r, node_link(c, src, c->mesh_link[src % g * g + via] - 1u), 1);
        add(r, node_link(c, src, c->mesh_link[via * g + dst % g] - 1u), 1);
    } else {
        add_pcie(c, r, src, false);
        add_pcie(c, r, dst, true);
    }
}

static void add_inside(const OrrCluster *c, Route *r, uint32_t src, uint32_t dst) {
    uint32_t g = c->spec.node->gpus;
    switch (c->spec.node->nvlink) {
    case ORR_NVLINK_SWITCH:
        add(r, node_link(c, src, src % g), 1);
        add(r, node_link(c, dst, g + dst % g), 1);
        return;
    case ORR_NVLINK_MESH:
        add_mesh(c, r, src, dst);
        return;
    case ORR_NVLINK_NONE:
    case ORR_N_NVLINKS:
        add_pcie(c, r, src, false);
        add_pcie(c, r, dst, true);
        return;
    }
}

static bool uses_management(const OrrCluster *c) {
    return c->spec.use_management || c->spec.fabric == ORR_FABRIC_NONE || !c->spec.node->nics;
}

/* The GPU beside @src whose NIC is on the rail of @dst; @src itself where that does not matter. */
static uint32_t rail_proxy(const OrrCluster *c, uint32_t src, uint32_t dst) {
    uint32_t n_nics, g = c->spec.node->gpus;
    if (c->spec.fabric != ORR_FABRIC_RAIL || c->spec.node->nvlink == ORR_NVLINK_NONE ||
        orr_cluster_nic_of_gpu(c, src, &n_nics) == orr_cluster_nic_of_gpu(c, dst, &n_nics))
        return src;
    return src - src % g + dst % g;
}

/* Leaf of the @i-th NIC of a GPU. */
static uint32_t leaf_of(const OrrCluster *c, uint32_t gpu, uint32_t i) {
    return orr_cluster_leaf_of_gpu(c, gpu) + (c->spec.fabric == ORR_FABRIC_RAIL ? i : 0);
}

typedef struct {
    uint32_t src, dst, nic; /* nic: which of the GPU's own */
    uint64_t flow;
    float frac;
} Hop;

static uint32_t choose(const OrrCluster *c, const Hop *h, const OrrTier *tier, OrrHashStage stage) {
    if (tier->width == 1)
        return 0;
    uint64_t pair = (uint64_t)h->src << 32 | h->dst;
    return (uint32_t)orr_random_below(c->hash[stage], pair, h->flow * 2 + h->nic, tier->width);
}

static void add_tier(Route *r, const OrrTier *t, uint32_t owner, bool is_up, uint32_t index,
                     float frac) {
    if (t->has_links)
        add(r, t->first_link + (2 * owner + (is_up ? 0 : 1)) * t->width + index, frac);
}

static void add_fabric(const OrrCluster *c, Route *r, const Hop *h) {
    uint32_t from = leaf_of(c, h->src, h->nic), to = leaf_of(c, h->dst, h->nic);
    uint32_t pod_from = orr_cluster_pod_of_gpu(c, h->src),
             pod_to = orr_cluster_pod_of_gpu(c, h->dst);
    if (from == to)
        return;
    uint32_t up = choose(c, h, &c->leaf, ORR_HASH_LEAF_UP), down = up;
    add_tier(r, &c->leaf, from, true, up, h->frac);
    if (pod_from != pod_to) {
        uint32_t core = choose(c, h, &c->pod, ORR_HASH_POD_UP);
        add_tier(r, &c->pod, pod_from, true, core, h->frac);
        add_tier(r, &c->pod, pod_to, false, core, h->frac);
        down = choose(c, h, &c->leaf, ORR_HASH_LEAF_DOWN);
    }
    add_tier(r, &c->leaf, to, false, down, h->frac);
}

static void add_net(const OrrCluster *c, Route *r, uint32_t src, uint32_t dst, uint64_t flow) {
    uint32_t n_nics, nics = c->spec.node->nics;
    uint32_t out = orr_cluster_nic_of_gpu(c, src, &n_nics);
    uint32_t in = orr_cluster_nic_of_gpu(c, dst, &n_nics);
    add_pcie(c, r, src, false);
    for (uint32_t i = 0; i < n_nics; i++) {
        Hop hop = {src, dst, i, flow, 1.0f / (float)n_nics};
        add(r, node_link(c, src, c->at_nic + out + i), hop.frac);
        add_fabric(c, r, &hop);
        add(r, node_link(c, dst, c->at_nic + nics + in + i), hop.frac);
    }
    add_pcie(c, r, dst, true);
}

uint32_t orr_cluster_route(const OrrCluster *c, uint32_t src_gpu, uint32_t dst_gpu, uint64_t flow,
                           OrrLinkShare out[ORR_MAX_ROUTE]) {
    Route r = {out, 0};
    if (src_gpu == dst_gpu)
        return 0;
    if (orr_cluster_is_inside(c, src_gpu, dst_gpu)) {
        add_inside(c, &r, src_gpu, dst_gpu);
    } else if (uses_management(c)) {
        add_pcie(c, &r, src_gpu, false);
        add(&r, node_link(c, src_gpu, c->at_mgmt), 1);
        add(&r, node_link(c, dst_gpu, c->at_mgmt + 1), 1);
        add_pcie(c, &r, dst_gpu, true);
    } else {
        uint32_t proxy = rail_proxy(c, src_gpu, dst_gpu);
        if (proxy != src_gpu)
            add_inside(c, &r, src_gpu, proxy);
        add_net(c, &r, proxy, dst_gpu, flow);
    }
    return r.n;
}

uint32_t orr_cluster_hops(const OrrCluster *c, uint32_t src_gpu, uint32_t dst_gpu) {
    if (orr_cluster_is_inside(c, src_gpu, dst_gpu))
        return 0;
    if (uses_management(c))
        return 1;
    src_gpu = rail_proxy(c, src_gpu, dst_gpu);
    if (orr_cluster_leaf_of_gpu(c, src_gpu) == orr_cluster_leaf_of_gpu(c, dst_gpu))
        return 1;
    return orr_cluster_pod_of_gpu(c, src_gpu) == orr_cluster_pod_of_gpu(c, dst_gpu) ? 3 : 5;
}

/* One way over sockets: two trips through the kernel's TCP stack and an interrupt, 25 us; the
 * order of published ping-pong times of TCP on 10 to 100 Gb/s Ethernet (10 to 30 us). */
#define SOCKET_LATENCY_NS 25000.0

double orr_cluster_route_latency_ns(const OrrCluster *c, uint32_t src_gpu, uint32_t dst_gpu) {
    const OrrNode *n = c->spec.node;
    if (src_gpu == dst_gpu)
        return 0;
    if (orr_cluster_is_inside(c, src_gpu, dst_gpu)) {
        OrrLinkShare route[ORR_MAX_ROUTE];
        if (n->nvlink == ORR_NVLINK_NONE)
            return 2 * n->pcie_latency_ns;
        uint32_t links = orr_cluster_route(c, src_gpu, dst_gpu, 0, route);
        return n->nvlink_latency_ns * (n->nvlink == ORR_NVLINK_MESH ? links : 1);
    }
    if (uses_management(c))
        return 2 * n->pcie_latency_ns + SOCKET_LATENCY_NS;
    uint32_t proxy = rail_proxy(c, src_gpu, dst_gpu), hops = orr_cluster_hops(c, src_gpu, dst_gpu);
    return (proxy == src_gpu ? 0 : n->nvlink_latency_ns) + 2 * n->pcie_latency_ns +
           c->spec.nic_latency_ns + (hops - 1) * c->spec.hop_latency_ns;
}
