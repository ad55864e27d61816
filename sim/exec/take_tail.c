/* Taking a pass of which only the begin is new: its members meet at its first collective, nothing
 * slows its kernels from outside, and what comes behind the meeting is known (tail.c).
 *
 * Then a member is at the meeting a known time after its begin, or when what its TP stream waited
 * for came; all go on at the end of the meeting; and the rest is an addition. That is most passes.
 * The integers are those of recursion.c, pass_sums.c and take.c, which do the same for any pass; a
 * test holds passes against events. Cost: some hundred instructions a member. */
#include "sim/exec/way.h"

#include <string.h>

typedef struct {
    OrrExec *x;
    OrrIslandPass *pass;
    OrrPassWork *w;
    const OrrPassTail *tail;
    const OrrItem *coll; /* of the meeting */
    const uint32_t *list;
    uint32_t n;
    uint32_t way; /* record that all of the pass leads back to, or ORR_NONE */
    int64_t arrived_ns, end_ns;
    /* of each member: end of its kernels before the meeting, launch of the collective; whether that
     * waited for its kernels */
    int64_t free_ns[ORR_MAX_ISLAND], start_ns[ORR_MAX_ISLAND];
    uint8_t is_block[ORR_MAX_ISLAND];
} Meeting;

static bool are_kernels_full(const Meeting *g) {
    const uint32_t *outer = orr_exec__outer(g->x, g->list[0]);
    uint32_t differs = 0;
    for (uint32_t i = 0; i < 2 * g->n; i++)
        differs |= outer[i] ^ ORR_RATE_ONE;
    return differs == 0;
}

/* When the members meet. False: one of them is not there when the others go on. */
static bool meet(Meeting *g) {
    const OrrBegins *b = &g->x->passes->begins;
    int64_t arrived_ns = INT64_MIN, last_ns = INT64_MIN;
    bool has_blocks = g->tail->first_block > 0;
    for (uint32_t m = 0; m < g->n; m++) {
        uint32_t r = g->list[m];
        int64_t free_ns = b->begin_ns[r][0] + g->tail->ns[g->tail->row[m]];
        int64_t ready_ns = b->begin_ns[r][1];
        bool is_outside = b->state[r].cause[1] != ORR_STREAM_TP;
        bool is_block = has_blocks && (free_ns > ready_ns || (free_ns == ready_ns && is_outside));
        g->free_ns[m] = free_ns;
        g->start_ns[m] = is_block ? free_ns : ready_ns;
        g->is_block[m] = is_block;
        arrived_ns = MAX(arrived_ns, g->start_ns[m]);
        last_ns = MAX(last_ns, free_ns);
    }
    g->arrived_ns = arrived_ns;
    g->end_ns = arrived_ns + g->tail->transfer_ns;
    return last_ns < g->end_ns;
}

/* The record that the meeting leads back to: at a begin of the first of those who came last. */
static void find_way(Meeting *g) {
    g->way = ORR_NONE;
    if (!g->x->leaves_records || g->x->causes->is_early[g->list[0]])
        return;
    uint32_t m = 0;
    while (g->start_ns[m] != g->arrived_ns)
        m++;
    orr_exec__ways_begin(g->x, g->w);
    g->way = orr_exec__way_to(g->x, g->w, m, g->is_block[m] ? 0 : 1);
}

static int64_t overlap(int64_t a0, int64_t a1, int64_t b0, int64_t b1) {
    return MAX(MIN(a1, b1) - MAX(a0, b0), 0);
}

/* Member @m has waited from the end of its kernels to the launch for @e, which ended at @end_ns.
 * Returns what of that is within its wait and transfer. */
