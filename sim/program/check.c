/* Runs a program at zero times: which operations meet, in the order of streams, hosts and waits,
 * whatever the durations. One rank stands for each role; groups whose members share a role meet at
 * once, since all of them come to the call alike. Two steps are run, for waits that reach back.
 * Left out: buffers of eager sends never fill. Cost: about 10 ns an operation and step. */
#include "sim/program/check.h"

#include "sim/program/check_priv.h"

#include <glib.h>
#include <inttypes.h>
#include <string.h>

bool orr_program__spans_roles(OrrGroup group) {
    return group == ORR_GROUP_PP || group == ORR_GROUP_EMBEDDING || group == ORR_GROUP_MODEL ||
           group == ORR_GROUP_WORLD;
}

bool orr_program__is_member(const OrrCheck *c, OrrGroup group, uint32_t role) {
    uint32_t stage = c->program->roles[role].stage;
    return group != ORR_GROUP_EMBEDDING || stage == 0 || stage + 1 == c->program->n_roles;
}

uint32_t orr_program__peer_stage(const OrrCheck *c, const OrrP2pPart *part) {
    if (part->group == ORR_GROUP_EMBEDDING)
        return part->peer == 0 ? 0 : c->program->n_roles - 1;
    return part->peer;
}

OrrPairPlace *orr_program__pair(OrrCheck *c, uint32_t role, const OrrP2pPart *part) {
    uint32_t own = c->program->roles[role].stage, peer = orr_program__peer_stage(c, part);
    OrrPairKey key = {part->group, part->comm, part->is_send ? own : peer,
                      part->is_send ? peer : own};
    uint64_t hash = orr_program__hash(&key, sizeof key, 0);
    uint32_t cursor = 0, id;
    while ((id = orr_program__intern_next(&c->pair_index, hash, &cursor)) != ORR_NONE)
        if (memcmp(&c->pairs[id].key, &key, sizeof key) == 0)
            return &c->pairs[id];
    c->pairs = orr_program__grow(c->pairs, &c->cap_pairs, c->n_pairs + 1, sizeof *c->pairs);
    OrrPairPlace *pair = &c->pairs[c->n_pairs];
    memset(pair, 0, sizeof *pair);
    pair->key = key;
    orr_program__intern_add(&c->pair_index, hash, c->n_pairs++);
    return pair;
}

OrrCollPlace *orr_program__coll_place(OrrCheck *c, const OrrColl *coll) {
    for (uint32_t i = 0; i < c->n_places_coll; i++)
        if (c->places[i].group == coll->group && c->places[i].comm == coll->comm)
            return &c->places[i];
    c->places =
        orr_program__grow(c->places, &c->cap_places, c->n_places_coll + 1, sizeof *c->places);
    OrrCollPlace *place = &c->places[c->n_places_coll++];
    place->group = coll->group;
    place->comm = coll->comm;
    place->waiting = g_new(uint32_t, c->program->n_roles);
    uint32_t n_members = 0;
    for (uint32_t r = 0; r < c->program->n_roles; r++) {
        place->waiting[r] = ORR_NONE;
        n_members += orr_program__is_member(c, coll->group, r);
    }
    orr_meeting_init(&place->state, n_members);
    return place;
}

const OrrOp *orr_program__thread_op(const OrrCheck *c, uint32_t thread) {
    const OrrProgram *p = c->program;
    const OrrThread *t = &c->threads[thread];
    const OrrCall *call = &p->calls[p->roles[thread / ORR_N_STREAMS].first_call + t->call];
    return &p->ops[p->segments[call->segment].first_op + t->op];
}

bool orr_program__thread_at_end(const OrrCheck *c, uint32_t thread) {
    return c->threads[thread].step == ORR_CHECK_STEPS;
}

/* Goes on from (step, call, op) inclusive to the stream's next operation. */
static void settle_thread(const OrrCheck *c, uint32_t thread) {
    const OrrProgram *p = c->program;
    OrrThread *t = &c->threads[thread];
    uint32_t role = thread / ORR_N_STREAMS, stream = thread % ORR_N_STREAMS;
    const OrrRole *r = &p->roles[role];
    for (; t->step < ORR_CHECK_STEPS; t->step++, t->call = 0) {
        for (; t->call < r->n_calls; t->call++, t->op = 0) {
            uint32_t segment = p->calls[r->first_call + t->call].segment;
            if (!(c->segment_streams[segment] >> stream & 1))
                continue;
            const OrrSegment *s = &p->segments[segment];
            for (; t->op < s->n_ops; t->op++) {
                if (p->ops[s->first_op + t->op].stream != stream)
                    continue;
                t->place =
                    t->step * c->n_places[role] + c->first_place[r->first_call + t->call] + t->op;
                return;
            }
        }
    }
    t->place = ORR_CHECK_STEPS * c->n_places[role];
}

