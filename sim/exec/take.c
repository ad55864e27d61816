/* Taking a pass: it is evaluated, and the streams of its members move on.
 *
 * Where nothing can slow its kernels from outside they do so at once, to its end. Else the pass
 * stays under way: what has come out holds as long as rates do not change, and is told to the
 * streams at the instants at which another could see it: the end of its last collective, of a block
 * that an external stream waits for, of a member's last block. After a change of rates it is
 * evaluated again, from the begin: when something of it might be seen at the earliest, if that is
 * known, so that many changes cost no more than one. */
#include "sim/exec/way.h"

#include <string.h>

static const OrrPassMember *result_of(const OrrPassWork *w, uint32_t m) {
    return &w->members[w->members[m].same_as];
}

static void evaluate(const OrrExec *x, const OrrIslandPass *pass, OrrPassWork *w) {
    w->is_stale = false;
    orr_exec__recursion(x, w, pass->changes, pass->n_changes);
}

/* The pass begins; @w: where its starts go. The last collective of a pass before ended before that
 * one's last kernels, so that nothing of the time that these wait for goes back to it. */
static void fill_starts(OrrExec *x, OrrPassWork *w, const uint32_t *list) {
    bool has_last = orr_exec__lane(x, list[0], ORR_STREAM_TP)->completed !=
                    orr_pass__of(x, list[0])->tp_completed;
    w->is_tp_told = w->segment->n_items[ORR_STREAM_TP] == 0;
    w->n_told = 0;
    for (uint32_t m = 0; m < w->n; m++) {
        OrrPassStart *s = &w->starts[m];
        s->begin = orr_pass__begin_of(x, list[m]);
        s->tp_free_ns = *orr_exec__free_ns(x, list[m], ORR_STREAM_TP);
        s->last.is_set = 0;
        if (has_last)
            s->last = *orr_exec__ended(x, list[m], ORR_STREAM_TP);
        s->n_told = 0;
        w->members[m].rank = list[m];
        x->passes->begins.state[list[m]].state = ORR_RATE_ENTERED;
    }
}

/* Whether nothing can slow its kernels from outside to its end. */
static bool is_at_once(const OrrExec *x, uint32_t r, uint32_t call) {
    const OrrIsland *island = &x->islands[x->island_of[r]];
    return island->n_unstable == 0 && island->n_pending == 0 &&
           (x->passes->calls[x->bound->role[r]][call] & ORR_PASS_WHOLE);
}

static OrrPassWork *take_work(OrrExec *x) {
    OrrPasses *p = x->passes;
    OrrPassWork *w = p->spare;
    if (!w)
        return orr_pass__work_new(p);
    p->spare = w->next;
    if (p->spare) /* the next island that begins a pass will ask for it, as a rule soon */
        orr_pass__fetch_work(p, p->spare);
    return w;
}

/* Keeps ends of items, from @at to before item @end, that external streams will ask for; the lane
 * has been told of none of them. */
static void remember(OrrExec *x, OrrPassWork *w, OrrPassSpot at, uint32_t end) {
    uint32_t r = w->members[at.member].rank, s = orr_pass_lane[at.lane];
    const uint32_t *shown = x->passes->shown + w->segment->first_item[s];
    const int64_t *end_ns = result_of(w, at.member)->end_ns[at.lane];
    uint32_t base = orr_pass__role(x, r)->rows[w->call].base[s];
    uint32_t completed = orr_exec__lane(x, r, s)->completed - at.item;
    while (at.item < end && (at.item = shown[at.item]) < end) {
        OrrPastEnd past = {end_ns[at.item], completed + at.item,
                           x->leaves_records ? orr_exec__way(x, w, at) : ORR_NONE};
        orr_exec__remember(x, r, s, base + at.item++, past);
    }
}

