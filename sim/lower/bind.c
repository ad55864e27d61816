/* Binding: nanoseconds for every kernel, and for every kind of group of every collective its
 * algorithm, latency, rate and load vector. */
#include "sim/lower/lower.h"

#include "sim/collective/place.h"
#include "sim/lower/lower_priv.h"

#include <math.h>
#include <string.h>

typedef struct {
    const OrrLowering *in;
    const OrrProgram *program;
    OrrBound *bound;
} Binder;

static uint32_t gpu_of(const OrrLowering *in, uint32_t rank) {
    return in->placement ? orr_placement_gpu(in->placement, rank) : rank;
}

static uint32_t fixed_point(double frac) {
    return (uint32_t)CLAMP(llround(frac * ORR_RATE_ONE), 1, (long long)ORR_RATE_ONE);
}

static void bind_ranks(Binder *k) {
    OrrBound *b = k->bound;
    const OrrLayout *layout = &k->in->job->layout;
    b->n_ranks = b->n_real_ranks = (uint32_t)orr_layout_world(layout);
    b->weight = g_new(uint32_t, b->n_ranks);
    b->role = g_new(uint16_t, b->n_ranks);
    b->hw = g_new0(uint32_t, b->n_ranks);
    for (uint32_t r = 0; r < b->n_ranks; r++) {
        b->weight[r] = 1;
        b->role[r] = orr_layout_coords(layout, r).pp;
    }
    const OrrFramework *fw = k->in->framework;
    double speed = orr_cluster_spec(k->in->cluster)->node->host_speed;
    speed = speed > 0 ? speed : 1;
    b->host_launch_ns = (uint32_t)(fw->host_launch_ns / speed);
    b->host_comm_ns = (uint32_t)(fw->host_comm_ns / speed);
    b->eager_bytes = (uint64_t)(k->in->force && k->in->force->buffer_bytes > 0
                                    ? k->in->force->buffer_bytes
                                    : 4 << 20); /* NCCL_BUFFSIZE, default 4 MiB */
    for (int c = 0; c < ORR_N_COMM_KINDS; c++) {
        b->rate[0][c] = fixed_point(fw->compute_rate_frac[c] > 0 ? fw->compute_rate_frac[c] : 1);
        b->rate[1][c] = fixed_point(fw->memory_rate_frac[c] > 0 ? fw->memory_rate_frac[c] : 1);
    }
    b->n_hw = 1;
    b->kernel_ns = g_new(int64_t, k->program->n_kernels + 1);
    for (uint32_t i = 0; i < k->program->n_kernels; i++)
        b->kernel_ns[i] = orr_lower__kernel_ns(k->in, &k->program->kernels[i]);
    b->n_links = orr_cluster_n_links(k->in->cluster);
    b->capacity = g_new(uint64_t, b->n_links + 1);
    for (uint32_t l = 0; l < b->n_links; l++)
        b->capacity[l] = (uint64_t)orr_cluster_link_bytes_per_s(k->in->cluster, l);
}

static void bind_members(Binder *k, OrrGroup kind, OrrBoundGroup *g) {
    const OrrLayout *layout = &k->in->job->layout;
    uint32_t n = k->bound->n_ranks;
    g->n_groups = orr_layout_n_groups(layout, kind);
    g->size = orr_layout_group_size(layout, kind);
    g->group_of = g_new(uint32_t, n);
    g->position_of = g_new(uint32_t, n);
    g->first_member = g_new0(uint32_t, g->n_groups + 1);
    g->members = g_new(uint32_t, (gsize)g->n_groups * g->size);
    for (uint32_t r = 0; r < n; r++)
        g->group_of[r] = orr_layout_group_of(layout, kind, r, &g->position_of[r]);
    for (uint32_t i = 0; i < g->n_groups; i++) {
        g->first_member[i + 1] = (i + 1) * g->size;
        orr_layout_members(layout, kind, i, g->members + (gsize)i * g->size);
    }
    g->class_of = g_new0(uint32_t, g->n_groups + 1);
}

