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

static void histories_new(OrrExec *x) {
    memset(x->history_of, UINT8_MAX, sizeof x->history_of);
    for (uint32_t s = 0; s < ORR_N_STREAMS; s++)
        for (uint32_t q = 0; q < ORR_N_STREAMS; q++)
            if (!x->is_external[s] && x->is_external[q] && (x->compiled->waiters[s] & 1u << q))
                x->history_of[s][q] = x->n_histories++;
    gsize n = (gsize)x->bound->n_ranks * x->n_histories;
    x->history = orr_large_new((n + 1) * sizeof *x->history);
    for (gsize i = 0; i < n; i++) {
        x->history[i].entry = x->history[i].own;
        x->history[i].capacity = ORR_PAST_ENDS;
    }
}

static OrrHistory *history_of(const OrrExec *x, uint32_t r, uint32_t s, uint32_t asker) {
    return &x->history[(gsize)r * x->n_histories + x->history_of[s][asker]];
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
    orr_exec__lanes_new(x, is_grouped ? tp : NULL);
    x->islands = orr_large_new(x->n_islands * sizeof *x->islands);
    for (uint32_t i = 0; i < x->n_islands; i++) {
        orr_queue_init(&x->islands[i].queue);
        x->islands[i].queued_ns = x->islands[i].unstable_ns = INT64_MAX;
        x->islands[i].n_ranks = is_grouped ? tp->first_member[i + 1] - tp->first_member[i] : 1;
    }
    histories_new(x);
}

void orr_exec__islands_clear(OrrExec *x) {
    for (uint32_t i = 0; i < x->n_islands; i++)
        orr_queue_clear(&x->islands[i].queue);
    for (gsize i = 0; i < (gsize)x->bound->n_ranks * x->n_histories; i++)
        if (x->history[i].entry != x->history[i].own)
            g_free(x->history[i].entry);
    orr_exec__lanes_clear(x);
    free(x->history);
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
           !x->is_over && !x->mismatch)
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
    while (island->queue.n > 0 && island->queue.heap[0].time_ns < x->global_ns && !x->is_over &&
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

/* The oldest item of stream @s that the asker can still ask for, by what its head waits for. */
static uint32_t oldest_asked(const OrrExec *x, uint32_t r, uint32_t s, uint32_t asker) {
    const OrrCompiledRole *role = x->ranks[r].role;
    const OrrLane *l = orr_exec__lane(x, r, asker);
    const OrrCallRow *row = &role->rows[l->call];
    const OrrItem *item = orr_exec__head(x, r, asker);
    uint32_t step = l->step * role->rows[role->n_calls].base[s], least = UINT32_MAX;
    const uint32_t *first = &role->first_cross[l->call * ORR_N_STREAMS + asker];
    for (uint32_t i = first[0]; item->has_cross && i < first[1]; i++) {
        const OrrCrossWait *c = &role->cross[i];
        if (c->item == l->item && c->src_stream == s && c->steps_back <= l->step)
            least =
                MIN(least, step - c->steps_back * role->rows[role->n_calls].base[s] + c->src_count);
    }
    for (uint32_t i = 0; i < item->n_waits; i++) {
        const OrrItemWait *w = &x->compiled->waits[item->first_wait + i];
        if (w->stream == s)
            least = MIN(least, step + row->base[s] + w->count);
    }
    if (least == UINT32_MAX)
        return 0;
    return l->state == ORR_LANE_BLOCKED ? least - 1 : least;
}

static void drop_before(OrrHistory *h, uint32_t index) {
    while (h->n > 0 && h->entry[h->first].index < index) {
        h->first = (h->first + 1) & (h->capacity - 1);
        h->n--;
    }
}

static void grow(OrrHistory *h) {
    OrrPastEnd *grown = g_new(OrrPastEnd, 2 * h->capacity);
    for (uint32_t i = 0; i < h->n; i++)
        grown[i] = h->entry[(h->first + i) & (h->capacity - 1)];
    if (h->entry != h->own)
        g_free(h->entry);
    h->entry = grown;
    h->capacity *= 2;
    h->first = 0;
}

static inline void keep(OrrHistory *h, OrrPastEnd end) {
    if (h->n == h->capacity)
        grow(h);
    h->entry[(h->first + h->n++) & (h->capacity - 1)] = end;
}

/* Item @item of the step of stream @s ends: kept for the external streams that will ask for it. */
void orr_exec__remember(OrrExec *x, uint32_t r, uint32_t s, uint32_t item, OrrPastEnd end) {
    uint32_t asked = x->ranks[r].role->asked[s][item] & x->external_mask;
    for (; asked; asked &= asked - 1) {
        uint32_t asker = __builtin_ctz(asked);
        OrrHistory *h = history_of(x, r, s, asker);
        if (orr_exec__lane(x, r, asker)->state == ORR_LANE_DONE)
            continue;
        if (h->n == h->capacity)
            drop_before(h, oldest_asked(x, r, s, asker));
        keep(h, end);
    }
}

static bool is_alike(const OrrLane *a, const OrrLane *b) {
    return a->head == b->head && a->call == b->call && a->item == b->item && a->step == b->step &&
           a->state == b->state;
}

/* The same of an item that all members of an island end, for one asker. */
void orr_exec__remember_all(OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s,
                            uint32_t asker, const OrrPastEnd *ends) {
    const OrrLane *known = NULL; /* where the asker is for which `oldest` holds */
    uint32_t oldest = 0;
    for (uint32_t m = 0; m < n; m++) {
        OrrHistory *h = history_of(x, list[m], s, asker);
        const OrrLane *l = orr_exec__lane(x, list[m], asker);
        if (l->state == ORR_LANE_DONE)
            continue;
        if (h->n == h->capacity) {
            if (!known || !is_alike(l, known))
                oldest = oldest_asked(x, list[m], s, asker);
            known = l;
            drop_before(h, oldest);
        }
        keep(h, ends[m]);
    }
}

/* The end of item @index of the stream; NULL if the asker has asked for a later one before. It
 * asks in order, so what is older is dropped. */
const OrrPastEnd *orr_exec__recall(const OrrExec *x, uint32_t r, uint32_t s, uint32_t asker,
                                   uint32_t index) {
    if (x->history_of[s][asker] == UINT8_MAX)
        return NULL;
    OrrHistory *h = history_of(x, r, s, asker);
    drop_before(h, index);
    if (h->n == 0 || h->entry[h->first].index != index)
        return NULL;
    return &h->entry[h->first];
}
