/* Communication: meetings of the members of a collective and of the two ends of a send, their
 * latency and transfer. */
#include "sim/exec/cause.h"
#include "sim/exec/convoy.h"
#include "sim/exec/jitter.h"

#include <string.h>

#define NS_PER_S UINT64_C(1000000000) /* definition */

static const OrrProgram *program(const OrrExec *x) {
    return x->bound->program;
}

uint32_t orr_exec__purpose(const OrrExec *x, const OrrItem *item, bool *takes_sms) {
    if (item->type == ORR_ITEM_COLL) {
        const OrrColl *c = &program(x)->colls[item->what];
        *takes_sms = !c->on_copy_engine;
        return c->purpose;
    }
    *takes_sms = true;
    return program(x)->parts[program(x)->p2ps[item->what].first_part].purpose;
}

/* Links that the transfer uses, of @plan; @n of them. */
const OrrUse *orr_exec__uses(const OrrExec *x, const OrrPlace *place, const OrrPlan *plan,
                             uint32_t *n) {
    if (place->is_pair) {
        *n = place->n_uses;
        return place->uses;
    }
    const OrrLoads *l = &x->bound->groups[place->group].loads;
    if (l->n_loads == 0) {
        *n = 0;
        return NULL;
    }
    gsize v = (gsize)place->index * l->n_loads + plan->load;
    *n = l->first[v + 1] - l->first[v];
    return *n > 0 ? l->uses + l->first[v] : NULL;
}

static void queue_end(OrrExec *x, uint32_t id, int64_t end_ns) {
    OrrPlace *place = &x->places[id];
    place->queued_ns = end_ns;
    if (!place->is_pair && x->is_local_group[place->group]) {
        const OrrBoundGroup *g = &x->bound->groups[place->group];
        orr_exec__push_local(x, g->members[g->first_member[place->index]], end_ns, ORR_EV_COMM_END,
                             place->generation, id);
        return;
    }
    orr_queue_push(&x->queue, end_ns, ORR_EV_COMM_END, place->generation, id);
}

/* What is in the queue for the place counts no more. */
void orr_exec__forget_end(OrrExec *x, uint32_t id) {
    OrrPlace *place = &x->places[id];
    place->generation = (place->generation + 1) & ORR_GENERATION_MASK;
    place->queued_ns = INT64_MAX;
}

/* The transfer ends at @end_ns. Where many share a link ends move with each that comes and goes: an
 * event that is too early stays and is put off when it comes. */
void orr_exec__push_end(OrrExec *x, uint32_t id, int64_t end_ns) {
    OrrPlace *place = &x->places[id];
    place->due_ns = end_ns;
    if (place->queued_ns <= end_ns)
        return;
    orr_exec__forget_end(x, id);
    queue_end(x, id, end_ns);
}

/* Whether the transfer ends at the time of its event; if not, that is put off. */
bool orr_exec__is_due(OrrExec *x, uint32_t id, int64_t now_ns) {
    OrrPlace *place = &x->places[id];
    place->queued_ns = INT64_MAX;
    if (place->due_ns <= now_ns)
        return true;
    if (place->due_ns < INT64_MAX)
        queue_end(x, id, place->due_ns);
    return false;
}

/* Latency and transfer with no link to share. */
int64_t orr_exec__private_ns(const OrrPlan *plan) {
    int64_t transfer = 0;
    if (plan->work_bytes > 0 && plan->work_bytes < UINT64_MAX / 4 / NS_PER_S)
        transfer = (int64_t)((plan->work_bytes * NS_PER_S + plan->cap_bytes_per_s - 1) /
                             plan->cap_bytes_per_s);
    else if (plan->work_bytes > 0)
        transfer =
            (int64_t)(((unsigned __int128)plan->work_bytes * NS_PER_S + plan->cap_bytes_per_s - 1) /
                      plan->cap_bytes_per_s);
    return MAX(plan->latency_ns + transfer, 1);
}

