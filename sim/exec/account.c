/* Where the time of the compute stream went, and what communication cost: sums of whole
 * nanoseconds, so that the account of a rank adds up to its step. */
#include "sim/exec/cause.h"
#include "sim/exec/pass.h"
#include "sim/exec/steady.h"

#include <math.h>

static int64_t overlap(int64_t a0, int64_t a1, int64_t b0, int64_t b1) {
    int64_t begin = MAX(a0, b0), end = MIN(a1, b1);
    return MAX(end - begin, 0);
}

/* A wait for members of other stages is the pipeline's. */
OrrOwner orr_exec__wait_owner(const OrrExec *x, const OrrEnded *e) {
    if (e->type == ORR_ITEM_P2P)
        return ORR_OWN_BUBBLE;
    const OrrColl *c = &x->bound->program->colls[e->what];
    bool spans_stages = c->group == ORR_GROUP_PP || c->group == ORR_GROUP_EMBEDDING ||
                        c->group == ORR_GROUP_MODEL || c->group == ORR_GROUP_WORLD;
    return spans_stages && x->bound->groups[ORR_GROUP_PP].size > 1 ? ORR_OWN_BUBBLE
                                                                   : ORR_OWN_STRAGGLER;
}

/* Charges what of [from, to] lies within the wait and the transfer of @e, which ended at @end_ns.
 * Returns what is left: the time before its launch. */
static int64_t charge_span(OrrExec *x, uint32_t r, const OrrEnded *e, int64_t end_ns, int64_t from,
                           int64_t to) {
    OrrItem item = {.type = e->type, .what = e->what};
    bool takes_sms;
    uint32_t purpose = orr_exec__purpose(x, &item, &takes_sms);
    int64_t wait = overlap(from, to, e->start_ns, e->arrived_ns);
    int64_t transfer = overlap(from, to, e->arrived_ns, end_ns);
    *orr_exec__owner_ns(x, r, orr_exec__wait_owner(x, e)) += wait;
    *orr_exec__owner_ns(x, r, ORR_OWN_EXPOSED_FIRST + purpose) += transfer;
    uint32_t n = x->bound->program->n_colls + x->bound->program->n_p2ps;
    OrrCommSum *sum =
        &x->sums[(e->step % ORR_WINDOWS) * n + orr_exec__sum_index(x, e->type, e->what)];
    sum->exposed_ns += (double)(wait + transfer) * x->bound->weight[r];
    return to - from - wait - transfer;
}

/* Charges [free, ready] to the communication that ended then on stream @q; the time before its
 * launch to the communication that it had waited for itself (a receive before a gather, say), then
 * to the host if that was late, else to whatever kept its stream busy: its own kind. */
static void charge_comm(OrrExec *x, uint32_t r, uint32_t q, int64_t free_ns, int64_t ready_ns) {
    const OrrEnded *e = orr_exec__ended(x, r, q);
    const OrrBlocker *blocker = orr_exec__blocker(x, r, q, false);
    int64_t before = charge_span(x, r, e, *orr_exec__free_ns(x, r, q), free_ns, ready_ns);
    if (before > 0 && blocker->ended.is_set)
        before = charge_span(x, r, &blocker->ended, blocker->end_ns, free_ns, free_ns + before);
    OrrItem item = {.type = e->type, .what = e->what};
    bool takes_sms;
    uint32_t purpose = orr_exec__purpose(x, &item, &takes_sms);
    uint32_t owner = e->is_issue_bound ? ORR_OWN_HOST : (uint32_t)ORR_OWN_EXPOSED_FIRST + purpose;
    *orr_exec__owner_ns(x, r, owner) += before;
}

/* The compute stream was idle from its last end to @start_ns; until @ready_ns it waited for stream
 * @cause, then for the host. */
void orr_exec__idle(OrrExec *x, uint32_t r, uint32_t cause, int64_t ready_ns, int64_t start_ns) {
    int64_t free_ns = *orr_exec__idle_from_ns(x, r),
            *host_ns = orr_exec__owner_ns(x, r, ORR_OWN_HOST);
    if (start_ns <= free_ns)
        return;
    *orr_exec__idle_from_ns(x, r) = start_ns;
    if (ready_ns > free_ns) {
        const OrrEnded *e = orr_exec__ended(x, r, cause);
        if (cause != ORR_STREAM_HOST && e->is_set && e->type != ORR_ITEM_BLOCK)
            charge_comm(x, r, cause, free_ns, ready_ns);
        else
            *host_ns += ready_ns - free_ns;
    }
    *host_ns += start_ns - MAX(ready_ns, free_ns);
}

