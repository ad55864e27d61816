/* A pass as a recursion over its collectives: each member runs its blocks up to the launch of the
 * next collective; the last launch sets its end; until then kernels of the members run at the rate
 * that a resident collective leaves them. All integers are those of block.c, lane.c and account.c,
 * which do the same event by event; a test holds the two against each other.
 *
 * Members that begin alike, on the same hardware, end alike: one of them is evaluated. Of a pass
 * that nothing slows only what comes before its tail is (tail.c). Cost: some 10 ns a block and
 * member; kernels are walked one by one only where a collective is beside them. */
#include "sim/base/large.h"
#include "sim/exec/pass.h"

#include <string.h>

typedef struct {
    const OrrExec *x;
    OrrPassWork *w;
    const OrrRateChange *changes;
    uint32_t n_changes;
    const OrrItem *blocks, *colls;
    const uint32_t *need_coll, *need_block; /* of each block, of each collective */
    uint32_t n_blocks, n_colls;
} Recursion;

static const uint32_t full_rate[2] = {ORR_RATE_ONE, ORR_RATE_ONE};

static void own(OrrPassMember *m, uint32_t owner, int64_t ns) {
    if (ns == 0)
        return;
    if (m->owner_ns[owner] == 0)
        m->touched[m->n_touched++] = owner;
    m->owner_ns[owner] += ns;
}

static int64_t overlap(int64_t a0, int64_t a1, int64_t b0, int64_t b1) {
    return MAX(MIN(a1, b1) - MAX(a0, b0), 0);
}

/* Charges what of [from, to] lies within the wait and the transfer of @e. Returns how much. */
static int64_t charge_span(const Recursion *v, OrrPassMember *m, const OrrEnded *e, int64_t end_ns,
                           int64_t from, int64_t to) {
    int64_t wait = overlap(from, to, e->start_ns, e->arrived_ns);
    int64_t transfer = overlap(from, to, e->arrived_ns, end_ns);
    if (e->type == ORR_ITEM_COLL) {
        const OrrPassOwners *owners = &v->x->passes->owners[e->what];
        own(m, owners->wait, wait);
        own(m, owners->transfer, transfer);
        return wait + transfer;
    }
    OrrItem item = {.type = e->type, .what = e->what};
    bool takes_sms;
    own(m, orr_exec__wait_owner(v->x, e), wait);
    own(m, ORR_OWN_EXPOSED_FIRST + orr_exec__purpose(v->x, &item, &takes_sms), transfer);
    return wait + transfer;
}

/* The compute stream has waited from its last end for collective @n_ended - 1. */
static void charge_wait(const Recursion *v, OrrPassMember *m, uint32_t n_ended) {
    const OrrEnded *e = &m->last;
    int64_t from = m->free_ns, to = m->tp_free_ns;
    int64_t charged = charge_span(v, m, e, to, from, to), before = to - from - charged;
    m->waits[n_ended - 1].exposed_ns += charged;
    if (before == 0)
        return;
    if (m->blocker.is_set) {
        charged = charge_span(v, m, &m->blocker, m->blocker_end_ns, from, from + before);
        before -= charged;
        if (n_ended > 1) {
            m->waits[n_ended - 2].exposed_ns += charged;
        } else {
            m->outside_index = orr_exec__sum_index(v->x, m->blocker.type, m->blocker.what);
            m->outside_step = m->blocker.step;
            m->outside_ns += charged;
        }
    }
    own(m, v->x->passes->owners[e->what].transfer, before);
}

static void end_block(const Recursion *v, OrrPassMember *m, int64_t end_ns) {
    const OrrBlockTime *t = &m->times[v->blocks[m->done].what];
    own(m, ORR_OWN_INTERFERENCE, end_ns - m->block_start_ns - t->work_ns);
    m->free_ns = m->end_ns[0][m->done++] = end_ns;
    m->is_walking = false;
}

static bool is_full(const uint32_t rate[2]) {
    return rate[0] == ORR_RATE_ONE && rate[1] == ORR_RATE_ONE;
}

/* When the rates of the member's kernels change next, from entry @from of the changes on. */
static void find_change(const Recursion *v, OrrPassMember *m, uint32_t from) {
    for (m->change = from; m->change < v->n_changes; m->change++)
        if (v->changes[m->change].rank == m->rank)
            break;
    m->change_ns = m->change < v->n_changes ? v->changes[m->change].at_ns : INT64_MAX;
}