/* Of collective @coll in a group that is an island of its own. */
const OrrPlan *orr_exec__private_plan(const OrrExec *x, uint32_t kind, uint32_t group,
                                      uint32_t coll) {
    const OrrBoundGroup *g = &x->bound->groups[kind];
    return &g->plans[(gsize)g->class_of[group] * program(x)->n_colls + coll];
}

/* All have arrived at @arrived_ns, now or ahead of the clock: latency, then transfer. Alone on its
 * links it needs no fluid. */
void orr_exec__begin_transfer(OrrExec *x, uint32_t id, int64_t arrived_ns) {
    OrrPlace *place = &x->places[id];
    const OrrPlan *plan = orr_exec__plan(place);
    uint32_t n_uses;
    orr_exec__uses(x, place, plan, &n_uses);
    if (x->jitter)
        arrived_ns = orr_jitter_meet(x->jitter, x, id); /* the last comes later than each does */
    place->arrived_ns = arrived_ns;
    if (n_uses > 0 && plan->work_bytes > 0) {
        int64_t from_ns = arrived_ns + plan->latency_ns;
        if (!place->is_pair || !orr_exec__book(x, id, from_ns))
            orr_queue_push(&x->queue, from_ns, ORR_EV_FLOW_START, 0, id);
        return;
    }
    orr_exec__push_end(x, id, arrived_ns + orr_exec__private_ns(plan));
}

/* The transfer enters the fluid; it has moved at its top for @ahead_ns. */
void orr_exec__share(OrrExec *x, uint32_t id, int64_t ahead_ns) {
    OrrPlace *place = &x->places[id];
    const OrrPlan *plan = orr_exec__plan(place);
    OrrFlow flow = {.weight = plan->weight,
                    .cap_bytes_per_s = plan->cap_bytes_per_s,
                    .bytes = plan->work_bytes,
                    .ahead_ns = ahead_ns,
                    .owner = id};
    flow.uses = orr_exec__uses(x, place, plan, &flow.n_uses);
    if (orr_exec__has_rows(x, place))
        orr_exec__narrow(x, place, &flow);
    if (ahead_ns == 0)
        orr_exec__pass_by(x, flow.uses, flow.n_uses);
    place->flow = orr_fluid_start(x->fluid, x->now_ns, &flow);
    place->is_flowing = 1;
    x->is_fluid_dirty = true;
}

void orr_exec__flow_start(OrrExec *x, uint32_t id) {
    OrrPlace *place = &x->places[id];
    int64_t end_ns;
    if (place->is_convoyed)
        orr_convoy__starts(x, id);
    if (!place->is_pair || orr_exec__has_rows(x, place) ||
        !orr_exec__take_room(x, id, x->now_ns, true, &end_ns))
        orr_exec__share(x, id, 0);
    else if (place->is_convoyed)
        orr_convoy__know_end(x, id, end_ns);
    else
        orr_exec__push_end(x, id, end_ns);
}

/* It takes its turn among the events of this instant. */
void orr_exec__flow_ended(void *data, uint32_t activity, uint32_t owner) {
    OrrExec *x = data;
    (void)activity;
    if (x->convoys) /* told when all are known: orr_exec__flows_ended */
        x->convoys->told[x->convoys->n_told++] = owner;
    else
        orr_exec__push_end(x, owner, x->now_ns);
}

/* A part of a batch of sends and receives has ended for rank @r. @met: NULL while nobody leaves
 * records. */
static void part_ended(OrrExec *x, uint32_t r, uint32_t s, int64_t arrived_ns, OrrMet *met) {
    OrrLane *l = orr_exec__own_lane(x, r, s);
    if (met)
        orr_exec__cause_part(x, r, s, met);
    int64_t *last_ns = orr_exec__arrived_ns(x, r, s);
    *last_ns = MAX(*last_ns, arrived_ns);
    if (--l->pending == 0)
        orr_exec__complete(x, r, s);
}

/* Whether none of the parts of the item in hand has ended yet. */
static bool is_first_part(const OrrExec *x, uint32_t r, uint32_t s) {
    const OrrItem *item = orr_exec__head(x, r, s);
    return orr_exec__lane(x, r, s)->pending == program(x)->p2ps[item->what].n_parts;
}