/* Blocks of the compute stream that end by @until_ns are told to it; whether any was. */
static bool tell_blocks(OrrExec *x, OrrPassWork *w, uint32_t m, int64_t until_ns) {
    const OrrPassMember *e = result_of(w, m);
    OrrPassStart *s = &w->starts[m];
    uint32_t r = w->members[m].rank, n = w->segment->n_items[ORR_STREAM_COMPUTE], was = s->n_told;
    OrrLane *l = orr_exec__own_lane(x, r, ORR_STREAM_COMPUTE);
    int64_t *free_ns = orr_exec__free_ns(x, r, ORR_STREAM_COMPUTE);
    while (s->n_told < n && e->end_ns[0][s->n_told] <= until_ns)
        s->n_told++;
    if (s->n_told == was)
        return false;
    remember(x, w, (OrrPassSpot){m, 0, was}, s->n_told);
    l->completed += s->n_told - was;
    *free_ns = e->end_ns[0][s->n_told - 1];
    if (x->leaves_records)
        orr_exec__lane_cause(x, r, ORR_STREAM_COMPUTE)->last =
            orr_exec__way(x, w, (OrrPassSpot){m, 0, s->n_told - 1});
    if (s->n_told == n) {
        l->item = n;
        l->state = ORR_LANE_BLOCKED;
        orr_exec__settle_head(x, r, ORR_STREAM_COMPUTE);
        for (uint32_t i = 0; i < e->n_touched; i++)
            *orr_exec__owner_ns(x, r, e->touched[i]) += e->owner_ns[e->touched[i]];
        *orr_exec__idle_from_ns(x, r) = *free_ns;
        orr_pass__end_rates(x, r, false);
        w->n_told++;
    }
    return true;
}

static void tell_tp(OrrExec *x, OrrPassWork *w, const uint32_t *list) {
    uint32_t n = w->segment->n_items[ORR_STREAM_TP];
    if (x->launches)
        orr_exec__recursion_meetings(x, w, list);
    for (uint32_t m = 0; m < w->n; m++) {
        const OrrPassMember *e = result_of(w, m);
        OrrLane *l = orr_exec__own_lane(x, list[m], ORR_STREAM_TP);
        remember(x, w, (OrrPassSpot){m, 1, 0}, n);
        if (x->leaves_records)
            orr_exec__lane_cause(x, list[m], ORR_STREAM_TP)->last =
                orr_exec__way(x, w, (OrrPassSpot){m, 1, n - 1});
        *orr_exec__free_ns(x, list[m], ORR_STREAM_TP) = e->end_ns[1][n - 1];
        l->completed += n;
        l->item = n;
        l->state = ORR_LANE_BLOCKED;
        orr_exec__settle_head(x, list[m], ORR_STREAM_TP);
    }
    orr_pass__of(x, list[0])->tp_completed = orr_exec__lane(x, list[0], ORR_STREAM_TP)->completed;
    w->is_tp_told = true;
}

/* The next instant at which others can see something of the pass. */
static int64_t next_told(const OrrExec *x, const OrrPassWork *w) {
    uint32_t n = w->segment->n_items[ORR_STREAM_COMPUTE];
    const uint32_t *shown = x->passes->shown + w->segment->first_item[ORR_STREAM_COMPUTE];
    int64_t next_ns = INT64_MAX;
    if (!w->is_tp_told)
        next_ns = result_of(w, 0)->end_ns[1][w->segment->n_items[ORR_STREAM_TP] - 1];
    for (uint32_t m = 0; m < w->n; m++) {
        uint32_t i = w->starts[m].n_told;
        if (i < n)
            next_ns = MIN(next_ns, result_of(w, m)->end_ns[0][MIN(shown[i], n - 1)]);
    }
    return next_ns;
}

/* Whether no kernels of its members can become quicker than they are. */
static bool is_fastest(const OrrIslandPass *pass, const OrrPassWork *w) {
    bool is_fastest = true;
    for (uint32_t m = 0; m < w->n; m++) {
        const OrrBegin *b = &w->starts[m].begin;
        const uint32_t *rate = b->outer;
        for (uint32_t i = b->first_change; i < pass->n_changes; i++)
            if (pass->changes[i].rank == w->members[m].rank)
                rate = pass->changes[i].rate;
        is_fastest &= rate[0] == ORR_RATE_ONE && rate[1] == ORR_RATE_ONE;
    }
    return is_fastest;
}

