/* Passes taken as a whole: what an island does in a call (the forward of a chunk, say) when nothing
 * external reaches into it is a static recursion over its members and their items, evaluated at
 * once (recursion.c) instead of event by event: the same nanoseconds for a hundredth of the work.
 *
 * A call is such a pass if its segment has kernels on the compute stream and collectives of the
 * island on the TP stream only, no host synchronisation, waits for other calls at its begin only,
 * and if what others wait for in it comes after its members have met. It is taken when all members
 * have from outside what they need, if the host is ahead of every start in it and no external
 * communication that slows kernels is under way or told until then; else it goes event by event. */
#include "sim/exec/pass.h"

#include "sim/base/large.h"

#include <stdlib.h>
#include <string.h>

static const uint32_t lanes[ORR_PASS_LANES] = {ORR_STREAM_COMPUTE, ORR_STREAM_TP};

static const OrrCompiledRole *role_of(const OrrExec *x, uint32_t r) {
    return &x->compiled->roles[x->bound->role[r]];
}

static const OrrItem *item_at(const OrrExec *x, const OrrCompiledSegment *cs, uint32_t s,
                              uint32_t i) {
    return &x->compiled->items[cs->first_item[s] + i];
}

/* Waits of @item for the other stream of a pass, as items that must have ended. */
static uint32_t need_of(const OrrExec *x, const OrrItem *item, uint32_t other) {
    uint32_t need = 0;
    for (uint32_t i = 0; i < item->n_waits; i++) {
        const OrrItemWait *w = &x->compiled->waits[item->first_wait + i];
        if (w->stream == other)
            need = MAX(need, w->count);
    }
    return need;
}

/* Operands that the recursion knows: kernels on one stream, collectives on the other. */
static bool has_known_items(const OrrExec *x, const OrrCompiledSegment *cs) {
    for (uint32_t s = 0; s < ORR_N_STREAMS; s++)
        if (s != ORR_STREAM_COMPUTE && s != ORR_STREAM_TP && cs->n_items[s] > 0)
            return false;
    for (uint32_t i = 0; i < cs->n_items[ORR_STREAM_COMPUTE]; i++) {
        const OrrItem *item = item_at(x, cs, ORR_STREAM_COMPUTE, i);
        if (item->is_step_end || item->type != ORR_ITEM_BLOCK)
            return false;
    }
    for (uint32_t i = 0; i < cs->n_items[ORR_STREAM_TP]; i++)
        if (item_at(x, cs, ORR_STREAM_TP, i)->type != ORR_ITEM_COLL)
            return false;
    return cs->n_syncs == 0 && cs->n_items[ORR_STREAM_COMPUTE] > 0;
}

/* The pass moves on to its end at once: a local stream may wait for the last item of a stream only,
 * an external one only for what ends after the members have met (if there are several). */
static bool has_known_waiters(const OrrExec *x, const OrrCompiledSegment *cs,
                              const uint8_t *is_awaited) {
    bool has_met = !x->is_local_group[ORR_GROUP_TP];
    for (uint32_t i = 0; i < cs->n_items[ORR_STREAM_COMPUTE]; i++) {
        const OrrItem *item = item_at(x, cs, ORR_STREAM_COMPUTE, i);
        has_met |= need_of(x, item, ORR_STREAM_TP) > 0;
        if (!has_met && (item->waiters & x->external_mask))
            return false;
    }
    for (uint32_t k = 0; k < ORR_PASS_LANES; k++)
        for (uint32_t i = 0; i + 1 < cs->n_items[lanes[k]]; i++)
            if (is_awaited[cs->first_item[lanes[k]] + i])
                return false;
    return true;
}

/* Items that a local stream of another call waits for, the host included. */
static uint8_t *awaited_items(const OrrExec *x, uint32_t n_items) {
    uint8_t *is_awaited = g_new0(uint8_t, n_items + 1);
    for (uint32_t r = 0; r < x->bound->program->n_roles; r++) {
        const OrrCompiledRole *role = &x->compiled->roles[r];
        const OrrCallRow *rows = role->rows;
        for (uint32_t i = 0; i < rows[role->n_calls].first_cross; i++) {
            const OrrCrossWait *c = &role->cross[i];
            if (x->is_external[c->stream])
                continue;
            uint32_t low = 0, high = role->n_calls; /* the call whose items those are */
            while (high - low > 1) {
                uint32_t middle = (low + high) / 2;
                if (rows[middle].base[c->src_stream] < c->src_count)
                    low = middle;
                else
                    high = middle;
            }
            const OrrCompiledSegment *cs = &x->compiled->segments[role->calls[low].segment];
            is_awaited[cs->first_item[c->src_stream] + c->src_count - 1 -
                       rows[low].base[c->src_stream]] = 1;
        }
    }
    return is_awaited;
}

