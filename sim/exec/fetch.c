/* What the next events of the queue will touch is fetched while the one in hand is handled.
 *
 * Of many ranks nothing is in the cache any more when its turn comes, and what an event touches is
 * known by its id: some hundred lines of the islands at both ends of a convoy, of its places and of
 * the convoy that will leave next. Replicas that are alike have their events at one instant, in the
 * order of their ids, so behind the next event the queue most likely has the ids behind its own;
 * where that is not so some lines are fetched in vain. Nothing here is needed for a result. All is
 * inlined by force, since the compiler leaves out calls of functions that only fetch: it sees no
 * effect of them. Cost: some hundreds of instructions an event. */
#include "sim/base/large.h"
#include "sim/exec/convoy.h"
#include "sim/exec/pass.h"

/* Ids between the next event and those of which only what leads to the rest is fetched: ours. */
#define NEAR 2u
#define FAR 4u
/* As a rule an island is the GPUs of a node, whose rows are compiled for this many. */
#define MEMBERS 8u

static ORR_INLINE void fetch(const void *first, gsize bytes) {
    for (gsize i = 0; i < bytes; i += ORR_LINE)
        __builtin_prefetch((const char *)first + i, 1);
}

/* Entries of the @n members of an island in an array of its block. */
static ORR_INLINE void fetch_row(const OrrExec *x, uint32_t n, uint32_t island, uint32_t at,
                                 uint32_t first, gsize size) {
    const char *block = x->store.bytes + (gsize)island * x->store.block_bytes;
    fetch(block + at + first * size, n * size);
}

/* Where stream @s is, and its times. */
static ORR_INLINE void fetch_times(const OrrExec *x, uint32_t n, uint32_t island, uint32_t s) {
    const OrrStore *st = &x->store;
    uint32_t row = x->row_at[s];
    fetch(st->bytes + (gsize)island * st->block_bytes + st->lanes + row * sizeof(OrrLane),
          sizeof(OrrLane));
    fetch_row(x, n, island, st->free_ns, row, sizeof(int64_t));
    fetch_row(x, n, island, st->start_ns, row, sizeof(int64_t));
    fetch_row(x, n, island, st->arrived_ns, row, sizeof(int64_t));
    fetch_row(x, n, island, st->preds, row, sizeof(OrrPredecessor));
    if (x->leaves_records)
        fetch_row(x, n, island, st->causes, row, sizeof(OrrLaneCause));
}

/* What is asked of communication that has ended. */
static ORR_INLINE void fetch_trail(const OrrExec *x, uint32_t n, uint32_t island, uint32_t s) {
    const OrrStore *st = &x->store;
    uint32_t row = x->row_at[s];
    if (x->ended_mask & 1u << s)
        fetch_row(x, n, island, st->ended, row, sizeof(OrrEnded));
    if (!(x->charged_mask & 1u << s))
        return;
    fetch_row(x, n, island, st->blockers, row, sizeof(OrrBlocker));
    fetch_row(x, n, island, st->blockers, st->n_slots + row, sizeof(OrrBlocker));
}

/* Members between the one in hand and those whose memory is asked for: ours. */
#define MEMBERS_NEAR 3u
#define MEMBERS_FAR 7u

void orr_exec__fetch_members(const OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s) {
    if (n > MEMBERS_FAR) {
        uint32_t r = list[MEMBERS_FAR];
        fetch(&x->store.homes[r], 1);
        fetch(&x->island_of[r], 1);
        fetch(&x->ranks[r], 1);
    }
    if (n <= MEMBERS_NEAR)
        return;
    uint32_t r = list[MEMBERS_NEAR];
    fetch(&x->islands[x->island_of[r]], sizeof *x->islands);
    fetch(orr_exec__joint_lane(x, r, s) + x->store.homes[r].member, 1);
    fetch(orr_exec__joint_lane(x, r, s), 1);
    fetch(orr_exec__joint_lane(x, r, ORR_STREAM_COMPUTE), 1);
    fetch(orr_exec__arrived_ns(x, r, s), 1);
    fetch(orr_exec__start_ns(x, r, s), 1);
    fetch(orr_exec__free_ns(x, r, s), 1);
    fetch(orr_exec__pred(x, r, s), 1);
    if (x->ended_mask & 1u << s)
        fetch(orr_exec__ended(x, r, s), 1);
    fetch(orr_exec__outer(x, r), 1);
}

/* Where a local stream is, and since when. */
static ORR_INLINE void fetch_local(const OrrExec *x, uint32_t n, uint32_t island, uint32_t s) {
    const OrrStore *st = &x->store;
    fetch(st->bytes + (gsize)island * st->block_bytes + st->lanes + x->row_at[s] * sizeof(OrrLane),
          sizeof(OrrLane));
    fetch_row(x, n, island, st->free_ns, x->row_at[s], sizeof(int64_t));
}

