/* Transfers whose links have room for all that may use them need no fluid: their end is known as
 * soon as both sides have launched, or are known to launch.
 *
 * Each link has the sum of what is pledged to its users, those in the fluid (sim/net/watch.c) and
 * those booked. While that is no more than its capacity the link stops nobody, so a send all of
 * whose links have such room moves at its top: it is booked, from when its bytes begin to move,
 * which may lie ahead of the clock. When the fluid finds that a link may bind, those booked on it
 * come in, with the bytes that they have moved by then; who was to start later asks for room again
 * then. The fluid gives the same rates, so booking changes no nanosecond. A link that has been
 * overbooked is left to the fluid for a while by those that book ahead, not by those that start.
 * Cost: some additions a link. */
#include "sim/base/large.h"
#include "sim/exec/exec_priv.h"

#define NS_PER_S 1000000000 /* definition */
#define PENALTY 4u          /* uses through the fluid for each booking that was taken back */

/* Pair places by link, to find who is booked on it. */
static void index_links(OrrExec *x) {
    uint32_t n_links = x->bound->n_links;
    x->link_first = g_new0(uint32_t, n_links + 2);
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < x->n_places; i++) {
            uint32_t n;
            const OrrPlace *place = &x->places[i];
            const OrrUse *uses = place->is_pair ? orr_exec__uses(x, place, NULL, &n) : NULL;
            for (uint32_t u = 0; uses && u < n; u++)
                if (pass == 0)
                    x->link_first[uses[u].constraint + 2]++;
                else
                    x->link_place[x->link_first[uses[u].constraint + 1]++] = i;
        }
        if (pass == 1)
            break;
        for (uint32_t l = 0; l < n_links; l++)
            x->link_first[l + 2] += x->link_first[l + 1];
        x->link_place = orr_large_new((x->link_first[n_links + 1] + 1) * sizeof *x->link_place);
    }
}

static void set_bit(uint64_t *bits, uint32_t i, bool is_set) {
    uint64_t bit = UINT64_C(1) << i % 64;
    bits[i / 64] = is_set ? bits[i / 64] | bit : bits[i / 64] & ~bit;
}

#define AHEAD 6u /* pairs between one whose place is asked for and the one in hand: ours */
#define FEW 8u   /* pairs on a link that are looked through as quickly as a count is kept: ours */

void orr_exec__rooms_new(OrrExec *x) {
    uint32_t n_links = x->bound->n_links;
    x->link_room = orr_large_new((n_links + 1) * sizeof *x->link_room);
    x->counted_links = g_new0(uint64_t, n_links / 64 + 1);
    x->left_links = g_new0(uint64_t, n_links / 64 + 1);
    if (n_links > 0)
        index_links(x);
    for (uint32_t l = 0; l < n_links; l++)
        set_bit(x->counted_links, l, x->link_first[l + 1] - x->link_first[l] > FEW);
}

void orr_exec__rooms_clear(OrrExec *x) {
    g_free(x->link_room);
    g_free(x->counted_links);
    g_free(x->left_links);
    g_free(x->link_first);
    g_free(x->link_place);
    g_free(x->tops);
}

#define ALIKE 16u /* most transfers have the top of one of the last few */

static uint32_t add_top(OrrExec *x, uint64_t bytes_per_s, uint64_t bytes, uint64_t scale) {
    for (uint32_t i = x->n_tops; i > 0 && i + ALIKE > x->n_tops; i--)
        if (x->tops[i - 1].bytes_per_s == bytes_per_s && x->tops[i - 1].bytes == bytes &&
            x->tops[i - 1].scale == scale)
            return i - 1;
    if ((x->n_tops & (x->n_tops - 1)) == 0) /* full at each power of two */
        x->tops = g_renew(OrrTop, x->tops, 2 * x->n_tops + 1);
    OrrTop *top = &x->tops[x->n_tops];
    *top = (OrrTop){bytes_per_s, bytes, scale, INT64_MAX};
    if (bytes_per_s > 0 && bytes > 0) {
        unsigned __int128 ns = ((unsigned __int128)bytes * NS_PER_S - 1) / bytes_per_s + 1;
        top->ns = ns < INT64_MAX / 2 ? (int64_t)ns : INT64_MAX;
    }
    return x->n_tops++;
}

