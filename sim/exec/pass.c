/* Passes taken as a whole: what an island does in a call (the forward of a chunk, say) when nothing
 * external reaches into it is a static recursion over its members and their items, evaluated at
 * once (recursion.c) instead of event by event: the same nanoseconds for a hundredth of the work.
 *
 * A call that can be a pass (passes.c) is one when all members have from outside what they need and
 * the host is ahead of every start in it; else it goes event by event. While no external
 * communication that slows kernels is under way or told it is taken to its end at once; beside such
 * communication piece by piece, as far as others see it (take.c, rates.c). */
#include "sim/exec/pass.h"

/* Names a call of a role over all steps, in their order; never 0. */
static uint32_t call_key(const OrrExec *x, uint32_t r, const OrrLane *l) {
    return l->step * orr_pass__role(x, r)->n_calls + l->call + 1;
}

/* Whether the head of this lane begins a pass that is to be taken as a whole. */
bool orr_exec__begins_pass(const OrrExec *x, uint32_t r, uint32_t s) {
    const OrrLane *l = &x->ranks[r].lane[s];
    if (!x->passes || l->item != 0)
        return false;
    const uint8_t *calls = x->passes->calls[x->bound->role[r]];
    return calls[l->call] && orr_pass__of(x, r)->released < call_key(x, r, l);
}

/* When the head of this lane had all from outside, if that has been noted: it may have gone event
 * by event only since then. NULL: it has not. */
const OrrBegin *orr_exec__begun(const OrrExec *x, uint32_t r, uint32_t s) {
    const OrrLane *l = &x->ranks[r].lane[s];
    if (!x->passes || x->is_external[s] || l->item != 0)
        return NULL;
    const OrrBegin *b = &x->passes->begins[r];
    for (int k = 0; k < ORR_PASS_LANES; k++)
        if (s == orr_pass_lane[k] && b->key[k] == call_key(x, r, l))
            return b;
    return NULL;
}

/* Ranks that had begun the call go on from where they were: none of their streams has done anything
 * since. A pass under way is not touched. Who starts in the past does so in order of time, by
 * events of the island, not at once. */
void orr_pass__release(OrrExec *x, uint32_t r, uint32_t key) {
    OrrIslandPass *pass = orr_pass__of(x, r);
    const uint32_t *list;
    uint32_t n = orr_pass__members(x, &r, &list);
    pass->n_ready = pass->n_begun = 0;
    if (!pass->work)
        pass->generation = (pass->generation + 1) & ORR_GENERATION_MASK;
    pass->released = MAX(pass->released, key);
    for (uint32_t m = 0; m < n; m++)
        if (x->passes->begins[list[m]].state == ORR_RATE_BEGUN)
            orr_pass__end_rates(x, list[m], true);
    orr_pass__trim_rates(x, r);
    int64_t now_ns = x->now_ns;
    x->now_ns = INT64_MIN;
    for (uint32_t m = 0; m < n; m++)
        for (int k = 0; k < ORR_PASS_LANES; k++) {
            OrrLane *l = &x->ranks[list[m]].lane[orr_pass_lane[k]];
            if (l->state == ORR_LANE_CHECKED &&
                x->passes->begins[list[m]].state != ORR_RATE_ENTERED)
                l->state = ORR_LANE_BLOCKED;
            if (l->state == ORR_LANE_BLOCKED)
                orr_exec__try_start(x, list[m], orr_pass_lane[k]);
        }
    x->now_ns = now_ns;
}

/* Whether the host has issued all of the call before the first of the members begins it. */
bool orr_pass__is_host_ahead(const OrrExec *x, uint32_t r, uint32_t key) {
    const OrrCompiledRole *role = orr_pass__role(x, r);
    uint32_t step = (key - 1) / role->n_calls, call = (key - 1) % role->n_calls;
    const OrrCallRow *row = &role->rows[call], *all = &role->rows[role->n_calls];
    int64_t host_ns = step * all->host_ns + row[1].host_ns, first_ns = x->now_ns;
    const uint32_t *list;
    uint32_t n = orr_pass__members(x, &r, &list);
    for (uint32_t m = 0; m < n; m++) {
        const OrrBegin *b = &x->passes->begins[list[m]];
        for (int k = 0; k < ORR_PASS_LANES; k++)
            if (b->key[k] == key)
                first_ns = MIN(first_ns, b->begin_ns[k]);
    }
    for (uint32_t m = 0; m < n; m++) {
        const OrrRank *rank = &x->ranks[list[m]];
        bool is_synced = rank->n_synced >= step * all->syncs_before + row->syncs_before;
        if (!is_synced || rank->host_base_ns + host_ns > first_ns)
            return false;
    }
    return true;
}

