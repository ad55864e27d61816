/* Streams of a rank: when the head of a stream may start, and what its end sets free. */
#include "sim/exec/lane.h"

#include "sim/exec/cause.h"
#include "sim/exec/jitter.h"

static const OrrCompiledRole *role_of(const OrrExec *x, uint32_t r) {
    return orr_exec__role(x, r);
}

static const OrrCallRow *row_of(const OrrExec *x, uint32_t r, uint32_t s) {
    return &role_of(x, r)->rows[orr_exec__lane(x, r, s)->call];
}

/* Host time of the program at the start of the head's call, host base included. */
int64_t orr_exec__host_at(const OrrExec *x, uint32_t r, uint32_t s) {
    const OrrCompiledRole *role = role_of(x, r);
    const OrrLane *l = orr_exec__lane(x, r, s);
    return *orr_exec__host_base_ns(x, r) + l->step * role->rows[role->n_calls].host_ns +
           role->rows[l->call].host_ns;
}

/* Moves the head to the item itself or, beyond the end of its call, to the next there is; the lane
 * is done after the last step. */
static void settle(const OrrExec *x, const OrrCompiledRole *role, uint32_t s, OrrLane *l) {
    if (role->rows[role->n_calls].base[s] == 0) {
        l->state = ORR_LANE_DONE;
        return;
    }
    const OrrCompiledSegment *seg = &x->compiled->segments[role->calls[l->call].segment];
    if (l->item >= seg->n_items[s]) {
        l->item = 0;
        l->call = role->next_call[(l->call + 1) * ORR_N_STREAMS + s];
        if (l->call == role->n_calls) {
            l->call = role->next_call[s];
            if (++l->step > x->max_steps) { /* what follows the last step runs beside it */
                l->state = ORR_LANE_DONE;
                return;
            }
        }
        seg = &x->compiled->segments[role->calls[l->call].segment];
    }
    l->head = seg->first_item[s] + l->item;
}

void orr_exec__settle_head(OrrExec *x, uint32_t r, uint32_t s) {
    settle(x, role_of(x, r), s, orr_exec__own_lane(x, r, s));
}

void orr_exec__settle_joint(OrrExec *x, uint32_t r, uint32_t s) {
    settle(x, role_of(x, r), s, orr_exec__joint_lane(x, r, s));
}

static void miss(const OrrExec *x, uint32_t q, uint32_t need, OrrWaiting *w) {
    if (w->missing == 0 || (x->is_external[q] && !x->is_external[w->first_missing])) {
        w->first_missing = q;
        w->need = need;
    } else if (q == w->first_missing) {
        w->need = MAX(w->need, need);
    }
    w->missing |= 1u << q;
}

void orr_lane__consider(const OrrExec *x, uint32_t r, uint32_t s, uint32_t q, uint32_t need,
                        OrrWaiting *w) {
    const OrrLane *o = orr_exec__lane(x, r, q);
    if (o->completed < need) {
        miss(x, q, need, w);
        return;
    }
    if (x->jitter)
        orr_jitter_wait(x->jitter, x, r, q, need, (double)*orr_exec__free_ns(x, r, q));
    int64_t end = *orr_exec__free_ns(x, r, q);
    /* an older item of a local stream that ran ahead; else it ended before anything that counts */
    uint32_t cause = ORR_NONE;
    if (o->completed > need) {
        if (!x->is_external[s] || x->is_external[q])
            return;
        OrrPastEnd past;
        if (!orr_exec__recall(x, r, q, s, need - 1, &past))
            return;
        end = past.end_ns;
        cause = past.cause;
    }
    if (end > w->ready_ns || (end == w->ready_ns && w->has_wait && q < w->stream)) {
        w->ready_ns = end;
        w->has_wait = true;
        w->stream = q;
        w->index = need - 1;
        w->cause = cause;
    }
}