static bool is_one_role_each(const OrrExec *x) {
    const OrrBoundGroup *tp = &x->bound->groups[ORR_GROUP_TP];
    for (uint32_t g = 0; x->is_local_group[ORR_GROUP_TP] && g < tp->n_groups; g++)
        for (uint32_t m = tp->first_member[g]; m < tp->first_member[g + 1]; m++)
            if (x->bound->role[tp->members[m]] != x->bound->role[tp->members[tp->first_member[g]]])
                return false;
    return true;
}

/* An external communication that slows kernels is told before it starts unless it waits for another
 * that slows none (or for the host): then it could begin in the middle of a pass, unawares. */
static bool can_surprise(const OrrExec *x) {
    const OrrProgram *p = x->bound->program;
    uint16_t quiet = 1u << ORR_STREAM_HOST, loud = 0;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const OrrOp *op = &p->ops[i];
        if ((op->kind != ORR_OP_COLL && op->kind != ORR_OP_P2P) || !x->is_external[op->stream])
            continue;
        OrrItem item = {.type = op->kind == ORR_OP_COLL ? ORR_ITEM_COLL : ORR_ITEM_P2P,
                        .what = op->what};
        bool takes_sms;
        uint32_t purpose = orr_exec__purpose(x, &item, &takes_sms);
        if (takes_sms && orr_exec__slows_kernels(x, purpose))
            loud |= 1u << op->stream;
        else
            quiet |= 1u << op->stream;
    }
    if (loud & quiet)
        return true;
    for (uint32_t s = 0; s < ORR_N_STREAMS; s++)
        if ((quiet & 1u << s) && (x->compiled->waiters[s] & loud))
            return true;
    return false;
}

/* Calls of a role that are passes: their waits for other calls are at their begin. */
static uint8_t *find_calls(const OrrExec *x, const OrrCompiledRole *role) {
    uint8_t *is_pass = g_new0(uint8_t, role->n_calls + 1);
    for (uint32_t c = 0; c < role->n_calls; c++) {
        is_pass[c] = x->passes->is_pass[role->calls[c].segment];
        for (uint32_t i = role->rows[c].first_cross; i < role->rows[c + 1].first_cross; i++)
            is_pass[c] &= role->cross[i].item == 0;
    }
    return is_pass;
}

static void find_passes(OrrExec *x) {
    OrrPasses *p = x->passes;
    uint32_t n = x->bound->program->n_segments, n_items = 0;
    for (uint32_t s = 0; s < n; s++)
        for (uint32_t q = 0; q < ORR_N_STREAMS; q++)
            n_items = MAX(n_items, x->compiled->segments[s].first_item[q] +
                                       x->compiled->segments[s].n_items[q]);
    g_autofree uint8_t *is_awaited = awaited_items(x, n_items);
    p->need = g_new0(uint32_t, n_items + 1);
    p->is_pass = g_new0(uint8_t, n + 1);
    for (uint32_t s = 0; s < n; s++) {
        const OrrCompiledSegment *cs = &x->compiled->segments[s];
        p->is_pass[s] = has_known_items(x, cs) && has_known_waiters(x, cs, is_awaited);
        for (uint32_t k = 0; k < ORR_PASS_LANES; k++)
            for (uint32_t i = 0; i < cs->n_items[lanes[k]]; i++) {
                uint32_t at = cs->first_item[lanes[k]] + i;
                p->need[at] = need_of(x, &x->compiled->items[at], lanes[1 - k]);
            }
        if (p->is_pass[s])
            p->most_items = MAX(p->most_items,
                                MAX(cs->n_items[ORR_STREAM_COMPUTE], cs->n_items[ORR_STREAM_TP]));
    }
}

