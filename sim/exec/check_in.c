/* Checking in for a pass: a member is ready when its compute and TP streams are at the begin of the
 * call and have what they wait for outside of it; when all are, the pass is due.
 *
 * Both streams are asked each time, since what one waits for may be an older item by the time the
 * other has all: an end is noted when it is the last of its stream, or never. Members of an island
 * do the same, as a rule at the same time, so what is waited for is looked up once for all. Cost:
 * a few instructions a member and wait. */
#include "sim/exec/cause.h"
#include "sim/exec/pass.h"

static void add_needs(const OrrExec *x, OrrPassNeeds *needs, uint32_t k, const OrrLane *l,
                      bool is_external) {
    const OrrCompiledRole *role = needs->role;
    const uint32_t *first = &role->first_cross[l->call * ORR_N_STREAMS + orr_pass_lane[k]];
    for (uint32_t i = first[0]; i < first[1]; i++) {
        const OrrCrossWait *c = &role->cross[i];
        uint32_t q = c->src_stream;
        if (x->is_external[q] != is_external || c->steps_back > l->step)
            continue;
        uint32_t in_step = role->rows[role->n_calls].base[q];
        needs->needs[k][needs->n[k]++] =
            (OrrPassNeed){q, (l->step - c->steps_back) * in_step + c->src_count};
    }
}

/* Looks up what the streams wait for at the begin of the call of @l. */
static const OrrPassNeeds *find_needs(const OrrExec *x, const OrrCompiledRole *role,
                                      const OrrLane *l, uint32_t key) {
    OrrPassNeeds *needs = &x->passes->needs;
    if (needs->key == key && needs->role == role)
        return needs;
    const OrrCallRow *row = &role->rows[l->call], *all = &role->rows[role->n_calls];
    const OrrCompiledSegment *cs = &x->compiled->segments[role->calls[l->call].segment];
    needs->key = key;
    needs->role = role;
    needs->n_lanes = cs->n_items[ORR_STREAM_TP] > 0 ? 2 : 1;
    needs->n_synced = l->step * all->syncs_before + row->syncs_before;
    for (uint32_t k = 0; k < needs->n_lanes; k++) {
        needs->n[k] = 0;
        add_needs(x, needs, k, l, true);
        add_needs(x, needs, k, l, false);
    }
    return needs;
}

/* The stream has what it waits for: since when, and what came last. */
static void note_begin(OrrExec *x, uint32_t r, uint32_t k, uint32_t cause, int64_t at_ns) {
    const OrrRank *rank = &x->ranks[r];
    OrrBegin *b = &x->passes->begins[r];
    b->begin_ns[k] = at_ns;
    b->cause[k] = cause;
    b->index[k] = rank->lane[cause].completed - 1;
    if (x->causes)
        b->made[k] = orr_exec__last_cause(x, r, cause);
    if (k == 0 || cause == ORR_STREAM_TP)
        return;
    b->blocker = rank->trail[cause].ended;
    b->blocker_end_ns = rank->lane[cause].free_ns;
}

/* Whether lane @k of the rank has all that it waits for from outside; if so notes since when. What
 * is older than the last of its stream ended before anything that counts: see consider in lane.c.
 * If not, waits for the first that is missing: an external one if there is. */
static inline bool find_begin(OrrExec *x, uint32_t r, uint32_t k, const OrrPassNeeds *needs) {
    OrrRank *rank = &x->ranks[r];
    uint32_t s = orr_pass_lane[k], cause = s, missing = ORR_N_STREAMS, need = 0;
    int64_t ready_ns = rank->lane[s].free_ns;
    bool has_wait = false;
    for (uint32_t i = 0; i < needs->n[k] && missing == ORR_N_STREAMS; i++) {
        uint32_t q = needs->needs[k][i].stream;
        const OrrLane *o = &rank->lane[q];
        need = needs->needs[k][i].n;
        if (o->completed < need) {
            missing = q;
        } else if (o->completed == need &&
                   (o->free_ns > ready_ns || (o->free_ns == ready_ns && has_wait && q < cause))) {
            ready_ns = o->free_ns;
            has_wait = true;
            cause = q;
        }
    }
    if (missing == ORR_N_STREAMS && rank->n_synced < needs->n_synced) {
        missing = ORR_STREAM_HOST;
        need = needs->n_synced;
    }
    orr_exec__block_on(rank, s, missing, need);
    orr_exec__hold(x, r, s, missing < ORR_N_STREAMS && x->is_external[missing]);
    if (missing < ORR_N_STREAMS)
        return false;
    note_begin(x, r, k, cause, ready_ns);
    return true;
}

/* The same, once. */
static inline bool has_begin(OrrExec *x, uint32_t r, uint32_t k, const OrrPassNeeds *needs) {
    OrrBegin *b = &x->passes->begins[r];
    if (b->key[k] == needs->key)
        return true;
    if (orr_exec__is_blocked(&x->ranks[r], orr_pass_lane[k]) || !find_begin(x, r, k, needs))
        return false;
    b->key[k] = needs->key;
    if (k == 1)
        return true;
    OrrIslandPass *pass = orr_pass__of(x, r);
    orr_exec__idle(x, r, b->cause[0], b->begin_ns[0], b->begin_ns[0]);
    orr_pass__begin_rates(x, r);
    pass->n_begun++;
    pass->key = needs->key;
    return true;
}