static void pair_end(OrrExec *x, uint32_t id) {
    OrrPlace *place = &x->places[id];
    uint32_t source = place->ends[0], target = place->ends[1];
    int64_t arrived = place->arrived_ns;
    uint32_t receive_stream = place->receive_stream, last = place->last_rank;
    bool has_receiver = true;
    OrrMet met, *known = x->leaves_records ? &met : NULL;
    if (known) {
        orr_exec__cause_prefetch(x, source, place->stream);
        orr_exec__cause_prefetch(x, target, receive_stream);
        met = orr_exec__met(x, last, last == source ? place->stream : receive_stream, arrived,
                            orr_exec__plan(place)->latency_ns);
    }
    if (place->is_eager) {
        has_receiver = orr_pair_send(&place->pair) == ORR_MEET_COMPLETE;
        place->eager_delivered += !has_receiver;
        place->is_eager = 0;
    }
    if (x->jitter) {
        orr_jitter_deliver(x->jitter, x, id, source, place->stream,
                           is_first_part(x, source, place->stream));
        if (has_receiver)
            orr_jitter_deliver(x->jitter, x, id, target, receive_stream,
                               is_first_part(x, target, receive_stream));
    }
    part_ended(x, source, place->stream, arrived, known);
    if (has_receiver)
        part_ended(x, target, receive_stream, arrived, known);
}

/* --self-check: no transfer or collective is faster than its latency and its own cap allow. */
static void check_bound(const OrrExec *x, const OrrPlace *place) {
    const OrrPlan *plan = orr_exec__plan(place);
    int64_t moving = x->now_ns - place->arrived_ns - plan->latency_ns;
    __int128 most = (__int128)moving * plan->cap_bytes_per_s;
    if (plan->work_bytes > 0 && most < (__int128)plan->work_bytes * 1000000000)
        g_error("self-check at %" G_GINT64_FORMAT " ns: %s of group %s moved %" G_GUINT64_FORMAT
                " bytes in %" G_GINT64_FORMAT " ns, faster than its %" G_GUINT64_FORMAT " B/s",
                x->now_ns, place->is_pair ? "a send" : "a collective", orr_group_name(place->group),
                plan->work_bytes, moving, plan->cap_bytes_per_s);
}

void orr_exec__leave_fluid(OrrExec *x, OrrPlace *place) {
    if (!place->is_flowing)
        return;
    orr_fluid_end(x->fluid, x->now_ns, place->flow);
    if (place->is_narrow)
        orr_exec__leave_rows(x, place);
    place->is_flowing = 0;
    x->is_fluid_dirty = true;
}

/* A transfer of a convoy is over: what there is to do but for the streams of its two ends. @plan:
 * one like its own, which lies apart; NULL: that. */
void orr_exec__pair_over(OrrExec *x, uint32_t id, const OrrPlan *plan) {
    OrrPlace *place = &x->places[id];
    uint32_t streams[2] = {place->stream, place->receive_stream};
    if (x->options->self_check)
        check_bound(x, place);
    if (place->is_booked)
        orr_exec__room_hold(x, id);
    orr_exec__leave_fluid(x, place);
    OrrMet met;
    if (x->leaves_records) {
        uint32_t last = place->last_rank;
        plan = plan ? plan : orr_exec__plan(place);
        met = orr_exec__met(x, last, streams[last != place->ends[0]], place->arrived_ns,
                            plan->latency_ns);
    }
    for (int k = 0; x->leaves_records && k < 2; k++)
        orr_exec__cause_part(x, place->ends[k], streams[k], &met);
}

