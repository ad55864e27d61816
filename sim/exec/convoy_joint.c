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

#define MOST_USES 16u /* of a transfer of a joint convoy; a send has NICs, leaf and pod: six */

static bool has_use(const OrrPlace *place, const OrrUse *use) {
    for (uint32_t u = 0; u < place->n_uses; u++)
        if (place->uses[u].constraint == use->constraint && place->uses[u].coef == use->coef &&
            place->uses[u].count == use->count)
            return true;
    return false;
}

static bool is_shared(const OrrExec *x, const OrrConvoy *c, const OrrUse *use) {
    for (uint32_t i = 0; i < c->n; i++)
        if (!has_use(place_of(x, c, i), use))
            return false;
    return true;
}

static bool has_link_twice(const OrrPlace *place) {
    for (uint32_t u = 0; u < place->n_uses; u++)
        for (uint32_t v = 0; v < u; v++)
            if (place->uses[v].constraint == place->uses[u].constraint)
                return true;
    return false;
}

/* What each of them uses of links of its own, in the order of its uses: use k of member i at
 * k * n + i. Returns how many each has; ORR_NONE: they are not alike. */
static uint32_t find_own(const OrrExec *x, const OrrConvoy *c, OrrUse *own) {
    uint32_t n_own = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        const OrrPlace *place = place_of(x, c, i);
        uint32_t k = 0;
        if (place->n_uses == 0 || place->n_uses > MOST_USES || has_link_twice(place))
            return ORR_NONE;
        for (uint32_t u = 0; u < place->n_uses; u++)
            if (place->uses[u].count > UINT32_MAX / ORR_MAX_ISLAND)
                return ORR_NONE;
            else if (!is_shared(x, c, &place->uses[u]))
                own[k++ * c->n + i] = place->uses[u];
        if (i > 0 && k != n_own)
            return ORR_NONE;
        n_own = k;
    }
    for (uint32_t k = 0; k < n_own * c->n; k++) {
        const OrrUse *first = &own[k / c->n * c->n];
        if (own[k].coef != first->coef || own[k].count != first->count)
            return ORR_NONE;
    }
    return n_own;
}

/* The row of the links of uses @own, one a member: that which they have been given before, or a new
 * one. ORR_NONE: some of them are in another, or are one and the same. @row_of: [n_links]. */
static uint32_t row_of(OrrExec *x, const OrrConvoy *c, const OrrUse *own, uint32_t *row_of_link) {
    uint32_t links[ORR_MAX_ISLAND] = {0}, n;
    for (uint32_t i = 0; i < c->n; i++) {
        links[i] = own[i].constraint;
        if (row_of_link[links[i]] != row_of_link[links[0]])
            return ORR_NONE;
        for (uint32_t k = 0; k < i; k++)
            if (links[k] == links[i])
                return ORR_NONE;
    }
    uint32_t row = row_of_link[links[0]];
    if (row != ORR_NONE) {
        orr_fluid_row_links(x->fluid, row, &n);
        return n == c->n ? row : ORR_NONE;
    }
    row = orr_fluid_add_row(x->fluid, links, c->n);
    for (uint32_t i = 0; i < c->n; i++)
        row_of_link[links[i]] = row;
    return row;
}

/* Writes what the convoy uses as one behind the @at uses so far. Returns where that ends. */
static gsize join_uses(OrrExec *x, OrrConvoy *c, gsize at, uint32_t *row_of_link) {
    OrrUse own[MOST_USES * ORR_MAX_ISLAND], *to = x->convoys->joint_uses + at;
    const OrrPlace *first = place_of(x, c, 0);
    uint32_t n_shared = 0, n_rows = find_own(x, c, own);
    if (n_rows == ORR_NONE)
        return at;
    for (uint32_t u = 0; u < first->n_uses; u++)
        if (is_shared(x, c, &first->uses[u])) {
            to[n_shared] = first->uses[u];
            to[n_shared++].count *= c->n;
        }
    for (uint32_t k = 0; k < n_rows; k++) {
        to[n_shared + k] = own[k * c->n];
        to[n_shared + k].constraint = row_of(x, c, own + k * c->n, row_of_link);
        if (to[n_shared + k].constraint == ORR_NONE)
            return at;
    }
    c->first_joint = (uint32_t)at;
    c->n_shared = n_shared;
    c->n_rows = n_rows;
    for (uint32_t u = 0; u < n_shared; u++) {
        to[n_shared + n_rows + u] = to[u];
        to[n_shared + n_rows + u].count /= c->n;
    }
    return at + 2 * n_shared + n_rows;
}