/* Where waits for one communication are charged, of all members of an island side by side. */
typedef struct {
    uint32_t type, what, step;
    int64_t *waits_ns, *transfers_ns;
    OrrCommSum *sum;
    int64_t exposed_ns; /* to be added to that */
} Charge;

#define NO_CHARGE ((Charge){.what = ORR_NONE})

static void close_charge(Charge *c) {
    if (c->what != ORR_NONE)
        c->sum->exposed_ns += (double)c->exposed_ns;
}

static void open_charge(OrrExec *x, uint32_t r, const OrrEnded *e, Charge *c) {
    OrrItem item = {.type = e->type, .what = e->what};
    bool takes_sms;
    uint32_t purpose = orr_exec__purpose(x, &item, &takes_sms);
    close_charge(c);
    *c = (Charge){.type = e->type,
                  .what = e->what,
                  .step = e->step,
                  .waits_ns = orr_exec__owner_ns(x, r, orr_exec__wait_owner(x, e)),
                  .transfers_ns = orr_exec__owner_ns(x, r, ORR_OWN_EXPOSED_FIRST + purpose),
                  .sum = orr_exec__sum_of(x, e->step, &item)};
}

/* As charge_span, for member @m of an island. */
static int64_t charge_row(OrrExec *x, const uint32_t *list, uint32_t m, Charge *c,
                          const OrrBlocker *b, int64_t from, int64_t to) {
    const OrrEnded *e = &b->ended;
    if (e->what != c->what || e->type != c->type || e->step != c->step)
        open_charge(x, list[0], e, c);
    int64_t wait = overlap(from, to, e->start_ns, e->arrived_ns);
    int64_t transfer = overlap(from, to, e->arrived_ns, b->end_ns);
    c->waits_ns[m] += wait;
    c->transfers_ns[m] += transfer;
    c->exposed_ns += (wait + transfer) * x->bound->weight[list[m]];
    return to - from - wait - transfer;
}

void orr_exec__idle_all(OrrExec *x, const uint32_t *list, uint32_t n, const uint32_t *cause,
                        const int64_t *ready_ns) {
    uint32_t r = list[0];
    int64_t *from_ns = orr_exec__idle_from_ns(x, r);
    int64_t *host_ns = orr_exec__owner_ns(x, r, ORR_OWN_HOST);
    const OrrEnded *ended = orr_exec__ended(x, r, 0) - x->row_at[0];
    const OrrBlocker *blockers = ORR_STORED(x, r, blockers, OrrBlocker);
    Charge last = NO_CHARGE, blocked = NO_CHARGE;
    for (uint32_t m = 0; m < n; m++) {
        int64_t free_ns = from_ns[m];
        if (ready_ns[m] <= free_ns)
            continue;
        uint32_t slot = x->row_at[cause[m]] + m;
        const OrrEnded *e = &ended[slot];
        from_ns[m] = ready_ns[m];
        if (cause[m] == ORR_STREAM_HOST || !e->is_set || e->type == ORR_ITEM_BLOCK) {
            host_ns[m] += ready_ns[m] - free_ns;
            continue;
        }
        const OrrBlocker *blocker = &blockers[e->slot * x->store.n_slots + slot];
        OrrBlocker own = {*e, orr_exec__free_ns(x, r, cause[m])[m]};
        int64_t before = charge_row(x, list, m, &last, &own, free_ns, ready_ns[m]);
        if (before > 0 && blocker->ended.is_set)
            before = charge_row(x, list, m, &blocked, blocker, free_ns, free_ns + before);
        (e->is_issue_bound ? host_ns : last.transfers_ns)[m] += before;
    }
    close_charge(&last);
    close_charge(&blocked);
}

void orr_exec__comm_sum(OrrExec *x, uint32_t r, uint32_t s, const OrrItem *item) {
    OrrCommSum *sum = orr_exec__sum_of(x, orr_exec__lane(x, r, s)->step, item);
    double weight = x->bound->weight[r];
    sum->count += weight;
    sum->transfer_ns += (double)(x->now_ns - *orr_exec__arrived_ns(x, r, s)) * weight;
    sum->wait_ns +=
        (double)(*orr_exec__arrived_ns(x, r, s) - *orr_exec__start_ns(x, r, s)) * weight;
}

static void add_block(OrrExec *x, uint32_t r, uint32_t block, uint32_t times) {
    gsize hw = x->bound->hw[r];
    const OrrBlockTime *t = &x->compiled->times[hw * x->compiled->n_blocks + block];
    const OrrShare *share = &x->compiled->shares[t->first_share];
    for (uint32_t i = 0; i < t->n_shares; i++)
        *orr_exec__owner_ns(x, r, share[i].kind) += times * share[i].ns;
}

/* Charges the kernels of all blocks that the compute stream has ended and that are not charged yet:
 * once a step, since which they are is the role's. */