void orr_exec__comm_end(OrrExec *x, uint32_t id) {
    OrrPlace *place = &x->places[id];
    if (x->options->self_check)
        check_bound(x, place);
    if (place->is_booked && x->now_ns < x->global_ns)
        orr_exec__room_hold(x, id);
    else if (place->is_booked)
        orr_exec__room_give(x, id);
    orr_exec__leave_fluid(x, place);
    if (place->is_pair) {
        pair_end(x, id);
        if (place->is_held)
            orr_exec__room_give(x, id);
        return;
    }
    const OrrBoundGroup *g = &x->bound->groups[place->group];
    uint32_t stream = place->stream;
    int64_t arrived = place->arrived_ns;
    OrrMet met, *known = x->leaves_records ? &met : NULL;
    if (known)
        met =
            orr_exec__met(x, place->last_rank, stream, arrived, orr_exec__plan(place)->latency_ns);
    for (uint32_t m = g->first_member[place->index];
         x->jitter && m < g->first_member[place->index + 1]; m++)
        orr_jitter_deliver(x->jitter, x, id, g->members[m], stream, true);
    uint32_t end = g->first_member[place->index + 1];
    for (uint32_t m = g->first_member[place->index]; m < end; m++) {
        orr_exec__fetch_members(x, g->members + m, end - m, stream);
        *orr_exec__arrived_ns(x, g->members[m], stream) = arrived;
        if (known)
            orr_exec__cause_coll(x, g->members[m], stream, known);
        orr_exec__complete(x, g->members[m], stream);
    }
}

/* Who came last: the smallest rank of those. */
static void note_last(OrrPlace *place, uint32_t r, int64_t at_ns, bool is_first) {
    if (is_first || at_ns > place->arrived_ns ||
        (at_ns == place->arrived_ns && r < place->last_rank))
        place->last_rank = r;
    place->arrived_ns = is_first ? at_ns : MAX(at_ns, place->arrived_ns);
}

/* All members are there: for the order in which they came. */
static void note_meeting(OrrExec *x, const OrrPlace *place, uint32_t what) {
    const OrrBoundGroup *g = &x->bound->groups[place->group];
    const uint32_t *members = g->members + g->first_member[place->index];
    uint32_t n = g->first_member[place->index + 1] - g->first_member[place->index];
    uint32_t step = orr_exec__lane(x, members[0], place->stream)->step;
    int64_t wait_ns = 0;
    for (uint32_t m = 0; m < n; m++)
        wait_ns += (x->now_ns - *orr_exec__start_ns(x, members[m], place->stream)) *
                   x->bound->weight[members[m]];
    if (!orr_exec__is_longest(x, members[0], step, what, wait_ns))
        return;
    for (uint32_t m = 0; m < n; m++)
        *orr_exec__launch_of(x, members[m], step, what) =
            (OrrLaunch){*orr_exec__start_ns(x, members[m], place->stream), wait_ns, step + 1};
}

static void arrive_coll(OrrExec *x, uint32_t r, uint32_t s, uint32_t what) {
    const OrrColl *c = &program(x)->colls[what];
    uint32_t group = x->bound->groups[c->group].group_of[r];
    uint32_t id = x->coll_place[c->group][c->comm] + group;
    OrrPlace *place = &x->places[id];
    if (x->jitter)
        orr_jitter_arrive(x->jitter, x, id, r, s, false);
    note_last(place, r, x->now_ns, place->meeting.n_arrived == 0);
    place->stream = s;
    OrrMeet meet = orr_meeting_arrive(&place->meeting, what, 1);
    if (meet == ORR_MEET_MISMATCH && !x->mismatch)
        x->mismatch = g_strdup_printf(
            "rank %u calls %s (%s) on a communicator of group %s where others call %s (%s)", r,
            c->label, orr_collective_name(c->kind), orr_group_name(c->group),
            program(x)->colls[place->meeting.what].label,
            orr_collective_name(program(x)->colls[place->meeting.what].kind));
    if (meet != ORR_MEET_COMPLETE)
        return;
    place->what = what;
    if (x->launches)
        note_meeting(x, place, what);
    orr_exec__begin_transfer(x, id, x->now_ns);
}

