/* One rank goes its way: its streams, in the order of its own time. The rules are those of lane.c
 * and block.c, without what only accounts need: an item starts when the stream is free, what it
 * waits for has ended and the host has issued it. Since a rank is looked at whenever something of
 * it ends, the first two of these are now. */
#include "sim/exec/jitter.h"
#include "sim/exec/pace_priv.h"
#include "sim/exec/stretch.h"

static const OrrItem *head(const OrrPaceRun *x, const OrrPaceRank *rank, uint32_t s) {
    return &x->pace->compiled->items[rank->lane[s].head];
}

/* As orr_exec__settle_head. */
static void settle_head(const OrrPaceRun *x, OrrPaceRank *rank, uint32_t s) {
    const OrrCompiledRole *role = rank->role;
    OrrPaceLane *l = &rank->lane[s];
    if (role->rows[role->n_calls].base[s] == 0) {
        l->state = ORR_PACE_DONE;
        return;
    }
    const OrrCompiledSegment *seg = &x->pace->compiled->segments[role->calls[l->call].segment];
    if (l->item >= seg->n_items[s]) {
        l->item = 0;
        l->call = role->next_call[(l->call + 1) * ORR_N_STREAMS + s];
        if (l->call == role->n_calls) {
            l->call = role->next_call[s];
            if (++l->step > x->max_steps) {
                l->state = ORR_PACE_DONE;
                return;
            }
        }
        seg = &x->pace->compiled->segments[role->calls[l->call].segment];
    }
    l->head = seg->first_item[s] + l->item;
}

static int64_t host_at(const OrrPaceRank *rank, const OrrPaceLane *l) {
    return rank->host_base_ns + l->step * rank->role->rows[rank->role->n_calls].host_ns +
           rank->role->rows[l->call].host_ns;
}

/* As walk of block.c: on to @limit_ns; the end of the block, or INT64_MAX if it is later. */
static int64_t walk(const OrrPaceRun *x, const OrrPaceRank *rank, OrrPaceBlock *b,
                    int64_t limit_ns) {
    const OrrBlock *block = &x->pace->compiled->blocks[b->block];
    const OrrBlockKernel *kernels = x->pace->compiled->kernels + block->first_kernel;
    for (;;) {
        const OrrBlockKernel *k = &kernels[b->kernel];
        uint64_t rate = rank->rate[k->is_memory];
        int64_t end = b->at_ns + orr_stretch_takes_ns(b->left, rate);
        if (end > limit_ns) {
            if (limit_ns > b->at_ns) {
                b->left -= (uint64_t)(limit_ns - b->at_ns) * rate;
                b->at_ns = limit_ns;
            }
            return INT64_MAX;
        }
        if (++b->kernel == block->n_kernels)
            return end;
        k = &kernels[b->kernel];
        b->at_ns = MAX(end, b->host_ns + k->issue_ns);
        b->left =
            (uint64_t)orr_stretch_drawn_ns(rank->kernel_ns[k->kernel], b->factor) * ORR_RATE_ONE;
    }
}

static void set_timed(OrrPaceRank *rank, uint32_t s, OrrPaceState state, int64_t event_ns) {
    rank->lane[s].state = state;
    rank->lane[s].event_ns = event_ns;
    rank->timed |= 1u << s;
}

