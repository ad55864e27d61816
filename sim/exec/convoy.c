/* Convoys: how they fly and end; convoy_out.c has how they set out.
 *
 * The transfers of a convoy may end at times a little apart (members of slow and fast GPUs): they
 * are told of at the end of the last, which is late for the others, but each with its own time.
 * Nobody can see that. The next transfer of a pair may have begun by then: its links had room for
 * it, since those of the one before it were held (room.c). The receivers' next pass meets anyway,
 * and is told what it waited for until when. Where that does not hold (a pass that goes event by
 * event, kernels that will be slowed from now on, a link that is taken) the convoy is landed first:
 * who is over is told, the others have events of their own from then on. */
#include "sim/exec/convoy.h"

#include "sim/exec/pass.h"

/* The members of both sides are at one place of the program each. */
static bool are_in_step(OrrExec *x, const OrrConvoy *c) {
    const OrrPlace *place = &x->places[c->first_place];
    const uint32_t *list[2];
    for (int k = 0; k < 2; k++)
        orr_convoy__members(x, c->island[k], &list[k]);
    return orr_exec__join(x, list[0][0], place->stream) &&
           orr_exec__join(x, list[1][0], place->receive_stream);
}

static void link_late(OrrExec *x, uint32_t id) {
    OrrConvoy *c = &x->convoys->convoys[id];
    if (c->is_late)
        return;
    c->is_late = true;
    c->next_late = x->convoys->late[c->island[1]];
    x->convoys->late[c->island[1]] = id;
}

bool orr_convoy__bind_to_land(OrrExec *x, uint32_t id) {
    OrrConvoy *c = &x->convoys->convoys[id];
    if (c->is_bound)
        return true;
    if (!orr_convoy__can_be_late(x, c) || !are_in_step(x, c))
        return false;
    int64_t land_ns = orr_convoy__next_send_ns(x, c);
    if (land_ns <= x->global_ns)
        return false;
    c->is_bound = true;
    c->land_generation = (c->land_generation + 1) & ORR_GENERATION_MASK;
    orr_queue_push(&x->queue, land_ns, ORR_EV_LAND, c->land_generation, id);
    link_late(x, id);
    return true;
}

static void unlink_late(OrrExec *x, uint32_t id) {
    OrrConvoy *c = &x->convoys->convoys[id];
    c->is_bound = false;
    if (!c->is_late)
        return;
    uint32_t *at = &x->convoys->late[c->island[1]];
    while (*at != id)
        at = &x->convoys->convoys[*at].next_late;
    *at = c->next_late;
    c->is_late = false;
}

void orr_convoy__await_end(OrrExec *x, uint32_t id, int64_t end_ns) {
    OrrConvoy *c = &x->convoys->convoys[id];
    c->generation = (c->generation + 1) & ORR_GENERATION_MASK;
    orr_queue_push(&x->queue, end_ns, ORR_EV_CONVOY, c->generation, id);
}

void orr_convoy__fly(OrrExec *x, uint32_t id, int64_t first_ns, uint32_t n_unknown) {
    OrrConvoy *c = &x->convoys->convoys[id];
    for (uint32_t i = 0; i < c->n; i++)
        x->places[x->convoys->places[c->first + i]].is_convoyed = 1;
    c->n_flying = c->n;
    c->n_unknown = n_unknown;
    c->first_ns = first_ns;
    c->has_started = c->has_ended = false;
}

void orr_convoy__fly_booked(OrrExec *x, uint32_t id, int64_t first_ns, int64_t last_ns) {
    OrrConvoy *c = &x->convoys->convoys[id];
    const uint32_t *places = x->convoys->places + c->first;
    bool is_late = first_ns != last_ns;
    if (is_late && (last_ns - first_ns >= x->convoys->least_ns || !orr_convoy__can_be_late(x, c) ||
                    !are_in_step(x, c))) {
        for (uint32_t i = 0; i < c->n; i++)
            orr_exec__push_end(x, places[i], x->places[places[i]].due_ns);
        return;
    }
    orr_convoy__fly(x, id, first_ns, 0);
    if (is_late)
        link_late(x, id);
    orr_convoy__await_end(x, id, last_ns);
}

/* Nobody is left, or waits for the others. */
static void dissolve(OrrExec *x, uint32_t id) {
    OrrConvoy *c = &x->convoys->convoys[id];
    unlink_late(x, id);
    c->generation = (c->generation + 1) & ORR_GENERATION_MASK;
    c->land_generation = (c->land_generation + 1) & ORR_GENERATION_MASK;
    c->n_flying = c->n_unknown = 0;
}

/* A transfer of the convoy has no room any more: its end is not known, or it goes on alone. */
void orr_exec__lose_room(OrrExec *x, uint32_t id) {
    OrrPlace *place = &x->places[id];
    OrrConvoy *c = &x->convoys->convoys[place->convoy];
    if (orr_convoy__bind_to_land(x, place->convoy)) {
        if (c->n_unknown++ == 0)
            c->generation = (c->generation + 1) & ORR_GENERATION_MASK;
        place->due_ns = INT64_MAX;
        return;
    }
    place->is_convoyed = 0;
    if (--c->n_flying == 0)
        dissolve(x, place->convoy);
}

