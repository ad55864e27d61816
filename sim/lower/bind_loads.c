/* Load vectors: which links a group's or a pair's traffic uses, per unit of work. A macro-flow's
 * members are unordered and reach links only through this vector.
 *
 * Inside a domain every member's NVLink (or PCIe) ports carry `nvlink_ratio`. Between domains
 * member j of a domain sends to member j of the next (rings, trees and rails alike keep to their
 * rail), so each route of such a pair carries `nic_ratio` divided by the members that share a NIC.
 * All-to-all traffic is spread over a bounded number of partners, evenly in group order. */
#include "sim/lower/lower_priv.h"

#include <string.h>

#define MAX_PARTNERS                                                                               \
    16u /* of a member in all-to-all patterns: bounds the vector, not the bytes                    \
         */

static void add_use(GArray *uses, uint32_t link, double coef) {
    OrrUse use = {link, (uint32_t)(coef * ORR_COEF_ONE + 0.5), 1};
    if (use.coef > 0)
        g_array_append_val(uses, use);
}

static bool is_inner(OrrLinkKind kind) {
    return kind == ORR_LINK_NVLINK_OUT || kind == ORR_LINK_NVLINK_IN || kind == ORR_LINK_MESH ||
           kind == ORR_LINK_PCIE_OUT || kind == ORR_LINK_PCIE_IN;
}

static void add_route(const OrrLowering *in, uint32_t src, uint32_t dst, uint64_t flow, double coef,
                      bool inner, GArray *uses) {
    OrrLinkShare route[ORR_MAX_ROUTE];
    uint32_t n = orr_cluster_route(in->cluster, src, dst, flow, route);
    for (uint32_t i = 0; i < n; i++)
        if (is_inner(orr_cluster_link_kind(in->cluster, route[i].link)) == inner)
            add_use(uses, route[i].link, coef * route[i].frac);
}

static int by_link(const void *a, const void *b) {
    const OrrUse *x = a, *y = b;
    return (x->constraint > y->constraint) - (x->constraint < y->constraint);
}

/* Uses of one link become one. */
static void merge(GArray *uses) {
    if (uses->len == 0)
        return;
    qsort(uses->data, uses->len, sizeof(OrrUse), by_link);
    OrrUse *u = (OrrUse *)uses->data;
    uint32_t n = 0;
    for (uint32_t i = 1; i < uses->len; i++)
        if (u[i].constraint == u[n].constraint)
            u[n].coef += u[i].coef;
        else
            u[++n] = u[i];
    g_array_set_size(uses, n + 1);
}

/* First member of each domain, in order of appearance; domains are runs of the member list. */
static uint32_t domain_runs(const OrrLowering *in, const uint32_t *gpus, uint32_t n,
                            uint32_t *start) {
    uint32_t n_runs = 0, last = ORR_NONE;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t domain = orr_cluster_domain_of_gpu(in->cluster, gpus[i]);
        if (domain != last)
            start[n_runs++] = i;
        last = domain;
    }
    start[n_runs] = n;
    return n_runs;
}

static void inner_ring(const OrrLowering *in, const uint32_t *gpus, uint32_t from, uint32_t to,
                       double ratio, GArray *uses) {
    uint32_t m = to - from;
    for (uint32_t j = 0; m > 1 && j < m; j++)
        add_route(in, gpus[from + j], gpus[from + (j + 1) % m], 0, ratio, true, uses);
}

static void next_domain(const OrrLowering *in, const uint32_t *gpus, const uint32_t *start,
                        uint32_t a, uint32_t b, double coef, GArray *uses) {
    uint32_t n_a = start[a + 1] - start[a], n_b = start[b + 1] - start[b];
    for (uint32_t j = 0; j < n_a; j++)
        add_route(in, gpus[start[a] + j], gpus[start[b] + j % n_b], j, coef, false, uses);
}

static void across(const OrrLowering *in, const uint32_t *gpus, const uint32_t *start,
                   uint32_t n_runs, const OrrLoadShape *shape, double coef, GArray *uses) {
    uint32_t n_partners = 1;
    if (shape->pattern == ORR_PATTERN_PAIRS)
        n_partners = MIN(n_runs - 1, MAX_PARTNERS);
    for (uint32_t a = 0; a < n_runs; a++)
        for (uint32_t k = 1; k <= n_partners; k++) {
            uint32_t step =
                n_partners == 1 ? 1 : 1 + (uint32_t)((uint64_t)(k - 1) * (n_runs - 1) / n_partners);
            next_domain(in, gpus, start, a, (a + step) % n_runs, coef / n_partners, uses);
        }
}

void orr_lower__group_uses(const OrrLowering *in, const uint32_t *gpus, uint32_t n,
                           const OrrLoadShape *shape, uint32_t gpus_per_nic, GArray *uses) {
    g_autofree uint32_t *start = g_new(uint32_t, n + 1);
    uint32_t n_runs = domain_runs(in, gpus, n, start);
    if (shape->nvlink_ratio > 0)
        for (uint32_t d = 0; d < n_runs; d++)
            inner_ring(in, gpus, start[d], start[d + 1], shape->nvlink_ratio, uses);
    if (shape->nic_ratio > 0 && n_runs > 1)
        across(in, gpus, start, n_runs, shape, shape->nic_ratio / gpus_per_nic, uses);
    merge(uses);
}

