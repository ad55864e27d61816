/* Links of a bound program: those of the cluster that some load vector has and that can saturate,
 * numbered in the cluster's order.
 *
 * A link cannot saturate if all that may be under way at once, at the rates of the plans, fits it;
 * decided after perturbations. Demands are whole numbers, so that they do not depend on the order
 * in which they are added. */
#include "sim/bound/dominated.h"
#include "sim/lower/lower_priv.h"

typedef unsigned __int128 Wide;

typedef struct {
    uint32_t
        *number;   /* [links of the cluster] + 1; 0: in no vector. Few of its pages are touched */
    GArray *links; /* uint32_t: of the cluster */
} Numbers;

static void number_uses(Numbers *m, OrrLoads *l, uint32_t n_places) {
    for (uint32_t i = 0; l->n_loads > 0 && i < l->first[n_places * l->n_loads]; i++) {
        uint32_t link = l->uses[i].constraint;
        if (m->number[link] == 0) {
            g_array_append_val(m->links, link);
            m->number[link] = m->links->len;
        }
        l->uses[i].constraint = m->number[link] - 1;
    }
}

static void set_link(const OrrBinder *k, uint32_t l, uint32_t link) {
    OrrBound *b = k->bound;
    const OrrPerturbs *perturbs = k->in->perturbs;
    uint32_t cell = orr_cells_of_link(k->cells, link);
    b->capacity[l] = (uint64_t)orr_cluster_link_bytes_per_s(k->in->cluster, link);
    b->link_weight[l] = cell == ORR_NONE ? 1 : k->cells->size[k->cells->class_of[cell]];
    if (!perturbs || !orr_perturbs_have_links(perturbs))
        return;
    double factor = orr_perturbs_link(perturbs, k->in->cluster, link);
    if (factor != 1)
        b->capacity[l] = (uint64_t)MAX((double)b->capacity[l] * factor, 1);
}

/* The most that activities of one kind of place can put on links at once. A place runs one activity
 * at a time, so the most demanding plan counts. */
static void add_demand(const OrrLoads *l, uint32_t n_places, const uint64_t *place_cap,
                       Wide *demand) {
    for (uint32_t p = 0; p < n_places * l->n_loads; p++)
        for (uint32_t i = l->first[p]; i < l->first[p + 1]; i++) {
            const OrrUse *u = &l->uses[i];
            demand[u->constraint] += (Wide)place_cap[p] * u->coef * u->count;
        }
}

static uint64_t *group_caps(const OrrBound *b, const OrrBoundGroup *g) {
    uint32_t n = b->program->n_colls, n_loads = g->loads.n_loads;
    g_autofree uint64_t *of_class = g_new0(uint64_t, (gsize)g->n_classes * n_loads + 1);
    for (uint32_t i = 0; i < g->n_classes * n; i++) {
        uint64_t *at = &of_class[i / n * n_loads + g->plans[i].load];
        if (g->plans[i].work_bytes > 0)
            *at = MAX(*at, g->plans[i].cap_bytes_per_s);
    }
    uint64_t *cap = g_new(uint64_t, (gsize)g->n_groups * n_loads + 1);
    for (uint32_t i = 0; i < g->n_groups * n_loads; i++)
        cap[i] = of_class[g->class_of[i / n_loads] * n_loads + i % n_loads];
    return cap;
}

static uint64_t *pair_caps(const OrrBound *b, const OrrBoundGroup *g) {
    uint32_t n_places = g->n_groups * g->n_pairs, n = b->program->n_parts;
    g_autofree uint64_t *of_class = g_new0(uint64_t, g->n_pair_classes + 1);
    for (uint32_t i = 0; i < g->n_pair_classes * n; i++)
        of_class[i / n] = MAX(of_class[i / n], g->pair_plans[i].cap_bytes_per_s);
    uint64_t *cap = g_new(uint64_t, n_places + 1);
    for (uint32_t p = 0; p < n_places; p++)
        cap[p] = of_class[g->pair_class[p]];
    return cap;
}

/* Communicators of one kind of group may run side by side: demand counts once a (kind,
 * communicator) in use. */