/* All members are ready: the pass is due when the last of them is. */
static void schedule(OrrExec *x, const OrrPassNeeds *needs, const uint32_t *list, uint32_t n) {
    int64_t last = x->now_ns;
    for (uint32_t m = 0; m < n; m++)
        for (uint32_t k = 0; k < needs->n_lanes; k++)
            last = MAX(last, x->passes->begins[list[m]].begin_ns[k]);
    orr_exec__push_local(x, list[0], last, ORR_EV_PASS, orr_pass__of(x, list[0])->generation,
                         list[0]);
}

/* The streams of the rank are at the begin of the pass. Returns whether it was the last member that
 * was not ready. */
static bool ask(OrrExec *x, uint32_t r, const OrrPassNeeds *needs, uint32_t n) {
    bool is_ready = has_begin(x, r, 0, needs);
    if (needs->n_lanes > 1)
        is_ready &= has_begin(x, r, 1, needs);
    if (!is_ready)
        return false;
    for (uint32_t k = 0; k < needs->n_lanes; k++)
        x->ranks[r].lane[orr_pass_lane[k]].state = ORR_LANE_CHECKED;
    return ++orr_pass__of(x, r)->n_ready == n;
}

/* Whether all members lack the first that lane @k waits for, as a rule what is to be received; if
 * so they wait for it. */
static bool all_lack(OrrExec *x, const OrrIslandPass *pass, const OrrPassNeeds *needs, uint32_t k) {
    uint32_t s = orr_pass_lane[k], q = needs->n[k] > 0 ? needs->needs[k][0].stream : s;
    if (needs->n[k] == 0 || !x->is_external[q])
        return false;
    uint32_t n = needs->needs[k][0].n;
    for (uint32_t m = 0; m < pass->n; m++)
        if (x->ranks[pass->list[m]].lane[q].completed >= n ||
            x->passes->begins[pass->list[m]].key[k] == needs->key)
            return false;
    for (uint32_t m = 0; m < pass->n; m++) {
        orr_exec__block_on(&x->ranks[pass->list[m]], s, q, n);
        orr_exec__hold(x, pass->list[m], s, true);
    }
    return true;
}

/* The same for all members. Returns whether all are ready. */
static bool ask_all(OrrExec *x, const OrrIslandPass *pass, const OrrPassNeeds *needs) {
    bool lacks = all_lack(x, pass, needs, 0);
    if (needs->n_lanes > 1 && lacks)
        lacks = all_lack(x, pass, needs, 1);
    bool is_due = false;
    for (uint32_t m = 0; m < pass->n && !lacks; m++)
        is_due |= ask(x, pass->list[m], needs, pass->n);
    return is_due;
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

static bool is_disturbed(const OrrExec *x, uint32_t r) {
    const OrrIsland *island = &x->islands[x->ranks[r].island];
    return island->n_unstable > 0 || island->n_pending > 0;
}

/* A stream of the rank is at the begin of a pass: if both are, and have what they wait for from
 * outside, the rank is ready; if all ranks are, the pass is due. */
void orr_exec__check_in(OrrExec *x, uint32_t r, uint32_t s) {
    const OrrRank *rank = &x->ranks[r];
    const OrrLane *c = &rank->lane[ORR_STREAM_COMPUTE], *t = &rank->lane[ORR_STREAM_TP];
    const OrrLane *mine = &rank->lane[s];
    uint32_t key = orr_pass__key(x, r, mine);
    if (is_disturbed(x, r) && !orr_pass__can_be_open(x, r, key)) {
        orr_pass__release(x, r, key);
        return;
    }
    const OrrPassNeeds *needs = find_needs(x, rank->role, mine, key);
    bool is_busy = s == ORR_STREAM_COMPUTE ? is_other_busy(t, c, needs->n_lanes > 1)
                                           : is_other_busy(c, t, true);
    if (is_busy) { /* they could slow each other */
        if (orr_exec__head(x, r, s)->n_waits == 0 &&
            has_begin(x, r, s != ORR_STREAM_COMPUTE, needs))
            orr_pass__release(x, r, key);
        return;
    }
    const uint32_t *list;
    uint32_t n = orr_pass__members(x, r, &list);
    if (ask(x, r, needs, n))
        schedule(x, needs, list, n);
}

static bool is_at(const OrrLane *l, const OrrLane *first) {
    return l->state == ORR_LANE_BLOCKED && l->item == 0 && l->call == first->call &&
           l->step == first->step;
}

bool orr_exec__check_in_all(OrrExec *x, uint32_t island) {
    if (!x->passes)
        return false;
    OrrIslandPass *pass = &x->passes->islands[island];
    uint32_t n = pass->n, key;
    const OrrRank *first = &x->ranks[pass->list[0]];
    const OrrLane *c = &first->lane[ORR_STREAM_COMPUTE], *t = &first->lane[ORR_STREAM_TP];
    if (c->state != ORR_LANE_BLOCKED || !pass->calls[c->call])
        return false;
    key = orr_pass__key(x, pass->list[0], c);
    if (pass->released >= key)
        return false;
    const OrrPassNeeds *needs = find_needs(x, first->role, c, key);
    if (needs->n_lanes == 1 && t->state != ORR_LANE_DONE)
        return false;
    for (uint32_t m = 0; m < n; m++) {
        const OrrLane *lane = x->ranks[pass->list[m]].lane;
        if (!is_at(&lane[ORR_STREAM_COMPUTE], c) ||
            (needs->n_lanes > 1 && !is_at(&lane[ORR_STREAM_TP], c)))
            return false;
    }
    if (is_disturbed(x, pass->list[0]) && !orr_pass__can_be_open(x, pass->list[0], key)) {
        orr_pass__release(x, pass->list[0], key);
        return true;
    }
    if (ask_all(x, pass, needs))
        schedule(x, needs, pass->list, n);
    return true;
}
