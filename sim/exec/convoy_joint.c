/* What a convoy asks of its links is asked for all its transfers at once.
 *
 * Members use some links alike (uplinks), and others only some of them do (NICs). Room for all is
 * the sum of what each needs, so it is taken and given back as one. Without room, transfers that
 * set out at one time are one activity of the fluid (sim/net/joint.c), as long as the links that
 * only some use stop nobody: when one of those may, the fluid says so before it solves, and each
 * goes on by itself. What only speeds up is decided here, never a rate or an end. Cost: half the
 * links of the single transfers, and an eighth of everything else. */
#include "sim/base/large.h"
#include "sim/exec/convoy.h"

#include <stdlib.h>

static OrrPlace *place_of(const OrrExec *x, const OrrConvoy *c, uint32_t i) {
    return &x->places[x->convoys->places[c->first + i]];
}

/* Whether all have the same uses, but for the links, and none has a link twice. */
static bool are_alike(const OrrExec *x, const OrrConvoy *c) {
    const OrrPlace *first = place_of(x, c, 0);
    for (uint32_t i = 0; i < c->n; i++) {
        const OrrPlace *place = place_of(x, c, i);
        if (place->n_uses != first->n_uses)
            return false;
        for (uint32_t u = 0; u < place->n_uses; u++) {
            const OrrUse *use = &place->uses[u];
            if (use->coef != first->uses[u].coef || use->count != first->uses[u].count ||
                use->count > UINT32_MAX / ORR_MAX_ISLAND)
                return false;
            for (uint32_t v = 0; v < u; v++)
                if (place->uses[v].constraint == use->constraint)
                    return false;
        }
    }
    return first->n_uses > 0;
}

static bool is_shared(const OrrExec *x, const OrrConvoy *c, uint32_t u) {
    for (uint32_t i = 1; i < c->n; i++)
        if (place_of(x, c, i)->uses[u].constraint != place_of(x, c, 0)->uses[u].constraint)
            return false;
    return true;
}

/* The links of use @u of all members, each once. Returns how many. */
static uint32_t add_own(const OrrExec *x, const OrrConvoy *c, uint32_t u, OrrUse *to) {
    uint32_t n = 0, k;
    for (uint32_t i = 0; i < c->n; i++) {
        OrrUse use = place_of(x, c, i)->uses[u];
        for (k = 0; k < n && to[k].constraint != use.constraint; k++)
            ;
        if (k < n)
            to[k].count += use.count;
        else
            to[n++] = use;
    }
    return n;
}

/* Writes what the convoy uses as one behind the @at uses so far. Returns where that ends. */
static gsize join_uses(const OrrExec *x, OrrConvoy *c, gsize at) {
    OrrUse *to = x->convoys->joint_uses + at;
    uint32_t n = place_of(x, c, 0)->n_uses;
    if (!are_alike(x, c))
        return at;
    c->first_joint = (uint32_t)at;
    for (uint32_t u = 0; u < n; u++)
        if (is_shared(x, c, u)) {
            to[c->n_shared] = place_of(x, c, 0)->uses[u];
            to[c->n_shared++].count *= c->n;
        }
    for (uint32_t u = 0; u < n; u++)
        if (!is_shared(x, c, u))
            c->n_own += add_own(x, c, u, to + c->n_shared + c->n_own);
    return at + c->n_shared + c->n_own;
}

/* Convoys by the links of their own. */
static void index_own(OrrExec *x) {
    OrrConvoys *v = x->convoys;
    uint32_t n_links = x->bound->n_links;
    v->own_first = g_new0(uint32_t, n_links + 2);
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < v->n; i++) {
            const OrrConvoy *c = &v->convoys[i];
            const OrrUse *own = v->joint_uses + c->first_joint + c->n_shared;
            for (uint32_t u = 0; u < c->n_own; u++)
                if (pass == 0)
                    v->own_first[own[u].constraint + 2]++;
                else
                    v->own[v->own_first[own[u].constraint + 1]++] = i;
        }
        if (pass == 1)
            break;
        for (uint32_t l = 0; l < n_links; l++)
            v->own_first[l + 2] += v->own_first[l + 1];
        v->own = g_new(uint32_t, v->own_first[n_links + 1] + 1);
    }
}

void orr_convoy__joints_new(OrrExec *x) {
    OrrConvoys *v = x->convoys;
    gsize n = 0;
    for (uint32_t i = 0; i < v->n_places; i++)
        n += x->places[v->places[i]].n_uses;
    v->joint_uses = orr_large_new((n + 1) * sizeof *v->joint_uses);
    n = 0;
    for (uint32_t i = 0; i < v->n; i++)
        n = join_uses(x, &v->convoys[i], n);
    index_own(x);
}

void orr_convoy__joints_clear(OrrConvoys *v) {
    free(v->joint_uses);
    g_free(v->own_first);
    g_free(v->own);
}