/* Place of the pair between rank @r and its peer. */
uint32_t orr_exec__pair_of(const OrrExec *x, uint32_t r, const OrrP2pPart *p) {
    const OrrBoundGroup *g = &x->bound->groups[p->group];
    uint32_t me = g->position_of[r];
    uint32_t pair =
        p->is_send ? g->pair_index[me * g->size + p->peer] : g->pair_index[p->peer * g->size + me];
    return x->pair_place[p->group][p->comm] + pair * g->n_groups + g->group_of[r];
}

/* Rank @r comes with a part that is not sent early; whether its partner has been there before. */
bool orr_exec__meet_pair(OrrExec *x, OrrPlace *place, uint32_t r, uint32_t s, uint32_t part,
                         int64_t at_ns) {
    if (program(x)->parts[part].is_send) {
        place->stream = s;
        place->what = part;
        note_last(place, r, at_ns, place->pair.n_received == 0);
        return orr_pair_send(&place->pair) == ORR_MEET_COMPLETE;
    }
    place->receive_stream = s;
    if (!place->is_eager)
        note_last(place, r, at_ns, place->pair.n_sent == 0);
    return orr_pair_receive(&place->pair) == ORR_MEET_COMPLETE;
}

/* Rank @r arrives at @at_ns: now, or ahead of the clock. */
static void arrive_part(OrrExec *x, uint32_t r, uint32_t s, uint32_t part, bool is_eager,
                        int64_t at_ns) {
    const OrrP2pPart *p = &program(x)->parts[part];
    uint32_t id = orr_exec__pair_of(x, r, p);
    OrrPlace *place = &x->places[id];
    bool is_early = is_eager && (uint64_t)p->bytes <= x->bound->eager_bytes;
    /* who receives what was sent early does not delay it */
    if (x->jitter && (p->is_send || (!place->is_eager && place->eager_delivered == 0)))
        orr_jitter_arrive(x->jitter, x, id, r, s, is_early && p->is_send);
    if (p->is_send && is_early) {
        place->stream = s;
        place->what = part;
        place->is_eager = 1;
        place->last_rank = r;
        orr_exec__begin_transfer(x, id, at_ns);
        return;
    }
    if (!orr_exec__meet_pair(x, place, r, s, part, at_ns))
        return;
    if (!p->is_send && place->eager_delivered > 0) {
        place->eager_delivered--;
        orr_exec__own_lane(x, r, s)->pending--;
        return;
    }
    if (place->convoy != ORR_NONE)
        orr_convoy__wait(x, id);
    else
        orr_exec__begin_transfer(x, id, place->arrived_ns);
}

/* Sends and receives that will be launched at @start_ns arrive at once, if that is all the same. */
bool orr_exec__arrive_early(OrrExec *x, uint32_t r, uint32_t s, const OrrItem *item,
                            int64_t start_ns) {
    if (item->type != ORR_ITEM_P2P || !x->is_early[item->what])
        return false;
    const OrrP2p *p = &program(x)->p2ps[item->what];
    OrrLane *l = orr_exec__own_lane(x, r, s);
    l->state = ORR_LANE_RUNNING;
    *orr_exec__start_ns(x, r, s) = *orr_exec__arrived_ns(x, r, s) = start_ns;
    l->pending = p->n_parts;
    for (uint32_t i = 0; i < p->n_parts; i++)
        arrive_part(x, r, s, p->first_part + i, false, start_ns);
    return true;
}

void orr_exec__arrive(OrrExec *x, uint32_t r, uint32_t s, const OrrItem *item) {
    if (item->type == ORR_ITEM_COLL) {
        arrive_coll(x, r, s, item->what);
        return;
    }
    const OrrP2p *p = &program(x)->p2ps[item->what];
    orr_exec__own_lane(x, r, s)->pending = p->n_parts;
    for (uint32_t i = 0; i < p->n_parts; i++)
        arrive_part(x, r, s, p->first_part + i, p->is_eager, x->now_ns);
    if (orr_exec__lane(x, r, s)->pending == 0)
        orr_queue_push(&x->queue, x->now_ns, ORR_EV_LANE_END, 0, r * ORR_N_STREAMS + s);
}
