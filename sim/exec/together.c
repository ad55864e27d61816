/* Streams of all members of an island together: what is asked and noted once for all where members
 * are at one place of the program. Their times may differ. The same as lane.c does for each. */
#include "sim/exec/cause.h"
#include "sim/exec/convoy.h"
#include "sim/exec/lane.h"

#include <string.h>

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

/* Of stream @s of rank @r; false if there are too many. */
static bool find_waits(const OrrExec *x, uint32_t r, uint32_t s, const OrrItem *item, Waits *w) {
    const OrrCompiledRole *role = orr_exec__role(x, r);
    const OrrLane *l = orr_exec__lane(x, r, s);
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

/* Whether the heads of all members, which are at one place, wait for what is still to come, or none
 * does. */
static bool are_blocked_alike(const OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s,
                              bool *is_blocked) {
    uint32_t on = orr_exec__lane(x, list[0], s)->blocked_on;
    *is_blocked = orr_exec__is_blocked(x, list[0], s);
    for (uint32_t i = 1; on < ORR_N_STREAMS && orr_exec__is_apart(x, list[0], on) && i < n; i++)
        if (orr_exec__is_blocked(x, list[i], s) != *is_blocked)
            return false;
    return true;
}

/* Since when the heads of the members have all that they wait for, and what came last. */
typedef struct {
    int64_t ready_ns[ORR_MAX_ISLAND];
    uint32_t cause[ORR_MAX_ISLAND]; /* record of it; ORR_NONE: it is the last of its stream */
    uint8_t last[ORR_MAX_ISLAND];   /* of Waits, plus 1; 0: none */
} Ready;

/* What member @m waits for with wait @k ended at @end_ns: it counts if it was the last so far. */
static inline void see(const Waits *w, Ready *y, uint32_t m, uint32_t k, int64_t end_ns,
                       uint32_t cause) {
    uint32_t last = y->last[m];
    if (end_ns < y->ready_ns[m])
        return;
    if (end_ns == y->ready_ns[m] && (last == 0 || w->stream[k] >= w->stream[last - 1]))
        return;
    y->ready_ns[m] = end_ns;
    y->cause[m] = cause;
    y->last[m] = k + 1;
}

/* The same of an item that is not the last of its stream, as stream @s asks; */
static void see_past(const OrrExec *x, uint32_t r, uint32_t s, const Waits *w, Ready *y, uint32_t m,
                     uint32_t k) {
    OrrPastEnd past;
    if (!x->is_external[w->stream[k]] &&
        orr_exec__recall(x, r, w->stream[k], s, w->need[k] - 1, &past))
        see(w, y, m, k, past.end_ns, past.cause);
}

/* and of all members. */
static void see_all_past(const OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s,
                         const Waits *w, Ready *y, uint32_t k) {
    const uint32_t *causes;
    const int64_t *end_ns;
    if (x->is_external[w->stream[k]])
        return;
    bool is_each =
        !orr_exec__recall_all(x, list[0], w->stream[k], s, w->need[k] - 1, &end_ns, &causes);
    for (uint32_t i = 0; is_each && i < n; i++)
        see_past(x, list[i], s, w, y, i, k);
    for (uint32_t i = 0; !is_each && end_ns && i < n; i++)
        see(w, y, i, k, end_ns[i], causes ? causes[i] : ORR_NONE);
}

/* One of the items that the heads wait for, as orr_lane__consider has it. Returns the members that
 * lack it. */
static uint32_t look_at_wait(const OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s,
                             const Waits *w, Ready *y, uint32_t k) {
    uint32_t q = w->stream[k], need = w->need[k], n_lacking = 0;
    const OrrLane *first = orr_exec__joint_lane(x, list[0], q);
    const int64_t *free_ns = orr_exec__free_ns(x, list[0], q);
    if (!first->is_apart && first->completed < need)
        return n;
    if (!first->is_apart && first->completed > need) {
        see_all_past(x, list, n, s, w, y, k);
        return 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t completed = first->is_apart ? first[i].completed : need;
        n_lacking += completed < need;
        if (completed == need)
            see(w, y, i, k, free_ns[i], ORR_NONE);
        else if (completed > need)
            see_past(x, list[i], s, w, y, i, k);
    }
    return n_lacking;
}

/* All of them; which streams are not there yet, a bit each. False: not the same for all. */
static bool look_at_waits(const OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s,
                          const Waits *waits, Ready *ready, uint32_t *missing) {
    *missing = 0;
    memcpy(ready->ready_ns, orr_exec__free_ns(x, list[0], s), n * sizeof *ready->ready_ns);
    memset(ready->last, 0, n * sizeof *ready->last);
    for (uint32_t k = 0; k < waits->n; k++) {
        uint32_t n_lacking = look_at_wait(x, list, n, s, waits, ready, k);
        if (n_lacking > 0 && n_lacking < n)
            return false;
        *missing |= n_lacking > 0 ? 1u << waits->stream[k] : 0;
    }
    return true;
}

/* The stream that heads wait for first of all: an external one if there is. */
static void block(OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s, const Waits *waits) {
    OrrWaiting w = {.begin_cause = s};
    for (uint32_t k = 0; k < waits->n; k++)
        orr_lane__consider(x, list[0], s, waits->stream[k], waits->need[k], &w);
    orr_exec__block_all_on(x, list, n, s, w.missing ? w.first_missing : ORR_N_STREAMS, w.need);
}

/* Records of what the heads waited for. */
static void note_causes(OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s,
                        const Waits *waits, const Ready *y) {
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = y->last[i];
        orr_exec__lane_cause(x, list[i], s)->waited =
            k > 0 && y->cause[i] != ORR_NONE
                ? y->cause[i]
                : orr_exec__last_cause(x, list[i], k > 0 ? waits->stream[k - 1] : s);
    }
}