/* Convoys by the links of their rows. */
static void index_rows(OrrExec *x) {
    OrrConvoys *v = x->convoys;
    OrrUse own[MOST_USES * ORR_MAX_ISLAND];
    uint32_t n_links = x->bound->n_links;
    v->row_first = g_new0(uint32_t, n_links + 2);
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < v->n; i++) {
            const OrrConvoy *c = &v->convoys[i];
            uint32_t n = c->n_rows > 0 ? find_own(x, c, own) * c->n : 0;
            for (uint32_t k = 0; k < n; k++)
                if (pass == 0)
                    v->row_first[own[k].constraint + 2]++;
                else
                    v->row[v->row_first[own[k].constraint + 1]++] = i;
        }
        if (pass == 1)
            break;
        for (uint32_t l = 0; l < n_links; l++)
            v->row_first[l + 2] += v->row_first[l + 1];
        v->row = g_new(uint32_t, v->row_first[n_links + 1] + 1);
    }
}

void orr_convoy__joints_new(OrrExec *x) {
    OrrConvoys *v = x->convoys;
    gsize n = 0;
    for (uint32_t i = 0; i < v->n_places; i++)
        n += x->places[v->places[i]].n_uses;
    v->joint_uses = orr_large_new((n + 1) * sizeof *v->joint_uses);
    g_autofree uint32_t *row_of_link = g_new(uint32_t, x->bound->n_links + 1);
    for (uint32_t l = 0; l < x->bound->n_links; l++)
        row_of_link[l] = ORR_NONE;
    n = 0;
    for (uint32_t i = 0; i < v->n; i++)
        n = join_uses(x, &v->convoys[i], n, row_of_link);
    index_rows(x);
}

void orr_convoy__joints_clear(OrrConvoys *v) {
    free(v->joint_uses);
    g_free(v->row_first);
    g_free(v->row);
}

/* Whether all its transfers, which are to set out, are equal: then what is their top is known. */
static bool are_equal(OrrExec *x, OrrConvoy *c) {
    OrrPlace *first = place_of(x, c, 0);
    const OrrPlan *plan = orr_exec__plan(first);
    const OrrTop *top = orr_exec__top(x, first);
    c->joint_top = first->top;
    c->plan = plan;
    for (uint32_t i = 1; i < c->n; i++) {
        OrrPlace *place = place_of(x, c, i);
        top = orr_exec__top(x, place);
        const OrrTop *of_first = &x->tops[first->top];
        if (place->what != first->what || orr_exec__plan(place)->weight != plan->weight ||
            orr_exec__plan(place)->latency_ns != plan->latency_ns ||
            top->bytes_per_s != of_first->bytes_per_s || top->bytes != of_first->bytes ||
            top->scale != of_first->scale)
            return false;
    }
    return plan->work_bytes > 0;
}

static OrrReserve room_of(const OrrExec *x, const OrrConvoy *c, const OrrTop *top) {
    return (OrrReserve){.uses = x->convoys->joint_uses + c->first_joint,
                        .n_uses = c->n_shared,
                        .n_rows = c->n_rows,
                        .top_bytes_per_s = top->bytes_per_s,
                        .scale = top->scale};
}

/* Each of its last transfers holds room by itself: it is held as one from now on, if the next ones
 * need the same. */