static void block_start(OrrPaceRun *x, uint32_t r, uint32_t s, uint32_t what, int64_t start_ns) {
    OrrPaceRank *rank = &x->ranks[r];
    const OrrPaceTime *t = &rank->times[what];
    const OrrPaceLane *l = &rank->lane[s];
    int64_t host = host_at(rank, l), end = MAX(start_ns + t->work_ns, host + t->host_ns);
    if (s != ORR_STREAM_COMPUTE) {
        set_timed(rank, s, ORR_PACE_RUNNING, end);
        return;
    }
    const OrrBlock *block = &x->pace->compiled->blocks[what];
    uint32_t first = x->pace->compiled->kernels[block->first_kernel].kernel;
    OrrPaceBlock *b = &rank->block;
    *b = (OrrPaceBlock){.block = what, .host_ns = host, .at_ns = start_ns, .factor = ORR_RATE_ONE};
    if (x->has_draws)
        b->factor = orr_jitter_draw(x->random, x->jitter_frac,
                                    (OrrJitterSpot){r, l->step, l->call, l->item});
    b->left = (uint64_t)orr_stretch_drawn_ns(rank->kernel_ns[first], b->factor) * ORR_RATE_ONE;
    rank->is_in_block = 1;
    if (rank->rate[0] == ORR_RATE_ONE && rank->rate[1] == ORR_RATE_ONE && !x->has_draws)
        set_timed(rank, s, ORR_PACE_RUNNING, end);
    else
        rank->lane[s].state = ORR_PACE_WALKED;
}

/* Communication that slows kernels comes or goes. */
static void set_resident(OrrPaceRun *x, OrrPaceRank *rank, uint32_t purpose, int change,
                         int64_t now_ns) {
    uint32_t rate[2] = {ORR_RATE_ONE, ORR_RATE_ONE};
    rank->resident[purpose] += change;
    for (uint32_t k = 0; k < ORR_N_COMM_KINDS; k++)
        for (int c = 0; c < 2 && rank->resident[k] > 0; c++)
            rate[c] = MIN(rate[c], x->bound->rate[c][k]);
    if (rate[0] == rank->rate[0] && rate[1] == rank->rate[1])
        return;
    OrrPaceLane *l = &rank->lane[ORR_STREAM_COMPUTE];
    /* a block that ends at this very instant does */
    if (rank->is_in_block && l->state == ORR_PACE_RUNNING && l->event_ns > now_ns) {
        walk(x, rank, &rank->block, now_ns);
        l->state = ORR_PACE_WALKED;
        rank->timed &= ~(1u << ORR_STREAM_COMPUTE);
    }
    rank->rate[0] = rate[0];
    rank->rate[1] = rate[1];
}

/* The purpose of a communication, if it slows kernels; else UINT8_MAX. */
static uint8_t slows(const OrrPaceRun *x, const OrrItem *item) {
    if (item->type == ORR_ITEM_COLL)
        return x->pace->slows_of_coll[item->what];
    return item->type == ORR_ITEM_P2P ? x->pace->slows_of_p2p[item->what] : UINT8_MAX;
}

static void launch(OrrPaceRun *x, uint32_t r, uint32_t s, int64_t now_ns) {
    OrrPaceRank *rank = &x->ranks[r];
    const OrrItem *item = head(x, rank, s);
    uint8_t purpose = slows(x, item);
    if (purpose != UINT8_MAX)
        set_resident(x, rank, purpose, +1, now_ns);
    rank->lane[s].state = ORR_PACE_OPEN;
    rank->timed &= ~(1u << s);
    rank->open |= 1u << s;
    orr_pace__arrive(x, r, s, item, now_ns);
}

/* Whether a stream has ended @need items; if not the head of @s waits for that. */
static bool has_ended(OrrPaceRank *rank, uint32_t s, uint32_t q, uint32_t need) {
    OrrPaceLane *l = &rank->lane[s];
    if (rank->lane[q].completed >= need)
        return true;
    if (l->blocked_on != q) {
        if (l->blocked_on < ORR_N_STREAMS)
            rank->waiting_for[l->blocked_on] &= ~(1u << s);
        rank->waiting_for[q] |= 1u << s;
        l->blocked_on = q;
    }
    l->need = need;
    return false;
}

