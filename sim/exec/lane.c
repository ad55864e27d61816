/* Streams of a rank: when the head of a stream may start, and what its end sets free. */
#include "sim/exec/exec_priv.h"

static const OrrCompiledRole *role_of(const OrrExec *x, uint32_t r) {
    return &x->compiled->roles[x->bound->role[r]];
}

const OrrItem *orr_exec__head(const OrrExec *x, uint32_t r, uint32_t s) {
    const OrrLane *l = &x->ranks[r].lane[s];
    const OrrCompiledSegment *seg = &x->compiled->segments[role_of(x, r)->calls[l->call].segment];
    return &x->compiled->items[seg->first_item[s] + l->item];
}

/* Host time of the program at the start of the head's call, host base included. */
int64_t orr_exec__host_at(const OrrExec *x, uint32_t r, uint32_t s) {
    const OrrCompiledRole *role = role_of(x, r);
    const OrrLane *l = &x->ranks[r].lane[s];
    return x->ranks[r].host_base_ns + l->step * role->host_at[role->n_calls] +
           role->host_at[l->call];
}

/* Moves the head to the next item; the lane is done after the last step. */
static void settle_head(OrrExec *x, uint32_t r, uint32_t s) {
    const OrrCompiledRole *role = role_of(x, r);
    OrrLane *l = &x->ranks[r].lane[s];
    if (role->base[s][role->n_calls] == 0) {
        l->state = ORR_LANE_DONE;
        return;
    }
    while (l->item >= x->compiled->segments[role->calls[l->call].segment].n_items[s]) {
        l->item = 0;
        if (++l->call == role->n_calls) {
            l->call = 0;
            if (++l->step >= x->max_steps) {
                l->state = ORR_LANE_DONE;
                return;
            }
        }
    }
}

/* Which streams the head still waits for, a bit each; 0: it may start. */
static uint16_t missing(const OrrExec *x, uint32_t r, uint32_t s, const OrrItem *item) {
    const OrrCompiledRole *role = role_of(x, r);
    const OrrRank *rank = &x->ranks[r];
    const OrrLane *l = &rank->lane[s];
    uint32_t n = role->n_calls, mask = 0;
    if (s != ORR_STREAM_HOST) {
        uint32_t syncs =
            l->step * role->syncs_before[n] + role->syncs_before[l->call] + item->n_syncs_before;
        if (rank->lane[ORR_STREAM_HOST].completed < syncs)
            mask |= 1u << ORR_STREAM_HOST;
    }
    for (uint32_t w = 0; w < item->n_waits; w++) {
        const OrrItemWait *wait = &x->compiled->waits[item->first_wait + w];
        uint32_t need =
            l->step * role->base[wait->stream][n] + role->base[wait->stream][l->call] + wait->count;
        if (rank->lane[wait->stream].completed < need)
            mask |= 1u << wait->stream;
    }
    for (uint32_t w = role->first_cross[l->call]; w < role->first_cross[l->call + 1]; w++) {
        const OrrCrossWait *c = &role->cross[w];
        if (c->stream != s || c->item != l->item || c->steps_back > l->step)
            continue;
        uint32_t need = (l->step - c->steps_back) * role->base[c->src_stream][n] + c->src_count;
        if (rank->lane[c->src_stream].completed < need)
            mask |= 1u << c->src_stream;
    }
    return mask;
}

static bool waits_for(const OrrExec *x, uint32_t r, uint32_t s, const OrrItem *item, uint32_t q) {
    const OrrCompiledRole *role = role_of(x, r);
    const OrrLane *l = &x->ranks[r].lane[s];
    for (uint32_t w = 0; w < item->n_waits; w++)
        if (x->compiled->waits[item->first_wait + w].stream == q)
            return true;
    for (uint32_t w = role->first_cross[l->call]; w < role->first_cross[l->call + 1]; w++)
        if (role->cross[w].stream == s && role->cross[w].item == l->item &&
            role->cross[w].src_stream == q)
            return true;
    return false;
}