/* The highest rate of the transfer, as the fluid has it, and the time of its bytes at that. */
const OrrTop *orr_exec__top(OrrExec *x, OrrPlace *place) {
    if (place->top_what == place->what)
        return &x->tops[place->top];
    const OrrPlan *plan = orr_exec__plan(place);
    uint32_t n;
    const OrrUse *uses = orr_exec__uses(x, place, plan, &n);
    unsigned __int128 top = plan->cap_bytes_per_s;
    for (uint32_t u = 0; u < n; u++) {
        unsigned __int128 capacity = x->bound->capacity[uses[u].constraint];
        top = MIN(top, capacity * ORR_COEF_ONE / uses[u].coef);
    }
    place->top_what = place->what;
    place->top =
        add_top(x, (uint64_t)top, plan->work_bytes, orr_fluid_scale(plan->weight, uses, n));
    return &x->tops[place->top];
}

OrrReserve orr_exec__room_of(const OrrExec *x, const OrrPlace *place) {
    const OrrTop *top = &x->tops[place->booked_top];
    OrrReserve r = {.top_bytes_per_s = top->bytes_per_s, .scale = top->scale};
    r.uses = orr_exec__uses(x, place, orr_exec__plan(place), &r.n_uses);
    return r;
}

void orr_exec__room_prefetch(const OrrExec *x, const OrrPlace *place) {
    for (uint32_t u = 0; u < place->n_uses; u++)
        orr_fluid_prefetch(x->fluid, place->uses[u].constraint);
}

void orr_exec__count_booked(OrrExec *x, const OrrReserve *r, int change) {
    for (uint32_t u = 0; u < r->n_uses; u++)
        if (orr_exec__has_bit(x->counted_links, r->uses[u].constraint))
            x->link_room[r->uses[u].constraint].n_booked += change * (int)r->uses[u].count;
}

/* Whether links of a row that others use, too, are left to the fluid. */
static bool is_row_left(const OrrExec *x, uint32_t row) {
    uint32_t n;
    const uint32_t *links = orr_fluid_row_links(x->fluid, row, &n);
    for (uint32_t i = 0; i < n; i++)
        if (orr_exec__has_bit(x->left_links, links[i]))
            return true;
    return false;
}

/* Whether one of its links is left to the fluid. */
static bool is_left(const OrrExec *x, const OrrReserve *r) {
    for (uint32_t u = 0; u < r->n_uses; u++)
        if (orr_exec__has_bit(x->left_links, r->uses[u].constraint))
            return true;
    for (uint32_t u = 0; u < r->n_rows; u++)
        if (is_row_left(x, r->uses[r->n_uses + u].constraint))
            return true;
    return false;
}

bool orr_exec__reserve(OrrExec *x, const OrrReserve *r, bool is_start) {
    if (!is_start && is_left(x, r))
        return false;
    if (!orr_fluid_reserve(x->fluid, r))
        return false;
    orr_exec__count_booked(x, r, +1);
    return true;
}

void orr_exec__unreserve(OrrExec *x, const OrrReserve *r) {
    orr_fluid_release(x->fluid, r);
    orr_exec__count_booked(x, r, -1);
}

static void take_back(OrrExec *x, uint32_t id) {
    OrrPlace *place = &x->places[id];
    if (place->is_convoyed && place->due_ns <= x->now_ns)
        orr_exec__tell_over(x, x->island_of[place->ends[1]]);
    if (!place->is_booked ||
        (place->convoy != ORR_NONE && orr_exec__convoy_loses_room(x, place->convoy)))
        return;
    if (place->is_convoyed)
        orr_exec__lose_room(x, id);
    orr_exec__room_give(x, id);
    orr_exec__forget_end(x, id); /* it is not known */
    x->n_booked--;
    if (place->from_ns <= x->now_ns)
        orr_exec__share(x, id, x->now_ns - place->from_ns);
    else
        orr_queue_push(&x->queue, place->from_ns, ORR_EV_FLOW_START, 0, id);
}