void orr_exec__passes_new(OrrExec *x) {
    if (x->draws || x->jitter || x->options->probe || x->options->is_plain ||
        x->is_external[ORR_STREAM_TP] || !is_one_role_each(x) || can_surprise(x))
        return;
    OrrPasses *p = x->passes = g_new0(OrrPasses, 1);
    find_passes(x);
    p->is_pass_call = g_new0(uint8_t *, x->bound->program->n_roles + 1);
    for (uint32_t r = 0; r < x->bound->program->n_roles; r++)
        p->is_pass_call[r] = find_calls(x, &x->compiled->roles[r]);
    p->islands = g_new0(OrrIslandPass, x->n_islands);
    p->begins = orr_large_new(x->bound->n_ranks * sizeof *p->begins);
    uint32_t n = x->is_local_group[ORR_GROUP_TP] ? ORR_MAX_ISLAND : 1;
    p->members = g_new0(OrrPassMember, n);
    p->ends = g_new0(int64_t, (gsize)n * p->most_items * ORR_PASS_LANES + 1);
    p->waits = g_new0(OrrPassWait, (gsize)n * p->most_items + 1);
    for (uint32_t m = 0; m < n; m++) {
        p->members[m].end_ns[0] = p->ends + (gsize)2 * m * p->most_items;
        p->members[m].end_ns[1] = p->ends + (gsize)(2 * m + 1) * p->most_items;
        p->members[m].waits = p->waits + (gsize)m * p->most_items;
    }
}

void orr_exec__passes_clear(OrrExec *x) {
    if (!x->passes)
        return;
    for (uint32_t r = 0; r < x->bound->program->n_roles; r++)
        g_free(x->passes->is_pass_call[r]);
    g_free(x->passes->is_pass_call);
    g_free(x->passes->is_pass);
    g_free(x->passes->need);
    g_free(x->passes->islands);
    free(x->passes->begins);
    g_free(x->passes->members);
    g_free(x->passes->ends);
    g_free(x->passes->waits);
    g_free(x->passes);
}

/* Names a call of a lane over all steps, in their order; never 0. */
static uint32_t call_key(const OrrExec *x, uint32_t r, const OrrLane *l) {
    return l->step * role_of(x, r)->n_calls + l->call + 1;
}

/* Ranks of the island of @r: a TP group, or itself. */
static uint32_t members(const OrrExec *x, const uint32_t *r, const uint32_t **list) {
    const OrrBoundGroup *tp = &x->bound->groups[ORR_GROUP_TP];
    if (!x->is_local_group[ORR_GROUP_TP]) {
        *list = r;
        return 1;
    }
    uint32_t g = tp->group_of[*r];
    *list = tp->members + tp->first_member[g];
    return tp->first_member[g + 1] - tp->first_member[g];
}

/* Whether the head of this lane begins a pass that is to be taken as a whole. */
bool orr_exec__begins_pass(const OrrExec *x, uint32_t r, uint32_t s) {
    const OrrLane *l = &x->ranks[r].lane[s];
    if (!x->passes || l->item != 0)
        return false;
    const uint8_t *is_pass = x->passes->is_pass_call[x->bound->role[r]];
    return is_pass[l->call] && x->passes->islands[x->island_of[r]].released < call_key(x, r, l);
}

/* The island takes this call, and what is before it, event by event. Ranks that had checked in go
 * on from where they were; none of their streams has done anything since. */
static void release(OrrExec *x, uint32_t r, uint32_t key) {
    OrrIslandPass *island = &x->passes->islands[x->island_of[r]];
    const uint32_t *list;
    uint32_t n = members(x, &r, &list);
    island->n_ready = 0;
    island->generation = (island->generation + 1) & ORR_GENERATION_MASK;
    island->released = MAX(island->released, key);
    for (uint32_t m = 0; m < n; m++)
        for (int k = 0; k < ORR_PASS_LANES; k++) {
            OrrLane *l = &x->ranks[list[m]].lane[lanes[k]];
            if (l->state == ORR_LANE_CHECKED)
                l->state = ORR_LANE_BLOCKED;
            if (l->state == ORR_LANE_BLOCKED)
                orr_exec__try_start(x, list[m], lanes[k]);
        }
}

/* An external communication that slows kernels is to come: who waits for a pass goes on alone. */
void orr_exec__disturb_pass(OrrExec *x, uint32_t r) {
    if (!x->passes)
        return;
    const OrrIslandPass *island = &x->passes->islands[x->island_of[r]];
    if (island->n_ready > 0)
        release(x, r, island->key);
}