/* What the head waited for last, now that it may start: ties go to the smallest stream. */
static void note_predecessor(OrrExec *x, uint32_t r, uint32_t s, const OrrItem *item) {
    OrrRank *rank = &x->ranks[r];
    OrrLane *l = &rank->lane[s];
    l->pred = ORR_PRED_PREVIOUS;
    l->pred_stream = s;
    l->pred_index = l->completed - 1;
    l->blocker.is_set = 0;
    if (l->completed > 0 && l->free_ns == x->now_ns) {
        l->blocker = l->ended;
        l->blocker.is_set = l->ended.type != ORR_ITEM_BLOCK;
        l->blocker_end_ns = l->free_ns;
        return;
    }
    for (uint32_t q = 0; q < ORR_N_STREAMS; q++) {
        const OrrLane *o = &rank->lane[q];
        if (q == s || q == ORR_STREAM_HOST || o->completed == 0 || o->free_ns != x->now_ns ||
            !waits_for(x, r, s, item, q))
            continue;
        l->pred = ORR_PRED_WAIT;
        l->pred_stream = q;
        l->pred_index = o->completed - 1;
        l->blocker = o->ended;
        l->blocker.is_set = o->ended.type != ORR_ITEM_BLOCK;
        l->blocker_end_ns = o->free_ns;
        return;
    }
    if (rank->lane[ORR_STREAM_HOST].completed > 0 && rank->sync_ns == x->now_ns) {
        l->pred = ORR_PRED_HOST_SYNC;
        l->pred_stream = rank->sync_stream;
        l->pred_index = rank->sync_index;
    }
}

/* The head starts when the host has issued it: since its last synchronisation the host has never
 * stopped, so that is where the chain of causes goes on. */
static void note_issue_bound(OrrExec *x, uint32_t r, OrrLane *l) {
    const OrrRank *rank = &x->ranks[r];
    bool has_synced = rank->sync_index != ORR_NONE;
    l->pred = has_synced ? ORR_PRED_HOST_SYNC : ORR_PRED_HOST;
    l->pred_stream = has_synced ? rank->sync_stream : l->pred_stream;
    l->pred_index = has_synced ? rank->sync_index : l->pred_index;
}

static void wake(OrrExec *x, uint32_t r, uint32_t s) {
    OrrRank *rank = &x->ranks[r];
    for (uint32_t q = 0; q < ORR_N_STREAMS; q++)
        if (q != s && rank->lane[q].state == ORR_LANE_BLOCKED &&
            (rank->lane[q].blocked_on & 1u << s))
            orr_exec__try_start(x, r, q);
}

/* The host returns from a synchronisation, or will when it gets there. */
static void pass_sync(OrrExec *x, uint32_t r, const OrrItem *item) {
    OrrRank *rank = &x->ranks[r];
    OrrLane *l = &rank->lane[ORR_STREAM_HOST];
    int64_t reach = orr_exec__host_at(x, r, ORR_STREAM_HOST) + item->issue_ns;
    if (x->now_ns > reach) {
        rank->host_base_ns += x->now_ns - reach;
        rank->sync_ns = x->now_ns;
        rank->sync_stream = l->pred == ORR_PRED_WAIT ? l->pred_stream : ORR_STREAM_COMPUTE;
        rank->sync_index = rank->lane[rank->sync_stream].completed - 1;
    }
    l->completed++;
    l->free_ns = MAX(x->now_ns, reach);
    l->item++;
    settle_head(x, r, ORR_STREAM_HOST);
}

static void try_sync(OrrExec *x, uint32_t r) {
    OrrLane *l = &x->ranks[r].lane[ORR_STREAM_HOST];
    while (l->state == ORR_LANE_BLOCKED) {
        const OrrItem *item = orr_exec__head(x, r, ORR_STREAM_HOST);
        l->blocked_on = missing(x, r, ORR_STREAM_HOST, item);
        if (l->blocked_on)
            return;
        note_predecessor(x, r, ORR_STREAM_HOST, item);
        pass_sync(x, r, item);
        wake(x, r, ORR_STREAM_HOST);
    }
}