static int64_t charge_before(const Meeting *g, uint32_t m, const OrrEnded *e, int64_t end_ns) {
    OrrExec *x = g->x;
    int64_t from = g->free_ns[m], to = g->start_ns[m];
    int64_t wait = overlap(from, to, e->start_ns, e->arrived_ns);
    int64_t transfer = overlap(from, to, e->arrived_ns, end_ns);
    if (wait + transfer == 0)
        return 0;
    OrrItem item = {.type = e->type, .what = e->what};
    bool takes_sms;
    uint32_t purpose = orr_exec__purpose(x, &item, &takes_sms);
    *orr_exec__owner_ns(x, g->list[m], orr_exec__wait_owner(x, e)) += wait;
    *orr_exec__owner_ns(x, g->list[m], ORR_OWN_EXPOSED_FIRST + purpose) += transfer;
    orr_exec__sum_of(x, e->step, &item)->exposed_ns +=
        (double)(wait + transfer) * x->bound->weight[g->list[m]];
    return wait + transfer;
}

/* The same of what its TP stream had waited for. */
static int64_t charge_blocker(const Meeting *g, uint32_t m, bool has_last) {
    const OrrBegins *b = &g->x->passes->begins;
    uint32_t r = g->list[m];
    bool is_outside = b->state[r].cause[1] != ORR_STREAM_TP;
    if (!is_outside && !has_last)
        return 0;
    const OrrEnded *e = is_outside ? &b->blocker[r] : orr_exec__ended(g->x, r, ORR_STREAM_TP);
    if (!e->is_set)
        return 0;
    int64_t end_ns = is_outside ? b->begin_ns[r][1] : *orr_exec__free_ns(g->x, r, ORR_STREAM_TP);
    return charge_before(g, m, e, end_ns);
}

/* What the members have waited for the meeting, and what it adds to the sums. Returns what all
 * ranks that they stand for have waited for the last. */
static int64_t charge(const Meeting *g) {
    OrrExec *x = g->x;
    const OrrPassOwners *owners = &x->passes->owners[g->coll->what];
    int64_t *waits_ns = orr_exec__owner_ns(x, g->list[0], owners->wait);
    int64_t *transfers_ns = orr_exec__owner_ns(x, g->list[0], owners->transfer);
    int64_t transfer_ns = g->end_ns - g->arrived_ns, count = 0, wait_ns = 0, exposed_ns = 0;
    bool has_last =
        orr_exec__joint_lane(x, g->list[0], ORR_STREAM_TP)->completed != g->pass->tp_completed;
    for (uint32_t m = 0; m < g->n; m++) {
        int64_t weight = x->bound->weight[g->list[m]], free = g->free_ns[m], start = g->start_ns[m];
        int64_t wait = MAX(g->arrived_ns - MAX(free, start), 0), before = MAX(start - free, 0);
        int64_t transfer = g->end_ns - MAX(free, g->arrived_ns);
        if (before > 0)
            before -= charge_blocker(g, m, has_last);
        waits_ns[m] += wait;
        transfers_ns[m] += transfer + before;
        count += weight;
        wait_ns += (g->arrived_ns - start) * weight;
        exposed_ns += (wait + transfer) * weight;
    }
    OrrCommSum *sum = orr_exec__sum_of(x, g->w->step, g->coll);
    sum->count += (double)count;
    sum->transfer_ns += (double)(transfer_ns * count);
    sum->wait_ns += (double)wait_ns;
    sum->exposed_ns += (double)exposed_ns;
    return wait_ns;
}

/* In which order members came: see exec_priv.h. */
static void note_launches(const Meeting *g, int64_t wait_ns) {
    OrrExec *x = g->x;
    uint32_t step = g->w->step, what = g->coll->what;
    if (!x->launches || !orr_exec__is_longest(x, g->list[0], step, what, wait_ns))
        return;
    for (uint32_t m = 0; m < g->n; m++)
        *orr_exec__launch_of(x, g->list[m], step, what) =
            (OrrLaunch){g->start_ns[m], wait_ns, step + 1};
}

/* Item @item of lane @k ends at @ends_ns: kept for those external streams of @askers that will ask
 * for it. */
static void remember(const Meeting *g, uint32_t k, uint32_t item, const int64_t *ends_ns,
                     uint32_t askers) {
    OrrExec *x = g->x;
    uint32_t s = orr_pass_lane[k], ways[ORR_MAX_ISLAND];
    const OrrCompiledRole *role = orr_pass__role(x, g->list[0]);
    uint32_t asked = role->asked[s][role->rows[g->w->call].base[s] + item] & askers;
    for (uint32_t m = 0; x->leaves_records && asked && m < g->n; m++)
        ways[m] = g->way;
    for (; asked; asked &= asked - 1)
        orr_exec__remember_all(x, g->list, g->n, s, __builtin_ctz(asked),
                               orr_exec__joint_lane(x, g->list[0], s)->completed + item, ends_ns,
                               ways);
}

