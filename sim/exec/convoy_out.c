/* Convoys: how they set out.
 *
 * Members of an island send at one place of the program, at times of their own. When the partners
 * of all have met it is asked whether all have room (convoy_joint.c, room.c); then their ends are
 * known. Where they have none they start each at its time. Rings come and go on their NICs, so most
 * that had no room when they set out, or that has been taken from since, have it when they start:
 * it is asked for again then, for all at once when the first starts, and links that were left to
 * the fluid are looked at, too. Transfers that start at one time go into the fluid as one instead,
 * which costs as little. */
#include "sim/exec/convoy.h"

#include "sim/exec/pass.h"

static const OrrProgram *program(const OrrExec *x) {
    return x->bound->program;
}

/* When the first byte moves of a transfer whose partners have met. */
static int64_t start_of_flow(const OrrPlace *place) {
    return place->arrived_ns + orr_exec__plan(place)->latency_ns;
}

/* The same of any of a convoy that sets out as one: it needs to know less of each. */
static int64_t start_in(const OrrConvoy *c, const OrrPlace *place) {
    return c->is_joint ? place->arrived_ns + c->plan->latency_ns : start_of_flow(place);
}

/* When the transfer of @id, whose partners have met, ends; INT64_MAX if a link has no room. */
static int64_t known_end(OrrExec *x, uint32_t id) {
    OrrPlace *place = &x->places[id];
    const OrrPlan *plan = orr_exec__plan(place);
    int64_t end_ns;
    if (place->n_uses == 0 || plan->work_bytes == 0)
        return place->arrived_ns + orr_exec__private_ns(plan);
    return orr_exec__take_room(x, id, start_of_flow(place), false, &end_ns) ? end_ns : INT64_MAX;
}

/* The transfers without room start, each at its time: when the first does it is looked whether all
 * have room then. */
static void start_flows(OrrExec *x, uint32_t id, uint32_t n_unknown) {
    OrrConvoy *c = &x->convoys->convoys[id];
    const uint32_t *places = x->convoys->places + c->first;
    int64_t from_ns = INT64_MAX, last_ns = INT64_MIN;
    for (uint32_t i = 0; i < c->n; i++) {
        int64_t start_ns = start_in(c, &x->places[places[i]]);
        from_ns = MIN(from_ns, start_ns);
        last_ns = MAX(last_ns, start_ns);
    }
    c->is_at_once = from_ns == last_ns;
    if (n_unknown == c->n) {
        c->wait_generation = (c->wait_generation + 1) & ORR_GENERATION_MASK;
        orr_queue_push(&x->queue, from_ns, ORR_EV_CONVOY_FLOW, c->wait_generation, id);
        return;
    }
    for (uint32_t i = 0; i < c->n; i++)
        if (x->places[places[i]].due_ns == INT64_MAX)
            orr_queue_push(&x->queue, start_in(c, &x->places[places[i]]), ORR_EV_FLOW_START, 0,
                           places[i]);
}

/* Books all transfers of a joint convoy if there is room, @is_start: where the first starts now. */
static void book_all(OrrExec *x, OrrConvoy *c, bool is_start) {
    int64_t ns = orr_convoy__take_room(x, c, is_start);
    for (uint32_t i = 0; i < c->n; i++) {
        OrrPlace *place = &x->places[x->convoys->places[c->first + i]];
        place->due_ns = INT64_MAX;
        if (ns == INT64_MAX)
            continue;
        place->from_ns = start_in(c, place);
        place->due_ns = place->from_ns + ns;
    }
}

/* When its transfers end, as far as that is known. */
static void find_ends(OrrExec *x, OrrConvoy *c) {
    const uint32_t *places = x->convoys->places + c->first;
    c->is_joint = orr_convoy__is_joint(x, c);
    if (c->is_joint) {
        book_all(x, c, false);
        return;
    }
    for (uint32_t i = 0; i < c->n; i++)
        orr_exec__room_prefetch(x, &x->places[places[i]]);
    for (uint32_t i = 0; i < c->n; i++)
        x->places[places[i]].due_ns = known_end(x, places[i]);
}