/* What is waited for outside of the call: the host, earlier calls. */
static void waiting_outside(const OrrExec *x, uint32_t r, uint32_t s, const OrrItem *item,
                            OrrWaiting *w) {
    const OrrCompiledRole *role = role_of(x, r);
    const OrrLane *l = orr_exec__lane(x, r, s);
    const OrrCallRow *row = row_of(x, r, s), *all = &role->rows[role->n_calls];
    w->missing = 0;
    w->need = 0;
    w->has_wait = false;
    w->ready_ns = s == ORR_STREAM_HOST ? INT64_MIN : *orr_exec__free_ns(x, r, s);
    w->is_begun = orr_exec__begun(x, r, s, &w->begun);
    if (w->is_begun) {
        int k = s == ORR_STREAM_TP;
        w->ready_ns = w->begin_ns = w->begun.begin_ns[k];
        w->stream = w->begin_cause = w->begun.cause[k];
        w->has_wait = w->begin_cause != s;
        w->index = w->begun.index[k];
        w->cause = w->begun.made[k];
        return;
    }
    if (x->jitter)
        orr_jitter_open(x->jitter, x, r, s);
    uint32_t syncs = l->step * all->syncs_before + row->syncs_before + item->n_syncs_before;
    if (s != ORR_STREAM_HOST && !orr_exec__has_synced(x, r, syncs))
        miss(x, ORR_STREAM_HOST, syncs, w);
    const uint32_t *first = &role->first_cross[l->call * ORR_N_STREAMS + s];
    for (uint32_t i = first[0]; item->has_cross && i < first[1]; i++) {
        const OrrCrossWait *c = &role->cross[i];
        if (c->item == l->item && c->steps_back <= l->step)
            orr_lane__consider(x, r, s, c->src_stream,
                               (l->step - c->steps_back) * all->base[c->src_stream] + c->src_count,
                               w);
    }
    w->begin_ns = w->ready_ns;
    w->begin_cause = w->has_wait ? w->stream : s;
}

static void waiting(const OrrExec *x, uint32_t r, uint32_t s, const OrrItem *item, OrrWaiting *w) {
    const OrrCompiledRole *role = role_of(x, r);
    const OrrLane *l = orr_exec__lane(x, r, s);
    const OrrCallRow *row = row_of(x, r, s), *all = &role->rows[role->n_calls];
    waiting_outside(x, r, s, item, w);
    for (uint32_t i = 0; i < item->n_waits; i++) {
        const OrrItemWait *wait = &x->compiled->waits[item->first_wait + i];
        uint32_t q = wait->stream;
        orr_lane__consider(x, r, s, q, l->step * all->base[q] + row->base[q] + wait->count, w);
    }
}

void orr_lane__set_blocked(OrrExec *x, uint32_t r, uint32_t s, const OrrWaiting *w) {
    orr_exec__block_on(x, r, s, w->missing ? w->first_missing : ORR_N_STREAMS, w->need);
}

/* The record of what a stream of rank @r was found to wait for last. */
static uint32_t cause_of(OrrExec *x, uint32_t r, uint32_t s, const OrrWaiting *w) {
    if (w->has_wait && w->cause != ORR_NONE)
        return w->cause;
    return orr_exec__last_cause(x, r, w->has_wait ? w->stream : s);
}

/* What the head waited for last, now that it may start; what made it wait, if communication. */
static void note_predecessor(OrrExec *x, uint32_t r, uint32_t s, const OrrWaiting *w) {
    OrrPredecessor *before = orr_exec__pred(x, r, s);
    before->pred = w->has_wait ? ORR_PRED_WAIT : ORR_PRED_PREVIOUS;
    before->stream = w->has_wait ? w->stream : s;
    before->index = w->has_wait ? w->index : orr_exec__lane(x, r, s)->completed - 1;
    if (x->leaves_records)
        orr_exec__lane_cause(x, r, s)->waited = cause_of(x, r, s, w);
    if (!(x->charged_mask & 1u << s))
        return; /* nobody asks what it waited for */
    orr_lane__note_blocker(x, r, s);
    OrrBlocker *blocker = orr_exec__blocker(x, r, s, true);
    if (w->is_begun && s == ORR_STREAM_TP && w->has_wait && w->stream == w->begin_cause) {
        blocker->ended = w->begun.blocker;
        blocker->end_ns = w->begun.blocker_end_ns;
    }
}

