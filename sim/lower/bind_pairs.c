/* Binding of directed pairs: which positions of a kind of group send to which, how fast, and over
 * which links. */
#include "sim/base/large.h"
#include "sim/collective/place.h"
#include "sim/lower/lower_priv.h"

#include <string.h>

/* Directed pairs of positions that some part uses. */
static void find_pairs(const OrrBinder *k, OrrGroup kind, OrrBoundGroup *g, GArray *pairs) {
    g->pair_index = g_new(uint32_t, (gsize)g->size * g->size);
    memset(g->pair_index, 0xff, (gsize)g->size * g->size * sizeof *g->pair_index);
    const OrrProgram *p = k->program;
    for (uint32_t r = 0; r < p->n_roles; r++)
        for (uint32_t c = 0; c < p->roles[r].n_calls; c++) {
            const OrrSegment *seg = &p->segments[p->calls[p->roles[r].first_call + c].segment];
            for (uint32_t o = 0; o < seg->n_ops; o++) {
                const OrrOp *op = &p->ops[seg->first_op + o];
                if (op->kind != ORR_OP_P2P)
                    continue;
                const OrrP2p *batch = &p->p2ps[op->what];
                for (uint32_t i = 0; i < batch->n_parts; i++) {
                    const OrrP2pPart *part = &p->parts[batch->first_part + i];
                    uint32_t me = p->roles[r].stage;
                    uint32_t pair =
                        part->is_send ? me * g->size + part->peer : part->peer * g->size + me;
                    if (part->group != kind || g->pair_index[pair] != ORR_NONE)
                        continue;
                    g->pair_index[pair] = pairs->len;
                    g_array_append_val(pairs, pair);
                }
            }
        }
}

typedef struct {
    OrrCommPlace place;
    uint32_t is_inside;
} PairPlace;

/* Places of pairs are equal where the GPUs' numbers in their nodes, the switches between them and
 * whether they share node and domain are: the class of each such case, found once. */
typedef struct {
    GArray *classes;    /* PairPlace */
    uint32_t *class_of; /* [gpus * gpus * PAIR_WAYS]; ORR_NONE: not met yet */
} PairClasses;

#define PAIR_WAYS 32u /* hops 0 to 5, same node, same domain */

static uint32_t pair_class(GArray *classes, const PairPlace *place) {
    for (uint32_t c = 0; c < classes->len; c++)
        if (memcmp(&g_array_index(classes, PairPlace, c), place, sizeof *place) == 0)
            return c;
    g_array_append_val(classes, *place);
    return classes->len - 1;
}

static uint32_t pair_class_of(OrrBinder *k, PairClasses *c, const uint32_t gpus[2]) {
    const OrrCluster *cluster = k->in->cluster;
    const OrrClusterSpec *spec = orr_cluster_spec(cluster);
    uint32_t g = spec->node->gpus;
    bool is_inside = orr_cluster_is_inside(cluster, gpus[0], gpus[1]);
    bool is_near = orr_node_of_gpu(spec, gpus[0]) == orr_node_of_gpu(spec, gpus[1]);
    uint32_t way = orr_cluster_hops(cluster, gpus[0], gpus[1]) * 4 + 2u * is_inside + is_near;
    g_assert(way < PAIR_WAYS);
    uint32_t *found = &c->class_of[(gpus[0] % g * g + gpus[1] % g) * PAIR_WAYS + way];
    if (*found == ORR_NONE) {
        PairPlace place;
        memset(&place, 0, sizeof place);
        orr_comm_place_from_cluster(cluster, gpus, 2, &place.place);
        place.place.fabric_bytes_per_s = 0; /* as above */
        place.is_inside = is_inside;
        *found = pair_class(c->classes, &place);
    }
    return *found;
}

static void bind_pair_plans(OrrBinder *k, OrrGroup kind, OrrBoundGroup *g, const GArray *classes) {
    uint32_t n = k->program->n_parts;
    g->n_pair_classes = classes->len;
    g->pair_plans = g_new0(OrrPlan, (gsize)classes->len * n + 1);
    for (uint32_t c = 0; c < classes->len; c++)
        for (uint32_t i = 0; i < n; i++) {
            const OrrP2pPart *part = &k->program->parts[i];
            const PairPlace *p = &g_array_index(classes, PairPlace, c);
            OrrCollPlan plan;
            if (part->group != kind)
                continue;
            orr_collective_send_plan(part->bytes, &p->place, p->is_inside, k->in->force, &plan);
            g->pair_plans[(gsize)c * n + i] = orr_lower__plan(&plan, part->bytes, NULL);
        }
}

static PairClasses classes_new(const OrrBinder *k) {
    uint32_t g = orr_cluster_spec(k->in->cluster)->node->gpus;
    PairClasses c = {g_array_new(FALSE, TRUE, sizeof(PairPlace)),
                     g_new(uint32_t, g * g * PAIR_WAYS)};
    memset(c.class_of, 0xff, g * g * PAIR_WAYS * sizeof *c.class_of);
    return c;
}

static void classes_clear(PairClasses *c) {
    g_array_free(c->classes, TRUE);
    g_free(c->class_of);
}

/* The two ends, among kept ranks, of pair @pair of group @i. */
static void ends_of(const OrrBoundGroup *g, uint32_t i, uint32_t pair, uint32_t ends[2]) {
    const uint32_t *members = g->members + g->first_member[i];
    ends[0] = members[pair / g->size];
    ends[1] = members[pair % g->size];
}

void orr_lower__bind_pairs(OrrBinder *k, OrrGroup kind, OrrBoundGroup *g) {
    g_autoptr(GArray) pairs = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(OrrUse));
    g_autoptr(GArray) uses = g_array_new(FALSE, FALSE, sizeof(OrrUse));
    PairClasses known = classes_new(k);
    find_pairs(k, kind, g, pairs);
    g->n_pairs = pairs->len;
    uint32_t n = g->n_groups * g->n_pairs;
    g->pair_rank = orr_large_new((2 * (gsize)n + 1) * sizeof *g->pair_rank);
    g->pair_class = orr_large_new(((gsize)n + 1) * sizeof *g->pair_class);
    g->pair_loads.n_loads = 1;
    g->pair_loads.first = g_new0(uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t group = i / g->n_pairs, pair = i % g->n_pairs, *ends = &g->pair_rank[2 * (gsize)i];
        ends_of(g, group, g_array_index(pairs, uint32_t, pair), ends);
        uint32_t gpus[2] = {orr_lower__gpu(k->in, orr_cells_rank(k->cells, ends[0])),
                            orr_lower__gpu(k->in, orr_cells_rank(k->cells, ends[1]))};
        /* a flow of its own for static hashes */
        uint64_t flow = (uint64_t)k->group_rank[group] * g->n_pairs + pair;
        g->pair_class[i] = pair_class_of(k, &known, gpus);
        g_array_set_size(uses, 0);
        orr_lower__pair_uses(k, gpus[0], gpus[1], flow, uses);
        orr_lower__count_uses(k, g->weight[group], uses);
        g_array_append_vals(all, uses->data, uses->len);
        g->pair_loads.first[i + 1] = all->len;
    }
    g->pair_loads.uses = orr_large_dup(all->data, (gsize)all->len * sizeof(OrrUse));
    bind_pair_plans(k, kind, g, known.classes);
    classes_clear(&known);
}