/* Whether all that the head waits for has ended. */
static bool may_start(const OrrPaceRun *x, OrrPaceRank *rank, uint32_t s, const OrrItem *item) {
    const OrrCompiledRole *role = rank->role;
    OrrPaceLane *l = &rank->lane[s];
    const OrrCallRow *row = &role->rows[l->call], *all = &role->rows[role->n_calls];
    uint32_t syncs = l->step * all->syncs_before + row->syncs_before + item->n_syncs_before;
    if (s != ORR_STREAM_HOST && !has_ended(rank, s, ORR_STREAM_HOST, syncs))
        return false;
    const uint32_t *first = &role->first_cross[l->call * ORR_N_STREAMS + s];
    for (uint32_t i = first[0]; item->has_cross && i < first[1]; i++) {
        const OrrCrossWait *c = &role->cross[i];
        if (c->item == l->item && c->steps_back <= l->step &&
            !has_ended(rank, s, c->src_stream,
                       (l->step - c->steps_back) * all->base[c->src_stream] + c->src_count))
            return false;
    }
    for (uint32_t i = 0; i < item->n_waits; i++) {
        const OrrItemWait *w = &x->pace->compiled->waits[item->first_wait + i];
        uint32_t q = w->stream;
        if (!has_ended(rank, s, q, l->step * all->base[q] + row->base[q] + w->count))
            return false;
    }
    if (l->blocked_on < ORR_N_STREAMS) {
        rank->waiting_for[l->blocked_on] &= ~(1u << s);
        l->blocked_on = ORR_N_STREAMS;
    }
    return true;
}

static void try_start(OrrPaceRun *x, uint32_t r, uint32_t s, int64_t now_ns);

static void wake(OrrPaceRun *x, uint32_t r, uint32_t s, int64_t now_ns) {
    OrrPaceRank *rank = &x->ranks[r];
    for (uint32_t left = rank->waiting_for[s]; left; left &= left - 1)
        try_start(x, r, (uint32_t)__builtin_ctz(left), now_ns);
}

/* The host returns from synchronisations, now or when it gets there. */
static void try_sync(OrrPaceRun *x, uint32_t r, int64_t now_ns) {
    OrrPaceRank *rank = &x->ranks[r];
    OrrPaceLane *l = &rank->lane[ORR_STREAM_HOST];
    while (l->state == ORR_PACE_BLOCKED) {
        const OrrItem *item = head(x, rank, ORR_STREAM_HOST);
        if (!may_start(x, rank, ORR_STREAM_HOST, item))
            return;
        int64_t reach = host_at(rank, l) + item->issue_ns;
        if (now_ns > reach)
            rank->host_base_ns += now_ns - reach;
        l->completed++;
        l->item++;
        settle_head(x, rank, ORR_STREAM_HOST);
        wake(x, r, ORR_STREAM_HOST, now_ns);
    }
}

static void try_start(OrrPaceRun *x, uint32_t r, uint32_t s, int64_t now_ns) {
    OrrPaceRank *rank = &x->ranks[r];
    OrrPaceLane *l = &rank->lane[s];
    if (l->state != ORR_PACE_BLOCKED ||
        (l->blocked_on < ORR_N_STREAMS && rank->lane[l->blocked_on].completed < l->need))
        return;
    if (s == ORR_STREAM_HOST) {
        try_sync(x, r, now_ns);
        return;
    }
    const OrrItem *item = head(x, rank, s);
    if (!may_start(x, rank, s, item))
        return;
    int64_t start = MAX(now_ns, host_at(rank, l) + item->issue_ns);
    if (item->type == ORR_ITEM_BLOCK)
        block_start(x, r, s, item->what, start);
    else if (start > now_ns)
        set_timed(rank, s, ORR_PACE_ISSUING, start);
    else
        launch(x, r, s, now_ns);
}