static bool join_room(OrrExec *x, OrrConvoy *c) {
    const OrrTop *top = &x->tops[c->joint_top];
    OrrReserve all = room_of(x, c, top), parts[ORR_MAX_ISLAND];
    for (uint32_t i = 0; i < c->n; i++) {
        parts[i] = orr_exec__room_of(x, place_of(x, c, i));
        if (parts[i].top_bytes_per_s != top->bytes_per_s || parts[i].scale != top->scale)
            return false;
    }
    if (!orr_fluid_join(x->fluid, &all, parts, c->n))
        return false;
    for (uint32_t i = 0; i < c->n; i++)
        orr_exec__count_booked(x, &parts[i], -1);
    orr_exec__count_booked(x, &all, +1);
    c->has_room = true;
    c->room_top = c->joint_top;
    return true;
}

bool orr_convoy__is_joint(OrrExec *x, OrrConvoy *c) {
    const OrrPlace *first = place_of(x, c, 0);
    uint32_t n_held = 0;
    if (c->n_shared + c->n_rows == 0)
        return false;
    for (uint32_t i = 0; i < c->n; i++) {
        const OrrPlace *place = place_of(x, c, i);
        if (place->what != first->what)
            return false;
        n_held += place->is_held;
    }
    if (n_held > 0 && n_held < c->n)
        return false;
    g_assert(n_held > 0 || !c->has_room);
    if (c->joint_what != first->what) {
        c->joint_what = first->what;
        c->is_equal = are_equal(x, c);
    }
    return c->is_equal && (n_held == 0 || c->has_room || join_room(x, c));
}

/* Whether the room that its last transfers hold is what the next ones need. */
static bool is_room_for(const OrrExec *x, const OrrConvoy *c, const OrrTop *top) {
    const OrrTop *held = &x->tops[c->room_top];
    return held->bytes_per_s == top->bytes_per_s && held->scale == top->scale;
}

/* The same as pass_by for the links of a row that others use, too. */
static void pass_by_row(OrrExec *x, uint32_t row) {
    uint32_t n;
    const uint32_t *links = orr_fluid_row_links(x->fluid, row, &n);
    for (uint32_t i = 0; i < n; i++)
        orr_exec__pass_link(x, links[i]);
}

static void pass_by(OrrExec *x, const OrrUse *uses, uint32_t n_uses, uint32_t n_rows) {
    orr_exec__pass_by(x, uses, n_uses);
    for (uint32_t u = 0; u < n_rows; u++)
        pass_by_row(x, uses[n_uses + u].constraint);
}

int64_t orr_convoy__take_room(OrrExec *x, OrrConvoy *c, bool is_start) {
    const OrrTop *top = &x->tops[c->joint_top];
    OrrReserve r = room_of(x, c, top);
    if (top->ns == INT64_MAX)
        return INT64_MAX;
    if (c->has_room && !is_room_for(x, c, top))
        orr_convoy__give_room(x, c);
    if (!c->has_room && !orr_exec__reserve(x, &r, is_start))
        return INT64_MAX;
    if (is_start)
        pass_by(x, r.uses, r.n_uses, r.n_rows);
    for (uint32_t i = 0; i < c->n; i++) {
        OrrPlace *place = place_of(x, c, i);
        place->is_held = 0;
        place->is_booked = 1;
    }
    x->n_booked += c->n;
    c->has_room = true;
    c->room_top = c->joint_top;
    return top->ns;
}

void orr_convoy__part_room(OrrExec *x, OrrConvoy *c) {
    OrrReserve all = room_of(x, c, &x->tops[c->room_top]), parts[ORR_MAX_ISLAND];
    c->has_room = false;
    orr_exec__count_booked(x, &all, -1);
    for (uint32_t i = 0; i < c->n; i++) {
        place_of(x, c, i)->booked_top = c->room_top;
        parts[i] = orr_exec__room_of(x, place_of(x, c, i));
        orr_exec__count_booked(x, &parts[i], +1);
    }
    orr_fluid_part(x->fluid, &all, parts, c->n);
}