void orr_program__thread_next(const OrrCheck *c, uint32_t thread) {
    OrrThread *t = &c->threads[thread];
    t->has_arrived = false;
    t->op++;
    settle_thread(c, thread);
}

/* Whether the stream of an operation is beyond it; else the thread is blocked on it. */
static bool is_done(OrrCheck *c, uint32_t thread, uint32_t step, uint32_t call, uint32_t op) {
    const OrrProgram *p = c->program;
    OrrThread *t = &c->threads[thread];
    uint32_t role = thread / ORR_N_STREAMS;
    const OrrCall *source = &p->calls[p->roles[role].first_call + call];
    uint32_t stream = p->ops[p->segments[source->segment].first_op + op].stream;
    uint64_t place =
        step * c->n_places[role] + c->first_place[p->roles[role].first_call + call] + op;
    bool is_beyond = c->threads[role * ORR_N_STREAMS + stream].place > place;
    t->blocked_on = is_beyond ? ORR_NONE : stream;
    t->blocked_place = place;
    return is_beyond;
}

/* Whether the host has issued the thread's operation and all that it waits for is done. */
static bool is_ready(OrrCheck *c, uint32_t thread) {
    const OrrProgram *p = c->program;
    OrrThread *t = &c->threads[thread];
    const OrrOp *op = orr_program__thread_op(c, thread);
    uint32_t role = thread / ORR_N_STREAMS, at = p->roles[role].first_call + t->call;
    if (t->place > c->threads[role * ORR_N_STREAMS + ORR_STREAM_HOST].place) {
        t->blocked_on = ORR_STREAM_HOST;
        t->blocked_place = t->place - 1;
        return false;
    }
    for (uint8_t i = 0; i < op->n_waits; i++)
        if (!is_done(c, thread, t->step, t->call, op->wait[i]))
            return false;
    if (!(c->call_waiters[at] >> t->op % 64 & 1))
        return true;
    const OrrCall *call = &p->calls[at];
    for (uint32_t i = call->first_wait; i < call->first_wait + call->n_waits; i++) {
        const OrrCallWait *w = &p->call_waits[i];
        if (w->op == t->op && w->steps_back <= t->step &&
            !is_done(c, thread, t->step - w->steps_back, w->src_call, w->src_op))
            return false;
    }
    return true;
}

uint32_t orr_program__waits_for_stream(OrrCheck *c, uint32_t thread) {
    OrrThread *t = &c->threads[thread];
    uint32_t first = thread / ORR_N_STREAMS * ORR_N_STREAMS;
    if (t->blocked_on != ORR_NONE && c->threads[first + t->blocked_on].place <= t->blocked_place)
        return t->blocked_on;
    t->blocked_on = ORR_NONE;
    return is_ready(c, thread) ? ORR_NONE : t->blocked_on;
}

static void look_again(OrrCheck *c, uint32_t role) {
    if (c->is_listed[role])
        return;
    c->is_listed[role] = true;
    c->todo = orr_program__grow(c->todo, &c->cap_todo, c->n_todo + 1, sizeof *c->todo);
    c->todo[c->n_todo++] = role;
}

/* All operations of the thread end here; others of its role may go on. */
static void finish_op(OrrCheck *c, uint32_t thread) {
    orr_program__thread_next(c, thread);
    look_again(c, thread / ORR_N_STREAMS);
}

static void meet_collective(OrrCheck *c, uint32_t thread, const OrrOp *op) {
    const OrrColl *coll = &c->program->colls[op->what];
    uint32_t role = thread / ORR_N_STREAMS, stage = c->program->roles[role].stage;
    if (!orr_program__spans_roles(coll->group)) {
        finish_op(c, thread);
        return;
    }
    if (!orr_program__is_member(c, coll->group, role)) {
        orr_fail_input(&c->error, "stage %u calls %s on group %s, and is no member of it", stage,
                       orr_collective_name(coll->kind), orr_group_name(coll->group));
        return;
    }
    OrrCollPlace *place = orr_program__coll_place(c, coll);
    if (place->waiting[role] != ORR_NONE)
        return; /* an earlier call of this rank is open: calls on a communicator are in order */
    OrrMeet meet = orr_meeting_arrive(&place->state, c->canonical[op->what], 1);
    if (meet == ORR_MEET_MISMATCH) {
        const OrrColl *open = &c->program->colls[place->state.what];
        orr_fail_input(
            &c->error,
            "stage %u brings %s of %" PRId64 " bytes (\"%s\") to communicator %u of group "
            "%s, where others bring %s of %" PRId64 " bytes (\"%s\")",
            stage, orr_collective_name(coll->kind), coll->bytes, coll->label, coll->comm,
            orr_group_name(coll->group), orr_collective_name(open->kind), open->bytes, open->label);
        return;
    }
    c->threads[thread].has_arrived = true;
    place->waiting[role] = thread;
    if (meet == ORR_MEET_WAIT)
        return;
    for (uint32_t r = 0; r < c->program->n_roles; r++) {
        if (place->waiting[r] != ORR_NONE)
            finish_op(c, place->waiting[r]);
        place->waiting[r] = ORR_NONE;
    }
}