/* Groups whose places are equal are of one class. */
static GArray *classify(Binder *k, OrrBoundGroup *g) {
    GArray *places = g_array_new(FALSE, TRUE, sizeof(OrrCommPlace));
    g_autofree uint32_t *gpus = g_new(uint32_t, g->size);
    for (uint32_t i = 0; i < g->n_groups; i++) {
        OrrCommPlace place;
        memset(&place, 0, sizeof place);
        for (uint32_t m = 0; m < g->size; m++)
            gpus[m] = gpu_of(k->in, g->members[(gsize)i * g->size + m]);
        orr_comm_place_from_cluster(k->in->cluster, gpus, g->size, &place);
        place.fabric_bytes_per_s = 0; /* sharing above the leaf is the fluid's business */
        uint32_t c = 0;
        while (c < places->len &&
               memcmp(&g_array_index(places, OrrCommPlace, c), &place, sizeof place) != 0)
            c++;
        if (c == places->len)
            g_array_append_val(places, place);
        g->class_of[i] = c;
    }
    g->n_classes = places->len;
    return places;
}

static uint32_t find_shape(GArray *shapes, const OrrLoadShape *shape) {
    for (uint32_t i = 0; i < shapes->len; i++) {
        const OrrLoadShape *s = &g_array_index(shapes, OrrLoadShape, i);
        if (s->pattern == shape->pattern && fabs(s->nvlink_ratio - shape->nvlink_ratio) < 1e-9 &&
            fabs(s->nic_ratio - shape->nic_ratio) < 1e-9)
            return i;
    }
    g_array_append_val(shapes, *shape);
    return shapes->len - 1;
}

/* Turns a plan per byte of `size` into one per byte on the busiest resource. */
static OrrPlan normalise(const OrrCollPlan *plan, int64_t bytes, GArray *shapes) {
    double unit = plan->nic_per_nic > 0 ? plan->nic_per_nic : plan->nvlink_per_rank;
    OrrPlan out = {.latency_ns = plan->latency_ns,
                   .algo = plan->algo,
                   .proto = plan->proto,
                   .n_channels = plan->n_channels,
                   .weight = MAX(plan->n_channels, 1u),
                   .cap_bytes_per_s = 1};
    if (unit <= 0 || bytes <= 0 || !(plan->bytes_per_s > 0))
        return out;
    out.work_bytes = (uint64_t)ceil((double)bytes * unit);
    out.cap_bytes_per_s = (uint64_t)MAX(plan->bytes_per_s * unit, 1.0);
    if (shapes) {
        OrrLoadShape shape = {plan->pattern, plan->nvlink_per_rank / unit,
                              plan->nic_per_nic / unit};
        out.load = find_shape(shapes, &shape);
    }
    return out;
}

static void bind_uses(Binder *k, OrrBoundGroup *g, const GArray *places, const GArray *shapes) {
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(OrrUse));
    g_autoptr(GArray) uses = g_array_new(FALSE, FALSE, sizeof(OrrUse));
    g_autofree uint32_t *gpus = g_new(uint32_t, g->size);
    uint32_t n = shapes->len;
    g->loads.n_loads = n;
    g->loads.first = g_new0(uint32_t, (gsize)g->n_groups * n + 1);
    for (uint32_t i = 0; i < g->n_groups; i++) {
        const OrrCommPlace *place = &g_array_index(places, OrrCommPlace, g->class_of[i]);
        for (uint32_t m = 0; m < g->size; m++)
            gpus[m] = gpu_of(k->in, g->members[(gsize)i * g->size + m]);
        for (uint32_t v = 0; v < n; v++) {
            g_array_set_size(uses, 0);
            orr_lower__group_uses(k->in, gpus, g->size, &g_array_index(shapes, OrrLoadShape, v),
                                  MAX(place->gpus_per_nic, 1u), uses);
            g_array_append_vals(all, uses->data, uses->len);
            g->loads.first[(gsize)i * n + v + 1] = all->len;
        }
    }
    g->loads.uses = g_memdup2(all->data, (gsize)all->len * sizeof(OrrUse));
}

static bool bind_colls(Binder *k, OrrGroup kind, OrrBoundGroup *g, GError **error) {
    g_autoptr(GArray) places = classify(k, g);
    g_autoptr(GArray) shapes = g_array_new(FALSE, TRUE, sizeof(OrrLoadShape));
    uint32_t n = k->program->n_colls;
    g->plans = g_new0(OrrPlan, (gsize)g->n_classes * n + 1);
    for (uint32_t c = 0; c < g->n_classes; c++)
        for (uint32_t i = 0; i < n; i++) {
            const OrrColl *coll = &k->program->colls[i];
            OrrCollPlan plan;
            if (coll->group != kind)
                continue;
            if (!orr_collective_plan(coll->kind, coll->bytes, coll->dtype,
                                     &g_array_index(places, OrrCommPlace, c), k->in->force, &plan,
                                     error))
                return false;
            g->plans[(gsize)c * n + i] = normalise(&plan, coll->bytes, shapes);
        }
    if (shapes->len > 0)
        bind_uses(k, g, places, shapes);
    return true;
}

