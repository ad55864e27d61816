/* Streams of all members of an island together: what is asked and noted once for all where members
 * are at one place of the program. Their times may differ. The same as lane.c does for each. */
#include "sim/exec/cause.h"
#include "sim/exec/convoy.h"
#include "sim/exec/lane.h"

#define MOST_WAITS 8u

/* Items that the head of a stream waits for. */
typedef struct {
    uint32_t stream[MOST_WAITS], need[MOST_WAITS];
    uint32_t n;
} Waits;

static bool add_wait(Waits *w, uint32_t stream, uint32_t need) {
    if (w->n == MOST_WAITS)
        return false;
    w->stream[w->n] = stream;
    w->need[w->n++] = need;
    return true;
}

/* Of stream @s of rank @r; false if there are too many, or the host has yet to come by. */
static bool find_waits(const OrrExec *x, uint32_t r, uint32_t s, const OrrItem *item, Waits *w) {
    const OrrRank *rank = &x->ranks[r];
    const OrrCompiledRole *role = rank->role;
    const OrrLane *l = &rank->lane[s];
    const OrrCallRow *row = &role->rows[l->call], *all = &role->rows[role->n_calls];
    const uint32_t *first = &role->first_cross[l->call * ORR_N_STREAMS + s];
    bool is_sound = true;
    w->n = 0;
    for (uint32_t i = first[0]; item->has_cross && i < first[1]; i++) {
        const OrrCrossWait *c = &role->cross[i];
        if (c->item == l->item && c->steps_back <= l->step)
            is_sound &=
                add_wait(w, c->src_stream,
                         (l->step - c->steps_back) * all->base[c->src_stream] + c->src_count);
    }
    for (uint32_t i = 0; i < item->n_waits; i++) {
        const OrrItemWait *wait = &x->compiled->waits[item->first_wait + i];
        uint32_t q = wait->stream;
        is_sound &= add_wait(w, q, l->step * all->base[q] + row->base[q] + wait->count);
    }
    return is_sound;
}

bool orr_together__is_in_step(const OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s) {
    const OrrLane *a = &x->ranks[list[0]].lane[s];
    for (uint32_t i = 1; i < n; i++) {
        const OrrLane *b = &x->ranks[list[i]].lane[s];
        if (a->head != b->head || a->call != b->call || a->item != b->item || a->step != b->step ||
            a->state != b->state || a->completed != b->completed || a->blocked_on != b->blocked_on)
            return false;
    }
    return true;
}

/* Whether the heads of all members wait for what is still to come, or none does. */
static bool are_blocked_alike(const OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s,
                              bool *is_blocked) {
    *is_blocked = orr_exec__is_blocked(&x->ranks[list[0]], s);
    for (uint32_t i = 1; i < n; i++)
        if (orr_exec__is_blocked(&x->ranks[list[i]], s) != *is_blocked)
            return false;
    return true;
}

/* What the head of each member waits for, in @w; false if they don't wait for the same streams, or
 * a host has yet to come by. Nothing has changed then. */
static bool look_at_waits(const OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s,
                          OrrWaiting *w) {
    Waits waits;
    const OrrItem *item = orr_exec__head(x, list[0], s);
    const OrrCompiledRole *role = x->ranks[list[0]].role;
    const OrrLane *l = &x->ranks[list[0]].lane[s];
    uint32_t syncs = l->step * role->rows[role->n_calls].syncs_before +
                     role->rows[l->call].syncs_before + item->n_syncs_before;
    if (!find_waits(x, list[0], s, item, &waits))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        w[i] = (OrrWaiting){.ready_ns = x->ranks[list[i]].lane[s].free_ns, .begin_cause = s};
        if (x->ranks[list[i]].n_synced < syncs)
            return false;
        for (uint32_t k = 0; k < waits.n; k++)
            orr_lane__consider(x, list[i], s, waits.stream[k], waits.need[k], &w[i]);
        if (w[i].missing != w[0].missing)
            return false;
    }
    return true;
}

/* False: each must be asked for itself, nothing has changed. */
static bool start_together(OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s) {
    OrrWaiting w[ORR_MAX_ISLAND];
    int64_t start_ns[ORR_MAX_ISLAND];
    bool is_blocked;
    if (x->ranks[list[0]].lane[s].state != ORR_LANE_BLOCKED ||
        !orr_together__is_in_step(x, list, n, s) || !are_blocked_alike(x, list, n, s, &is_blocked))
        return false;
    if (is_blocked)
        return true;
    if (!look_at_waits(x, list, n, s, w))
        return false;
    for (uint32_t i = 0; i < n; i++)
        orr_lane__set_blocked(&x->ranks[list[i]], s, &w[i]);
    if (w[0].missing)
        return true;
    const OrrItem *item = orr_exec__head(x, list[0], s);
    for (uint32_t i = 0; i < n; i++) {
        OrrLane *l = &x->ranks[list[i]].lane[s];
        int64_t ready;
        uint32_t cause;
        start_ns[i] = orr_lane__start(x, list[i], s, item, &w[i], &ready, &cause);
        l->state = ORR_LANE_RUNNING;
        l->start_ns = l->arrived_ns = start_ns[i];
        l->pending = 1;
    }
    uint32_t part = x->bound->program->p2ps[item->what].first_part;
    orr_convoy__arrive(x, list, n, s, part, start_ns);
    return true;
}

void orr_exec__start_all(OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s) {
    if (n > 1 && x->convoys && (x->convoys->streams & 1u << s) && start_together(x, list, n, s))
        return;
    for (uint32_t i = 0; i < n; i++)
        orr_exec__try_start(x, list[i], s);
}

/* Something of stream @s has ended on all members: who waits for it goes on. */
void orr_exec__wake_all(OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s) {
    const OrrRank *first = &x->ranks[list[0]];
    bool is_alike = true;
    for (uint32_t i = 1; i < n; i++)
        is_alike &= x->ranks[list[i]].waiting_for[s] == first->waiting_for[s];
    if (!is_alike) {
        for (uint32_t i = 0; i < n; i++)
            orr_exec__wake(x, list[i], s);
        return;
    }
    uint32_t local = first->waiting_for[s] & (1u << ORR_STREAM_COMPUTE | 1u << ORR_STREAM_TP);
    for (uint32_t left = first->waiting_for[s] & ~local; left; left &= left - 1)
        orr_exec__start_all(x, list, n, __builtin_ctz(left));
    if (local == 0 || orr_exec__check_in_all(x, x->ranks[list[0]].island))
        return;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t left = local; left; left &= left - 1)
            orr_exec__try_start(x, list[i], __builtin_ctz(left));
}

void orr_together__complete(OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s,
                            const int64_t *end_ns) {
    const OrrItem *item = orr_exec__head(x, list[0], s);
    const OrrLane *first = &x->ranks[list[0]].lane[s];
    for (uint32_t i = 0; i < n; i++) {
        OrrRank *rank = &x->ranks[list[i]];
        OrrLane *l = &rank->lane[s];
        x->now_ns = end_ns[i];
        orr_exec__comm_sum(x, list[i], s, item);
        if (rank->is_probed)
            orr_lane__probe(x, list[i], s, item);
        if (x->ended_mask & 1u << s)
            orr_lane__leave_trail(&rank->trail[s], l, item);
        l->free_ns = end_ns[i];
        l->completed++;
        l->state = ORR_LANE_BLOCKED;
        l->item++;
        if (i == 0) {
            orr_exec__settle_head(x, list[i], s);
            continue;
        }
        l->head = first->head;
        l->call = first->call;
        l->item = first->item;
        l->step = first->step;
        l->state = first->state;
    }
}
