/* Islands: groups of ranks that run ahead of the global clock.
 *
 * What is local to an island (compute, private collectives) has no effect outside but through the
 * launches of external communication, which are posted to the global queue at their times. What is
 * external reaches an island only through a stream that waits for it, or by slowing its kernels.
 * While neither can happen, local events are processed ahead of the global clock, in their own
 * order: the same events at the same times, but with the ranks' state in the cache. This is
 * conservative parallel simulation (Chandy and Misra 1979) with one processor. */
#include "sim/base/large.h"
#include "sim/exec/exec_priv.h"

#include <stdlib.h>
#include <string.h>

/* A group kind is local if its collectives share no link, and its groups are small. */
static bool is_local(const OrrExec *x, uint32_t kind) {
    const OrrBoundGroup *g = &x->bound->groups[kind];
    if (x->options->is_plain || kind != ORR_GROUP_TP || g->n_groups == 0 || g->n_pairs > 0)
        return false;
    for (uint32_t i = 0; i < g->n_groups; i++)
        if (g->first_member[i + 1] - g->first_member[i] > ORR_MAX_ISLAND)
            return false;
    return g->loads.n_loads == 0 || g->loads.first[(gsize)g->n_groups * g->loads.n_loads] == 0;
}

static void mark_streams(OrrExec *x) {
    const OrrProgram *p = x->bound->program;
    for (uint32_t k = 0; k < ORR_N_GROUPS; k++)
        x->is_local_group[k] = is_local(x, k);
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const OrrOp *op = &p->ops[i];
        if (op->kind == ORR_OP_P2P)
            x->is_external[op->stream] = 1;
        if (op->kind == ORR_OP_COLL && !x->is_local_group[p->colls[op->what].group])
            x->is_external[op->stream] = 1;
    }
}

/* Streams whose communication idle time can be charged to. */
static void mark_charged(OrrExec *x) {
    uint16_t charging = 1u << ORR_STREAM_COMPUTE | 1u << ORR_STREAM_HOST;
    for (uint32_t s = 0; s < ORR_N_STREAMS; s++)
        if (s != ORR_STREAM_COMPUTE && (x->compiled->waiters[s] & charging))
            x->charged_mask |= 1u << s;
    x->ended_mask = x->charged_mask;
    for (uint32_t s = 0; s < ORR_N_STREAMS; s++)
        if (x->compiled->waiters[s] & x->charged_mask)
            x->ended_mask |= 1u << s;
}

void orr_exec__islands_new(OrrExec *x) {
    const OrrBound *b = x->bound;
    mark_streams(x);
    /* a stream with calls of both kinds is external as a whole, and so are its groups */
    const OrrProgram *p = b->program;
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == ORR_OP_COLL && x->is_external[p->ops[i].stream])
            x->is_local_group[p->colls[p->ops[i].what].group] = 0;
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == ORR_OP_COLL && !x->is_local_group[p->colls[p->ops[i].what].group])
            x->is_external[p->ops[i].stream] = 1;
    for (uint32_t s = 0; s < ORR_N_STREAMS; s++)
        x->external_mask |= x->is_external[s] ? 1u << s : 0;
    mark_charged(x);
    bool is_grouped = x->is_local_group[ORR_GROUP_TP];
    const OrrBoundGroup *tp = &b->groups[ORR_GROUP_TP];
    x->n_islands = is_grouped ? tp->n_groups : b->n_ranks;
    x->island_of = orr_large_new((b->n_ranks + 1) * sizeof *x->island_of);
    for (uint32_t r = 0; r < b->n_ranks; r++)
        x->island_of[r] = is_grouped ? tp->group_of[r] : r;
    orr_exec__store_new(x, is_grouped ? tp : NULL);
    x->islands = orr_large_new(x->n_islands * sizeof *x->islands);
    for (uint32_t i = 0; i < x->n_islands; i++) {
        orr_queue_init(&x->islands[i].queue);
        x->islands[i].queued_ns = x->islands[i].unstable_ns = INT64_MAX;
        x->islands[i].first = i;
        x->islands[i].n_ranks = is_grouped ? tp->first_member[i + 1] - tp->first_member[i] : 1;
        x->islands[i].ranks = is_grouped ? tp->members + tp->first_member[i] : &x->islands[i].first;
    }
    orr_exec__pasts_new(x);
}