/* Changes until @at_ns are behind the member. */
static void move_to(const Recursion *v, OrrPassMember *m, int64_t at_ns) {
    while (m->change_ns <= at_ns) {
        memcpy(m->outer, v->changes[m->change].rate, sizeof m->outer);
        find_change(v, m, m->change + 1);
    }
}

/* Kernels of the block in flight until @limit_ns at @rate. Returns its end, or INT64_MAX. */
static int64_t walk(const Recursion *v, OrrPassMember *m, int64_t limit_ns,
                    const uint32_t rate[2]) {
    const OrrBlock *block = &v->x->compiled->blocks[v->blocks[m->done].what];
    const OrrBlockKernel *kernels = v->x->compiled->kernels + block->first_kernel;
    for (;;) {
        uint64_t at_rate = rate[kernels[m->kernel].is_memory];
        int64_t end = m->at_ns + (int64_t)((m->left + at_rate - 1) / at_rate);
        if (end > limit_ns) {
            m->left -= (uint64_t)(limit_ns - m->at_ns) * at_rate;
            m->at_ns = limit_ns;
            return INT64_MAX;
        }
        if (++m->kernel == block->n_kernels)
            return end;
        m->at_ns = end;
        m->left = (uint64_t)m->kernel_ns[kernels[m->kernel].kernel] * ORR_RATE_ONE;
    }
}

/* The same at what is left of @rate by what comes from outside. */
static int64_t walk_beside(const Recursion *v, OrrPassMember *m, int64_t limit_ns,
                           const uint32_t rate[2]) {
    for (;;) {
        uint32_t least[2] = {MIN(rate[0], m->outer[0]), MIN(rate[1], m->outer[1])};
        int64_t stop_ns = MIN(limit_ns, m->change_ns), end = walk(v, m, stop_ns, least);
        if (end != INT64_MAX || stop_ns == limit_ns)
            return end;
        move_to(v, m, stop_ns);
    }
}

static void begin_walk(const Recursion *v, OrrPassMember *m) {
    const OrrBlock *block = &v->x->compiled->blocks[v->blocks[m->done].what];
    uint32_t first = v->x->compiled->kernels[block->first_kernel].kernel;
    m->is_walking = true;
    m->kernel = 0;
    m->at_ns = m->block_start_ns;
    m->left = (uint64_t)m->kernel_ns[first] * ORR_RATE_ONE;
}

/* Runs blocks until @until of them are done or the clock is at @limit_ns, with the first @n_ended
 * collectives ended and kernels at @rate. */
static void run_blocks(const Recursion *v, OrrPassMember *m, uint32_t until, int64_t limit_ns,
                       uint32_t n_ended, const uint32_t *rate) {
    while (m->done < until) {
        if (!m->is_walking) {
            uint32_t need = v->need_coll[m->done];
            if (need > n_ended)
                return;
            m->has_waited = need == n_ended && need > 0 && m->tp_free_ns > m->free_ns;
            m->block_start_ns = m->has_waited ? m->tp_free_ns : m->free_ns;
            if (m->block_start_ns >= limit_ns)
                return;
            if (m->has_waited)
                charge_wait(v, m, n_ended);
            move_to(v, m, m->block_start_ns);
            int64_t end = m->block_start_ns + m->times[v->blocks[m->done].what].work_ns;
            if (rate == full_rate && is_full(m->outer) && end <= MIN(limit_ns, m->change_ns)) {
                end_block(v, m, end);
                continue;
            }
            begin_walk(v, m);
        }
        int64_t end = walk_beside(v, m, limit_ns, rate);
        if (end == INT64_MAX)
            return;
        end_block(v, m, end);
    }
}

/* When the member launches collective @j: after the blocks that it waits for, which have been run,
 * and the one before. */
static void launch(const Recursion *v, OrrPassMember *m, uint32_t j) {
    const OrrBegin *b = m->begin;
    bool is_outside = j == 0 && b->cause[1] != ORR_STREAM_TP;
    int64_t ready = j == 0 ? b->begin_ns[1] : m->tp_free_ns;
    uint32_t need = v->need_block[j];
    bool is_block = need > 0 && m->done == need && !m->is_walking;
    is_block = is_block && (m->free_ns > ready || (m->free_ns == ready && is_outside));
    m->start_ns = is_block ? m->free_ns : ready;
    m->next_blocker.is_set = 0;
    if (is_block)
        return; /* kernels wait for nothing that counts */
    m->next_blocker = is_outside ? b->blocker : m->last;
    m->next_blocker_end_ns = is_outside ? b->blocker_end_ns : m->tp_free_ns;
}