/* Lane @k ends the pass at @ends_ns. */
static void move_on(const Meeting *g, uint32_t k, const int64_t *ends_ns) {
    OrrExec *x = g->x;
    uint32_t s = orr_pass_lane[k], n = g->w->segment->n_items[s];
    OrrLane *l = orr_exec__joint_lane(x, g->list[0], s);
    l->item = n;
    l->state = ORR_LANE_BLOCKED;
    l->completed += n;
    memcpy(orr_exec__free_ns(x, g->list[0], s), ends_ns, g->n * sizeof *ends_ns);
    orr_exec__settle_joint(x, g->list[0], s);
    for (uint32_t m = 0; x->leaves_records && m < g->n; m++)
        orr_exec__lane_cause(x, g->list[m], s)->last = g->way;
}

/* Kernels behind the meeting. */
static void tell_blocks(const Meeting *g, int64_t *ends_ns) {
    const OrrPassTail *t = g->tail;
    const int64_t *tail_ns = t->ns + t->n_rows + t->n_ends[1];
    for (uint32_t i = 0; i < t->n_ends[0]; i++) {
        for (uint32_t m = 0; m < g->n; m++)
            ends_ns[m] = g->end_ns + tail_ns[t->row[m] * t->n_ends[0] + i];
        remember(g, 0, t->item[i], ends_ns, g->x->external_mask);
    }
    move_on(g, 0, ends_ns);
    memcpy(orr_exec__idle_from_ns(g->x, g->list[0]), ends_ns, g->n * sizeof *ends_ns);
}

/* The meeting, and the collectives behind it. */
static void tell_colls(const Meeting *g, int64_t *ends_ns) {
    const OrrExec *x = g->x;
    const OrrPassTail *t = g->tail;
    uint32_t askers =
        x->external_mask & x->passes->tp_askers[x->bound->role[g->list[0]]][g->w->call];
    for (uint32_t i = 0; i <= t->n_ends[1]; i++) {
        int64_t end_ns = g->end_ns + (i > 0 ? t->ns[t->n_rows + i - 1] : 0);
        for (uint32_t m = 0; m < g->n; m++)
            ends_ns[m] = end_ns;
        remember(g, 1, i > 0 ? t->item[t->n_ends[0] + i - 1] : 0, ends_ns, askers);
    }
    move_on(g, 1, ends_ns);
}

bool orr_pass__take_with_tail(OrrExec *x, OrrIslandPass *pass, OrrPassWork *w) {
    uint32_t segment = (uint32_t)(w->segment - x->compiled->segments);
    int64_t ends_ns[ORR_MAX_ISLAND];
    if (x->passes->meeting[segment] != 1 || pass->n_changes > 0)
        return false;
    Meeting g;
    g.x = x;
    g.pass = pass;
    g.w = w;
    g.tail = orr_pass__tail_of(x, pass, w->segment);
    g.coll = orr_pass__item(x, w->segment, ORR_STREAM_TP, 0);
    g.list = pass->list;
    g.n = pass->n;
    if (!g.tail || !are_kernels_full(&g) || !orr_exec__join(x, pass->first, ORR_STREAM_COMPUTE) ||
        !orr_exec__join(x, pass->first, ORR_STREAM_TP) || !meet(&g))
        return false;
    find_way(&g);
    note_launches(&g, charge(&g));
    tell_blocks(&g, ends_ns);
    tell_colls(&g, ends_ns);
    for (uint32_t m = 0; m < g.n; m++)
        orr_pass__end_rates(x, g.list[m], false);
    pass->tp_completed = orr_exec__joint_lane(x, pass->first, ORR_STREAM_TP)->completed;
    orr_pass__tail_count(x, pass, g.tail, w, g.end_ns);
    return true;
}
