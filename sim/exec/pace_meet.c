/* Where ranks meet: collectives and sends, as meet.c has them, and the links that collectives
 * share. */
#include "sim/base/large.h"
#include "sim/exec/exec_priv.h"
#include "sim/exec/pace_priv.h"

#include <stdlib.h>

static const OrrProgram *program(const OrrPaceRun *x) {
    return x->pace->program;
}

static void group_places(OrrPaceRun *x, uint32_t kind, uint32_t *n_groups, uint32_t *n_pairs) {
    const OrrBoundGroup *g = &x->bound->groups[kind];
    bool has_coll[256] = {false}, has_pair[256] = {false};
    orr_exec__used_comms(program(x), kind, has_coll, has_pair);
    for (uint32_t comm = 0; comm < 256; comm++) {
        x->first_group[kind][comm] = *n_groups;
        x->first_pair[kind][comm] = *n_pairs;
        *n_groups += has_coll[comm] ? g->n_groups : 0;
        *n_pairs += has_pair[comm] ? g->n_groups * g->n_pairs : 0;
    }
}

/* The least that a send takes, by class of pairs: whoever is there first knows no more. */
static int64_t *least_of_pairs(const OrrPaceRun *x, uint32_t kind) {
    const OrrBoundGroup *g = &x->bound->groups[kind];
    uint32_t n = program(x)->n_parts;
    int64_t *least = g_new(int64_t, g->n_pair_classes + 1);
    for (uint32_t c = 0; c < g->n_pair_classes; c++) {
        least[c] = INT64_MAX;
        for (uint32_t i = 0; i < n; i++)
            if (program(x)->parts[i].is_send && program(x)->parts[i].group == kind)
                least[c] = MIN(least[c], orr_exec__private_ns(&g->pair_plans[(gsize)c * n + i]));
    }
    return least;
}

bool orr_pace__sends_share(const OrrBound *bound) {
    for (uint32_t kind = 0; kind < ORR_N_GROUPS; kind++) {
        const OrrBoundGroup *g = &bound->groups[kind];
        uint32_t n = g->n_groups * g->n_pairs;
        if (n > 0 && g->pair_loads.n_loads > 0 && g->pair_loads.first[n] > 0)
            return true;
    }
    return false;
}

void orr_pace__meetings_new(OrrPaceRun *x) {
    uint32_t n_groups = 0, n_pairs = 0;
    for (uint32_t kind = 0; kind < ORR_N_GROUPS; kind++) {
        group_places(x, kind, &n_groups, &n_pairs);
        x->least_ns[kind] = least_of_pairs(x, kind);
    }
    x->groups = orr_large_new(((gsize)n_groups + 1) * sizeof *x->groups);
    x->pairs = orr_large_new(((gsize)n_pairs + 1) * sizeof *x->pairs);
}

void orr_pace__meetings_clear(OrrPaceRun *x) {
    for (uint32_t kind = 0; kind < ORR_N_GROUPS; kind++)
        g_free(x->least_ns[kind]);
    free(x->groups);
    free(x->pairs);
}

static const OrrPlan *plan_of(const OrrPaceRun *x, const OrrPaceGroup *place) {
    const OrrBoundGroup *g = &x->bound->groups[place->kind];
    return &g->plans[(gsize)g->class_of[place->group] * program(x)->n_colls + place->what];
}

/* Links that the transfer shares; @n of them. */
static const OrrUse *uses_of(const OrrPaceRun *x, const OrrPaceGroup *place, uint32_t *n) {
    const OrrPlan *plan = plan_of(x, place);
    const OrrLoads *l = &x->bound->groups[place->kind].loads;
    *n = 0;
    if (l->n_loads == 0 || plan->work_bytes == 0)
        return NULL;
    gsize v = (gsize)place->group * l->n_loads + plan->load;
    *n = l->first[v + 1] - l->first[v];
    return l->uses + l->first[v];
}

/* The collective ends for all its members. */
static void end_group(OrrPaceRun *x, const OrrPaceGroup *place, int64_t end_ns) {
    const OrrBoundGroup *g = &x->bound->groups[place->kind];
    for (uint32_t m = g->first_member[place->group]; m < g->first_member[place->group + 1]; m++)
        orr_pace__set_end(x, g->members[m], place->stream, end_ns);
}

/* All are there, but when the links will let them go is not known. */
static void await_links(OrrPaceRun *x, const OrrPaceGroup *place, int64_t least_ns) {
    const OrrBoundGroup *g = &x->bound->groups[place->kind];
    for (uint32_t m = g->first_member[place->group]; m < g->first_member[place->group + 1]; m++) {
        uint32_t r = g->members[m];
        x->ranks[r].lane[place->stream].event_ns = least_ns;
        if (x->next_ns[r] < least_ns)
            orr_pace__list(x, r);
    }
}

