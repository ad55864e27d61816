/* Rings over the machine: who sends to whom, over which links, and which of them can be filled. */
#include "sim/detail/detail_priv.h"

#include <math.h>
#include <stdlib.h>

static bool is_inner(OrrLinkKind kind) {
    return kind == ORR_LINK_NVLINK_OUT || kind == ORR_LINK_NVLINK_IN || kind == ORR_LINK_MESH ||
           kind == ORR_LINK_PCIE_OUT || kind == ORR_LINK_PCIE_IN;
}

static uint32_t uses_of(const OrrCluster *c, uint32_t src, uint32_t dst, uint64_t flow,
                        bool is_inside, OrrUse *uses) {
    OrrLinkShare route[ORR_MAX_ROUTE];
    uint32_t n_uses = 0, n = orr_cluster_route(c, src, dst, flow, route);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t coef = (uint32_t)(route[i].frac * ORR_COEF_ONE + 0.5f);
        if (coef > 0 && is_inner(orr_cluster_link_kind(c, route[i].link)) == is_inside)
            uses[n_uses++] = (OrrUse){route[i].link, coef, 1};
    }
    return n_uses;
}

uint32_t orr_detail__net_uses(const OrrCluster *c, uint32_t src, uint32_t dst, OrrUse *uses) {
    return uses_of(c, src, dst, 0, false, uses);
}

uint32_t orr_detail__inside_uses(const OrrCluster *c, uint32_t src, uint32_t dst, OrrUse *uses) {
    if (orr_cluster_spec(c)->node->nvlink == ORR_NVLINK_MESH)
        return 0;
    return uses_of(c, src, dst, 0, true, uses);
}

int64_t orr_detail__hop_ns(const OrrCluster *c, const OrrCollPlan *plan, uint32_t src,
                           uint32_t dst) {
    if (orr_cluster_is_inside(c, src, dst))
        return (int64_t)ceil(plan->hop_ns);
    return (int64_t)ceil(plan->net_hop_ns + orr_cluster_route_latency_ns(c, src, dst));
}

int64_t orr_detail__transfer_ns(uint64_t bytes, uint64_t bytes_per_s) {
    OrrWide work = (OrrWide)bytes * 1000000000u;
    return (int64_t)((work + bytes_per_s - 1) / bytes_per_s);
}

uint64_t orr_detail__net_share(const OrrCollPlan *plan, uint32_t per_domain) {
    return (uint64_t)fmax(1, plan->net_bytes_per_s * plan->nics_per_domain / per_domain);
}

void orr_detail__domains_init(OrrDomains *d, const OrrCluster *c, uint32_t n_ranks) {
    uint32_t last = ORR_NONE;
    *d = (OrrDomains){0, g_new(uint32_t, n_ranks + 1), g_new(uint32_t, n_ranks)};
    for (uint32_t r = 0; r < n_ranks; r++) {
        uint32_t domain = orr_cluster_domain_of_gpu(c, r);
        if (domain != last)
            d->start[d->n++] = r;
        last = domain;
        d->of[r] = d->n - 1;
    }
    d->start[d->n] = n_ranks;
}

void orr_detail__domains_clear(OrrDomains *d) {
    g_free(d->start);
    g_free(d->of);
}

typedef struct {
    const OrrDetailCase *c;
    const OrrCollPlan *plan;
    OrrRings *rings;
    GArray *uses; /* OrrUse */
    OrrDomains domains;
} Builder;

static int by_link(const void *x, const void *y) {
    const OrrUse *a = x, *b = y;
    return (a->constraint > b->constraint) - (a->constraint < b->constraint);
}

/* Uses of one link become one, from use @first on. */
static uint32_t merge(GArray *uses, uint32_t first) {
    OrrUse *u = (OrrUse *)(void *)uses->data + first;
    uint32_t n = uses->len - first, kept = 0;
    if (n == 0)
        return 0;
    qsort(u, n, sizeof *u, by_link);
    for (uint32_t i = 1; i < n; i++)
        if (u[i].constraint == u[kept].constraint)
            u[kept].coef += u[i].coef;
        else
            u[++kept] = u[i];
    g_array_set_size(uses, first + kept + 1);
    return kept + 1;
}