/* Whether the call can be a pass beside communication that slows kernels. */
static bool can_be_open(OrrExec *x, uint32_t r, uint32_t key) {
    OrrIslandPass *pass = orr_pass__of(x, r);
    uint32_t call = (key - 1) % orr_pass__role(x, r)->n_calls;
    if (!(x->passes->calls[x->bound->role[r]][call] & ORR_PASS_OPEN))
        return false;
    if (pass->vetted != key && orr_pass__is_host_ahead(x, r, key))
        pass->vetted = key;
    return pass->vetted == key;
}

/* An external communication that slows kernels is to come: who waits for a pass goes on alone
 * unless that can be taken all the same. */
void orr_exec__disturb_pass(OrrExec *x, uint32_t r) {
    if (!x->passes)
        return;
    const OrrIslandPass *pass = orr_pass__of(x, r);
    if (pass->n_begun > 0 && !can_be_open(x, r, pass->key))
        orr_pass__release(x, r, pass->key);
}

/* Whether the other stream can still do something that belongs before this pass. @has_items: it has
 * a part in it. */
static bool is_other_busy(const OrrLane *other, const OrrLane *mine, bool has_items) {
    if (other->state == ORR_LANE_RUNNING || other->state == ORR_LANE_ISSUING)
        return true;
    if (has_items)
        return other->item != 0 || other->call != mine->call || other->step != mine->step;
    return other->state != ORR_LANE_DONE &&
           (other->step < mine->step || (other->step == mine->step && other->call < mine->call));
}

/* Whether lane k of the rank has all that it waits for from outside; notes since when, once. */
static bool has_begin(OrrExec *x, uint32_t r, int k, uint32_t key) {
    OrrBegin *b = &x->passes->begins[r];
    uint32_t s = orr_pass_lane[k];
    if (b->key[k] == key)
        return true;
    if (orr_exec__is_blocked(&x->ranks[r], s) || !orr_exec__find_begin(x, r, s, k, b))
        return false;
    b->key[k] = key;
    if (k == 1)
        return true;
    orr_exec__idle(x, r, b->cause[0], b->begin_ns[0], b->begin_ns[0]);
    orr_pass__begin_rates(x, r);
    orr_pass__of(x, r)->n_begun++;
    orr_pass__of(x, r)->key = key;
    return true;
}

/* All members are ready: the pass is due when the last of them is. */
static void schedule(OrrExec *x, uint32_t r, uint32_t n, const uint32_t *list, bool has_tp) {
    int64_t last = x->now_ns;
    for (uint32_t m = 0; m < n; m++)
        for (int k = 0; k < 1 + has_tp; k++)
            last = MAX(last, x->passes->begins[list[m]].begin_ns[k]);
    orr_exec__push_local(x, r, last, ORR_EV_PASS, orr_pass__of(x, r)->generation, r);
}

/* A stream of the rank is at the begin of a pass: if both are, and have what they wait for from
 * outside, the rank is ready; if all ranks are, the pass is due. */
void orr_exec__check_in(OrrExec *x, uint32_t r, uint32_t s) {
    OrrRank *rank = &x->ranks[r];
    OrrLane *c = &rank->lane[ORR_STREAM_COMPUTE], *t = &rank->lane[ORR_STREAM_TP];
    const OrrLane *mine = &rank->lane[s];
    const OrrIsland *island = &x->islands[x->ranks[r].island];
    const OrrCompiledSegment *cs =
        &x->compiled->segments[orr_pass__role(x, r)->calls[mine->call].segment];
    bool has_tp = cs->n_items[ORR_STREAM_TP] > 0, is_ready = true;
    uint32_t key = call_key(x, r, mine);
    if ((island->n_unstable > 0 || island->n_pending > 0) && !can_be_open(x, r, key)) {
        orr_pass__release(x, r, key);
        return;
    }
    bool is_busy =
        s == ORR_STREAM_COMPUTE ? is_other_busy(t, c, has_tp) : is_other_busy(c, t, true);
    if (is_busy) { /* they could slow each other */
        if (orr_exec__head(x, r, s)->n_waits == 0 &&
            has_begin(x, r, s == ORR_STREAM_COMPUTE ? 0 : 1, key))
            orr_pass__release(x, r, key);
        return;
    }
    for (int k = 0; k < 1 + has_tp; k++) /* both: an older end is not looked up later */
        is_ready &= has_begin(x, r, k, key);
    if (!is_ready)
        return;
    c->state = ORR_LANE_CHECKED;
    if (has_tp)
        t->state = ORR_LANE_CHECKED;
    const uint32_t *list;
    uint32_t n = orr_pass__members(x, &r, &list);
    OrrIslandPass *pass = orr_pass__of(x, r);
    if (++pass->n_ready == n)
        schedule(x, r, n, list, has_tp);
}