/* Whether all its transfers, which are to set out, are equal: then what is their top is known. */
static bool are_equal(OrrExec *x, OrrConvoy *c) {
    OrrPlace *first = place_of(x, c, 0);
    const OrrPlan *plan = orr_exec__plan(first);
    const OrrTop *top = orr_exec__top(x, first);
    c->joint_top = first->top;
    for (uint32_t i = 1; i < c->n; i++) {
        OrrPlace *place = place_of(x, c, i);
        top = orr_exec__top(x, place);
        const OrrTop *of_first = &x->tops[first->top];
        if (place->what != first->what || orr_exec__plan(place)->weight != plan->weight ||
            top->bytes_per_s != of_first->bytes_per_s || top->bytes != of_first->bytes ||
            top->scale != of_first->scale)
            return false;
    }
    return plan->work_bytes > 0;
}

bool orr_convoy__is_joint(OrrExec *x, OrrConvoy *c) {
    const OrrPlace *first = place_of(x, c, 0);
    if (c->n_shared + c->n_own == 0)
        return false;
    for (uint32_t i = 0; i < c->n; i++) {
        const OrrPlace *place = place_of(x, c, i);
        if (place->is_held || place->what != first->what)
            return false;
    }
    if (c->joint_what != first->what) {
        c->joint_what = first->what;
        c->is_equal = are_equal(x, c);
    }
    return c->is_equal;
}

static OrrReserve reserve_of(const OrrExec *x, const OrrConvoy *c) {
    const OrrTop *top = &x->tops[c->joint_top];
    return (OrrReserve){.uses = x->convoys->joint_uses + c->first_joint,
                        .n_uses = c->n_shared + c->n_own,
                        .top_bytes_per_s = top->bytes_per_s,
                        .scale = top->scale};
}

int64_t orr_convoy__take_room(OrrExec *x, OrrConvoy *c) {
    OrrReserve r = reserve_of(x, c);
    const OrrTop *top = &x->tops[c->joint_top];
    if (top->ns == INT64_MAX || !orr_exec__reserve(x, &r))
        return INT64_MAX;
    for (uint32_t i = 0; i < c->n; i++) {
        OrrPlace *place = place_of(x, c, i);
        place->booked_top = c->joint_top;
        place->is_booked = 1;
    }
    x->n_booked += c->n;
    return top->ns;
}

void orr_convoy__give_room(OrrExec *x, OrrConvoy *c) {
    bool is_all = c->n_shared + c->n_own > 0;
    for (uint32_t i = 0; i < c->n; i++) {
        const OrrPlace *place = place_of(x, c, i);
        is_all &= place->is_held && place->booked_top == c->joint_top;
    }
    for (uint32_t i = 0; i < c->n; i++) {
        if (is_all)
            place_of(x, c, i)->is_held = 0;
        else if (place_of(x, c, i)->is_held)
            orr_exec__room_give(x, x->convoys->places[c->first + i]);
    }
    if (!is_all)
        return;
    OrrReserve r = reserve_of(x, c);
    orr_exec__unreserve(x, &r);
}

static OrrFlow flow_of(const OrrPlace *place, uint32_t owner) {
    const OrrPlan *plan = orr_exec__plan(place);
    return (OrrFlow){.uses = place->uses,
                     .n_uses = place->n_uses,
                     .weight = plan->weight,
                     .cap_bytes_per_s = plan->cap_bytes_per_s,
                     .bytes = plan->work_bytes,
                     .owner = owner};
}

bool orr_convoy__flow(OrrExec *x, uint32_t id) {
    OrrConvoy *c = &x->convoys->convoys[id];
    if (!c->is_joint)
        return false;
    OrrFlow flow = flow_of(place_of(x, c, 0), id | ORR_JOINT_OWNER);
    flow.uses = x->convoys->joint_uses + c->first_joint;
    flow.n_uses = c->n_shared;
    flow.n_own = c->n_own;
    if (!orr_fluid_start_joint(x->fluid, x->now_ns, &flow, &c->flow))
        return false;
    orr_exec__pass_by(x, flow.uses, c->n_shared + c->n_own);
    x->is_fluid_dirty = true;
    return true;
}

void orr_convoy__flow_over(OrrExec *x, OrrConvoy *c) {
    orr_fluid_end(x->fluid, x->now_ns, c->flow);
    c->flow = ORR_NONE;
    x->is_fluid_dirty = true;
}

/* Its transfers go on in the fluid by themselves. */
static void split(OrrExec *x, OrrConvoy *c) {
    OrrFlow flows[ORR_MAX_ISLAND];
    uint32_t ids[ORR_MAX_ISLAND];
    for (uint32_t i = 0; i < c->n; i++)
        flows[i] = flow_of(place_of(x, c, i), x->convoys->places[c->first + i]);
    orr_fluid_split(x->fluid, x->now_ns, c->flow, flows, c->n, ids);
    c->flow = ORR_NONE;
    for (uint32_t i = 0; i < c->n; i++) {
        place_of(x, c, i)->flow = ids[i];
        place_of(x, c, i)->is_flowing = 1;
    }
}

void orr_exec__split_on(OrrExec *x, uint32_t link) {
    const OrrConvoys *v = x->convoys;
    if (!v)
        return;
    for (uint32_t i = v->own_first[link]; i < v->own_first[link + 1]; i++)
        if (v->convoys[v->own[i]].flow != ORR_NONE)
            split(x, &v->convoys[v->own[i]]);
}