/* To a rank of the same domain, or to one of another over the sender's own NICs. */
static void plain_edge(Builder *b, OrrEdge *e, uint32_t src, uint32_t dst, uint32_t per_domain) {
    const OrrCluster *cluster = b->c->cluster;
    bool is_inside = orr_cluster_is_inside(cluster, src, dst);
    OrrUse uses[ORR_MAX_ROUTE];
    uint32_t n = is_inside ? orr_detail__inside_uses(cluster, src, dst, uses)
                           : orr_detail__net_uses(cluster, src, dst, uses);
    e->to = dst;
    e->hop_ns = orr_detail__hop_ns(cluster, b->plan, src, dst);
    e->cap_bytes_per_s = is_inside ? (uint64_t)fmax(1, b->plan->inside_bytes_per_s)
                                   : orr_detail__net_share(b->plan, per_domain);
    e->first_use = b->uses->len;
    g_array_append_vals(b->uses, uses, n);
    e->n_uses = merge(b->uses, (uint32_t)e->first_use);
}

/* From the last rank of a domain to the first of the next, over all NICs of both. */
static void crossing_edge(Builder *b, OrrEdge *e, uint32_t src, uint32_t dst) {
    const OrrCluster *cluster = b->c->cluster;
    uint32_t from = b->domains.start[b->domains.of[src]], to = b->domains.start[b->domains.of[dst]];
    uint32_t n_from = b->domains.start[b->domains.of[src] + 1] - from;
    uint32_t n_to = b->domains.start[b->domains.of[dst] + 1] - to;
    e->to = dst;
    e->hop_ns = orr_detail__hop_ns(cluster, b->plan, from, to);
    e->cap_bytes_per_s = (uint64_t)fmax(1, b->plan->net_bytes_per_s * b->plan->nics_per_domain);
    e->first_use = b->uses->len;
    for (uint32_t j = 0; j < n_from; j++) {
        OrrUse uses[ORR_MAX_ROUTE];
        uint32_t n = uses_of(cluster, from + j, to + j % n_to, j, false, uses);
        for (uint32_t i = 0; i < n; i++)
            uses[i].coef = (uses[i].coef + n_from / 2) / n_from;
        g_array_append_vals(b->uses, uses, n);
    }
    e->n_uses = merge(b->uses, (uint32_t)e->first_use);
}

static OrrPhase *add_phase(Builder *b, uint32_t n_steps, uint64_t n_chunks) {
    OrrPhase *p = &b->rings->phases[b->rings->n_phases++];
    p->n_steps = n_steps;
    p->bytes = ((uint64_t)b->c->bytes + n_chunks - 1) / n_chunks;
    p->edges = g_new0(OrrEdge, b->c->n_ranks);
    return p;
}

static void set_transfers(OrrPhase *p, uint32_t n) {
    for (uint32_t r = 0; r < n; r++)
        p->edges[r].transfer_ns = orr_detail__transfer_ns(p->bytes, p->edges[r].cap_bytes_per_s);
}

static void flat_ring(Builder *b, uint32_t laps) {
    uint32_t n = b->c->n_ranks;
    OrrPhase *p = add_phase(b, laps * (n - 1), n);
    for (uint32_t r = 0; r < n; r++) {
        uint32_t next = (r + 1) % n;
        if (orr_cluster_is_inside(b->c->cluster, r, next))
            plain_edge(b, &p->edges[r], r, next, 1);
        else
            crossing_edge(b, &p->edges[r], r, next);
    }
    set_transfers(p, n);
}

static void inside_rings(Builder *b) {
    uint32_t n = b->c->n_ranks, per_domain = b->domains.start[1];
    if (per_domain == 1)
        return;
    OrrPhase *p = add_phase(b, per_domain - 1, per_domain);
    for (uint32_t r = 0; r < n; r++) {
        uint32_t first = b->domains.start[b->domains.of[r]];
        plain_edge(b, &p->edges[r], r, first + (r - first + 1) % per_domain, per_domain);
    }
    set_transfers(p, n);
}