/* The first and the last of the ends that its places say. Returns how many are not known. */
static uint32_t ends_of(const OrrExec *x, const OrrConvoy *c, int64_t *first_ns, int64_t *last_ns) {
    uint32_t n_unknown = 0;
    *first_ns = INT64_MAX;
    *last_ns = INT64_MIN;
    for (uint32_t i = 0; i < c->n; i++) {
        int64_t end_ns = x->places[x->convoys->places[c->first + i]].due_ns;
        *first_ns = MIN(*first_ns, end_ns);
        *last_ns = MAX(*last_ns, end_ns);
        n_unknown += end_ns == INT64_MAX;
    }
    return n_unknown;
}

/* The partners of all transfers of the convoy have met. */
static void set_out(OrrExec *x, uint32_t id) {
    OrrConvoy *c = &x->convoys->convoys[id];
    const uint32_t *places = x->convoys->places + c->first;
    int64_t first_ns, last_ns;
    if (x->passes)
        __builtin_prefetch(&x->passes->islands[c->island[1]].released);
    c->stream[0] = x->places[places[0]].stream;
    c->stream[1] = x->places[places[0]].receive_stream;
    find_ends(x, c);
    uint32_t n_unknown = ends_of(x, c, &first_ns, &last_ns);
    if (n_unknown == 0) {
        orr_convoy__fly_booked(x, id, first_ns, last_ns);
        return;
    }
    start_flows(x, id, n_unknown);
    if (orr_convoy__bind_to_land(x, id)) {
        orr_convoy__fly(x, id, first_ns, n_unknown);
        return;
    }
    for (uint32_t i = 0; i < c->n; i++)
        if (x->places[places[i]].due_ns < INT64_MAX)
            orr_exec__push_end(x, places[i], x->places[places[i]].due_ns);
}

bool orr_exec__convoy_loses_room(OrrExec *x, uint32_t id) {
    OrrConvoy *c = &x->convoys->convoys[id];
    const uint32_t *places = x->convoys->places + c->first;
    uint32_t n_begun = 0;
    for (uint32_t i = 0; c->has_room && i < c->n; i++) {
        const OrrPlace *place = &x->places[places[i]];
        if (!place->is_booked || place->due_ns <= x->now_ns)
            return false; /* one is over */
        n_begun += place->from_ns <= x->now_ns;
    }
    if (!c->has_room)
        return false;
    if (n_begun > 0)
        orr_convoy__keep_rows(x, c);
    else
        orr_convoy__drop_room(x, c);
    orr_convoy__lose_room(x, id);
    x->n_booked -= c->n;
    for (uint32_t i = 0; i < c->n; i++)
        x->places[places[i]].is_booked = 0;
    if (n_begun == 0) {
        start_flows(x, id, c->n);
        return true;
    }
    orr_convoy__fetch_starts(x, c);
    for (uint32_t i = 0; i < c->n; i++) {
        int64_t from_ns = x->places[places[i]].from_ns;
        if (from_ns <= x->now_ns)
            orr_exec__share(x, places[i], x->now_ns - from_ns);
        else
            orr_queue_push(&x->queue, from_ns, ORR_EV_FLOW_START, 0, places[i]);
    }
    return true;
}

/* Whether all transfers, of which none had room when they set out, have it now that the first of
 * them starts. */
static bool has_room_now(OrrExec *x, uint32_t id) {
    OrrConvoy *c = &x->convoys->convoys[id];
    int64_t first_ns, last_ns;
    if (!c->is_joint)
        return false;
    book_all(x, c, true);
    if (ends_of(x, c, &first_ns, &last_ns) > 0)
        return false;
    if (c->n_flying == 0) {
        orr_convoy__fly_booked(x, id, first_ns, last_ns);
        return true;
    }
    c->n_unknown = 0;
    c->first_ns = first_ns;
    orr_convoy__await_end(x, id, last_ns);
    return true;
}