/* How far the host is. */
static ORR_INLINE void fetch_host(const OrrExec *x, uint32_t n, uint32_t island) {
    fetch_row(x, n, island, x->store.host_base_ns, 0, sizeof(int64_t));
    fetch_row(x, n, island, x->store.n_synced, 0, sizeof(uint32_t));
}

/* What passes, and waits for their input, are charged to as a rule. */
static const uint8_t charged[] = {ORR_OWN_INTERFERENCE,
                                  ORR_OWN_BUBBLE,
                                  ORR_OWN_EXPOSED_FIRST + ORR_COMM_TP,
                                  ORR_OWN_EXPOSED_FIRST + ORR_COMM_PP,
                                  ORR_OWN_STRAGGLER,
                                  ORR_OWN_HOST};

/* What the next pass of an island, of which @r is the first member, asks for. */
static ORR_INLINE void fetch_pass(const OrrExec *x, uint32_t n, uint32_t island, uint32_t r) {
    const OrrStore *st = &x->store;
    const OrrBegins *b = &x->passes->begins;
    fetch(&x->passes->islands[island], sizeof *x->passes->islands);
    fetch(x->passes->taken + (gsize)island * x->passes->n_tails,
          x->passes->n_tails * sizeof *x->passes->taken);
    fetch(x->islands[island].queue.heap, sizeof(OrrQueued));
    fetch_local(x, n, island, ORR_STREAM_COMPUTE);
    fetch_local(x, n, island, ORR_STREAM_TP);
    fetch_row(x, n, island, st->ended, x->row_at[ORR_STREAM_TP], sizeof(OrrEnded));
    fetch(&b->begin_ns[r], n * sizeof *b->begin_ns);
    fetch(&b->key[r], n * sizeof *b->key);
    fetch(&b->index[r], n * sizeof *b->index);
    fetch(&b->state[r], n * sizeof *b->state);
    fetch(&b->blocker[r], n * sizeof *b->blocker);
    if (x->leaves_records)
        fetch(&b->made[r], n * sizeof *b->made);
    fetch(&st->homes[r], n * sizeof *st->homes);
    fetch(&x->island_of[r], n * sizeof *x->island_of);
    fetch(&x->bound->hw[r], n * sizeof *x->bound->hw);
    fetch(&x->bound->weight[r], n * sizeof *x->bound->weight);
    fetch_row(x, n, island, st->idle_from_ns, 0, sizeof(int64_t));
    fetch_host(x, n, island);
    fetch_row(x, n, island, st->outer, 0, 2 * sizeof(uint32_t));
    for (uint32_t i = 0; i < G_N_ELEMENTS(charged); i++)
        fetch_row(x, n, island, st->owner_ns, charged[i] * n, sizeof(int64_t));
}

/* Ends of the compute stream that stream @s will ask for. */
static ORR_INLINE void fetch_past(const OrrExec *x, uint32_t n, uint32_t island, uint32_t s) {
    uint32_t of = x->pasts.of[ORR_STREAM_COMPUTE][s];
    if (of == UINT8_MAX)
        return;
    gsize at = (gsize)island * x->pasts.n + of;
    gsize n_ends = ORR_JOINT_ENDS * n;
    fetch(&x->pasts.joint[at], sizeof *x->pasts.joint);
    fetch(x->pasts.end_ns + at * n_ends, n_ends * sizeof(int64_t));
    if (x->leaves_records)
        fetch(x->pasts.cause + at * n_ends, n_ends * sizeof(uint32_t));
}

static ORR_INLINE void fetch_work(const OrrPasses *p, const OrrPassWork *w) {
    const OrrPassParts parts = orr_pass__parts(p, w);
    fetch(w, (gsize)((const char *)(parts.members + 1) - (const char *)w));
    for (uint32_t m = 1; m < p->most_members; m++)
        fetch(parts.members + m, 1);
    fetch(parts.ends, ORR_PASS_LANES * p->most_items * sizeof *parts.ends);
    fetch(parts.waits, p->most_items * sizeof *parts.waits);
}

void orr_pass__fetch_work(const OrrPasses *p, const OrrPassWork *w) {
    fetch_work(p, w);
}

/* What a convoy touches when it sets out. */
static ORR_INLINE void fetch_places(const OrrExec *x, uint32_t n, uint32_t id) {
    const OrrConvoy *c = &x->convoys->convoys[id];
    const OrrPlace *first = &x->places[c->first_place]; /* the others lie behind it, as a rule */
    for (uint32_t i = 0; i < n; i++)
        fetch(first + i, ORR_LINE);
    fetch(x->convoys->places + c->first, n * sizeof(uint32_t));
    fetch(x->convoys->joint_uses + c->first_joint, (c->n_shared + c->n_rows) * sizeof(OrrUse));
}

/* The convoy that will leave the island, in which @c arrives, next. */
static ORR_INLINE void fetch_onward(const OrrExec *x, uint32_t n, uint32_t island,
                                    const OrrConvoy *c) {
    if (c->onward == ORR_NONE)
        return;
    uint32_t s = x->convoys->convoys[c->onward].stream[0];
    fetch_times(x, n, island, s);
    fetch_past(x, n, island, s);
    fetch_places(x, n, c->onward);
}