void orr_exec__wake(OrrExec *x, uint32_t r, uint32_t s) {
    for (uint32_t left = orr_exec__waiting(x, r, s); left; left &= left - 1)
        if (orr_exec__lane(x, r, s)->completed >= orr_exec__lane(x, r, __builtin_ctz(left))->need)
            orr_exec__try_start(x, r, __builtin_ctz(left));
}

/* The host returns from a synchronisation, or will when it gets there. */
static void pass_sync(OrrExec *x, uint32_t r, const OrrItem *item, int64_t ready_ns) {
    OrrRank *rank = &x->ranks[r];
    OrrLane *l = orr_exec__own_lane(x, r, ORR_STREAM_HOST);
    const OrrPredecessor *before = orr_exec__pred(x, r, ORR_STREAM_HOST);
    int64_t reach = orr_exec__host_at(x, r, ORR_STREAM_HOST) + item->issue_ns;
    if (ready_ns > reach) {
        *orr_exec__host_base_ns(x, r) += ready_ns - reach;
        rank->sync_ns = ready_ns;
        rank->sync_stream = before->pred == ORR_PRED_WAIT ? before->stream : ORR_STREAM_COMPUTE;
        rank->sync_index = before->index;
        if (x->leaves_records)
            x->causes->syncs[r] = orr_exec__lane_cause(x, r, ORR_STREAM_HOST)->waited;
        if (x->jitter)
            orr_jitter_sync(x->jitter, r);
    }
    *orr_exec__n_synced(x, r) = ++l->completed;
    *orr_exec__free_ns(x, r, ORR_STREAM_HOST) = MAX(ready_ns, reach);
    l->item++;
    orr_exec__settle_head(x, r, ORR_STREAM_HOST);
}

static void try_sync(OrrExec *x, uint32_t r) {
    while (orr_exec__lane(x, r, ORR_STREAM_HOST)->state == ORR_LANE_BLOCKED) {
        const OrrItem *item = orr_exec__head(x, r, ORR_STREAM_HOST);
        OrrWaiting w;
        waiting(x, r, ORR_STREAM_HOST, item, &w);
        orr_lane__set_blocked(x, r, ORR_STREAM_HOST, &w);
        orr_exec__hold(x, r, ORR_STREAM_HOST, (w.missing & x->external_mask) != 0);
        if (w.missing)
            return;
        note_predecessor(x, r, ORR_STREAM_HOST, &w);
        pass_sync(x, r, item, w.ready_ns);
        orr_exec__wake(x, r, ORR_STREAM_HOST);
    }
}

/* External communication begins at @start_ns, in the order of the global clock. */
static void post_launch(OrrExec *x, uint32_t r, uint32_t s, const OrrItem *item, int64_t start_ns) {
    bool takes_sms;
    /* the end of a transfer may be told of late: convoy.c */
    int64_t now_ns = MIN(x->global_ns, x->now_ns);
    if (orr_exec__arrive_early(x, r, s, item, MAX(start_ns, now_ns)))
        return;
    uint32_t purpose = orr_exec__purpose(x, item, &takes_sms);
    if (takes_sms)
        orr_exec__will_launch(x, r, start_ns, purpose);
    if (start_ns <= x->global_ns && !x->is_ahead) { /* now, and nobody is ahead of the clock */
        orr_exec__launch(x, r, s);
        return;
    }
    orr_exec__own_lane(x, r, s)->state = ORR_LANE_ISSUING;
    orr_queue_push(&x->queue, MAX(start_ns, x->global_ns), ORR_EV_LAUNCH, 0, r * ORR_N_STREAMS + s);
}

/* The head starts when the host has issued it: since its last synchronisation the host has never
 * stopped, so that is where the chain of causes goes on. */