void orr_exec__islands_clear(OrrExec *x) {
    for (uint32_t i = 0; i < x->n_islands; i++)
        orr_queue_clear(&x->islands[i].queue);
    orr_exec__pasts_clear(x);
    orr_exec__store_clear(x);
    free(x->islands);
    free(x->island_of);
}

/* The global queue must know when the island has its next event. One that has it now goes first in
 * the queue, so it need not go through it: it is run when the event in hand has been handled. */
static void announce(OrrExec *x, uint32_t i) {
    OrrIsland *island = &x->islands[i];
    if (island->queue.n == 0 || island->queue.heap[0].time_ns >= island->queued_ns)
        return;
    island->queued_ns = island->queue.heap[0].time_ns;
    if (island->queued_ns <= x->global_ns && x->next_island == ORR_NONE) {
        x->next_island = i;
        return;
    }
    island->generation = (island->generation + 1) & ORR_GENERATION_MASK;
    orr_queue_push(&x->queue, MAX(island->queued_ns, x->global_ns), ORR_EV_ISLAND,
                   island->generation, i);
}

void orr_exec__push_local(OrrExec *x, uint32_t r, int64_t time_ns, uint32_t class,
                          uint32_t generation, uint32_t id) {
    uint32_t i = x->island_of[r];
    orr_queue_push(&x->islands[i].queue, time_ns, class, generation, id);
    announce(x, i);
}

/* How far the island may go: as far as the global clock, or ahead of it. */
static int64_t horizon(const OrrExec *x, const OrrIsland *island) {
    if (island->n_held > 0 || island->n_unstable > 0 || x->options->is_plain)
        return x->global_ns;
    return MAX(island->unstable_ns, x->global_ns);
}

static void take_event(OrrExec *x, OrrIsland *island) {
    OrrEvent e = orr_queue_pop(&island->queue);
    x->now_ns = e.time_ns;
    x->n_events++;
    orr_exec__handle(x, &e);
}

void orr_exec__run_island(OrrExec *x, uint32_t i) {
    OrrIsland *island = &x->islands[i];
    x->is_ahead = true;
    island->queued_ns = INT64_MIN; /* while it runs, pushes need no announcement */
    while (island->queue.n > 0 && island->queue.heap[0].time_ns <= horizon(x, island) &&
           island->queue.heap[0].time_ns < x->stop_ns && !x->mismatch)
        take_event(x, island);
    x->is_ahead = false;
    x->now_ns = x->global_ns;
    island->queued_ns = INT64_MAX;
    announce(x, i);
}

/* Kernels of the island change their rate now: what it has yet to do before that comes first. */
void orr_exec__catch_up_island(OrrExec *x, uint32_t i) {
    OrrIsland *island = &x->islands[i];
    if (island->queue.n == 0 || island->queue.heap[0].time_ns >= x->global_ns)
        return;
    g_assert(!x->is_ahead);
    x->is_ahead = true;
    island->queued_ns = INT64_MIN;
    while (island->queue.n > 0 && island->queue.heap[0].time_ns < MIN(x->global_ns, x->stop_ns) &&
           !x->mismatch)
        take_event(x, island);
    x->is_ahead = false;
    x->now_ns = x->global_ns;
    island->queued_ns = INT64_MAX;
    announce(x, i);
}

/* An external communication will be launched: the island must not go beyond that unawares. */
void orr_exec__will_launch(OrrExec *x, uint32_t r, int64_t start_ns, uint32_t purpose) {
    OrrIsland *island = &x->islands[x->island_of[r]];
    if (!orr_exec__slows_kernels(x, purpose))
        return;
    orr_exec__disturb_pass(x, r);
    island->unstable_ns = MIN(island->unstable_ns, start_ns);
    island->n_pending++;
}

/* It has been launched (+1) or has ended (-1). While some are pending the bound stays, perhaps too
 * early: that costs speed only. */
void orr_exec__unstable(OrrExec *x, uint32_t r, uint32_t purpose, int change) {
    OrrIsland *island = &x->islands[x->island_of[r]];
    if (!orr_exec__slows_kernels(x, purpose))
        return;
    island->n_unstable += change;
    if (change > 0 && --island->n_pending == 0)
        island->unstable_ns = INT64_MAX;
}
