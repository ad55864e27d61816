/* Binding: nanoseconds for every kernel, and for every kind of group of every collective its
 * algorithm, latency, rate and load vector. */
#include "sim/lower/lower.h"

#include "sim/base/large.h"
#include "sim/collective/place.h"
#include "sim/lower/lower_priv.h"

#include <math.h>
#include <string.h>

static uint32_t fixed_point(double frac) {
    return (uint32_t)CLAMP(llround(frac * ORR_RATE_ONE), 1, (long long)ORR_RATE_ONE);
}

/* Which rank of the bound program stands for each of the machine. */
static void bind_reps(OrrBinder *k) {
    const OrrCells *c = k->cells;
    uint32_t *rep = k->bound->rep_of = g_new(uint32_t, k->bound->n_real_ranks);
    for (uint32_t o = 0; o < c->n_outer; o++)
        for (uint32_t cell = 0; cell < c->n_cells; cell++) {
            uint32_t first = (o * c->n_kept + c->class_of[cell]) * c->n_ranks;
            for (uint32_t i = 0; i < c->n_ranks; i++)
                *rep++ = first + i;
        }
}

static void bind_ranks(OrrBinder *k) {
    OrrBound *b = k->bound;
    const OrrLayout *layout = &k->in->job->layout;
    b->n_real_ranks = (uint32_t)orr_layout_world(layout);
    b->n_ranks = orr_cells_n_kept_ranks(k->cells);
    b->weight = orr_large_new(b->n_ranks * sizeof *b->weight);
    b->role = orr_large_new(b->n_ranks * sizeof *b->role);
    b->hw = orr_large_new(b->n_ranks * sizeof *b->hw);
    for (uint32_t r = 0; r < b->n_ranks; r++) {
        b->weight[r] = orr_cells_weight(k->cells, r);
        b->role[r] = orr_layout_coords(layout, orr_cells_rank(k->cells, r)).pp;
    }
    if (b->n_ranks < b->n_real_ranks)
        bind_reps(k);
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
}

/* Numbers the groups that kept ranks are in, in the order of all groups of the kind. */
static void number_groups(OrrBinder *k, OrrGroup kind, OrrBoundGroup *g) {
    const OrrLayout *layout = &k->in->job->layout;
    uint32_t n = k->bound->n_ranks, n_all = orr_layout_n_groups(layout, kind);
    g_autofree uint32_t *number = g_new0(uint32_t, n_all + 1);
    g->size = orr_layout_group_size(layout, kind);
    g->group_of = orr_large_new((gsize)n * sizeof *g->group_of);
    g->position_of = orr_large_new((gsize)n * sizeof *g->position_of);
    for (uint32_t r = 0; r < n; r++) {
        g->group_of[r] =
            orr_layout_group_of(layout, kind, orr_cells_rank(k->cells, r), &g->position_of[r]);
        if (g->group_of[r] != ORR_NONE)
            number[g->group_of[r]] = 1;
    }
    g_free(k->group_rank);
    k->group_rank = g_new(uint32_t, n_all + 1);
    for (uint32_t i = 0; i < n_all; i++)
        if (number[i] > 0) {
            k->group_rank[g->n_groups] = i;
            number[i] = g->n_groups++;
        }
    for (uint32_t r = 0; r < n; r++)
        if (g->group_of[r] != ORR_NONE)
            g->group_of[r] = number[g->group_of[r]];
}

static void bind_members(OrrBinder *k, OrrGroup kind, OrrBoundGroup *g) {
    uint32_t n = k->bound->n_ranks;
    number_groups(k, kind, g);
    g->first_member = g_new0(uint32_t, g->n_groups + 2);
    g->members = orr_large_new(((gsize)n + 1) * sizeof *g->members);
    g->class_of = g_new0(uint32_t, g->n_groups + 1);
    g->weight = g_new0(uint32_t, g->n_groups + 1);
    uint32_t *at = g->first_member + 1; /* where each group's next member goes */
    for (uint32_t r = 0; r < n; r++)
        if (g->group_of[r] != ORR_NONE)
            at[g->group_of[r] + 1]++;
    for (uint32_t i = 0; i < g->n_groups; i++)
        at[i + 1] += at[i];
    for (uint32_t r = 0; r < n; r++)
        if (g->group_of[r] != ORR_NONE) {
            g->members[at[g->group_of[r]]++] = r;
            g->weight[g->group_of[r]] = k->cells->spans[kind] ? 1 : k->bound->weight[r];
        }
}

static void list_append(const OrrBinder *k, OrrMemberList *list, const uint32_t *kept, uint32_t n,
                        uint32_t cell, uint32_t times) {
    const OrrCells *c = k->cells;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t rank = orr_cells_rank(c, kept[i]);
        uint32_t outer = rank / c->n_ranks / c->n_cells;
        rank = (outer * c->n_cells + cell) * c->n_ranks + rank % c->n_ranks;
        list->gpus[list->n] = orr_lower__gpu(k->in, rank);
        list->repeat[list->n++] = times;
    }
}

/* Of cells alike that follow each other the first, the last and one for all between. */
static void list_runs(const OrrBinder *k, OrrMemberList *list, const uint32_t *kept, uint32_t n) {
    const OrrCells *c = k->cells;
    for (uint32_t i = 0; i < c->n_runs; i++) {
        uint32_t first = c->runs[i].first, last = first + c->runs[i].n - 1;
        list_append(k, list, kept, n, first, 1);
        if (last > first + 1)
            list_append(k, list, kept, n, first + 1, last - first - 1);
        if (last > first)
            list_append(k, list, kept, n, last, 1);
    }
}

/* Where the members of group @i are. Those of a group that reaches into every cell have the same
 * places in each: what the first kept one has. */