/* What of the pass can be seen next is looked at then. */
static void schedule(OrrExec *x, OrrIslandPass *pass, OrrPassWork *w, int64_t at_ns,
                     bool is_bound) {
    pass->generation = (pass->generation + 1) & ORR_GENERATION_MASK;
    w->is_bound = is_bound;
    orr_exec__push_local(x, pass->first, MAX(at_ns, x->now_ns), ORR_EV_PASS, pass->generation,
                         pass->first);
}

/* All members have ended the pass. */
static void end_pass(OrrExec *x, OrrIslandPass *pass, OrrPassWork *w, const uint32_t *list) {
    orr_exec__recursion_sums(x, w, list);
    if (w->tail)
        orr_pass__tail_count(x, pass, w->tail, w, w->members[0].end_ns[1][w->tail->first_coll - 1]);
    if (pass->work) {
        pass->work = NULL;
        w->next = x->passes->spare;
        x->passes->spare = w;
    }
    orr_pass__trim_rates(x, list[0]);
}

/* Streams of the members that can start what comes next do. */
static void go_on(OrrExec *x, const uint32_t *list, uint32_t n) {
    if (orr_exec__check_in_all(x, x->island_of[list[0]]))
        return;
    for (uint32_t m = 0; m < n; m++)
        for (int k = 0; k < ORR_PASS_LANES; k++)
            orr_exec__try_start(x, list[m], orr_pass_lane[k]);
}

/* Tells the streams what of the pass has ended by @until_ns, and others by that. */
static void tell(OrrExec *x, OrrIslandPass *pass, OrrPassWork *w, int64_t until_ns) {
    const uint32_t *list;
    uint32_t n = orr_pass__members(x, w->members[0].rank, &list);
    uint8_t moved[ORR_MAX_ISLAND] = {0};
    uint32_t n_colls = w->segment->n_items[ORR_STREAM_TP];
    bool is_tp = !w->is_tp_told && result_of(w, 0)->end_ns[1][n_colls - 1] <= until_ns;
    if (x->leaves_records)
        orr_exec__ways_begin(x, w);
    for (uint32_t m = 0; m < n; m++)
        moved[m] = tell_blocks(x, w, m, until_ns);
    if (is_tp)
        tell_tp(x, w, list);
    if (w->n_told == n) {
        end_pass(x, pass, w, list);
    } else {
        schedule(x, pass, w, next_told(x, w), is_fastest(pass, w));
    }
    bool is_moved = is_tp;
    for (uint32_t m = 0; m < n; m++)
        is_moved &= moved[m];
    for (int k = 0; is_moved && k < ORR_PASS_LANES; k++)
        orr_exec__wake_all(x, list, n, orr_pass_lane[k]);
    for (uint32_t m = 0; m < n && !is_moved; m++)
        for (int k = 0; k < ORR_PASS_LANES; k++)
            if (k == 0 ? moved[m] : is_tp)
                orr_exec__wake(x, list[m], orr_pass_lane[k]);
    go_on(x, list, n);
}

/* Records that items of all members lead back to. */
static void find_ways(OrrExec *x, OrrPassWork *w, uint32_t k, uint32_t item, uint32_t *ways) {
    const OrrPassTail *tail = w->tail;
    bool is_tail = tail && item >= (k == 0 ? tail->first_block : tail->first_coll);
    for (uint32_t m = 0; m < w->n; m++)
        ways[m] = !x->leaves_records ? ORR_NONE
                  : is_tail && m > 0 ? ways[0]
                                     : orr_exec__way(x, w, (OrrPassSpot){m, k, item});
}