static void add_demands(const OrrBound *b, int kind, Wide *demand) {
    const OrrProgram *p = b->program;
    const OrrBoundGroup *g = &b->groups[kind];
    bool comms[256] = {false}, pair_comms[256] = {false};
    for (uint32_t c = 0; c < p->n_colls; c++)
        comms[p->colls[c].comm] |= p->colls[c].group == kind;
    for (uint32_t i = 0; i < p->n_parts; i++)
        pair_comms[p->parts[i].comm] |= p->parts[i].group == kind;
    g_autofree uint64_t *cap = g->n_groups && g->loads.n_loads ? group_caps(b, g) : NULL;
    g_autofree uint64_t *pair_cap = g->n_pairs ? pair_caps(b, g) : NULL;
    for (int c = 0; c < 256; c++) {
        if (comms[c] && cap)
            add_demand(&g->loads, g->n_groups, cap, demand);
        if (pair_comms[c] && pair_cap)
            add_demand(&g->pair_loads, g->n_groups * g->n_pairs, pair_cap, demand);
    }
}

/* Leaves out uses of links without a number; the rest get theirs. */
static void filter(OrrLoads *l, uint32_t n_places, const uint32_t *number) {
    uint32_t out = 0, n = n_places * l->n_loads, begin = 0;
    for (uint32_t v = 0; v < n; v++) {
        uint32_t end = l->first[v + 1];
        l->first[v] = out;
        for (uint32_t i = begin; i < end; i++) {
            OrrUse use = l->uses[i];
            use.constraint = number[use.constraint];
            if (use.constraint != ORR_NONE)
                l->uses[out++] = use;
        }
        begin = end;
    }
    if (n > 0)
        l->first[n] = out;
}

/* Numbers in the cluster's order for the links that can saturate, ORR_NONE for the others. */
static uint32_t *choose(OrrBinder *k, const Numbers *m) {
    OrrBound *b = k->bound;
    uint32_t n = m->links->len;
    const uint32_t *links = (const uint32_t *)m->links->data;
    uint32_t *number = g_new(uint32_t, n + 1);
    g_autofree OrrUse *order = g_new(OrrUse, n + 1); /* link, and where it is in the list */
    g_autofree Wide *demand = g_new0(Wide, n + 1);
    for (int kind = 0; kind < ORR_N_GROUPS; kind++)
        add_demands(b, kind, demand);
    for (uint32_t i = 0; i < n; i++)
        order[i] = (OrrUse){links[i], i, 1};
    orr_lower__sort_uses(order, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = order[i].coef, l = b->n_links;
        set_link(k, l, order[i].constraint);
        Wide capacity = (Wide)b->capacity[l] * ORR_COEF_ONE;
        /* a thousandth of slack: coefficients and caps are rounded */
        bool can_saturate = demand[at] > capacity + capacity / 1000;
        number[at] = can_saturate ? b->n_links++ : ORR_NONE;
    }
    return number;
}

void orr_lower__bind_links(OrrBinder *k) {
    OrrBound *b = k->bound;
    Numbers m = {g_new0(uint32_t, orr_cluster_n_links(k->in->cluster) + 1),
                 g_array_new(FALSE, FALSE, sizeof(uint32_t))};
    for (int kind = 0; kind < ORR_N_GROUPS; kind++) {
        OrrBoundGroup *g = &b->groups[kind];
        number_uses(&m, &g->loads, g->n_groups);
        number_uses(&m, &g->pair_loads, g->n_groups * g->n_pairs);
    }
    b->capacity = g_new(uint64_t, m.links->len + 1);
    b->link_weight = g_new(uint32_t, m.links->len + 1);
    g_autofree uint32_t *number = choose(k, &m);
    for (int kind = 0; kind < ORR_N_GROUPS; kind++) {
        OrrBoundGroup *g = &b->groups[kind];
        filter(&g->loads, g->n_groups, number);
        filter(&g->pair_loads, g->n_groups * g->n_pairs, number);
    }
    orr_bound_drop_dominated(b);
    g_array_free(m.links, TRUE);
    g_free(m.number);
}