static void list_members(const OrrBinder *k, OrrGroup kind, const OrrBoundGroup *g, uint32_t i,
                         OrrMemberList *list) {
    const OrrCells *c = k->cells;
    const uint32_t *members = g->members + g->first_member[i];
    uint32_t n = g->first_member[i + 1] - g->first_member[i];
    list->n = 0;
    if (!c->spans[kind]) {
        for (uint32_t m = 0; m < n; m++)
            list->gpus[list->n++] = orr_lower__gpu(k->in, orr_cells_rank(c, members[m]));
        return;
    }
    for (uint32_t m = 0, next; m < n; m = next) {
        uint32_t block = members[m] / c->n_ranks, outer = block / c->n_kept, in_first = 0;
        for (next = m; next < n && members[next] / c->n_ranks / c->n_kept == outer; next++)
            in_first += members[next] / c->n_ranks == block;
        list_runs(k, list, members + m, in_first);
    }
}

static void list_init(const OrrBinder *k, OrrGroup kind, const OrrBoundGroup *g,
                      OrrMemberList *list) {
    bool is_long = k->cells->spans[kind];
    gsize n =
        is_long ? MIN((gsize)g->size, (gsize)k->bound->n_ranks * 3 * k->cells->n_runs) : g->size;
    *list = (OrrMemberList){0, g_new(uint32_t, n + 1), is_long ? g_new(uint32_t, n + 1) : NULL};
}

static void list_clear(OrrMemberList *list) {
    g_free(list->gpus);
    g_free(list->repeat);
}

/* Groups whose places are equal are of one class. */
static GArray *classify(OrrBinder *k, OrrGroup kind, OrrBoundGroup *g) {
    GArray *places = g_array_new(FALSE, TRUE, sizeof(OrrCommPlace));
    OrrMemberList list;
    list_init(k, kind, g, &list);
    for (uint32_t i = 0; i < g->n_groups; i++) {
        OrrCommPlace place;
        memset(&place, 0, sizeof place);
        list_members(k, kind, g, i, &list);
        orr_comm_place_repeated(k->in->cluster, list.gpus, list.repeat, list.n, &place);
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
    list_clear(&list);
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

OrrPlan orr_lower__plan(const OrrCollPlan *plan, int64_t bytes, GArray *shapes) {
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

static void bind_uses(OrrBinder *k, OrrGroup kind, OrrBoundGroup *g, const GArray *places,
                      const GArray *shapes) {
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(OrrUse));
    g_autoptr(GArray) uses = g_array_new(FALSE, FALSE, sizeof(OrrUse));
    OrrMemberList list;
    uint32_t n = shapes->len;
    list_init(k, kind, g, &list);
    g->loads.n_loads = n;
    g->loads.first = g_new0(uint32_t, (gsize)g->n_groups * n + 1);
    for (uint32_t i = 0; i < g->n_groups; i++) {
        const OrrCommPlace *place = &g_array_index(places, OrrCommPlace, g->class_of[i]);
        list_members(k, kind, g, i, &list);
        for (uint32_t v = 0; v < n; v++) {
            const OrrLoadShape *shape = &g_array_index(shapes, OrrLoadShape, v);
            g_array_set_size(uses, 0);
            orr_lower__group_uses(k, &list, shape, MAX(place->gpus_per_nic, 1u), uses);
            if (k->cells->spans[kind]) /* partners of an all-to-all are no neighbours */
                k->is_irregular |=
                    shape->pattern == ORR_PATTERN_PAIRS || !orr_lower__keep_uses(k, uses);
            else
                orr_lower__count_uses(k, g->weight[i], uses);
            g_array_append_vals(all, uses->data, uses->len);
            g->loads.first[(gsize)i * n + v + 1] = all->len;
        }
    }
    g->loads.uses = orr_large_dup(all->data, (gsize)all->len * sizeof(OrrUse));
    list_clear(&list);
}

static bool bind_colls(OrrBinder *k, OrrGroup kind, OrrBoundGroup *g, GError **error) {
    g_autoptr(GArray) places = classify(k, kind, g);
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
            g->plans[(gsize)c * n + i] = orr_lower__plan(&plan, coll->bytes, shapes);
        }
    if (shapes->len > 0)
        bind_uses(k, kind, g, places, shapes);
    return true;
}

static bool bind_group(OrrBinder *k, OrrGroup kind, GError **error) {
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
        orr_lower__bind_pairs(k, kind, g);
    return true;
}

/* NULL with @error, or without one where cells that looked alike are not. */
static OrrBound *bind_cells(const OrrLowering *in, const OrrProgram *program, const OrrCells *cells,
                            GError **error) {
    OrrBinder k = {.in = in, .program = program, .cells = cells, .bound = g_new0(OrrBound, 1)};
    bool is_bound = true;
    k.bound->program = program;
    bind_ranks(&k);
    for (int kind = 0; kind < ORR_N_GROUPS && is_bound && !k.is_irregular; kind++)
        is_bound = bind_group(&k, kind, error);
    g_free(k.group_rank);
    if (!is_bound || k.is_irregular) {
        orr_bound_free(k.bound);
        return NULL;
    }
    orr_lower__perturb_ranks(&k);
    orr_lower__bind_links(&k);
    return k.bound;
}

OrrBound *orr_lower_bind(const OrrLowering *in, const OrrProgram *program, GError **error) {
    g_autoptr(OrrCells) cells = orr_cells_new(in, program);
    g_autoptr(GError) why = NULL;
    OrrBound *bound = bind_cells(in, program, cells, &why);
    if (!bound && !why) {
        g_autoptr(OrrCells) whole = orr_cells_whole(in);
        bound = bind_cells(in, program, whole, &why);
    }
    if (!bound)
        g_propagate_error(error, g_steal_pointer(&why));
    return bound;
}