void orr_convoy__lose_room(OrrExec *x, uint32_t id) {
    OrrConvoy *c = &x->convoys->convoys[id];
    bool is_bound = c->n_flying > 0 && orr_convoy__bind_to_land(x, id);
    if (is_bound) {
        c->generation = (c->generation + 1) & ORR_GENERATION_MASK;
        c->n_unknown = c->n_flying;
        c->has_started = c->has_ended = false;
        c->first_ns = INT64_MAX;
    }
    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t place = x->convoys->places[c->first + i];
        if (!x->places[place].is_convoyed)
            orr_exec__forget_end(x, place); /* it is not known */
        x->places[place].is_convoyed &= is_bound;
        x->places[place].due_ns = INT64_MAX;
    }
    if (c->n_flying > 0 && !is_bound)
        dissolve(x, id);
}

/* What was one in the fluid is over: that is when each of its transfers was. */
static void tell_places(OrrExec *x, OrrConvoy *c) {
    for (uint32_t i = 0; c->is_over && i < c->n; i++)
        x->places[x->convoys->places[c->first + i]].due_ns = c->first_ns;
    c->is_over = false;
}

/* Those transfers of the convoy that are over by @until_ns end, each alone and at its time; the
 * others have an event of their own from now on, or will end in the fluid alone. */
static void part_company(OrrExec *x, OrrConvoy *c, int64_t until_ns) {
    uint32_t ids[ORR_MAX_ISLAND], n = 0;
    tell_places(x, c);
    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t id = x->convoys->places[c->first + i];
        if (x->places[id].is_convoyed)
            ids[n++] = id;
        x->places[id].is_convoyed = 0; /* it may set out again before all have been told */
    }
    for (uint32_t i = 0; i < n; i++) {
        const OrrPlace *place = &x->places[ids[i]];
        if (place->due_ns <= until_ns) {
            x->now_ns = place->due_ns;
            orr_exec__comm_end(x, ids[i]);
        } else if (place->due_ns < INT64_MAX) {
            orr_exec__push_end(x, ids[i], place->due_ns);
        }
    }
}

/* The convoy is told as if each of its transfers had gone alone. */
static void land(OrrExec *x, uint32_t id) {
    int64_t now_ns = x->now_ns;
    dissolve(x, id);
    part_company(x, &x->convoys->convoys[id], x->global_ns);
    x->now_ns = now_ns;
}

/* All convoys to the island whose ends differ are. */
void orr_exec__land(OrrExec *x, uint32_t island) {
    while (x->convoys && x->convoys->late[island] != ORR_NONE)
        land(x, x->convoys->late[island]);
}

/* Those of which something is over are. */
void orr_exec__tell_over(OrrExec *x, uint32_t island) {
    if (!x->convoys)
        return;
    uint32_t id = x->convoys->late[island];
    while (id != ORR_NONE)
        if (x->convoys->convoys[id].first_ns <= x->global_ns) {
            land(x, id);
            id = x->convoys->late[island];
        } else {
            id = x->convoys->convoys[id].next_late;
        }
}

void orr_exec__convoy_lands(OrrExec *x, uint32_t id, uint32_t generation) {
    if (generation == x->convoys->convoys[id].land_generation)
        land(x, id);
}

/* The transfers of the convoy end together: those of all members, in step. */
static void end_together(OrrExec *x, OrrConvoy *c) {
    const uint32_t *places = x->convoys->places + c->first;
    const uint32_t *list[2];
    int64_t end_ns[ORR_MAX_ISLAND] = {0}, first_ns = INT64_MAX;
    uint32_t n = c->n,
             streams[2] = {x->places[places[0]].stream, x->places[places[0]].receive_stream};
    x->convoys->arrived[c->island[1]] = (uint32_t)(c - x->convoys->convoys);
    tell_places(x, c);
    for (int k = 0; k < 2; k++)
        orr_convoy__members(x, c->island[k], &list[k]);
    if (c->has_room)
        orr_convoy__prefetch_room(x, c);
    for (uint32_t i = 0; i < n && !c->has_room; i++)
        if (x->places[places[i]].is_booked)
            orr_exec__room_prefetch(x, &x->places[places[i]]);
    int64_t *arrived_ns[2];
    for (int k = 0; k < 2; k++) {
        arrived_ns[k] = orr_exec__arrived_ns(x, list[k][0], streams[k]);
        orr_exec__joint_lane(x, list[k][0], streams[k])->pending = 0;
    }
    bool is_simple = !x->leaves_records && !x->options->self_check;
    for (uint32_t i = 0; i < n; i++) {
        OrrPlace *place = &x->places[places[i]];
        end_ns[i] = x->now_ns = place->due_ns;
        first_ns = MIN(first_ns, end_ns[i]);
        place->is_convoyed = 0;
        if (!is_simple || place->is_booked || place->is_flowing)
            orr_exec__pair_over(x, places[i], c->is_joint ? c->plan : NULL);
        for (int k = 0; k < 2; k++)
            arrived_ns[k][i] = MAX(arrived_ns[k][i], place->arrived_ns);
    }
    for (int k = 0; k < 2; k++)
        orr_together__complete(x, list[k], n, streams[k], end_ns);
    x->now_ns = first_ns; /* none of what comes now begins before that */
    for (int k = 0; k < 2; k++)
        orr_together__go_on(x, list[k], n, streams[k]);
    orr_convoy__give_room(x, c);
}