/* Transfers that are booked on the link. */
static uint32_t n_booked_on(const OrrExec *x, uint32_t link) {
    uint32_t n = 0;
    if (orr_exec__has_bit(x->counted_links, link))
        return x->link_room[link].n_booked;
    if (!orr_fluid_has_room(x->fluid, link))
        return 0;
    for (uint32_t i = x->link_first[link]; i < x->link_first[link + 1]; i++) {
        const OrrPlace *place = &x->places[x->link_place[i]];
        for (uint32_t u = 0; place->is_booked && u < place->n_uses; u++)
            n += place->uses[u].constraint == link ? place->uses[u].count : 0;
    }
    return n;
}

/* The link could bind now: all its users go into the fluid. */
void orr_exec__empty_link(void *data, uint32_t link) {
    OrrExec *x = data;
    OrrLinkRoom *l = &x->link_room[link];
    orr_exec__part_rooms_on(x, link);
    uint32_t n_booked = n_booked_on(x, link);
    bool is_counted = orr_exec__has_bit(x->counted_links, link);
    if (n_booked > 0) {
        l->penalty += PENALTY * n_booked;
        set_bit(x->left_links, link, true);
    }
    for (uint32_t i = x->link_first[link]; n_booked > 0 && i < x->link_first[link + 1]; i++) {
        if (i + AHEAD < x->link_first[link + 1])
            __builtin_prefetch(&x->places[x->link_place[i + AHEAD]], 1);
        if (x->places[x->link_place[i]].is_booked)
            take_back(x, x->link_place[i]);
        if (is_counted && l->n_booked == 0)
            break;
    }
    orr_exec__split_on(x, link);
}

/* Books the transfer, whose bytes begin to move at @from_ns, if all its links have room; it ends at
 * @end_ns then. */
bool orr_exec__take_room(OrrExec *x, uint32_t id, int64_t from_ns, bool is_start, int64_t *end_ns) {
    OrrPlace *place = &x->places[id];
    const OrrTop *top = orr_exec__top(x, place);
    if (top->ns == INT64_MAX || x->options->is_plain)
        return false;
    if (place->is_held)
        orr_exec__part_room_of(x, place);
    const OrrTop *held = &x->tops[place->booked_top];
    if (place->is_held && (held->bytes_per_s != top->bytes_per_s || held->scale != top->scale))
        orr_exec__room_give(x, id); /* the next one is of another kind */
    place->booked_top = place->top;
    if (!place->is_held) {
        OrrReserve r = orr_exec__room_of(x, place);
        if (!orr_exec__reserve(x, &r, is_start))
            return false;
        if (is_start)
            orr_exec__pass_by(x, r.uses, r.n_uses);
    }
    place->is_held = 0;
    place->is_booked = 1;
    place->from_ns = from_ns;
    x->n_booked++;
    *end_ns = from_ns + top->ns;
    return true;
}

/* The same; schedules its end. */
bool orr_exec__book(OrrExec *x, uint32_t id, int64_t from_ns) {
    int64_t end_ns;
    if (!orr_exec__take_room(x, id, from_ns, false, &end_ns))
        return false;
    orr_exec__push_end(x, id, end_ns);
    return true;
}

void orr_exec__pass_link(OrrExec *x, uint32_t link) {
    if (orr_exec__has_bit(x->left_links, link) && --x->link_room[link].penalty == 0)
        set_bit(x->left_links, link, false);
}

/* A transfer starts now in the fluid: its links are left to that for a while no more. */
void orr_exec__pass_by(OrrExec *x, const OrrUse *uses, uint32_t n) {
    for (uint32_t u = 0; u < n; u++)
        orr_exec__pass_link(x, uses[u].constraint);
}

/* A booked transfer has ended, or one that held its room. */
void orr_exec__room_give(OrrExec *x, uint32_t id) {
    OrrPlace *place = &x->places[id];
    orr_exec__part_room_of(x, place);
    OrrReserve r = orr_exec__room_of(x, place);
    orr_exec__unreserve(x, &r);
    place->is_booked = place->is_held = 0;
}

/* A booked transfer is told of after its end: the next one of the place, if it comes now, has moved
 * since before now, on links that had room all the time, since they had this one's. */
void orr_exec__room_hold(OrrExec *x, uint32_t id) {
    x->places[id].is_booked = 0;
    x->places[id].is_held = 1;
}