void orr_lower__pair_uses(const OrrLowering *in, uint32_t src_gpu, uint32_t dst_gpu, uint64_t flow,
                          GArray *uses) {
    OrrLinkShare route[ORR_MAX_ROUTE];
    uint32_t n = orr_cluster_route(in->cluster, src_gpu, dst_gpu, flow, route);
    for (uint32_t i = 1; i < n; i++) { /* sorted by insertion: a route is short */
        OrrLinkShare share = route[i];
        uint32_t at = i;
        for (; at > 0 && route[at - 1].link > share.link; at--)
            route[at] = route[at - 1];
        route[at] = share;
    }
    for (uint32_t i = 0; i < n; i++)
        add_use(uses, route[i].link, route[i].frac);
}

/* The most that activities of one kind of place can put on links at once. A place runs one activity
 * at a time, so the most demanding plan counts. */
static void add_demand(const OrrLoads *l, uint32_t n_places, const uint64_t *place_cap,
                       double *demand) {
    for (uint32_t p = 0; p < n_places; p++)
        for (uint32_t v = 0; v < l->n_loads; v++)
            for (uint32_t i = l->first[p * l->n_loads + v]; i < l->first[p * l->n_loads + v + 1];
                 i++)
                demand[l->uses[i].constraint] +=
                    (double)place_cap[p * l->n_loads + v] * l->uses[i].coef / ORR_COEF_ONE;
}

static uint64_t *group_caps(const OrrBound *b, const OrrBoundGroup *g) {
    uint64_t *cap = g_new0(uint64_t, (gsize)g->n_groups * g->loads.n_loads + 1);
    uint32_t n = b->program->n_colls;
    for (uint32_t p = 0; p < g->n_groups; p++)
        for (uint32_t c = 0; c < n; c++) {
            const OrrPlan *plan = &g->plans[(gsize)g->class_of[p] * n + c];
            uint64_t *at = &cap[p * g->loads.n_loads + plan->load];
            if (plan->work_bytes > 0)
                *at = MAX(*at, plan->cap_bytes_per_s);
        }
    return cap;
}

static uint64_t *pair_caps(const OrrBound *b, const OrrBoundGroup *g) {
    uint32_t n_places = g->n_groups * g->n_pairs, n = b->program->n_parts;
    uint64_t *cap = g_new0(uint64_t, n_places + 1);
    for (uint32_t p = 0; p < n_places; p++)
        for (uint32_t i = 0; i < n; i++)
            cap[p] = MAX(cap[p], g->pair_plans[(gsize)g->pair_class[p] * n + i].cap_bytes_per_s);
    return cap;
}

static void filter(OrrLoads *l, uint32_t n_places, const double *demand, const uint64_t *capacity) {
    uint32_t out = 0, n = n_places * l->n_loads, begin = 0;
    for (uint32_t v = 0; v < n; v++) {
        uint32_t end = l->first[v + 1];
        l->first[v] = out;
        for (uint32_t i = begin; i < end; i++)
            if (demand[l->uses[i].constraint] > (double)capacity[l->uses[i].constraint] * 1.001)
                l->uses[out++] = l->uses[i];
        begin = end;
    }
    l->first[n] = out;
}

/* Leaves out links that cannot saturate, whatever is under way at once. Communicators of one kind
 * of group may run side by side: demand counts once a (kind, communicator) in use. */
void orr_lower__drop_unsaturable(OrrBound *bound) {
    g_autofree double *demand = g_new0(double, bound->n_links + 1);
    const OrrProgram *p = bound->program;
    for (int k = 0; k < ORR_N_GROUPS; k++) {
        const OrrBoundGroup *g = &bound->groups[k];
        bool comms[256] = {false}, pair_comms[256] = {false};
        for (uint32_t c = 0; c < p->n_colls; c++)
            comms[p->colls[c].comm] |= p->colls[c].group == k;
        for (uint32_t i = 0; i < p->n_parts; i++)
            pair_comms[p->parts[i].comm] |= p->parts[i].group == k;
        g_autofree uint64_t *cap = g->n_groups && g->loads.n_loads ? group_caps(bound, g) : NULL;
        g_autofree uint64_t *pair_cap = g->n_pairs ? pair_caps(bound, g) : NULL;
        for (int c = 0; c < 256; c++) {
            if (comms[c] && cap)
                add_demand(&g->loads, g->n_groups, cap, demand);
            if (pair_comms[c] && pair_cap)
                add_demand(&g->pair_loads, g->n_groups * g->n_pairs, pair_cap, demand);
        }
    }
    for (int k = 0; k < ORR_N_GROUPS; k++) {
        OrrBoundGroup *g = &bound->groups[k];
        if (g->n_groups > 0 && g->loads.n_loads > 0)
            filter(&g->loads, g->n_groups, demand, bound->capacity);
        if (g->n_pairs > 0)
            filter(&g->pair_loads, g->n_groups * g->n_pairs, demand, bound->capacity);
    }
}