void orr_exec__convoy_end(OrrExec *x, uint32_t id, uint32_t generation) {
    OrrConvoy *c = &x->convoys->convoys[id];
    if (generation != c->generation)
        return; /* nobody is left, or it was landed */
    bool is_whole = c->n_flying == c->n && are_in_step(x, c);
    dissolve(x, id);
    if (is_whole)
        end_together(x, c);
    else
        part_company(x, c, x->global_ns);
    x->now_ns = x->global_ns;
}

/* A transfer of a convoy is over in the fluid. */
static void note_over(OrrExec *x, uint32_t id) {
    OrrConvoys *v = x->convoys;
    OrrPlace *place = &x->places[id];
    if (place->convoy == ORR_NONE) {
        orr_exec__push_end(x, id, x->now_ns);
        return;
    }
    if (place->is_convoyed) {
        v->ended[v->n_ended++] = id;
        return;
    }
    place->is_over = 1;
    if (v->convoys[place->convoy].n_over++ == 0)
        v->over[v->n_over++] = place->convoy;
}

void orr_convoy__know_end(OrrExec *x, uint32_t id, int64_t end_ns) {
    OrrPlace *place = &x->places[id];
    OrrConvoy *c = &x->convoys->convoys[place->convoy];
    int64_t last_ns = end_ns;
    place->due_ns = end_ns;
    c->first_ns = MIN(c->first_ns, end_ns);
    if (--c->n_unknown > 0)
        return;
    for (uint32_t i = 0; i < c->n; i++) {
        const OrrPlace *other = &x->places[x->convoys->places[c->first + i]];
        if (other->is_convoyed)
            last_ns = MAX(last_ns, other->due_ns);
    }
    orr_convoy__await_end(x, place->convoy, last_ns);
}

/* A transfer that ends with its convoy is over: who waits for it is told at the end of the last. */
static void note_end(OrrExec *x, uint32_t id) {
    orr_convoy__fetch_ends(x, &x->convoys->convoys[x->places[id].convoy]);
    orr_exec__leave_fluid(x, &x->places[id]);
    orr_convoy__know_end(x, id, x->now_ns);
}

/* Transfers of convoy @id that go alone are over, in one instant: where they are all they end
 * together. */
static void end_alone(OrrExec *x, uint32_t id) {
    OrrConvoy *c = &x->convoys->convoys[id];
    bool is_whole = c->n_over == c->n;
    for (uint32_t i = 0; i < c->n; i++) {
        OrrPlace *place = &x->places[x->convoys->places[c->first + i]];
        if (!place->is_over)
            continue;
        place->is_over = 0;
        place->due_ns = x->now_ns;
        if (!is_whole)
            orr_exec__push_end(x, x->convoys->places[c->first + i], x->now_ns);
    }
    c->n_over = 0;
    c->is_joint = false; /* they may have set out each by itself */
    if (!is_whole)
        return;
    orr_convoy__fly(x, id, x->now_ns, 0);
    orr_convoy__await_end(x, id, x->now_ns);
}

/* All transfers of convoy @id, which were one in the fluid, are over. */
static void note_joint_end(OrrExec *x, uint32_t id) {
    OrrConvoy *c = &x->convoys->convoys[id];
    orr_convoy__flow_over(x, c);
    if (c->n_flying == 0)
        orr_convoy__fly(x, id, x->now_ns, 0);
    g_assert(c->n_flying == c->n);
    c->is_over = true; /* its places hear of that when they end */
    c->first_ns = MIN(c->first_ns, x->now_ns);
    c->n_unknown = 0;
    orr_convoy__await_end(x, id, x->now_ns);
}

/* All transfers that are over in the fluid by now have been told. */
void orr_exec__flows_ended(OrrExec *x) {
    OrrConvoys *v = x->convoys;
    if (!v)
        return;
    for (uint32_t k = 0; k < v->n_told; k++) {
        orr_convoy__fetch_told(x, k);
        if (v->told[k] & ORR_JOINT_OWNER)
            note_joint_end(x, v->told[k] & ~ORR_JOINT_OWNER);
        else
            note_over(x, v->told[k]);
    }
    for (uint32_t k = 0; k < v->n_over; k++)
        end_alone(x, v->over[k]);
    for (uint32_t k = 0; k < v->n_ended; k++) {
        orr_convoy__fetch_ended(x, k);
        note_end(x, v->ended[k]);
    }
    v->n_told = v->n_over = v->n_ended = 0;
}