static void charge_kernels(OrrExec *x, uint32_t r) {
    OrrRank *rank = &x->ranks[r];
    const OrrCompiledRole *role = orr_exec__role(x, r);
    uint32_t from = rank->accounted, to = orr_exec__lane(x, r, ORR_STREAM_COMPUTE)->completed;
    uint32_t n = role->rows[role->n_calls].base[ORR_STREAM_COMPUTE];
    rank->accounted = to;
    for (uint32_t i = 0; to - from == n && i < role->n_step_blocks; i++)
        add_block(x, r, role->step_blocks[i].block, role->step_blocks[i].times);
    if (to - from == n)
        return;
    for (uint32_t call = 0; from < to;) {
        if (from % n < role->rows[call].base[ORR_STREAM_COMPUTE])
            call = 0;
        while (role->rows[call + 1].base[ORR_STREAM_COMPUTE] <= from % n)
            call++;
        const OrrCompiledSegment *cs = &x->compiled->segments[role->calls[call].segment];
        uint32_t item = from++ % n - role->rows[call].base[ORR_STREAM_COMPUTE];
        const OrrItem *block = &x->compiled->items[cs->first_item[ORR_STREAM_COMPUTE] + item];
        if (block->type == ORR_ITEM_BLOCK)
            add_block(x, r, block->what, 1);
    }
}

/* --self-check: the account of a rank tiles its compute stream from step end to step end. */
static void check_account(const OrrExec *x, uint32_t r, uint32_t step) {
    int64_t sum = 0;
    int64_t begin = step > 0 ? x->end_ns[(gsize)(step - 1) * x->bound->n_ranks + r] : 0;
    for (uint32_t o = 0; o < ORR_N_OWNERS; o++)
        sum += *orr_exec__owner_ns(x, r, o);
    if (sum != x->now_ns - begin)
        g_error("self-check: the account of rank %u in step %u adds up to %" G_GINT64_FORMAT
                " ns of %" G_GINT64_FORMAT,
                r, step, sum, x->now_ns - begin);
}

static int64_t last_end_ns(const OrrExec *x, uint32_t step) {
    const int64_t *ends_ns = x->end_ns + (gsize)step * x->bound->n_ranks;
    int64_t end_ns = INT64_MIN;
    for (uint32_t r = 0; r < x->bound->n_ranks; r++)
        end_ns = MAX(end_ns, ends_ns[r]);
    return end_ns;
}

/* Rank @r has ended step @step, with an item of stream @s: its account of the step is complete. */
void orr_exec__step_end(OrrExec *x, uint32_t r, uint32_t s, uint32_t step) {
    uint32_t n = x->bound->n_ranks;
    charge_kernels(x, r);
    if (x->passes)
        orr_pass__tails_charge(x, orr_pass__of(x, r));
    /* a step that ends on another stream (replayed traces): compute waits for that end */
    bool is_idle = orr_exec__lane(x, r, ORR_STREAM_COMPUTE)->state != ORR_LANE_RUNNING;
    if (is_idle && *orr_exec__idle_from_ns(x, r) < x->now_ns) {
        *orr_exec__owner_ns(x, r, ORR_OWN_STEP_END) += x->now_ns - *orr_exec__idle_from_ns(x, r);
        *orr_exec__idle_from_ns(x, r) = x->now_ns;
    }
    if (x->options->self_check && is_idle)
        check_account(x, r, step);
    int64_t *window = x->window_ns + ((gsize)(step % ORR_WINDOWS) * n + r) * ORR_N_OWNERS;
    for (uint32_t o = 0; o < ORR_N_OWNERS; o++) {
        if (step < x->max_steps) /* else beyond the last */
            window[o] = *orr_exec__owner_ns(x, r, o);
        *orr_exec__owner_ns(x, r, o) = 0;
    }
    if (step == x->max_steps)
        return;
    x->end_ns[(gsize)step * n + r] = x->now_ns;
    if (x->causes)
        orr_exec__cause_step_end(x, r, s, step);
    if (--x->to_end[step] > 0)
        return;
    int64_t length;
    x->ended_step = step;
    x->is_over = orr_steady_is_reached(x->end_ns, n, step, &length) || step + 1 == x->max_steps;
    if (x->is_over)
        x->stop_ns = last_end_ns(x, step);
    /* sums of a window that will be used again start from zero */
    uint32_t m = x->bound->program->n_colls + x->bound->program->n_p2ps;
    if (!x->is_over && x->causes)
        orr_exec__cause_floor(x, step);
    if (!x->is_over)
        memset(x->sums + (gsize)((step + 2) % ORR_WINDOWS) * m, 0, m * sizeof *x->sums);
}