void orr_lane__note_issue_bound(OrrExec *x, uint32_t r, uint32_t s) {
    OrrRank *rank = &x->ranks[r];
    OrrPredecessor *before = orr_exec__pred(x, r, s);
    bool has_synced = rank->sync_index != ORR_NONE;
    before->pred = has_synced ? ORR_PRED_HOST_SYNC : ORR_PRED_HOST;
    before->stream = has_synced ? rank->sync_stream : before->stream;
    if (has_synced)
        before->index = rank->sync_index;
    if (x->leaves_records)
        orr_exec__lane_cause(x, r, s)->waited = has_synced ? x->causes->syncs[r] : ORR_NONE;
}

/* When the head, which has all that @w says, starts; since @ready it has waited for the host, and
 * until then for stream @cause. */
static int64_t start_of(OrrExec *x, uint32_t r, uint32_t s, const OrrItem *item,
                        const OrrWaiting *w, int64_t *ready, uint32_t *cause) {
    OrrRank *rank = &x->ranks[r];
    note_predecessor(x, r, s, w);
    int64_t issue = orr_exec__host_at(x, r, s) + item->issue_ns;
    int64_t start = MAX(w->ready_ns, issue);
    *ready = w->ready_ns;
    if (x->jitter) {
        int64_t late = orr_jitter_start(x->jitter, x, r, s, *ready, issue);
        *ready += *ready >= issue ? late : 0;
        start += late;
    }
    *cause = w->has_wait ? w->stream : s;
    orr_exec__pred(x, r, s)->is_issue_bound = issue > *ready;
    if (issue <= *ready)
        return start;
    if (rank->sync_index != ORR_NONE && rank->sync_ns > *ready) {
        *ready = rank->sync_ns;
        *cause = rank->sync_stream;
    }
    orr_lane__note_issue_bound(x, r, s);
    return start;
}

void orr_exec__try_start(OrrExec *x, uint32_t r, uint32_t s) {
    if (orr_exec__lane(x, r, s)->state != ORR_LANE_BLOCKED || orr_exec__is_blocked(x, r, s))
        return;
    if (s == ORR_STREAM_HOST) {
        try_sync(x, r);
        return;
    }
    if (!x->is_external[s] && orr_exec__begins_pass(x, r, s)) {
        orr_exec__check_in(x, r, s);
        return;
    }
    const OrrItem *item = orr_exec__head(x, r, s);
    OrrWaiting w;
    waiting(x, r, s, item, &w);
    orr_lane__set_blocked(x, r, s, &w);
    if (!x->is_external[s])
        orr_exec__hold(x, r, s, (w.missing & x->external_mask) != 0);
    if (w.missing)
        return;
    int64_t ready;
    uint32_t cause;
    int64_t start = start_of(x, r, s, item, &w, &ready, &cause);
    if (item->type == ORR_ITEM_BLOCK) {
        if (s == ORR_STREAM_COMPUTE) {
            orr_exec__idle(x, r, w.begin_cause, w.begin_ns, w.begin_ns);
            orr_exec__idle(x, r, cause, ready, start);
        }
        orr_exec__own_lane(x, r, s)->state = ORR_LANE_RUNNING;
        *orr_exec__start_ns(x, r, s) = *orr_exec__arrived_ns(x, r, s) = start;
        orr_exec__block_start(x, r, item, start);
    } else if (x->is_external[s]) {
        post_launch(x, r, s, item, start);
    } else if (start != x->now_ns) {
        orr_exec__own_lane(x, r, s)->state = ORR_LANE_ISSUING;
        orr_exec__push_local(x, r, start, ORR_EV_LAUNCH, 0, r * ORR_N_STREAMS + s);
    } else {
        orr_exec__launch(x, r, s);
    }
}