/* The end of convoy @id, and what its receivers do then. */
static ORR_INLINE void fetch_end(const OrrExec *x, uint32_t n, uint32_t id) {
    const OrrConvoy *c = &x->convoys->convoys[id];
    const OrrBoundGroup *tp = &x->bound->groups[ORR_GROUP_TP];
    uint32_t from = c->island[0], to = c->island[1];
    fetch_places(x, n, id);
    fetch(x->convoys->of + from * ORR_CONVOY_STREAMS, 1);
    fetch(x->convoys->of + to * ORR_CONVOY_STREAMS, 1);
    fetch_times(x, n, from, c->stream[0]);
    fetch_local(x, n, from, ORR_STREAM_COMPUTE);
    fetch_local(x, n, from, ORR_STREAM_TP);
    fetch_past(x, n, from, c->stream[0]);
    fetch_host(x, n, from);
    uint32_t r = tp->members[tp->first_member[from]];
    fetch(&x->store.homes[r], n * sizeof *x->store.homes);
    fetch(&x->island_of[r], n * sizeof *x->island_of);
    fetch(&x->bound->weight[r], n * sizeof *x->bound->weight);
    fetch(&x->islands[to], sizeof *x->islands);
    fetch_times(x, n, to, c->stream[1]);
    fetch_trail(x, n, to, c->stream[1]);
    if (!x->passes)
        return;
    fetch_pass(x, n, to, tp->members[tp->first_member[to]]);
    fetch_onward(x, n, to, c);
}

/* The pass that island @id begins. */
static ORR_INLINE void fetch_island(const OrrExec *x, uint32_t n, uint32_t id) {
    const OrrConvoys *v = x->convoys;
    if (!x->passes)
        return;
    const OrrIslandPass *pass = &x->passes->islands[id];
    fetch_pass(x, n, id, pass->first);
    if (pass->work)
        fetch_work(x->passes, pass->work);
    if (v->arrived[id] != ORR_NONE)
        fetch_onward(x, n, id, &v->convoys[v->arrived[id]]);
}

/* What leads to all that: of an event far behind, */
static ORR_INLINE void fetch_far(const OrrExec *x, uint32_t class, uint32_t id) {
    const OrrConvoys *v = x->convoys;
    if ((class == ORR_EV_CONVOY || class == ORR_EV_CONVOY_FLOW) && id < v->n)
        fetch(&v->convoys[id], sizeof *v->convoys);
    if (class != ORR_EV_ISLAND || id >= x->n_islands)
        return;
    fetch(&x->islands[id], sizeof *x->islands);
    if (x->passes)
        fetch(&x->passes->islands[id], sizeof *x->passes->islands);
    if (v->arrived[id] != ORR_NONE)
        fetch(&v->convoys[v->arrived[id]], sizeof *v->convoys);
}

/* and of one a little behind. */
static ORR_INLINE void fetch_near(const OrrExec *x, uint32_t class, uint32_t id) {
    const OrrConvoys *v = x->convoys;
    uint32_t convoy = class == ORR_EV_ISLAND && id < x->n_islands ? v->arrived[id]
                      : class != ORR_EV_ISLAND && id < v->n       ? id
                                                                  : ORR_NONE;
    if (convoy == ORR_NONE)
        return;
    const OrrConvoy *c = &v->convoys[convoy];
    if (class == ORR_EV_CONVOY)
        fetch(&x->islands[c->island[1]], sizeof *x->islands);
    if (class == ORR_EV_CONVOY_FLOW)
        fetch(v->joint_uses + c->first_joint, (c->n_shared + c->n_rows) * sizeof(OrrUse));
    else if (c->onward != ORR_NONE)
        fetch(&v->convoys[c->onward], sizeof *v->convoys);
}

static ORR_INLINE void fetch_event(const OrrExec *x, uint32_t n, uint32_t class, uint32_t id) {
    if (class == ORR_EV_CONVOY)
        fetch_end(x, n, id);
    else if (class == ORR_EV_ISLAND)
        fetch_island(x, n, id);
    else
        orr_convoy__prefetch_room(x, &x->convoys->convoys[id]);
}

void orr_exec__fetch_next(const OrrExec *x) {
    if (x->queue.n == 0 || !x->convoys)
        return;
    const OrrQueued *top = &x->queue.heap[0];
    uint32_t class = orr_queued_class(top), id = orr_queued_id(top);
    if (class != ORR_EV_CONVOY && class != ORR_EV_ISLAND && class != ORR_EV_CONVOY_FLOW)
        return;
    for (uint32_t i = 1; i <= 4 && i < x->queue.n; i++)
        fetch_far(x, orr_queued_class(top + i), orr_queued_id(top + i));
    fetch_far(x, class, id + FAR);
    fetch_near(x, class, id + NEAR);
    if (x->n_members == MEMBERS)
        fetch_event(x, MEMBERS, class, id);
    else
        fetch_event(x, x->n_members, class, id);
}
