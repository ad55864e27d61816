/* Transfers whose links have room for all that may use them need no fluid: their end is known as
 * soon as both sides have launched, or are known to launch.
 *
 * Each link has the sum of what its users could take at their tops. While that is no more than its
 * capacity the link stops nobody, so a send all of whose links have such room moves at its top,
 * whatever comes and goes: it is booked, from when its bytes begin to move, which may lie ahead of
 * the clock. When a newcomer brings a link over its capacity, those booked on it go into the fluid,
 * with the bytes that they have moved by then; who was to start later looks again then. The fluid
 * gives the same rates, so booking changes no nanosecond. A link that has been overbooked is left
 * to the fluid for a while. Cost: two sums a link. */
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
        x->link_place = g_new(uint32_t, x->link_first[n_links + 1] + 1);
    }
}

void orr_exec__rooms_new(OrrExec *x) {
    x->link_room = g_new0(OrrLinkRoom, x->bound->n_links + 1);
    for (uint32_t l = 0; l < x->bound->n_links; l++)
        x->link_room[l].capacity = x->bound->capacity[l];
    if (x->bound->n_links > 0)
        index_links(x);
}

void orr_exec__rooms_clear(OrrExec *x) {
    g_free(x->link_room);
    g_free(x->link_first);
    g_free(x->link_place);
}

/* The highest rate of the transfer, as the fluid has it, and the time of its bytes at that. */
static void find_top(const OrrExec *x, OrrPlace *place, const OrrPlan *plan, const OrrUse *uses,
                     uint32_t n) {
    unsigned __int128 top = plan->cap_bytes_per_s;
    for (uint32_t u = 0; u < n; u++) {
        unsigned __int128 capacity = x->bound->capacity[uses[u].constraint];
        top = MIN(top, capacity * ORR_COEF_ONE / uses[u].coef);
    }
    place->top_what = place->what;
    place->top_bytes_per_s = (uint64_t)top;
    place->top_ns = INT64_MAX;
    if (top == 0 || plan->work_bytes == 0)
        return;
    unsigned __int128 ns = ((unsigned __int128)plan->work_bytes * NS_PER_S - 1) / top + 1;
    if (ns < INT64_MAX / 2)
        place->top_ns = (int64_t)ns;
}

static uint64_t demand(const OrrPlace *place, const OrrUse *use) {
    unsigned __int128 d = (unsigned __int128)place->top_bytes_per_s * use->coef * use->count;
    return (uint64_t)((d + ORR_COEF_ONE - 1) / ORR_COEF_ONE);
}

static void take_back(OrrExec *x, uint32_t id) {
    OrrPlace *place = &x->places[id];
    uint32_t n;
    const OrrUse *uses = orr_exec__uses(x, place, orr_exec__plan(x, place), &n);
    for (uint32_t u = 0; u < n; u++)
        x->link_room[uses[u].constraint].n_booked--;
    place->is_booked = 0;
    place->generation = (place->generation + 1) & ORR_GENERATION_MASK; /* its end is not known */
    x->n_booked--;
    if (place->from_ns <= x->now_ns) {
        orr_exec__share(x, id, x->now_ns - place->from_ns);
        return;
    }
    for (uint32_t u = 0; u < n; u++)
        x->link_room[uses[u].constraint].demand -= demand(place, &uses[u]);
    orr_queue_push(&x->queue, place->from_ns, ORR_EV_FLOW_START, 0, id);
}

/* The link could bind now: all its users go into the fluid. */
static void empty_link(OrrExec *x, uint32_t link) {
    OrrLinkRoom *l = &x->link_room[link];
    l->penalty += PENALTY * l->n_booked;
    for (uint32_t i = x->link_first[link]; l->n_booked > 0 && i < x->link_first[link + 1]; i++)
        if (x->places[x->link_place[i]].is_booked)
            take_back(x, x->link_place[i]);
}

/* Books the transfer, whose bytes begin to move at @from_ns, and schedules its end; false if a link
 * has no room for it. */
bool orr_exec__book(OrrExec *x, uint32_t id, int64_t from_ns) {
    OrrPlace *place = &x->places[id];
    const OrrPlan *plan = orr_exec__plan(x, place);
    uint32_t n;
    const OrrUse *uses = orr_exec__uses(x, place, plan, &n);
    if (place->top_what != place->what)
        find_top(x, place, plan, uses, n);
    if (place->top_ns == INT64_MAX || x->options->is_plain)
        return false;
    for (uint32_t u = 0; u < n; u++) {
        const OrrLinkRoom *l = &x->link_room[uses[u].constraint];
        if (l->penalty > 0 || l->demand + demand(place, &uses[u]) > l->capacity)
            return false;
    }
    for (uint32_t u = 0; u < n; u++) {
        x->link_room[uses[u].constraint].demand += demand(place, &uses[u]);
        x->link_room[uses[u].constraint].n_booked++;
    }
    place->is_booked = 1;
    place->from_ns = from_ns;
    x->n_booked++;
    orr_exec__push_end(x, id, from_ns + place->top_ns);
    return true;
}

/* A transfer starts now in the fluid: counts what it can take; who must leave its links does. */
void orr_exec__room_take(OrrExec *x, uint32_t id) {
    OrrPlace *place = &x->places[id];
    const OrrPlan *plan = orr_exec__plan(x, place);
    uint32_t n;
    const OrrUse *uses = orr_exec__uses(x, place, plan, &n);
    if (place->top_what != place->what)
        find_top(x, place, plan, uses, n);
    for (uint32_t u = 0; u < n; u++) {
        OrrLinkRoom *l = &x->link_room[uses[u].constraint];
        l->demand += demand(place, &uses[u]);
        l->penalty -= l->penalty > 0;
        if (l->n_booked > 0 && l->demand > l->capacity)
            empty_link(x, uses[u].constraint);
    }
}

/* A transfer, booked or in the fluid, has ended. */
void orr_exec__room_give(OrrExec *x, uint32_t id) {
    OrrPlace *place = &x->places[id];
    uint32_t n;
    const OrrUse *uses = orr_exec__uses(x, place, orr_exec__plan(x, place), &n);
    for (uint32_t u = 0; u < n; u++) {
        OrrLinkRoom *l = &x->link_room[uses[u].constraint];
        l->demand -= demand(place, &uses[u]);
        l->n_booked -= place->is_booked;
    }
    place->is_booked = 0;
}