void orr_exec__part_room_of(OrrExec *x, const OrrPlace *place) {
    OrrConvoy *c = place->convoy == ORR_NONE ? NULL : &x->convoys->convoys[place->convoy];
    if (c && c->has_room)
        orr_convoy__part_room(x, c);
}

void orr_exec__part_rooms_on(OrrExec *x, uint32_t link) {
    const OrrConvoys *v = x->convoys;
    if (!v || !orr_fluid_has_joint(x->fluid, link))
        return;
    for (uint32_t i = v->row_first[link]; i < v->row_first[link + 1]; i++) {
        OrrConvoy *c = &v->convoys[v->row[i]];
        if (c->has_room)
            orr_convoy__part_room(x, c);
        if (c->has_rows)
            orr_convoy__widen(x, c);
    }
}

void orr_convoy__prefetch_room(const OrrExec *x, const OrrConvoy *c) {
    const OrrUse *uses = x->convoys->joint_uses + c->first_joint;
    for (uint32_t u = 0; u < c->n_shared; u++)
        orr_fluid_prefetch(x->fluid, uses[u].constraint);
    for (uint32_t u = 0; u < c->n_rows; u++)
        orr_fluid_prefetch_row(x->fluid, uses[c->n_shared + u].constraint);
}

/* What is held for all is held no more. */
void orr_convoy__drop_room(OrrExec *x, OrrConvoy *c) {
    OrrReserve r = room_of(x, c, &x->tops[c->room_top]);
    c->has_room = false;
    orr_exec__unreserve(x, &r);
}

void orr_convoy__give_room(OrrExec *x, OrrConvoy *c) {
    bool is_all = c->has_room;
    for (uint32_t i = 0; i < c->n; i++)
        is_all &= place_of(x, c, i)->is_held;
    for (uint32_t i = 0; i < c->n; i++) {
        if (is_all)
            place_of(x, c, i)->is_held = 0;
        else if (place_of(x, c, i)->is_held)
            orr_exec__room_give(x, x->convoys->places[c->first + i]);
    }
    if (is_all)
        orr_convoy__drop_room(x, c);
}

static OrrFlow flow_of(const OrrPlan *plan, uint32_t owner) {
    return (OrrFlow){.weight = plan->weight,
                     .cap_bytes_per_s = plan->cap_bytes_per_s,
                     .bytes = plan->work_bytes,
                     .owner = owner};
}

bool orr_convoy__flow(OrrExec *x, uint32_t id) {
    OrrConvoy *c = &x->convoys->convoys[id];
    if (!c->is_joint)
        return false;
    OrrFlow flow = flow_of(c->plan, id | ORR_JOINT_OWNER);
    flow.uses = x->convoys->joint_uses + c->first_joint;
    flow.n_uses = c->n_shared;
    flow.n_rows = c->n_rows;
    if (!orr_fluid_start_joint(x->fluid, x->now_ns, &flow, &c->flow))
        return false;
    pass_by(x, flow.uses, flow.n_uses, flow.n_rows);
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
    for (uint32_t i = 0; i < c->n; i++) {
        const OrrPlace *place = place_of(x, c, i);
        flows[i] = flow_of(orr_exec__plan(place), x->convoys->places[c->first + i]);
        flows[i].uses = place->uses;
        flows[i].n_uses = place->n_uses;
    }
    orr_fluid_split(x->fluid, x->now_ns, c->flow, flows, c->n, ids);
    c->flow = ORR_NONE;
    for (uint32_t i = 0; i < c->n; i++) {
        place_of(x, c, i)->flow = ids[i];
        place_of(x, c, i)->is_flowing = 1;
    }
}

void orr_exec__split_on(OrrExec *x, uint32_t link) {
    const OrrConvoys *v = x->convoys;
    if (!v || !orr_fluid_has_joint(x->fluid, link))
        return;
    for (uint32_t i = v->row_first[link]; i < v->row_first[link + 1]; i++)
        if (v->convoys[v->row[i]].flow != ORR_NONE)
            split(x, &v->convoys[v->row[i]]);
}