static int64_t transfer_ns(const Recursion *v, uint32_t j) {
    const OrrExec *x = v->x;
    const OrrItem *item = &v->colls[j];
    return orr_exec__private_ns(
        orr_exec__private_plan(x, x->bound->program->colls[item->what].group,
                               x->island_of[v->w->members[0].rank], item->what));
}

static void end_coll(const Recursion *v, OrrPassMember *m, uint32_t j, int64_t arrived,
                     int64_t end) {
    m->last = (OrrEnded){.start_ns = m->start_ns,
                         .arrived_ns = arrived,
                         .what = v->colls[j].what,
                         .step = v->w->step,
                         .type = ORR_ITEM_COLL,
                         .is_set = 1};
    m->blocker = m->next_blocker;
    m->blocker_end_ns = m->next_blocker_end_ns;
    m->tp_free_ns = m->end_ns[1][j] = end;
    m->waits[j].wait_ns = arrived - m->start_ns;
    m->waits[j].transfer_ns = end - arrived;
}

static void collective(const Recursion *v, uint32_t j, uint32_t n) {
    const OrrExec *x = v->x;
    OrrPassMember *all = v->w->members;
    int64_t arrived = INT64_MIN;
    for (uint32_t i = 0; i < n; i++) {
        if (all[i].same_as != i)
            continue;
        run_blocks(v, &all[i], v->need_block[j], INT64_MAX, j, full_rate);
        launch(v, &all[i], j);
        arrived = MAX(arrived, all[i].start_ns);
    }
    int64_t end = arrived + transfer_ns(v, j);
    bool takes_sms;
    uint32_t purpose = orr_exec__purpose(x, &v->colls[j], &takes_sms);
    bool is_slow = takes_sms && orr_exec__slows_kernels(x, purpose);
    uint32_t rate[2];
    for (int c = 0; c < 2; c++)
        rate[c] = MIN(x->bound->rate[c][purpose], ORR_RATE_ONE);
    for (uint32_t i = 0; i < n; i++) {
        OrrPassMember *m = &all[i];
        if (m->same_as != i)
            continue;
        if (is_slow)
            run_blocks(v, m, v->n_blocks, m->start_ns, j, full_rate);
        run_blocks(v, m, v->n_blocks, end, j, is_slow ? rate : full_rate);
        end_coll(v, m, j, arrived, end);
    }
}

static void forget_waits(OrrPassMember *m, uint32_t from, uint32_t to) {
    memset(m->waits + from, 0, (to - from) * sizeof *m->waits);
}

static void begin_member(const Recursion *v, OrrPassMember *m, const OrrPassStart *s) {
    const OrrExec *x = v->x;
    gsize hw = x->bound->hw[m->rank];
    m->begin = &s->begin;
    m->times = x->compiled->times + hw * x->compiled->n_blocks;
    m->kernel_ns = x->bound->kernel_ns + hw * x->bound->program->n_kernels;
    memcpy(m->outer, s->begin.outer, sizeof m->outer);
    find_change(v, m, s->begin.first_change);
    m->free_ns = s->begin.begin_ns[0];
    m->tp_free_ns = s->tp_free_ns;
    m->done = 0;
    m->is_walking = false;
    m->last = s->last;
    m->blocker.is_set = 0;
    for (uint32_t i = 0; i < m->n_touched; i++)
        m->owner_ns[m->touched[i]] = 0;
    m->n_touched = 0;
    m->outside_ns = 0;
}

/* Whether the kernels of rank @r come to the same changes of rates as those of the first. */
static bool has_same_changes(const Recursion *v, const OrrPassMember *first, uint32_t r,
                             uint32_t from) {
    OrrPassMember p = {.rank = first->rank}, q = {.rank = r};
    find_change(v, &p, first->change);
    find_change(v, &q, from);
    while (p.change_ns < INT64_MAX && p.change_ns == q.change_ns &&
           memcmp(v->changes[p.change].rate, v->changes[q.change].rate, sizeof p.outer) == 0) {
        find_change(v, &p, p.change + 1);
        find_change(v, &q, q.change + 1);
    }
    return p.change_ns == INT64_MAX && q.change_ns == INT64_MAX;
}

static bool is_equal(const OrrEnded *a, const OrrEnded *b) {
    if (!a->is_set || !b->is_set)
        return a->is_set == b->is_set;
    return a->start_ns == b->start_ns && a->arrived_ns == b->arrived_ns && a->what == b->what &&
           a->step == b->step && a->type == b->type;
}