/* As orr_lane__note_blocker of each. */
static void note_blockers(const OrrExec *x, uint32_t r, uint32_t n, uint32_t s) {
    const OrrPredecessor *before = orr_exec__pred(x, r, s);
    const OrrEnded *ended = ORR_STORED(x, r, ended, OrrEnded), *own = ended + x->row_at[s];
    OrrBlocker *blockers = ORR_STORED(x, r, blockers, OrrBlocker) + x->row_at[s];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t q = before[i].stream;
        const OrrLane *first = orr_exec__joint_lane(x, r, q);
        OrrBlocker *blocker = &blockers[(own[i].slot ^ 1) * x->store.n_slots + i];
        blocker->ended = ended[x->row_at[q] + i];
        blocker->end_ns = orr_exec__free_ns(x, r, q)[i];
        if (first[first->is_apart ? i : 0].completed != before[i].index + 1)
            blocker->ended.is_set = 0;
    }
}

/* The heads of stream @s of all members, which the host has issued @issue_ns of its time behind its
 * base, start. */
static void start(OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s, const Waits *waits,
                  const Ready *y, int64_t issue_ns) {
    OrrPredecessor *before = orr_exec__pred(x, list[0], s);
    const int64_t *base_ns = orr_exec__host_base_ns(x, list[0]);
    int64_t *starts_ns = orr_exec__start_ns(x, list[0], s);
    uint32_t previous = orr_exec__joint_lane(x, list[0], s)->completed - 1;
    if (x->leaves_records)
        note_causes(x, list, n, s, waits, y);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = y->last[i];
        int64_t issued_ns = base_ns[i] + issue_ns;
        before[i].pred = k > 0 ? ORR_PRED_WAIT : ORR_PRED_PREVIOUS;
        before[i].stream = k > 0 ? waits->stream[k - 1] : s;
        before[i].index = k > 0 ? waits->need[k - 1] - 1 : previous;
        before[i].is_issue_bound = issued_ns > y->ready_ns[i];
        starts_ns[i] = MAX(y->ready_ns[i], issued_ns);
    }
    memcpy(orr_exec__arrived_ns(x, list[0], s), starts_ns, n * sizeof *starts_ns);
    if (x->charged_mask & 1u << s)
        note_blockers(x, list[0], n, s);
    for (uint32_t i = 0; i < n; i++)
        if (before[i].is_issue_bound)
            orr_lane__note_issue_bound(x, list[i], s);
}