static void push_waiter(OrrPairPlace *pair, uint32_t thread, uint32_t part) {
    if (pair->head == pair->n_waiters)
        pair->head = pair->n_waiters = 0;
    pair->waiters = orr_program__grow(pair->waiters, &pair->capacity, pair->n_waiters + 1,
                                      sizeof *pair->waiters);
    pair->waiters[pair->n_waiters++] = (OrrWaiter){thread, part};
}

/* One part arrives; true if its partner was there. */
static bool meet_part(OrrCheck *c, uint32_t thread, uint32_t part_id, bool is_eager) {
    const OrrP2pPart *part = &c->program->parts[part_id];
    if (part->group != ORR_GROUP_PP && part->group != ORR_GROUP_EMBEDDING)
        return true;
    OrrPairPlace *pair = orr_program__pair(c, thread / ORR_N_STREAMS, part);
    OrrMeet meet = part->is_send ? orr_pair_send(&pair->state) : orr_pair_receive(&pair->state);
    if (meet == ORR_MEET_WAIT) {
        push_waiter(pair, is_eager ? ORR_NONE : thread, part_id);
        return is_eager;
    }
    OrrWaiter other = pair->waiters[pair->head++];
    const OrrP2pPart *partner = &c->program->parts[other.part];
    if (partner->bytes != part->bytes)
        orr_fail_input(c->error == NULL ? &c->error : NULL,
                       "stage %u sends %" PRId64 " bytes where stage %u receives %" PRId64,
                       pair->key.from, part->is_send ? part->bytes : partner->bytes, pair->key.to,
                       part->is_send ? partner->bytes : part->bytes);
    if (other.thread != ORR_NONE && --c->threads[other.thread].n_open == 0 &&
        c->threads[other.thread].has_arrived)
        finish_op(c, other.thread);
    return true;
}

static void meet_parts(OrrCheck *c, uint32_t thread, const OrrOp *op) {
    const OrrP2p *p2p = &c->program->p2ps[op->what];
    OrrThread *t = &c->threads[thread];
    t->n_open = p2p->n_parts;
    for (uint32_t i = p2p->first_part; i < p2p->first_part + p2p->n_parts; i++)
        if (meet_part(c, thread, i, p2p->is_eager && c->program->parts[i].is_send))
            t->n_open--;
    t->has_arrived = true;
    if (t->n_open == 0)
        finish_op(c, thread);
}

/* Runs one stream of a role as far as it goes. */
static void run_thread(OrrCheck *c, uint32_t thread) {
    const OrrThread *t = &c->threads[thread];
    while (c->error == NULL && !orr_program__thread_at_end(c, thread) && !t->has_arrived &&
           orr_program__waits_for_stream(c, thread) == ORR_NONE) {
        const OrrOp *op = orr_program__thread_op(c, thread);
        uint64_t place = t->place;
        switch ((OrrOpKind)op->kind) {
        case ORR_OP_KERNEL:
        case ORR_OP_HOST:
        case ORR_N_OP_KINDS:
            orr_program__thread_next(c, thread);
            break;
        case ORR_OP_COLL:
            meet_collective(c, thread, op);
            break;
        case ORR_OP_P2P:
            meet_parts(c, thread, op);
            break;
        }
        if (t->place == place)
            return;
    }
}

static uint64_t progress_of(const OrrCheck *c, uint32_t role) {
    uint64_t sum = 0;
    for (uint32_t s = 0; s < ORR_N_STREAMS; s++)
        sum += c->threads[role * ORR_N_STREAMS + s].place;
    return sum;
}

/* Until none of its streams moves. The role counts as listed meanwhile: what others do to it is
 * seen. */
static void run_role(OrrCheck *c, uint32_t role) {
    uint64_t before;
    do {
        before = progress_of(c, role);
        for (uint32_t s = 0; s < ORR_N_STREAMS; s++)
            run_thread(c, role * ORR_N_STREAMS + s);
    } while (progress_of(c, role) != before && c->error == NULL);
    c->is_listed[role] = false;
}