/* Whether what the pass will do for member @i is the same as for the first, which has begun. */
static bool is_same(const Recursion *v, uint32_t i) {
    const OrrPassStart *a = &v->w->starts[0], *b = &v->w->starts[i];
    const OrrBegin *p = &a->begin, *q = &b->begin;
    const OrrPassMember *first = &v->w->members[0];
    uint32_t r = v->w->members[i].rank;
    if (v->x->bound->hw[r] != v->x->bound->hw[first->rank] || p->begin_ns[0] != q->begin_ns[0] ||
        p->outer[0] != q->outer[0] || p->outer[1] != q->outer[1] ||
        (v->n_changes > 0 && !has_same_changes(v, first, r, q->first_change)))
        return false;
    if (v->n_colls == 0)
        return true;
    return p->begin_ns[1] == q->begin_ns[1] && p->cause[1] == q->cause[1] &&
           a->tp_free_ns == b->tp_free_ns && is_equal(&a->last, &b->last) &&
           (p->cause[1] == ORR_STREAM_TP ||
            (is_equal(&p->blocker, &q->blocker) && p->blocker_end_ns == q->blocker_end_ns));
}

static Recursion prepare(const OrrExec *x, OrrPassWork *w, const OrrRateChange *changes,
                         uint32_t n_changes) {
    const OrrCompiledSegment *cs = w->segment;
    uint32_t first_block = cs->first_item[ORR_STREAM_COMPUTE];
    uint32_t first_coll = cs->first_item[ORR_STREAM_TP];
    return (Recursion){.x = x,
                       .w = w,
                       .changes = changes,
                       .n_changes = n_changes,
                       .blocks = x->compiled->items + first_block,
                       .colls = x->compiled->items + first_coll,
                       .need_coll = x->passes->need + first_block,
                       .need_block = x->passes->need + first_coll,
                       .n_blocks = cs->n_items[ORR_STREAM_COMPUTE],
                       .n_colls = cs->n_items[ORR_STREAM_TP]};
}

/* What the kernels of the members take is asked for before it is needed. */
static void fetch_kernels(const Recursion *v) {
    const OrrCompiled *c = v->x->compiled;
    uint32_t first = v->blocks[0].what, last = v->blocks[v->n_blocks - 1].what;
    const OrrBlock *end = &c->blocks[last];
    uint32_t from = c->kernels[c->blocks[first].first_kernel].kernel;
    uint32_t to = c->kernels[end->first_kernel + end->n_kernels - 1].kernel;
    for (uint32_t i = 0; i < v->w->n; i++) {
        const OrrPassMember *m = &v->w->members[i];
        if (m->same_as != i)
            continue;
        for (const char *at = (const char *)&m->times[first];
             at < (const char *)&m->times[last + 1]; at += ORR_LINE)
            __builtin_prefetch(at);
        for (uint32_t k = from; k <= to; k += ORR_LINE / sizeof *m->kernel_ns)
            __builtin_prefetch(&m->kernel_ns[k]);
    }
}

/* The rest of the pass, from collective @from on. */
static void evaluate(const Recursion *v, uint32_t from) {
    OrrPassMember *all = v->w->members;
    fetch_kernels(v);
    for (uint32_t i = 0; i < v->w->n; i++)
        if (all[i].same_as == i)
            forget_waits(&all[i], from, v->n_colls);
    for (uint32_t j = from; j < v->n_colls; j++)
        collective(v, j, v->w->n);
    for (uint32_t i = 0; i < v->w->n; i++)
        if (all[i].same_as == i)
            run_blocks(v, &all[i], v->n_blocks, INT64_MAX, v->n_colls, full_rate);
}

static void begin(const Recursion *v) {
    OrrPassWork *w = v->w;
    OrrPassMember *all = w->members;
    w->tail = NULL;
    for (uint32_t i = 0; i < w->n; i++) {
        all[i].same_as = i > 0 && is_same(v, i) ? 0 : i;
        if (all[i].same_as == i)
            begin_member(v, &all[i], &w->starts[i]);
    }
}

void orr_exec__recursion(const OrrExec *x, OrrPassWork *w, const OrrRateChange *changes,
                         uint32_t n_changes) {
    Recursion v = prepare(x, w, changes, n_changes);
    begin(&v);
    evaluate(&v, 0);
}

/* Blocks before the meeting: of their ends only the last is asked for. */
static void skip_to_meeting(OrrPassMember *m, const OrrPassTail *tail, uint32_t i) {
    m->free_ns += tail->ns[tail->row[i]];
    m->done = tail->first_block;
    if (m->done > 0)
        m->end_ns[0][m->done - 1] = m->free_ns;
}