/* A communication kernel begins to occupy its stream; it meets the others. */
void orr_exec__launch(OrrExec *x, uint32_t r, uint32_t s) {
    OrrLane *l = orr_exec__own_lane(x, r, s);
    const OrrItem *item = orr_exec__head(x, r, s);
    bool takes_sms;
    uint32_t purpose = orr_exec__purpose(x, item, &takes_sms);
    l->state = ORR_LANE_RUNNING;
    *orr_exec__start_ns(x, r, s) = *orr_exec__arrived_ns(x, r, s) = x->now_ns;
    if (takes_sms && x->is_external[s])
        orr_exec__unstable(x, r, purpose, +1);
    if (takes_sms)
        orr_exec__resident(x, r, s, purpose, +1);
    orr_exec__arrive(x, r, s, item);
}

void orr_lane__probe(OrrExec *x, uint32_t r, uint32_t s, const OrrItem *item) {
    const OrrLane *l = orr_exec__lane(x, r, s);
    const OrrCall *call = &role_of(x, r)->calls[l->call];
    const OrrProgram *p = x->bound->program;
    bool is_coll = item->type == ORR_ITEM_COLL;
    OrrSpan span = {.rank = r,
                    .step = l->step,
                    .stream = s,
                    .pass = call->pass,
                    .op_kind = is_coll ? ORR_OP_COLL : ORR_OP_P2P,
                    .what = item->what,
                    .call = l->call,
                    .op = item->op,
                    .chunk = call->chunk,
                    .micro_batch = call->micro_batch,
                    .group = ORR_NONE,
                    .start_ns = *orr_exec__start_ns(x, r, s),
                    .arrived_ns = *orr_exec__arrived_ns(x, r, s),
                    .end_ns = x->now_ns};
    if (is_coll)
        span.group = x->bound->groups[p->colls[item->what].group].group_of[r];
    orr_exec__show(x, &span);
}

/* A communication kernel has ended. */
static void leave_gpu(OrrExec *x, uint32_t r, uint32_t s, const OrrItem *item) {
    bool takes_sms;
    uint32_t purpose = orr_exec__purpose(x, item, &takes_sms);
    if (takes_sms && x->is_external[s])
        orr_exec__unstable(x, r, purpose, -1);
    if (takes_sms)
        orr_exec__resident(x, r, s, purpose, -1);
}

/* The item at the head of a stream ends now. */
void orr_exec__complete(OrrExec *x, uint32_t r, uint32_t s) {
    const OrrItem *item = orr_exec__head(x, r, s);
    if (item->type == ORR_ITEM_BLOCK) {
        orr_exec__block_end(x, r, s, item);
    } else {
        if (item->type != ORR_ITEM_P2P || !x->is_early[item->what])
            leave_gpu(x, r, s, item);
        orr_exec__comm_sum(x, r, s, item);
        if (orr_exec__is_probed(x, r))
            orr_lane__probe(x, r, s, item);
    }
    if (x->jitter)
        orr_jitter_complete(x->jitter, x, r, s);
    if (x->leaves_records && item->type == ORR_ITEM_BLOCK)
        orr_exec__cause_block(x, r, s, item);
    if (item->type != ORR_ITEM_BLOCK && (x->ended_mask & 1u << s))
        orr_lane__leave_trail(x, r, s, item);
    OrrLane *l = orr_exec__own_lane(x, r, s);
    if (!x->is_external[s] && (item->waiters & x->external_mask))
        orr_exec__remember(
            x, r, s, row_of(x, r, s)->base[s] + l->item,
            (OrrPastEnd){x->now_ns, l->completed,
                         x->leaves_records ? orr_exec__lane_cause(x, r, s)->last : ORR_NONE});
    *orr_exec__free_ns(x, r, s) = x->now_ns;
    if (s == ORR_STREAM_COMPUTE)
        *orr_exec__idle_from_ns(x, r) = x->now_ns;
    l->completed++;
    l->state = ORR_LANE_BLOCKED;
    uint32_t step = l->step;
    l->item++;
    orr_exec__settle_head(x, r, s);
    if (item->is_step_end)
        orr_exec__step_end(x, r, s, step);
    orr_exec__try_start(x, r, s);
    orr_exec__wake(x, r, s);
}