/* The head of each, in step. False: each must be asked for itself, nothing has changed. */
static bool start_together(OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s) {
    Ready ready;
    Waits waits;
    bool is_blocked;
    const OrrCompiledRole *role = orr_exec__role(x, list[0]);
    const OrrLane *l = orr_exec__lane(x, list[0], s);
    if (!are_blocked_alike(x, list, n, s, &is_blocked))
        return false;
    if (is_blocked)
        return true;
    const OrrItem *item = orr_exec__head(x, list[0], s);
    const OrrCallRow *row = &role->rows[l->call], *all = &role->rows[role->n_calls];
    uint32_t syncs = l->step * all->syncs_before + row->syncs_before + item->n_syncs_before;
    uint32_t missing;
    if (!find_waits(x, list[0], s, item, &waits))
        return false;
    const uint32_t *synced = orr_exec__n_synced(x, list[0]);
    for (uint32_t i = 0; i < n && syncs > 0; i++)
        if (synced[i] < syncs)
            return false;
    if (!look_at_waits(x, list, n, s, &waits, &ready, &missing))
        return false;
    if (missing) {
        block(x, list, n, s, &waits);
        return true;
    }
    int64_t issue_ns = l->step * all->host_ns + row->host_ns + item->issue_ns;
    orr_exec__block_all_on(x, list, n, s, ORR_N_STREAMS, 0);
    orr_exec__joint_lane(x, list[0], s)->state = ORR_LANE_RUNNING;
    orr_exec__joint_lane(x, list[0], s)->pending = 1;
    start(x, list, n, s, &waits, &ready, issue_ns);
    orr_convoy__arrive(x, list, n, s, x->bound->program->p2ps[item->what].first_part,
                       orr_exec__start_ns(x, list[0], s));
    return true;
}

/* Whether the stream is at one place for all members, where none of them can start. */
static bool can_none_start(const OrrExec *x, uint32_t r, uint32_t s) {
    const OrrLane *l = orr_exec__joint_lane(x, r, s);
    if (l->is_apart)
        return false;
    if (l->state != ORR_LANE_BLOCKED)
        return true;
    return l->blocked_on < ORR_N_STREAMS && !orr_exec__is_apart(x, r, l->blocked_on) &&
           orr_exec__is_blocked(x, r, s);
}

void orr_exec__start_all(OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s) {
    if (can_none_start(x, list[0], s))
        return;
    if (n > 1 && x->convoys && (x->convoys->streams & 1u << s) &&
        orr_exec__lane(x, list[0], s)->state == ORR_LANE_BLOCKED && orr_exec__join(x, list[0], s) &&
        start_together(x, list, n, s))
        return;
    for (uint32_t i = 0; i < n; i++)
        orr_exec__try_start(x, list[i], s);
}

/* Streams whose heads wait for stream @s, a bit each, of all members; those of @apart of some. */
static uint32_t find_waiting(OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s,
                             uint32_t *apart) {
    OrrLane *first = orr_exec__joint_lane(x, list[0], s);
    for (uint32_t left = first->waiting_apart; left; left &= left - 1)
        orr_exec__join(x, list[0], __builtin_ctz(left));
    *apart = 0;
    for (uint32_t i = 0; first->waiting_apart && i < n; i++)
        *apart |= *orr_exec__waiting_apart(x, list[i], s);
    first->waiting_apart = *apart;
    return first->waiting;
}