/* The first collective, for which the next kernels of all members wait: nothing runs beside it.
 * @tail: of such a pass before; NULL: not known. */
static void meet(const Recursion *v, const OrrPassTail *tail) {
    OrrPassMember *all = v->w->members;
    int64_t arrived = INT64_MIN;
    for (uint32_t i = 0; i < v->w->n; i++) {
        OrrPassMember *m = &all[i];
        if (m->same_as != i)
            continue;
        if (tail)
            skip_to_meeting(m, tail, i);
        for (; m->done < v->need_block[0]; m->done++) {
            m->free_ns += m->times[v->blocks[m->done].what].work_ns;
            m->end_ns[0][m->done] = m->free_ns;
        }
        launch(v, m, 0);
        arrived = MAX(arrived, m->start_ns);
    }
    int64_t end = arrived + (tail ? tail->transfer_ns : transfer_ns(v, 0));
    for (uint32_t i = 0; i < v->w->n; i++)
        if (all[i].same_as == i)
            end_coll(v, &all[i], 0, arrived, end);
}

/* Evaluates up to the end of collective @n - 1, and charges what the members have waited for it:
 * all go on at that instant, with nothing under way. False: not all. @tail: what comes then, of a
 * pass before; NULL: not known. */
static bool reach_meeting(const Recursion *v, uint32_t n, const OrrPassTail *tail) {
    OrrPassMember *all = v->w->members;
    for (uint32_t i = 0; i < v->w->n; i++)
        if (all[i].same_as == i)
            forget_waits(&all[i], 0, n);
    if (n == 1)
        meet(v, tail);
    for (uint32_t j = 0; j < n && n > 1; j++)
        collective(v, j, v->w->n);
    for (uint32_t i = 0; i < v->w->n; i++) {
        const OrrPassMember *m = &all[i];
        if (m->same_as == i && (m->free_ns >= m->tp_free_ns || v->need_coll[m->done] != n ||
                                (!tail && m->times[v->blocks[m->done].what].work_ns == 0)))
            return false;
    }
    for (uint32_t i = 0; i < v->w->n; i++)
        if (all[i].same_as == i) {
            charge_wait(v, &all[i], n);
            all[i].free_ns = all[i].tp_free_ns;
        }
    return true;
}

static bool is_undisturbed(const OrrPassWork *w) {
    for (uint32_t i = 0; i < w->n; i++)
        if (!is_full(w->starts[i].begin.outer))
            return false;
    return true;
}

/* With the tail of a pass before, if that is known. */
static void evaluate_with_tail(const Recursion *v) {
    const OrrExec *x = v->x;
    OrrPassWork *w = v->w;
    uint32_t segment = (uint32_t)(w->segment - x->compiled->segments);
    uint32_t n_before = x->passes->meeting[segment];
    const OrrPassTail *tail = NULL;
    if (n_before > 0)
        tail = orr_pass__tail_of(x, orr_pass__of(x, w->members[0].rank), w->segment);
    if (n_before == 0 || !reach_meeting(v, n_before, tail)) {
        evaluate(v, n_before);
        return;
    }
    if (tail) {
        orr_pass__tail_take(w, tail);
        return;
    }
    g_autofree int64_t(*before_ns)[ORR_N_OWNERS] = g_malloc_n(w->n, sizeof *before_ns);
    for (uint32_t i = 0; i < w->n; i++)
        memcpy(before_ns[i], w->members[i].owner_ns, sizeof before_ns[i]);
    evaluate(v, n_before);
    orr_pass__tail_new(x, w, transfer_ns(v, n_before - 1),
                       (const int64_t(*)[ORR_N_OWNERS])before_ns);
}

void orr_exec__recursion_whole(const OrrExec *x, OrrPassWork *w) {
    const OrrIslandPass *pass = orr_pass__of(x, w->members[0].rank);
    Recursion v = prepare(x, w, pass->changes, pass->n_changes);
    begin(&v);
    if (pass->n_changes == 0 && is_undisturbed(w))
        evaluate_with_tail(&v);
    else
        evaluate(&v, 0);
}

void orr_exec__recursion_least(const OrrExec *x, OrrPassWork *w) {
    Recursion v = prepare(x, w, NULL, 0);
    begin(&v);
    for (uint32_t i = 0; i < w->n; i++)
        memcpy(w->members[i].outer, full_rate, sizeof full_rate);
    evaluate_with_tail(&v);
}