static void rail_rings(Builder *b, uint32_t laps) {
    uint32_t n = b->c->n_ranks, per_domain = b->domains.start[1];
    OrrPhase *p = add_phase(b, laps * (b->domains.n - 1), n);
    for (uint32_t r = 0; r < n; r++)
        plain_edge(b, &p->edges[r], r, (r + per_domain) % n, per_domain);
    set_transfers(p, n);
}

OrrRings *orr_detail__rings_new(const OrrDetailCase *c, const OrrCollPlan *plan) {
    Builder b = {.c = c, .plan = plan, .rings = g_new0(OrrRings, 1)};
    uint32_t laps = c->kind == ORR_ALL_REDUCE ? 2 : 1;
    b.rings->n_ranks = c->n_ranks;
    b.rings->start_ns = (int64_t)ceil(plan->start_ns);
    b.uses = g_array_new(FALSE, FALSE, sizeof(OrrUse));
    orr_detail__domains_init(&b.domains, c->cluster, c->n_ranks);
    if (plan->algo == ORR_ALGO_RING) {
        flat_ring(&b, laps);
    } else {
        if (c->kind != ORR_ALL_GATHER)
            inside_rings(&b);
        rail_rings(&b, laps);
        if (c->kind != ORR_REDUCE_SCATTER)
            inside_rings(&b);
    }
    b.rings->n_links = orr_cluster_n_links(c->cluster);
    b.rings->capacity = g_new(uint64_t, b.rings->n_links + 1);
    for (uint32_t l = 0; l < b.rings->n_links; l++)
        b.rings->capacity[l] = (uint64_t)orr_cluster_link_bytes_per_s(c->cluster, l);
    b.rings->uses = (OrrUse *)(void *)g_array_free(b.uses, FALSE);
    orr_detail__domains_clear(&b.domains);
    return b.rings;
}

void orr_detail__rings_free(OrrRings *r) {
    for (uint32_t q = 0; q < r->n_phases; q++)
        g_free(r->phases[q].edges);
    g_free(r->uses);
    g_free(r->capacity);
    g_free(r);
}

/* What a link must bear if every rank sent at once what loads it most, in 1/ORR_COEF_ONE bytes/s. A
 * rank is in one phase at a time. */
static OrrWide *demands(const OrrRings *r) {
    OrrWide *demand = g_new0(OrrWide, r->n_links + 1);
    g_autofree OrrWide *most = g_new0(OrrWide, r->n_links + 1); /* of the rank below */
    g_autofree uint32_t *rank = g_new0(uint32_t, r->n_links + 1);
    for (uint32_t i = 0; i < r->n_ranks; i++)
        for (uint32_t q = 0; q < r->n_phases; q++) {
            const OrrEdge *e = &r->phases[q].edges[i];
            for (uint32_t u = 0; u < e->n_uses; u++) {
                const OrrUse *use = &r->uses[e->first_use + u];
                OrrWide load = (OrrWide)use->coef * e->cap_bytes_per_s;
                OrrWide had = rank[use->constraint] == i + 1 ? most[use->constraint] : 0;
                rank[use->constraint] = i + 1;
                most[use->constraint] = MAX(had, load);
                demand[use->constraint] += MAX(had, load) - had;
            }
        }
    return demand;
}

void orr_detail__prune(OrrRings *r) {
    g_autofree OrrWide *demand = demands(r);
    g_autofree uint32_t *number = g_new(uint32_t, r->n_links + 1);
    uint32_t n_links = 0;
    for (uint32_t l = 0; l < r->n_links; l++) {
        bool can_fill = demand[l] > (OrrWide)r->capacity[l] * ORR_COEF_ONE;
        number[l] = can_fill ? n_links : ORR_NONE;
        if (can_fill)
            r->capacity[n_links++] = r->capacity[l];
    }
    r->n_links = n_links;
    for (uint32_t q = 0; q < r->n_phases; q++)
        for (uint32_t i = 0; i < r->n_ranks; i++) {
            OrrEdge *e = &r->phases[q].edges[i];
            uint32_t kept = 0;
            for (uint32_t u = 0; u < e->n_uses; u++) {
                OrrUse use = r->uses[e->first_use + u];
                use.constraint = number[use.constraint];
                if (use.constraint != ORR_NONE)
                    r->uses[e->first_use + kept++] = use;
            }
            e->n_uses = kept;
        }
}