/* Whether the other stream can still do something that belongs before this pass. */
static bool is_other_busy(const OrrLane *other, const OrrLane *mine, bool has_items) {
    if (other->state == ORR_LANE_RUNNING || other->state == ORR_LANE_ISSUING)
        return true;
    return has_items &&
           (other->item != 0 || other->call != mine->call || other->step != mine->step);
}

/* Whether lane k of the rank has all that it waits for from outside; notes since when, once. */
static bool has_begin(OrrExec *x, uint32_t r, int k, uint32_t key) {
    OrrBegin *b = &x->passes->begins[r];
    if (b->key[k] == key)
        return true;
    if (orr_exec__is_blocked(&x->ranks[r], lanes[k]) || !orr_exec__find_begin(x, r, lanes[k], k, b))
        return false;
    b->key[k] = key;
    if (k == 0)
        orr_exec__idle(x, r, b->cause[0], b->begin_ns[0], b->begin_ns[0]);
    return true;
}

/* All members are ready: the pass is due when the last of them is. */
static void schedule(OrrExec *x, uint32_t r, uint32_t n, const uint32_t *list, bool has_tp) {
    int64_t last = x->now_ns;
    for (uint32_t m = 0; m < n; m++)
        for (int k = 0; k < 1 + has_tp; k++)
            last = MAX(last, x->passes->begins[list[m]].begin_ns[k]);
    orr_exec__push_local(x, r, last, ORR_EV_PASS, x->passes->islands[x->island_of[r]].generation,
                         r);
}

/* A stream of the rank is at the begin of a pass: if both are, and have what they wait for from
 * outside, the rank is ready; if all ranks are, the pass is due. */
void orr_exec__check_in(OrrExec *x, uint32_t r, uint32_t s) {
    OrrRank *rank = &x->ranks[r];
    OrrLane *c = &rank->lane[ORR_STREAM_COMPUTE], *t = &rank->lane[ORR_STREAM_TP];
    const OrrLane *mine = &rank->lane[s];
    const OrrIsland *island = &x->islands[x->island_of[r]];
    const OrrCompiledSegment *cs = &x->compiled->segments[role_of(x, r)->calls[mine->call].segment];
    bool has_tp = cs->n_items[ORR_STREAM_TP] > 0, is_ready = true;
    uint32_t key = call_key(x, r, mine);
    if (island->n_unstable > 0 || island->n_pending > 0) {
        release(x, r, key);
        return;
    }
    bool is_busy =
        s == ORR_STREAM_COMPUTE ? is_other_busy(t, c, has_tp) : is_other_busy(c, t, true);
    if (is_busy) { /* they could slow each other */
        if (orr_exec__head(x, r, s)->n_waits == 0 &&
            has_begin(x, r, s == ORR_STREAM_COMPUTE ? 0 : 1, key))
            release(x, r, key);
        return;
    }
    for (int k = 0; k < 1 + has_tp; k++)
        is_ready &= has_begin(x, r, k, key);
    if (!is_ready)
        return;
    c->state = ORR_LANE_CHECKED;
    if (has_tp)
        t->state = ORR_LANE_CHECKED;
    const uint32_t *list;
    uint32_t n = members(x, &r, &list);
    OrrIslandPass *pass = &x->passes->islands[x->island_of[r]];
    pass->key = key;
    if (++pass->n_ready == n)
        schedule(x, r, n, list, has_tp);
}

/* The host is ahead of every start. */
static bool is_host_ahead(const OrrExec *x, uint32_t n, const uint32_t *list,
                          const OrrCompiledSegment *cs, int64_t first_ns) {
    for (uint32_t m = 0; m < n; m++)
        if (orr_exec__host_at(x, list[m], ORR_STREAM_COMPUTE) + cs->host_ns > first_ns)
            return false;
    return true;
}