/* Ends of items of lane @k that external streams will ask for, of all members. */
static void remember_all(OrrExec *x, OrrPassWork *w, const uint32_t *list, uint32_t k) {
    uint32_t s = orr_pass_lane[k], n = w->segment->n_items[s], ways[ORR_MAX_ISLAND];
    const uint32_t *shown = x->passes->shown + w->segment->first_item[s];
    const OrrCompiledRole *role = orr_pass__role(x, list[0]);
    const uint16_t *asked_of = role->asked[s] + role->rows[w->call].base[s];
    uint32_t completed = orr_exec__lane(x, list[0], s)->completed;
    int64_t ends_ns[ORR_MAX_ISLAND];
    uint32_t askers = x->external_mask;
    if (k == 1)
        askers &= x->passes->tp_askers[x->bound->role[list[0]]][w->call];
    for (uint32_t i = n > 0 ? shown[0] : 0; i < n; i = i + 1 < n ? shown[i + 1] : n) {
        uint32_t asked = asked_of[i] & askers;
        if (asked == 0)
            continue;
        find_ways(x, w, k, i, ways);
        for (uint32_t m = 0; m < w->n; m++)
            ends_ns[m] = result_of(w, m)->end_ns[k][i];
        for (; asked; asked &= asked - 1)
            orr_exec__remember_all(x, list, w->n, s, __builtin_ctz(asked), completed + i, ends_ns,
                                   ways);
    }
}

/* Lane @k of all members ends the pass: they go on to the same item. */
static void move_on(OrrExec *x, OrrPassWork *w, const uint32_t *list, uint32_t k) {
    uint32_t s = orr_pass_lane[k], n = w->segment->n_items[s], ways[ORR_MAX_ISLAND];
    bool is_joint = orr_exec__join(x, list[0], s);
    for (uint32_t m = 0; m < w->n; m++) {
        if (m == 0 || !is_joint) {
            OrrLane *l =
                is_joint ? orr_exec__joint_lane(x, list[m], s) : orr_exec__own_lane(x, list[m], s);
            l->item = n;
            l->state = ORR_LANE_BLOCKED;
            l->completed += n;
        }
        *orr_exec__free_ns(x, list[m], s) = result_of(w, m)->end_ns[k][n - 1];
    }
    if (is_joint)
        orr_exec__settle_joint(x, list[0], s);
    for (uint32_t m = 0; m < w->n && !is_joint; m++)
        orr_exec__settle_head(x, list[m], s);
    if (!x->leaves_records)
        return;
    find_ways(x, w, k, n - 1, ways);
    for (uint32_t m = 0; m < w->n; m++)
        orr_exec__lane_cause(x, list[m], s)->last = ways[m];
}

/* Who waits for the streams of a pass that was taken to its end at once goes on. */
static void wake(OrrExec *x, const OrrIslandPass *pass, uint32_t n_lanes) {
    for (uint32_t k = 0; k < n_lanes; k++)
        orr_exec__wake_all(x, pass->list, pass->n, orr_pass_lane[k]);
    go_on(x, pass->list, pass->n);
}

/* A pass that was taken to its end at once: the streams of all members move on. */
static void tell_whole(OrrExec *x, OrrIslandPass *pass, OrrPassWork *w) {
    const uint32_t *list = pass->list;
    uint32_t n = w->n, n_lanes = w->segment->n_items[ORR_STREAM_TP] > 0 ? 2 : 1;
    if (x->leaves_records)
        orr_exec__ways_begin(x, w);
    if (x->launches)
        orr_exec__recursion_meetings(x, w, list);
    for (uint32_t k = 0; k < n_lanes; k++) {
        remember_all(x, w, list, k);
        move_on(x, w, list, k);
    }
    for (uint32_t m = 0; m < n; m++) {
        const OrrPassMember *e = result_of(w, m);
        for (uint32_t i = 0; i < e->n_touched; i++)
            *orr_exec__owner_ns(x, list[m], e->touched[i]) += e->owner_ns[e->touched[i]];
        *orr_exec__idle_from_ns(x, list[m]) = *orr_exec__free_ns(x, list[m], ORR_STREAM_COMPUTE);
        orr_pass__end_rates(x, list[m], false);
    }
    pass->tp_completed = orr_exec__lane(x, list[0], ORR_STREAM_TP)->completed;
    end_pass(x, pass, w, list);
    wake(x, pass, n_lanes);
}