static void comm_means(const OrrExec *x, const OrrCommSum *sums, uint32_t n, OrrExecComm *out) {
    double ranks = x->bound->n_real_ranks;
    for (uint32_t i = 0; i < n; i++) {
        out[i].count = sums[i].count / ranks;
        out[i].transfer_ns = sums[i].transfer_ns / ranks;
        out[i].wait_ns = sums[i].wait_ns / ranks;
        out[i].exposed_ns = sums[i].exposed_ns / ranks;
    }
}

/* Means over real ranks; the integer remainder goes to the largest owner. */
static void mean_account(const OrrExec *x, const int64_t *windows, OrrExecResult *result) {
    int64_t rest = result->step_time_ns;
    uint32_t largest = 0;
    for (uint32_t o = 0; o < ORR_N_OWNERS; o++) {
        __int128 sum = 0;
        for (uint32_t r = 0; r < x->bound->n_ranks; r++)
            sum += (__int128)windows[(gsize)r * ORR_N_OWNERS + o] * x->bound->weight[r];
        result->account_ns[o] = (int64_t)(sum / x->bound->n_real_ranks);
        rest -= result->account_ns[o];
        if (result->account_ns[o] > result->account_ns[largest])
            largest = o;
    }
    result->account_ns[largest] += rest;
}

/* A meeting that was not over yet when the step ended is not told: its first ones came before. */
static void drop_unfinished(const OrrExec *x, uint32_t coll, int64_t *at_ns) {
    const OrrBoundGroup *g = &x->bound->groups[x->bound->program->colls[coll].group];
    for (uint32_t i = 0; i < g->n_groups; i++) {
        bool is_known = true;
        for (uint32_t m = g->first_member[i]; m < g->first_member[i + 1]; m++)
            is_known &= at_ns[g->members[m]] >= 0;
        for (uint32_t m = g->first_member[i]; !is_known && m < g->first_member[i + 1]; m++)
            at_ns[g->members[m]] = -1;
    }
}

/* Launches of step @step, those before @end_ns. */
static int64_t *launches_of(const OrrExec *x, uint32_t step, int64_t end_ns) {
    gsize n = (gsize)x->bound->program->n_colls * x->bound->n_ranks;
    const OrrLaunch *launches = x->launches + step % ORR_LAUNCH_STEPS * n;
    int64_t *at_ns = g_new(int64_t, n + 1);
    for (gsize i = 0; i < n; i++) {
        bool is_known = launches[i].step == step + 1 && launches[i].at_ns < end_ns;
        at_ns[i] = is_known ? launches[i].at_ns : -1;
    }
    for (uint32_t c = 0; c < x->bound->program->n_colls; c++)
        drop_unfinished(x, c, at_ns + (gsize)c * x->bound->n_ranks);
    return at_ns;
}

void orr_exec__result(OrrExec *x, OrrExecResult *result) {
    uint32_t n = x->bound->n_ranks, k = x->ended_step;
    const OrrProgram *p = x->bound->program;
    int64_t length;
    for (uint32_t i = 0; x->passes && i < x->n_islands; i++)
        orr_pass__tails_charge(x, &x->passes->islands[i]);
    orr_steady_is_reached(x->end_ns, n, 0, &result->first_step_ns);
    result->is_periodic = orr_steady_is_reached(x->end_ns, n, k, &length);
    int64_t end = last_end_ns(x, k);
    result->step_time_ns = orr_steady_step_time_ns(x->end_ns, n, k);
    result->step_begin_ns = end - length;
    result->n_steps = k + 1;
    const int64_t *windows = x->window_ns + (gsize)(k % ORR_WINDOWS) * n * ORR_N_OWNERS;
    result->rank_account_ns = g_memdup2(windows, (gsize)n * ORR_N_OWNERS * sizeof *windows);
    result->rank_end_ns = g_memdup2(x->end_ns + (gsize)k * n, n * sizeof *x->end_ns);
    mean_account(x, windows, result);
    result->colls = g_new0(OrrExecComm, p->n_colls + 1);
    result->p2ps = g_new0(OrrExecComm, p->n_p2ps + 1);
    /* what follows the optimizer ends in the next step: the step before is complete, and equal */
    uint32_t whole = result->is_periodic ? k - 1 : k;
    const OrrCommSum *sums = x->sums + (gsize)(whole % ORR_WINDOWS) * (p->n_colls + p->n_p2ps);
    comm_means(x, sums, p->n_colls, result->colls);
    comm_means(x, sums + p->n_colls, p->n_p2ps, result->p2ps);
    if (x->launches)
        result->launch_ns = launches_of(x, x->draws || k == 0 ? k : k - 1, end);
    if (x->causes)
        orr_exec__path(x, end - result->step_time_ns, end, k, result->path_ns);
}
