/* See group.h. The fabric's share assumes that a tier's capacity is split evenly between the
 * flows that must cross it, a fraction (leaf_crossing_frac, pod_crossing_frac) of all NICs: the
 * fluid network knows better when other traffic is there; this is for plans on an idle machine. */
#include "sim/cluster/group.h"

#include <math.h>
#include <stdlib.h>

#include "sim/cluster/mesh.h"

/* A member with the sort key (domain, node, order in the group). */
typedef struct {
    uint32_t domain, gpu, order, repeat;
} Member;

static int by_domain(const void *a, const void *b) {
    const Member *x = a, *y = b;
    if (x->domain != y->domain)
        return x->domain < y->domain ? -1 : 1;
    return x->gpu < y->gpu ? -1 : x->gpu > y->gpu;
}

static int by_order(const void *a, const void *b) {
    const Member *x = a, *y = b;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Nodes and NICs of the members [0, n) of one domain, sorted by GPU. */
static void count_domain(const OrrCluster *c, const Member *m, uint32_t n, OrrGroupShape *s) {
    uint32_t nics = 0, in_node = 0, on_nic = 0, last_node = ORR_NONE, last_nic = ORR_NONE;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t n_nics, nic = orr_cluster_nic_of_gpu(c, m[i].gpu, &n_nics);
        uint32_t node = orr_node_of_gpu(orr_cluster_spec(c), m[i].gpu);
        bool is_new_node = node != last_node, is_new_nic = is_new_node || nic != last_nic;
        s->n_nodes += is_new_node ? m[i].repeat : 0;
        in_node = is_new_node ? 1 : in_node + 1;
        nics += is_new_nic ? n_nics : 0;
        on_nic = is_new_nic ? 1 : on_nic + 1;
        s->max_per_node = MAX(s->max_per_node, in_node);
        s->gpus_per_nic = MAX(s->gpus_per_nic, n_nics ? on_nic : 1);
        last_node = node;
        last_nic = nic;
    }
    s->min_per_domain = MIN(s->min_per_domain, n);
    s->max_per_domain = MAX(s->max_per_domain, n);
    s->nics_per_domain = s->n_domains ? MIN(s->nics_per_domain, nics) : nics;
    s->n_domains += m->repeat;
}

#define LATENCY_UNIT 65536 /* of a nanosecond: whole numbers add up to the same in any order */

/* The ring over domains, from first member to first member. */
static void walk_ring(const OrrCluster *c, const Member *firsts, uint32_t n, OrrGroupShape *s) {
    int64_t latency = 0, leaf = 0, pod = 0, all = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t a = firsts[i].gpu, b = firsts[(i + 1) % n].gpu, times = firsts[i].repeat;
        uint32_t hops = orr_cluster_hops(c, a, b);
        latency += times * llround(orr_cluster_route_latency_ns(c, a, b) * LATENCY_UNIT);
        leaf += hops >= 3 ? times : 0;
        pod += hops >= 5 ? times : 0;
        all += times;
    }
    s->net_latency_ns = (double)latency / LATENCY_UNIT / (double)all;
    s->leaf_crossing_frac = (double)leaf / (double)all;
    s->pod_crossing_frac = (double)pod / (double)all;
}

static double fabric_share(const OrrCluster *c, const OrrGroupShape *s) {
    const OrrClusterSpec *spec = orr_cluster_spec(c);
    double nic = spec->node->nic_bytes_per_s, share = nic;
    if (spec->use_management || spec->fabric == ORR_FABRIC_NONE || !spec->node->nics)
        return 0;
    if (s->leaf_crossing_frac > 0)
        share = MIN(share, nic / spec->leaf_oversubscription / s->leaf_crossing_frac);
    if (s->pod_crossing_frac > 0)
        share = MIN(share, nic / spec->leaf_oversubscription / spec->pod_oversubscription /
                               s->pod_crossing_frac);
    return share < nic ? share : 0;
}

static double nvlink_share(const OrrCluster *c, const Member *m, uint32_t n) {
    const OrrNode *node = orr_cluster_spec(c)->node;
    uint32_t locals[64]; /* as many as a node may have GPUs (MAX_NODE_GPUS in cluster.c) */
    if (node->nvlink != ORR_NVLINK_MESH)
        return node->nvlink == ORR_NVLINK_SWITCH ? node->gpu->nvlink_bytes_per_s : 0;
    for (uint32_t i = 0; i < n; i++)
        locals[i] = m[i].gpu % node->gpus;
    return orr_mesh_ring_bytes_per_s(node, locals, n);
}

void orr_cluster_group_shape(const OrrCluster *c, const uint32_t *gpus, const uint32_t *repeat,
                             uint32_t n, OrrGroupShape *shape) {
    g_autofree Member *m = g_new(Member, n);
    g_autofree Member *firsts = g_new(Member, n);
    uint32_t n_firsts = 0;

    *shape = (OrrGroupShape){.min_per_domain = n, .gpus_per_nic = 1};
    for (uint32_t i = 0; i < n; i++) {
        m[i] = (Member){orr_cluster_domain_of_gpu(c, gpus[i]), gpus[i], i, repeat ? repeat[i] : 1};
        shape->n_gpus += m[i].repeat;
    }
    qsort(m, n, sizeof *m, by_domain);
    for (uint32_t i = 0, next; i < n; i = next) {
        Member first = m[i];
        double nvlink;
        for (next = i + 1; next < n && m[next].domain == m[i].domain; next++)
            if (m[next].order < first.order)
                first = m[next];
        count_domain(c, m + i, next - i, shape);
        nvlink = nvlink_share(c, m + i, next - i);
        shape->nvlink_bytes_per_s = i ? MIN(shape->nvlink_bytes_per_s, nvlink) : nvlink;
        firsts[n_firsts++] = first;
    }
    if (n_firsts < 2)
        return;
    qsort(firsts, n_firsts, sizeof *firsts, by_order);
    walk_ring(c, firsts, n_firsts, shape);
    shape->fabric_bytes_per_s = fabric_share(c, shape);
}