static void complete(OrrPaceRun *x, uint32_t r, uint32_t s, int64_t now_ns) {
    OrrPaceRank *rank = &x->ranks[r];
    OrrPaceLane *l = &rank->lane[s];
    const OrrItem *item = head(x, rank, s);
    uint8_t purpose = slows(x, item);
    uint32_t step = l->step;
    rank->timed &= ~(1u << s);
    if (s == ORR_STREAM_COMPUTE)
        rank->is_in_block = 0;
    if (purpose != UINT8_MAX)
        set_resident(x, rank, purpose, -1, now_ns);
    l->state = ORR_PACE_BLOCKED;
    l->completed++;
    l->item++;
    settle_head(x, rank, s);
    if (item->is_step_end)
        orr_pace__step_end(x, r, step, now_ns);
    try_start(x, r, s, now_ns);
    wake(x, r, s, now_ns);
}

/* A communication of stream @s ends at @end_ns. */
void orr_pace__set_end(OrrPaceRun *x, uint32_t r, uint32_t s, int64_t end_ns) {
    OrrPaceRank *rank = &x->ranks[r];
    rank->open &= ~(1u << s);
    set_timed(rank, s, ORR_PACE_RUNNING, end_ns);
    orr_pace__list(x, r);
}

/* The first of the moments that are known at which something happens; the smallest stream. */
static int64_t next_event(const OrrPaceRank *rank, uint32_t *s) {
    int64_t next = INT64_MAX;
    for (uint32_t left = rank->timed; left; left &= left - 1) {
        uint32_t q = (uint32_t)__builtin_ctz(left);
        if (rank->lane[q].event_ns < next) {
            next = rank->lane[q].event_ns;
            *s = q;
        }
    }
    return next;
}

/* Until then nothing comes from other ranks. */
static int64_t horizon(const OrrPaceRun *x, const OrrPaceRank *rank) {
    int64_t until = INT64_MAX;
    for (uint32_t left = rank->open; left; left &= left - 1)
        until = MIN(until, rank->lane[__builtin_ctz(left)].event_ns);
    return MAX(until, x->global_ns);
}

void orr_pace__advance(OrrPaceRun *x, uint32_t r) {
    OrrPaceRank *rank = &x->ranks[r];
    OrrPaceLane *compute = &rank->lane[ORR_STREAM_COMPUTE];
    int64_t next = INT64_MAX;
    while (!x->is_over) {
        uint32_t s = 0;
        next = next_event(rank, &s);
        int64_t until = horizon(x, rank);
        if (compute->state == ORR_PACE_WALKED) {
            int64_t end = walk(x, rank, &rank->block, MIN(next, until));
            if (end < INT64_MAX) {
                complete(x, r, ORR_STREAM_COMPUTE, end);
                continue;
            }
        }
        if (next == INT64_MAX || next > until)
            break;
        if (rank->lane[s].state == ORR_PACE_ISSUING)
            launch(x, r, s, next);
        else
            complete(x, r, s, next);
    }
    /* where a block is under way it is not before the others may be heard of */
    bool is_walked = compute->state == ORR_PACE_WALKED;
    orr_pace__wait(x, r, is_walked ? MIN(next, horizon(x, rank)) : next);
}

bool orr_pace__look(OrrPaceRun *x, uint32_t r) {
    OrrPaceRank *rank = &x->ranks[r];
    if (rank->lane[ORR_STREAM_COMPUTE].state != ORR_PACE_WALKED)
        return false;
    OrrPaceBlock ahead = rank->block;
    uint32_t s;
    set_timed(rank, ORR_STREAM_COMPUTE, ORR_PACE_RUNNING, walk(x, rank, &ahead, INT64_MAX - 1));
    orr_pace__wait(x, r, next_event(rank, &s));
    return true;
}

void orr_pace__begin(OrrPaceRun *x) {
    for (uint32_t r = 0; r < x->bound->n_ranks; r++)
        for (uint32_t s = 0; s < ORR_N_STREAMS; s++)
            settle_head(x, &x->ranks[r], s);
    for (uint32_t r = 0; r < x->bound->n_ranks; r++) {
        for (uint32_t s = 0; s < ORR_N_STREAMS; s++)
            try_start(x, r, s, 0);
        orr_pace__list(x, r);
    }
}