/* The first of its transfers, of which none had room when they set out, starts now. */
void orr_exec__convoy_flows(OrrExec *x, uint32_t convoy, uint32_t generation) {
    OrrConvoy *c = &x->convoys->convoys[convoy];
    g_assert(generation == c->wait_generation);
    if (c->is_at_once ? orr_convoy__flow(x, convoy) : has_room_now(x, convoy))
        return;
    orr_convoy__ask_rows(x, c);
    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t id = x->convoys->places[c->first + i];
        int64_t from_ns = start_in(c, &x->places[id]);
        if (from_ns > x->now_ns)
            orr_queue_push(&x->queue, from_ns, ORR_EV_FLOW_START, 0, id);
        else
            orr_exec__flow_start(x, id);
    }
}

/* The convoy in which a send or receive of the first member goes; ORR_NONE: none. */
static uint32_t convoy_of(const OrrExec *x, uint32_t r, uint32_t s, const OrrP2pPart *p) {
    const OrrConvoys *v = x->convoys;
    uint32_t *known = &v->of[x->island_of[r] * ORR_CONVOY_STREAMS + s];
    if (*known > 0)
        return *known - 1;
    uint32_t convoy = x->places[orr_exec__pair_of(x, r, p)].convoy;
    if (v->single[x->bound->role[r]] & 1u << s)
        *known = convoy + 1; /* as for all of the stream */
    return convoy;
}

void orr_convoy__arrive(OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s, uint32_t part,
                        const int64_t *start_ns) {
    uint32_t ids[ORR_MAX_ISLAND], n_met = 0;
    uint8_t has_met[ORR_MAX_ISLAND];
    const OrrP2pPart *p = &program(x)->parts[part];
    uint32_t convoy = convoy_of(x, list[0], s, p);
    for (uint32_t i = 0; i < n; i++) {
        ids[i] = convoy == ORR_NONE ? orr_exec__pair_of(x, list[i], p)
                                    : x->convoys->places[x->convoys->convoys[convoy].first + i];
        has_met[i] = orr_exec__meet_pair(x, &x->places[ids[i]], list[i], s, part, start_ns[i]);
        n_met += has_met[i];
    }
    if (convoy != ORR_NONE && p->is_send)
        orr_convoy__note_onward(x, convoy);
    if (convoy != ORR_NONE && n_met == n) {
        set_out(x, convoy);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (has_met[i] && convoy != ORR_NONE)
            orr_convoy__wait(x, ids[i]);
        else if (has_met[i])
            orr_exec__begin_transfer(x, ids[i], x->places[ids[i]].arrived_ns);
    }
}

void orr_convoy__wait(OrrExec *x, uint32_t id) {
    OrrPlace *place = &x->places[id];
    OrrConvoy *c = &x->convoys->convoys[place->convoy];
    int64_t leave_ns = start_of_flow(place);
    if (leave_ns < x->global_ns) { /* its last one was told of late */
        orr_exec__begin_transfer(x, id, place->arrived_ns);
        return;
    }
    if (c->n_waiting + 1 == c->n) {
        for (uint32_t i = 0; i < c->n; i++)
            x->places[x->convoys->places[c->first + i]].is_waiting = 0;
        c->n_waiting = 0;
        c->wait_generation = (c->wait_generation + 1) & ORR_GENERATION_MASK;
        set_out(x, place->convoy);
        return;
    }
    place->is_waiting = 1;
    if (c->n_waiting++ > 0 && c->leave_ns <= leave_ns)
        return;
    c->leave_ns = leave_ns;
    c->wait_generation = (c->wait_generation + 1) & ORR_GENERATION_MASK;
    orr_queue_push(&x->queue, leave_ns, ORR_EV_SET_OUT, c->wait_generation, place->convoy);
}

void orr_exec__convoy_leaves(OrrExec *x, uint32_t convoy, uint32_t generation) {
    OrrConvoy *c = &x->convoys->convoys[convoy];
    if (generation != c->wait_generation)
        return; /* all have set out */
    c->n_waiting = 0;
    c->wait_generation = (c->wait_generation + 1) & ORR_GENERATION_MASK;
    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t id = x->convoys->places[c->first + i];
        if (!x->places[id].is_waiting)
            continue;
        x->places[id].is_waiting = 0;
        orr_exec__begin_transfer(x, id, x->places[id].arrived_ns);
    }
}