static void move_on(OrrExec *x, uint32_t r, const OrrCompiledSegment *cs, const OrrPassMember *e) {
    OrrRank *rank = &x->ranks[r];
    for (uint32_t i = 0; i < e->n_touched; i++)
        rank->owner_ns[e->touched[i]] += e->owner_ns[e->touched[i]];
    for (int k = 0; k < ORR_PASS_LANES; k++) {
        uint32_t s = lanes[k], n = cs->n_items[s];
        OrrLane *l = &rank->lane[s];
        uint32_t base = role_of(x, r)->rows[l->call].base[s];
        for (uint32_t i = 0; i < n; i++)
            if (item_at(x, cs, s, i)->waiters & x->external_mask)
                orr_exec__remember(x, r, s, base + i, l->completed + i, e->end_ns[k][i]);
        if (n == 0)
            continue;
        l->free_ns = e->end_ns[k][n - 1];
        l->completed += n;
        l->item = n;
        l->state = ORR_LANE_BLOCKED;
        orr_exec__settle_head(x, r, s);
    }
    if (cs->n_items[ORR_STREAM_TP] > 0) {
        OrrTrail *trail = &rank->trail[ORR_STREAM_TP];
        trail->ended = e->last;
        trail->ended_blocker = e->blocker;
        trail->ended_blocker_end_ns = e->blocker_end_ns;
    }
    rank->idle_from_ns = rank->lane[ORR_STREAM_COMPUTE].free_ns;
}

/* For the path, should it come by. */
static void note_taken(OrrExec *x, uint32_t r) {
    const OrrLane *l = &x->ranks[r].lane[ORR_STREAM_COMPUTE];
    const OrrBegin *b = &x->passes->begins[r];
    *orr_exec__taken(x, r, l->step, l->call) =
        (OrrTaken){.begin_ns = {b->begin_ns[0], b->begin_ns[1]},
                   .cause = {b->cause[0], b->cause[1]},
                   .index = {b->index[0], b->index[1]},
                   .step = l->step,
                   .is_set = true};
}

/* Evaluates a pass that was taken once more, after the run, for what its items waited for. */
void orr_exec__log_pass(const OrrExec *x, uint32_t r, uint32_t step, uint32_t call) {
    const OrrCompiledRole *role = role_of(x, r);
    const uint32_t *list;
    uint32_t n = members(x, &r, &list);
    for (uint32_t m = 0; m < n; m++) {
        OrrTaken *t = orr_exec__taken(x, list[m], step, call);
        OrrBegin *b = &x->passes->begins[list[m]];
        memcpy(b->begin_ns, t->begin_ns, sizeof b->begin_ns);
        memcpy(b->cause, t->cause, sizeof b->cause);
        memcpy(b->index, t->index, sizeof b->index);
        t->is_set = false;
    }
    orr_exec__recursion_log(x, &x->compiled->segments[role->calls[call].segment], n, list, step,
                            &role->rows[call], &role->rows[role->n_calls]);
}

void orr_exec__pass(OrrExec *x, uint32_t r, uint32_t generation) {
    OrrIslandPass *pass = &x->passes->islands[x->island_of[r]];
    if (generation != pass->generation)
        return; /* it was released */
    const uint32_t *list;
    uint32_t n = members(x, &r, &list);
    const OrrLane *l = &x->ranks[r].lane[ORR_STREAM_COMPUTE];
    const OrrCompiledSegment *cs = &x->compiled->segments[role_of(x, r)->calls[l->call].segment];
    int64_t first = INT64_MAX;
    for (uint32_t m = 0; m < n; m++)
        for (int k = 0; k < ORR_PASS_LANES && cs->n_items[lanes[k]] > 0; k++)
            first = MIN(first, x->passes->begins[list[m]].begin_ns[k]);
    x->now_ns = first;
    if (!is_host_ahead(x, n, list, cs, first)) {
        release(x, r, pass->key);
        return;
    }
    pass->n_ready = 0;
    pass->generation = (pass->generation + 1) & ORR_GENERATION_MASK;
    for (uint32_t m = 0; x->log && m < n; m++)
        note_taken(x, list[m]);
    orr_exec__recursion(x, cs, n, list);
    for (uint32_t m = 0; m < n; m++)
        move_on(x, list[m], cs, &x->passes->members[x->passes->members[m].same_as]);
    for (uint32_t m = 0; m < n; m++)
        for (int k = 0; k < ORR_PASS_LANES; k++)
            orr_exec__wake(x, list[m], lanes[k]);
    for (uint32_t m = 0; m < n; m++)
        for (int k = 0; k < ORR_PASS_LANES; k++)
            orr_exec__try_start(x, list[m], lanes[k]);
}