static bool may_meet(const OrrColl *a, const OrrColl *b) {
    return a->kind == b->kind && a->group == b->group && a->comm == b->comm &&
           a->dtype == b->dtype && a->bytes == b->bytes;
}

static void check_init(OrrCheck *c, const OrrProgram *p) {
    memset(c, 0, sizeof *c);
    c->program = p;
    c->role_of_stage = g_new0(uint32_t, p->n_roles);
    c->first_place = g_new0(uint64_t, p->n_calls);
    c->n_places = g_new0(uint64_t, p->n_roles);
    c->segment_streams = g_new0(uint32_t, p->n_segments);
    c->is_listed = g_new0(bool, p->n_roles);
    c->call_waiters = g_new0(uint64_t, p->n_calls);
    c->canonical = g_new0(uint32_t, p->n_colls);
    c->threads = g_new0(OrrThread, (size_t)p->n_roles * ORR_N_STREAMS);
    for (uint32_t i = 0; i < p->n_colls; i++)
        while (!may_meet(&p->colls[c->canonical[i]], &p->colls[i]))
            c->canonical[i]++;
    for (uint32_t s = 0; s < p->n_segments; s++)
        for (uint32_t i = 0; i < p->segments[s].n_ops; i++)
            c->segment_streams[s] |= 1u << p->ops[p->segments[s].first_op + i].stream;
    for (uint32_t i = 0; i < p->n_calls; i++)
        for (uint32_t w = 0; w < p->calls[i].n_waits; w++)
            c->call_waiters[i] |= 1ull << p->call_waits[p->calls[i].first_wait + w].op % 64;
    for (uint32_t i = 0; i < p->n_roles * ORR_N_STREAMS; i++)
        c->threads[i].blocked_on = ORR_NONE;
    for (uint32_t r = 0; r < p->n_roles; r++) {
        const OrrRole *role = &p->roles[r];
        c->role_of_stage[role->stage] = r;
        for (uint32_t i = role->first_call; i < role->first_call + role->n_calls; i++) {
            c->first_place[i] = c->n_places[r];
            c->n_places[r] += p->segments[p->calls[i].segment].n_ops;
        }
        for (uint32_t s = 0; s < ORR_N_STREAMS; s++)
            settle_thread(c, r * ORR_N_STREAMS + s);
    }
}

static void check_clear(OrrCheck *c) {
    for (uint32_t i = 0; i < c->n_pairs; i++)
        g_free(c->pairs[i].waiters);
    for (uint32_t i = 0; i < c->n_places_coll; i++)
        g_free(c->places[i].waiting);
    g_free(c->pairs);
    g_free(c->places);
    orr_program__intern_clear(&c->pair_index);
    g_free(c->role_of_stage);
    g_free(c->first_place);
    g_free(c->n_places);
    g_free(c->segment_streams);
    g_free(c->is_listed);
    g_free(c->call_waiters);
    g_free(c->canonical);
    g_free(c->threads);
    g_free(c->todo);
}

/* Sends that were copied out and that nobody ever received. */
static void find_lost_sends(OrrCheck *c) {
    for (uint32_t i = 0; i < c->n_pairs && c->error == NULL; i++)
        if (c->pairs[i].state.n_sent > 0)
            orr_fail_input(&c->error, "stage %u never receives %d messages that stage %u sends",
                           c->pairs[i].key.to, c->pairs[i].state.n_sent, c->pairs[i].key.from);
}

bool orr_program_check(const OrrProgram *program, GError **error) {
    g_autofree char *flaw = orr_program_flaw(program);
    if (flaw != NULL)
        return orr_fail_input(error, "unsound program: %s", flaw);
    OrrCheck c;
    check_init(&c, program);
    for (uint32_t r = program->n_roles; r > 0; r--)
        look_again(&c, r - 1);
    while (c.n_todo > 0 && c.error == NULL)
        run_role(&c, c.todo[--c.n_todo]);
    for (uint32_t i = 0; i < program->n_roles * ORR_N_STREAMS && c.error == NULL; i++) {
        if (orr_program__thread_at_end(&c, i))
            continue;
        g_autofree char *text = orr_program__hang_text(&c, i / ORR_N_STREAMS);
        orr_fail_input(&c.error, "%s", text);
    }
    if (c.error == NULL)
        find_lost_sends(&c);
    bool is_sound = c.error == NULL;
    if (!is_sound)
        g_propagate_error(error, c.error);
    check_clear(&c);
    return is_sound;
}