static void arrive_coll(OrrPaceRun *x, uint32_t r, uint32_t s, uint32_t what, int64_t now_ns) {
    const OrrColl *c = &program(x)->colls[what];
    const OrrBoundGroup *g = &x->bound->groups[c->group];
    uint32_t group = g->group_of[r], id = x->first_group[c->group][c->comm] + group;
    OrrPaceGroup *place = &x->groups[id];
    if (place->n_arrived == 0)
        *place = (OrrPaceGroup){now_ns, 0, what, 0, c->group, s, group};
    x->is_mismatch |= place->what != what || place->stream != s;
    place->arrived_ns = MAX(place->arrived_ns, now_ns);
    const OrrPlan *plan = plan_of(x, place);
    int64_t least_ns = orr_exec__private_ns(plan);
    x->ranks[r].lane[s].event_ns = now_ns + least_ns;
    if (++place->n_arrived < g->first_member[group + 1] - g->first_member[group])
        return;
    place->n_arrived = 0;
    uint32_t n_uses;
    uses_of(x, place, &n_uses);
    if (n_uses == 0) {
        end_group(x, place, place->arrived_ns + least_ns);
        return;
    }
    orr_queue_push(&x->starts, place->arrived_ns + plan->latency_ns, 0, 0, id);
    await_links(x, place, place->arrived_ns + least_ns);
}

/* A part of the batch in hand of rank @r ends at @end_ns. */
static void end_part(OrrPaceRun *x, uint32_t r, uint32_t s, int64_t end_ns) {
    OrrPaceLane *l = &x->ranks[r].lane[s];
    l->event_ns = MAX(l->event_ns, end_ns);
    if (--l->pending == 0)
        orr_pace__set_end(x, r, s, l->event_ns);
}

static void arrive_part(OrrPaceRun *x, uint32_t r, uint32_t s, uint32_t part, int64_t now_ns) {
    const OrrP2pPart *p = &program(x)->parts[part];
    const OrrBoundGroup *g = &x->bound->groups[p->group];
    uint32_t me = g->position_of[r], from = p->is_send ? me : p->peer;
    uint32_t to = p->is_send ? p->peer : me;
    uint32_t i = g->group_of[r] * g->n_pairs + g->pair_index[from * g->size + to];
    OrrPacePair *place = &x->pairs[x->first_pair[p->group][p->comm] + i];
    if (p->is_send)
        place->part = part;
    if (p->is_send ? !place->has_receiver : !place->has_sender) {
        place->has_sender = p->is_send;
        place->has_receiver = !p->is_send;
        place->arrived_ns = now_ns;
        place->stream = s;
        OrrPaceLane *l = &x->ranks[r].lane[s];
        l->event_ns = MAX(l->event_ns, now_ns + x->least_ns[p->group][g->pair_class[i]]);
        return;
    }
    place->has_sender = place->has_receiver = 0;
    const OrrPlan *plan =
        &g->pair_plans[(gsize)g->pair_class[i] * program(x)->n_parts + place->part];
    int64_t end_ns = MAX(place->arrived_ns, now_ns) + orr_exec__private_ns(plan);
    end_part(x, r, s, end_ns);
    end_part(x, g->pair_rank[2 * (gsize)i + (p->is_send ? 1 : 0)], place->stream, end_ns);
}

void orr_pace__arrive(OrrPaceRun *x, uint32_t r, uint32_t s, const OrrItem *item, int64_t now_ns) {
    if (item->type == ORR_ITEM_COLL) {
        arrive_coll(x, r, s, item->what, now_ns);
        return;
    }
    const OrrP2p *p = &program(x)->p2ps[item->what];
    OrrPaceLane *l = &x->ranks[r].lane[s];
    l->pending = p->n_parts;
    l->event_ns = now_ns;
    for (uint32_t i = 0; i < p->n_parts; i++)
        arrive_part(x, r, s, p->first_part + i, now_ns);
}

void orr_pace__flow_start(OrrPaceRun *x) {
    OrrEvent e = orr_queue_pop(&x->starts);
    OrrPaceGroup *place = &x->groups[e.id];
    const OrrPlan *plan = plan_of(x, place);
    OrrFlow flow = {.weight = plan->weight,
                    .cap_bytes_per_s = plan->cap_bytes_per_s,
                    .bytes = plan->work_bytes,
                    .owner = e.id};
    flow.uses = uses_of(x, place, &flow.n_uses);
    place->flow = orr_fluid_start(x->fluid, e.time_ns, &flow);
    x->is_unsettled = true;
    x->settle_ns = e.time_ns;
}

static void note_ended(void *data, uint32_t activity, uint32_t owner) {
    GArray *ended = data;
    (void)activity;
    g_array_append_val(ended, owner);
}

void orr_pace__flows_end(OrrPaceRun *x, int64_t now_ns) {
    g_array_set_size(x->ended, 0);
    orr_fluid_take_ended(x->fluid, now_ns, note_ended, x->ended);
    for (uint32_t i = 0; i < x->ended->len; i++) {
        const OrrPaceGroup *place = &x->groups[g_array_index(x->ended, uint32_t, i)];
        orr_fluid_end(x->fluid, now_ns, place->flow);
        end_group(x, place, now_ns);
    }
    x->is_unsettled = true;
    x->settle_ns = now_ns;
}
