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

static void add_use(GArray *uses, uint32_t link, double coef, uint32_t times) {
    OrrUse use = {link, (uint32_t)(coef * ORR_COEF_ONE + 0.5) * times, 1};
    if (use.coef > 0)
        g_array_append_val(uses, use);
}

static bool is_inner(OrrLinkKind kind) {
    return kind == ORR_LINK_NVLINK_OUT || kind == ORR_LINK_NVLINK_IN || kind == ORR_LINK_MESH ||
           kind == ORR_LINK_PCIE_OUT || kind == ORR_LINK_PCIE_IN;
}

/* A route that stands for @times like it: what is a cell's own it loads once. */
static void add_route(const OrrBinder *k, uint32_t src, uint32_t dst, uint32_t times, uint64_t flow,
                      double coef, bool inner, GArray *uses) {
    const OrrCluster *cluster = k->in->cluster;
    OrrLinkShare route[ORR_MAX_ROUTE];
    uint32_t n = orr_cluster_route(cluster, src, dst, flow, route);
    for (uint32_t i = 0; i < n; i++) {
        if (is_inner(orr_cluster_link_kind(cluster, route[i].link)) != inner)
            continue;
        bool is_shared = times > 1 && orr_cells_of_link(k->cells, route[i].link) == ORR_NONE;
        add_use(uses, route[i].link, coef * route[i].frac, is_shared ? times : 1);
    }
}

static int by_link(const void *a, const void *b) {
    const OrrUse *x = a, *y = b;
    return (x->constraint > y->constraint) - (x->constraint < y->constraint);
}

static void insert_uses(OrrUse *u, uint32_t n) {
    for (uint32_t i = 1; i < n; i++) {
        OrrUse moved = u[i];
        uint32_t at = i;
        for (; at > 0 && moved.constraint < u[at - 1].constraint; at--)
            u[at] = u[at - 1];
        u[at] = moved;
    }
}

#define RADIX_BITS 11 /* three times that are 32 bits and one */
#define RADIX (1u << RADIX_BITS)

/* A few by insertion, many by radix, the lowest digit first. */
void orr_lower__sort_uses(OrrUse *u, uint32_t n) {
    if (n <= 64) {
        insert_uses(u, n);
        return;
    }
    g_autofree OrrUse *spare = g_new(OrrUse, n);
    for (uint32_t shift = 0; shift < 3 * RADIX_BITS; shift += RADIX_BITS) {
        uint32_t at[RADIX + 1] = {0};
        for (uint32_t i = 0; i < n; i++)
            at[(u[i].constraint >> shift & (RADIX - 1)) + 1]++;
        for (uint32_t d = 0; d < RADIX; d++)
            at[d + 1] += at[d];
        for (uint32_t i = 0; i < n; i++)
            spare[at[u[i].constraint >> shift & (RADIX - 1)]++] = u[i];
        memcpy(u, spare, n * sizeof *u);
    }
}