/* Directed pairs of positions that some part uses. */
static void find_pairs(Binder *k, OrrGroup kind, OrrBoundGroup *g, GArray *pairs) {
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

static uint32_t pair_class_of(Binder *k, PairClasses *c, const uint32_t gpus[2]) {
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

static void bind_pair_plans(Binder *k, OrrGroup kind, OrrBoundGroup *g, const GArray *classes) {
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
            g->pair_plans[(gsize)c * n + i] = normalise(&plan, part->bytes, NULL);
        }
}

static void bind_pairs(Binder *k, OrrGroup kind, OrrBoundGroup *g) {
    g_autoptr(GArray) pairs = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_autoptr(GArray) classes = g_array_new(FALSE, TRUE, sizeof(PairPlace));
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(OrrUse));
    g_autoptr(GArray) uses = g_array_new(FALSE, FALSE, sizeof(OrrUse));
    uint32_t gpus_per_node = orr_cluster_spec(k->in->cluster)->node->gpus;
    PairClasses known = {classes, g_new(uint32_t, gpus_per_node * gpus_per_node * PAIR_WAYS)};
    memset(known.class_of, 0xff,
           gpus_per_node * gpus_per_node * PAIR_WAYS * sizeof *known.class_of);
    find_pairs(k, kind, g, pairs);
    g->n_pairs = pairs->len;
    uint32_t n = g->n_groups * g->n_pairs;
    g->pair_rank = g_new(uint32_t, 2 * (gsize)n + 1);
    g->pair_class = g_new(uint32_t, n + 1);
    g->pair_loads.n_loads = 1;
    g->pair_loads.first = g_new0(uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t pair = g_array_index(pairs, uint32_t, i % g->n_pairs);
        const uint32_t *members = g->members + (gsize)(i / g->n_pairs) * g->size;
        uint32_t ranks[2] = {members[pair / g->size], members[pair % g->size]};
        uint32_t gpus[2] = {gpu_of(k->in, ranks[0]), gpu_of(k->in, ranks[1])};
        memcpy(&g->pair_rank[2 * (gsize)i], ranks, sizeof ranks);
        g->pair_class[i] = pair_class_of(k, &known, gpus);
        g_array_set_size(uses, 0);
        orr_lower__pair_uses(k->in, gpus[0], gpus[1], i, uses);
        g_array_append_vals(all, uses->data, uses->len);
        g->pair_loads.first[i + 1] = all->len;
    }
    g->pair_loads.uses = g_memdup2(all->data, (gsize)all->len * sizeof(OrrUse));
    g_free(known.class_of);
    bind_pair_plans(k, kind, g, classes);
}

static bool bind_group(Binder *k, OrrGroup kind, GError **error) {
    bool has_colls = false, has_parts = false;
    for (uint32_t i = 0; i < k->program->n_colls; i++)
        has_colls |= k->program->colls[i].group == kind;
    for (uint32_t i = 0; i < k->program->n_parts; i++)
        has_parts |= k->program->parts[i].group == kind;
    OrrBoundGroup *g = &k->bound->groups[kind];
    if (!has_colls && !has_parts) {
        g->size = orr_layout_group_size(&k->in->job->layout, kind);
        return true;
    }
    bind_members(k, kind, g);
    if (has_colls && !bind_colls(k, kind, g, error))
        return false;
    if (has_parts)
        bind_pairs(k, kind, g);
    return true;
}

OrrBound *orr_lower_bind(const OrrLowering *in, const OrrProgram *program, GError **error) {
    Binder k = {in, program, g_new0(OrrBound, 1)};
    k.bound->program = program;
    bind_ranks(&k);
    for (int kind = 0; kind < ORR_N_GROUPS; kind++)
        if (!bind_group(&k, kind, error)) {
            orr_bound_free(k.bound);
            return NULL;
        }
    if (in->perturbs)
        orr_lower__perturb(in, k.bound);
    orr_lower__drop_unsaturable(k.bound);
    return k.bound;
}