/* Something of stream @s has ended on all members: who waits for it goes on. */
void orr_exec__wake_all(OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s) {
    uint32_t apart, all = find_waiting(x, list, n, s, &apart);
    uint32_t local = all & (1u << ORR_STREAM_COMPUTE | 1u << ORR_STREAM_TP);
    for (uint32_t i = 0; i < n && apart; i++)
        for (uint32_t left = *orr_exec__waiting_apart(x, list[i], s); left; left &= left - 1)
            orr_exec__try_start(x, list[i], __builtin_ctz(left));
    for (uint32_t left = all & ~local; left; left &= left - 1)
        orr_exec__start_all(x, list, n, __builtin_ctz(left));
    if (local == 0 || orr_exec__check_in_all(x, x->island_of[list[0]]))
        return;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t left = local; left; left &= left - 1)
            orr_exec__try_start(x, list[i], __builtin_ctz(left));
}

/* What the items cost, for the sums. */
static void sum_up(OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s, const OrrItem *item,
                   const int64_t *end_ns) {
    const int64_t *arrived_ns = orr_exec__arrived_ns(x, list[0], s);
    const int64_t *start_ns = orr_exec__start_ns(x, list[0], s);
    int64_t count = 0, transfer_ns = 0, wait_ns = 0;
    for (uint32_t i = 0; i < n; i++) {
        int64_t weight = x->bound->weight[list[i]];
        count += weight;
        transfer_ns += (end_ns[i] - arrived_ns[i]) * weight;
        wait_ns += (arrived_ns[i] - start_ns[i]) * weight;
    }
    OrrCommSum *sum = orr_exec__sum_of(x, orr_exec__lane(x, list[0], s)->step, item);
    sum->count += (double)count;
    sum->transfer_ns += (double)transfer_ns;
    sum->wait_ns += (double)wait_ns;
}

/* As orr_lane__leave_trail of each. */
static void leave_trails(const OrrExec *x, uint32_t r, uint32_t n, uint32_t s,
                         const OrrItem *item) {
    OrrEnded *ended = orr_exec__ended(x, r, s);
    const int64_t *start_ns = orr_exec__start_ns(x, r, s);
    const int64_t *arrived_ns = orr_exec__arrived_ns(x, r, s);
    const OrrPredecessor *before = orr_exec__pred(x, r, s);
    uint32_t step = orr_exec__joint_lane(x, r, s)->step;
    for (uint32_t i = 0; i < n; i++)
        ended[i] = (OrrEnded){.start_ns = start_ns[i],
                              .arrived_ns = arrived_ns[i],
                              .what = item->what,
                              .step = step,
                              .type = item->type,
                              .is_issue_bound = before[i].is_issue_bound,
                              .is_set = 1,
                              .slot = !ended[i].slot};
}

void orr_together__complete(OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s,
                            const int64_t *end_ns) {
    const OrrItem *item = orr_exec__head(x, list[0], s);
    int64_t *free_ns = orr_exec__free_ns(x, list[0], s);
    sum_up(x, list, n, s, item, end_ns);
    for (uint32_t i = 0; x->options->probe && i < n; i++) {
        x->now_ns = end_ns[i];
        if (orr_exec__is_probed(x, list[i]))
            orr_lane__probe(x, list[i], s, item);
    }
    if (x->ended_mask & 1u << s)
        leave_trails(x, list[0], n, s, item);
    memcpy(free_ns, end_ns, n * sizeof *free_ns);
    OrrLane *l = orr_exec__joint_lane(x, list[0], s);
    l->completed++;
    l->state = ORR_LANE_BLOCKED;
    l->item++;
    orr_exec__settle_joint(x, list[0], s);
}

/* They go on with their next items, and who waits for the stream does. */
void orr_together__go_on(OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s) {
    bool is_done = orr_exec__lane(x, list[0], s)->state == ORR_LANE_DONE;
    bool is_alone = !is_done && !(orr_exec__join(x, list[0], s) && start_together(x, list, n, s));
    for (uint32_t i = 0; is_alone && i < n; i++)
        orr_exec__try_start(x, list[i], s);
    orr_exec__wake_all(x, list, n, s);
}