void orr_lower__merge_uses(GArray *uses) {
    if (uses->len == 0)
        return;
    orr_lower__sort_uses((OrrUse *)uses->data, uses->len);
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
static uint32_t domain_runs(const OrrLowering *in, const OrrMemberList *list, uint32_t *start) {
    uint32_t n_runs = 0, last = ORR_NONE;
    for (uint32_t i = 0; i < list->n; i++) {
        uint32_t domain = orr_cluster_domain_of_gpu(in->cluster, list->gpus[i]);
        if (domain != last)
            start[n_runs++] = i;
        last = domain;
    }
    start[n_runs] = list->n;
    return n_runs;
}

static void inner_ring(const OrrBinder *k, const uint32_t *gpus, uint32_t m, double ratio,
                       GArray *uses) {
    for (uint32_t j = 0; m > 1 && j < m; j++)
        add_route(k, gpus[j], gpus[(j + 1) % m], 1, 0, ratio, true, uses);
}

typedef struct {
    const OrrMemberList *list;
    const uint32_t *start; /* of each domain */
    uint32_t n;
} Domains;

static void next_domain(const OrrBinder *k, const Domains *d, uint32_t a, uint32_t b, double coef,
                        GArray *uses) {
    uint32_t n_a = d->start[a + 1] - d->start[a], n_b = d->start[b + 1] - d->start[b];
    const uint32_t *from = d->list->gpus + d->start[a], *to = d->list->gpus + d->start[b];
    uint32_t times = d->list->repeat ? d->list->repeat[d->start[a]] : 1;
    for (uint32_t j = 0; j < n_a; j++)
        add_route(k, from[j], to[j % n_b], times, j, coef, false, uses);
}

static void across(const OrrBinder *k, const Domains *d, const OrrLoadShape *shape, double coef,
                   GArray *uses) {
    uint32_t n_partners = 1;
    if (shape->pattern == ORR_PATTERN_PAIRS)
        n_partners = MIN(d->n - 1, MAX_PARTNERS);
    for (uint32_t a = 0; a < d->n; a++)
        for (uint32_t i = 1; i <= n_partners; i++) {
            uint32_t step =
                n_partners == 1 ? 1 : 1 + (uint32_t)((uint64_t)(i - 1) * (d->n - 1) / n_partners);
            next_domain(k, d, a, (a + step) % d->n, coef / n_partners, uses);
        }
}

void orr_lower__group_uses(const OrrBinder *k, const OrrMemberList *list, const OrrLoadShape *shape,
                           uint32_t gpus_per_nic, GArray *uses) {
    g_autofree uint32_t *start = g_new(uint32_t, list->n + 1);
    Domains d = {list, start, domain_runs(k->in, list, start)};
    if (shape->nvlink_ratio > 0)
        for (uint32_t i = 0; i < d.n; i++)
            inner_ring(k, list->gpus + start[i], start[i + 1] - start[i], shape->nvlink_ratio,
                       uses);
    if (shape->nic_ratio > 0 && d.n > 1)
        across(k, &d, shape, shape->nic_ratio / gpus_per_nic, uses);
    orr_lower__merge_uses(uses);
    orr_lower__take_detours(k->in, uses);
}

void orr_lower__pair_uses(const OrrBinder *k, uint32_t src_gpu, uint32_t dst_gpu, uint64_t flow,
                          GArray *uses) {
    OrrLinkShare route[ORR_MAX_ROUTE];
    uint32_t n = orr_cluster_route(k->in->cluster, src_gpu, dst_gpu, flow, route);
    for (uint32_t i = 1; i < n; i++) { /* sorted by insertion: a route is short */
        OrrLinkShare share = route[i];
        uint32_t at = i;
        for (; at > 0 && route[at - 1].link > share.link; at--)
            route[at] = route[at - 1];
        route[at] = share;
    }
    for (uint32_t i = 0; i < n; i++)
        add_use(uses, route[i].link, route[i].frac, 1);
    orr_lower__take_detours(k->in, uses);
}

void orr_lower__count_uses(const OrrBinder *k, uint32_t weight, GArray *uses) {
    for (guint i = 0; weight > 1 && i < uses->len; i++) {
        OrrUse *use = &g_array_index(uses, OrrUse, i);
        if (orr_cells_of_link(k->cells, use->constraint) == ORR_NONE)
            use->count = weight;
    }
}

/* The load of @link, or 0. */
static uint32_t coef_of(const GArray *uses, uint32_t link) {
    OrrUse key = {.constraint = link};
    const OrrUse *use = bsearch(&key, uses->data, uses->len, sizeof key, by_link);
    return use ? use->coef : 0;
}

bool orr_lower__keep_uses(const OrrBinder *k, GArray *uses) {
    const OrrCells *c = k->cells;
    g_autofree uint32_t *n_own = g_new0(uint32_t, c->n_cells);
    g_autofree uint8_t *is_met = g_new0(uint8_t, c->n_cells);
    bool is_alike = true;
    for (guint i = 0; i < uses->len && is_alike; i++) {
        const OrrUse *use = &g_array_index(uses, OrrUse, i);
        uint32_t cell = orr_cells_of_link(c, use->constraint);
        if (cell == ORR_NONE)
            continue;
        n_own[cell]++;
        is_met[cell] = 1;
        int64_t shift = ((int64_t)c->kept[c->class_of[cell]] - cell) * c->n_ranks;
        uint32_t kept = orr_cluster_link_shift(k->in->cluster, use->constraint, shift);
        is_alike = coef_of(uses, kept) == use->coef;
    }
    for (uint32_t i = 0; i < c->n_cells && is_alike; i++)
        is_alike = !is_met[i] || n_own[i] == n_own[c->kept[c->class_of[i]]];
    uint32_t n = 0;
    for (guint i = 0; i < uses->len && is_alike; i++) {
        OrrUse use = g_array_index(uses, OrrUse, i);
        uint32_t cell = orr_cells_of_link(c, use.constraint);
        if (cell == ORR_NONE || c->kept[c->class_of[cell]] == cell)
            g_array_index(uses, OrrUse, n++) = use;
    }
    g_array_set_size(uses, n);
    return is_alike;
}