void orr_exec__try_start(OrrExec *x, uint32_t r, uint32_t s) {
    OrrLane *l = &x->ranks[r].lane[s];
    if (l->state != ORR_LANE_BLOCKED)
        return;
    if (s == ORR_STREAM_HOST) {
        try_sync(x, r);
        return;
    }
    const OrrItem *item = orr_exec__head(x, r, s);
    l->blocked_on = missing(x, r, s, item);
    if (l->blocked_on)
        return;
    note_predecessor(x, r, s, item);
    int64_t issue = orr_exec__host_at(x, r, s) + item->issue_ns;
    int64_t start = MAX(x->now_ns, issue);
    l->is_issue_bound = issue > x->now_ns;
    if (item->type == ORR_ITEM_BLOCK) {
        if (s == ORR_STREAM_COMPUTE)
            orr_exec__idle(x, r, item, start);
        if (l->is_issue_bound)
            note_issue_bound(x, r, l);
        l->state = ORR_LANE_RUNNING;
        l->start_ns = l->arrived_ns = start;
        orr_exec__block_start(x, r, item, start);
        return;
    }
    if (l->is_issue_bound) {
        note_issue_bound(x, r, l);
        l->state = ORR_LANE_ISSUING;
        orr_queue_push(&x->queue, issue, ORR_EV_LAUNCH, 0, r * ORR_N_STREAMS + s);
        return;
    }
    orr_exec__launch(x, r, s);
}

/* A communication kernel begins to occupy its stream; it meets the others. */
void orr_exec__launch(OrrExec *x, uint32_t r, uint32_t s) {
    OrrLane *l = &x->ranks[r].lane[s];
    const OrrItem *item = orr_exec__head(x, r, s);
    bool takes_sms;
    uint32_t purpose = orr_exec__purpose(x, item, &takes_sms);
    l->state = ORR_LANE_RUNNING;
    l->start_ns = l->arrived_ns = x->now_ns;
    l->last_rank = r;
    if (takes_sms)
        orr_exec__resident(x, r, purpose, +1);
    orr_exec__arrive(x, r, s, item);
}

static void probe(OrrExec *x, uint32_t r, uint32_t s, const OrrItem *item) {
    const OrrLane *l = &x->ranks[r].lane[s];
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
                    .start_ns = l->start_ns,
                    .arrived_ns = l->arrived_ns,
                    .end_ns = x->now_ns};
    if (is_coll)
        span.group = x->bound->groups[p->colls[item->what].group].group_of[r];
    orr_exec__show(x, &span);
}

/* The item at the head of a stream ends now. */
void orr_exec__complete(OrrExec *x, uint32_t r, uint32_t s) {
    OrrRank *rank = &x->ranks[r];
    OrrLane *l = &rank->lane[s];
    const OrrItem *item = orr_exec__head(x, r, s);
    if (item->type == ORR_ITEM_BLOCK) {
        orr_exec__block_end(x, r, s, item);
    } else {
        bool takes_sms;
        uint32_t purpose = orr_exec__purpose(x, item, &takes_sms);
        if (takes_sms)
            orr_exec__resident(x, r, purpose, -1);
        orr_exec__comm_sum(x, r, s, item);
        if (rank->is_probed)
            probe(x, r, s, item);
    }
    if (x->log)
        orr_exec__log(x, r, s, item);
    l->ended = (OrrEnded){l->start_ns, l->arrived_ns,     item->what, l->step,
                          item->type,  l->is_issue_bound, 1};
    l->ended_blocker = l->blocker;
    l->ended_blocker_end_ns = l->blocker_end_ns;
    l->free_ns = x->now_ns;
    l->completed++;
    l->state = ORR_LANE_BLOCKED;
    uint32_t step = l->step;
    l->item++;
    settle_head(x, r, s);
    if (item->is_step_end)
        orr_exec__step_end(x, r, step);
    orr_exec__try_start(x, r, s);
    wake(x, r, s);
}