/* In which order members have come so far to the first @n collectives of a pass. */
static void prefetch_launches(const OrrExec *x, const OrrIslandPass *pass,
                              const OrrCompiledSegment *cs, uint32_t step, uint32_t n) {
    for (uint32_t j = 0; x->launches && j < n; j++) {
        uint32_t coll = orr_pass__item(x, cs, ORR_STREAM_TP, j)->what;
        __builtin_prefetch(orr_exec__launch_of(x, pass->first, step, coll), 1);
    }
}

/* What a pass touches, and its end. */
static void prefetch(const OrrExec *x, const OrrIslandPass *pass, const OrrCompiledSegment *cs) {
    uint32_t n_before = x->passes->meeting[cs - x->compiled->segments];
    orr_pass__tail_prefetch(x, pass, cs);
    const OrrLane *l = orr_exec__joint_lane(x, pass->first, ORR_STREAM_COMPUTE);
    prefetch_launches(x, pass, cs, l->step, n_before);
    for (uint32_t left = l->waiting; left; left &= left - 1)
        __builtin_prefetch(orr_exec__joint_lane(x, pass->first, __builtin_ctz(left)), 1);
}

/* All members are ready: the pass begins, if the host is not behind; else it goes event by event.
 */
static void enter(OrrExec *x, uint32_t r, OrrIslandPass *pass) {
    const uint32_t *list;
    uint32_t n = orr_pass__members(x, r, &list);
    const OrrLane *l = orr_exec__lane(x, r, ORR_STREAM_COMPUTE);
    const OrrCompiledSegment *cs =
        &x->compiled->segments[orr_pass__role(x, r)->calls[l->call].segment];
    int64_t first = INT64_MAX;
    prefetch(x, pass, cs);
    for (uint32_t m = 0; m < n; m++)
        for (int k = 0; k < ORR_PASS_LANES && cs->n_items[orr_pass_lane[k]] > 0; k++)
            first = MIN(first, x->passes->begins.begin_ns[list[m]][k]);
    if (pass->vetted != pass->key && !orr_pass__is_host_ahead(x, r, pass->key)) {
        x->now_ns = first;
        orr_pass__release(x, r, pass->key);
        return;
    }
    bool is_whole = is_at_once(x, r, l->call);
    OrrPassWork *w = is_whole ? x->passes->whole : (pass->work = take_work(x));
    if (is_whole)
        x->now_ns = first;
    pass->n_ready = pass->n_begun = 0;
    w->segment = cs;
    w->step = l->step;
    w->call = l->call;
    w->n = n;
    w->cause = ORR_NONE;
    if (x->leaves_records || !is_whole)
        fill_starts(x, w, list);
    if (is_whole && orr_pass__take_with_tail(x, pass, w)) {
        wake(x, pass, ORR_PASS_LANES);
        return;
    }
    if (!x->leaves_records && is_whole)
        fill_starts(x, w, list);
    if (is_whole) {
        orr_exec__recursion_whole(x, w);
        tell_whole(x, pass, w);
        return;
    }
    orr_exec__recursion_least(x, w);
    w->is_stale = true;
    schedule(x, pass, w, next_told(x, w), true);
}

/* The pass of the island of @r is due, or something of it may be seen. */
void orr_exec__pass(OrrExec *x, uint32_t r, uint32_t generation) {
    OrrIslandPass *pass = orr_pass__of(x, r);
    OrrPassWork *w = pass->work;
    if (generation != pass->generation)
        return; /* it was released, or disturbed */
    if (!w) {
        enter(x, r, pass);
        return;
    }
    if (w->is_looked_at)
        return; /* it will be at the end of this instant */
    prefetch_launches(x, pass, w->segment, w->step, w->segment->n_items[ORR_STREAM_TP]);
    if (w->is_stale)
        evaluate(x, pass, w);
    bool is_whole = is_at_once(x, r, w->call);
    int64_t next_ns = next_told(x, w);
    if (is_whole || next_ns <= x->now_ns)
        tell(x, pass, w, is_whole ? INT64_MAX : x->now_ns);
    else
        schedule(x, pass, w, next_ns, is_fastest(pass, w));
}
