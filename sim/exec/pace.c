/* Ranks in the order in which they can go on; see pace.h. */
#include "sim/exec/pace.h"

#include "sim/base/large.h"
#include "sim/exec/exec_priv.h"
#include "sim/exec/jitter.h"
#include "sim/exec/pace_priv.h"
#include "sim/exec/steady.h"

#include <stdlib.h>

static uint8_t slowing(const OrrBound *b, uint32_t purpose) {
    bool slows = b->rate[0][purpose] < ORR_RATE_ONE || b->rate[1][purpose] < ORR_RATE_ONE;
    return slows ? (uint8_t)purpose : UINT8_MAX;
}

/* Two sends (or receives) of a pair are in order by the stream that they share; they must be one
 * at a time, and none may complete early. */
static bool has_plain_pairs(const OrrBound *bound) {
    bool is_ordered[ORR_N_GROUPS][256] = {false};
    orr_exec__ordered_comms(bound, is_ordered);
    for (uint32_t kind = 0; kind < ORR_N_GROUPS; kind++)
        for (uint32_t comm = 0; comm < 256; comm++)
            if (is_ordered[kind][comm])
                return false;
    return true;
}

OrrPace *orr_pace_new(const OrrBound *bound) {
    const OrrProgram *p = bound->program;
    if (!has_plain_pairs(bound) || orr_pace__sends_share(bound))
        return NULL;
    OrrPace *pace = g_new0(OrrPace, 1);
    pace->program = p;
    pace->compiled = orr_compile_shape(bound);
    pace->slows_of_coll = g_new(uint8_t, p->n_colls + 1);
    pace->slows_of_p2p = g_new(uint8_t, p->n_p2ps + 1);
    for (uint32_t i = 0; i < p->n_colls; i++)
        pace->slows_of_coll[i] =
            p->colls[i].on_copy_engine ? UINT8_MAX : slowing(bound, p->colls[i].purpose);
    for (uint32_t i = 0; i < p->n_p2ps; i++)
        pace->slows_of_p2p[i] = slowing(bound, p->parts[p->p2ps[i].first_part].purpose);
    return pace;
}

void orr_pace_free(OrrPace *pace) {
    if (!pace)
        return;
    orr_compiled_free(pace->compiled);
    g_free(pace->slows_of_coll);
    g_free(pace->slows_of_p2p);
    g_free(pace);
}

void orr_pace__list(OrrPaceRun *x, uint32_t r) {
    if (x->ranks[r].is_listed || r == x->current)
        return;
    x->ranks[r].is_listed = 1;
    uint32_t at = x->first_listed + x->n_listed++, n = x->bound->n_ranks;
    x->list[at < n ? at : at - n] = r;
}

void orr_pace__wait(OrrPaceRun *x, uint32_t r, int64_t next_ns) {
    int64_t *least = &x->group_next_ns[r / ORR_PACE_GROUP];
    if (next_ns < *least)
        *least = next_ns;
    else if (x->next_ns[r] == *least)
        *least = INT64_MIN; /* it may have been the only one */
    x->next_ns[r] = next_ns;
}

void orr_pace__step_end(OrrPaceRun *x, uint32_t r, uint32_t step, int64_t now_ns) {
    if (step >= x->max_steps) /* beyond the last */
        return;
    x->end_ns[(gsize)step * x->bound->n_ranks + r] = now_ns;
    if (--x->to_end[step] > 0)
        return;
    int64_t length;
    x->ended_step = step;
    x->is_over = orr_steady_is_reached(x->end_ns, x->bound->n_ranks, step, &length) ||
                 step + 1 == x->max_steps;
}

/* The rank that has something to do first, the smallest of equals; when. */
static int64_t first_rank(OrrPaceRun *x, uint32_t *rank) {
    uint32_t n = x->bound->n_ranks, n_groups = (n - 1) / ORR_PACE_GROUP + 1, first = 0;
    int64_t next = INT64_MAX;
    for (uint32_t g = 0; g < n_groups; g++) {
        int64_t *least = &x->group_next_ns[g];
        if (*least == INT64_MIN) {
            *least = INT64_MAX;
            for (uint32_t r = g * ORR_PACE_GROUP; r < MIN((g + 1) * ORR_PACE_GROUP, n); r++)
                *least = MIN(*least, x->next_ns[r]);
        }
        if (*least < next) {
            next = *least;
            first = g;
        }
    }
    *rank = first * ORR_PACE_GROUP;
    while (next < INT64_MAX && x->next_ns[*rank] != next)
        ++*rank;
    return next;
}

static void advance(OrrPaceRun *x, uint32_t r) {
    x->current = r;
    orr_pace__advance(x, r);
    x->current = ORR_NONE;
}

/* All ranks wait for others: what comes first of all happens. False if there is nothing. */
static bool happen(OrrPaceRun *x) {
    uint32_t r;
    int64_t rank_ns = first_rank(x, &r);
    int64_t start_ns = x->starts.n > 0 ? x->starts.heap[0].time_ns : INT64_MAX;
    int64_t next_ns = MIN(rank_ns, start_ns);
    if (x->is_unsettled && next_ns > x->settle_ns) {
        orr_fluid_settle(x->fluid, x->settle_ns);
        x->is_unsettled = false;
    }
    int64_t flow_ns = x->fluid && !x->is_unsettled ? orr_fluid_next_end(x->fluid) : INT64_MAX;
    if (MIN(next_ns, flow_ns) == INT64_MAX)
        return false;
    x->global_ns = MIN(next_ns, flow_ns);
    if (flow_ns <= next_ns)
        orr_pace__flows_end(x, flow_ns);
    else if (rank_ns <= start_ns && !orr_pace__look(x, r))
        advance(x, r);
    else if (start_ns < rank_ns)
        orr_pace__flow_start(x);
    return true;
}

static void loop(OrrPaceRun *x) {
    while (!x->is_over && !x->is_mismatch) {
        if (x->n_listed == 0) {
            if (!happen(x))
                return;
            continue;
        }
        uint32_t r = x->list[x->first_listed++];
        x->n_listed--;
        if (x->first_listed == x->bound->n_ranks)
            x->first_listed = 0;
        x->ranks[r].is_listed = 0;
        advance(x, r);
    }
}

static void times_new(OrrPaceRun *x) {
    const OrrCompiled *c = x->pace->compiled;
    const OrrBound *b = x->bound;
    x->times = orr_large_new(((gsize)b->n_hw * c->n_blocks + 1) * sizeof *x->times);
    for (uint32_t hw = 0; hw < b->n_hw; hw++)
        for (uint32_t i = 0; i < c->n_blocks; i++) {
            const int64_t *ns = b->kernel_ns + (gsize)hw * b->program->n_kernels;
            OrrPaceTime *time = &x->times[(gsize)hw * c->n_blocks + i];
            for (uint32_t j = c->blocks[i].n_kernels; j-- > 0;) {
                const OrrBlockKernel *k = &c->kernels[c->blocks[i].first_kernel + j];
                time->work_ns += ns[k->kernel];
                time->host_ns = MAX(time->host_ns, k->issue_ns + time->work_ns);
            }
        }
}

static void ranks_new(OrrPaceRun *x) {
    const OrrBound *b = x->bound;
    x->ranks = orr_large_new((gsize)b->n_ranks * sizeof *x->ranks);
    for (uint32_t r = 0; r < b->n_ranks; r++) {
        OrrPaceRank *rank = &x->ranks[r];
        rank->role = &x->pace->compiled->roles[b->role[r]];
        rank->kernel_ns = b->kernel_ns + (gsize)b->hw[r] * b->program->n_kernels;
        rank->times = x->times + (gsize)b->hw[r] * x->pace->compiled->n_blocks;
        rank->rate[0] = rank->rate[1] = ORR_RATE_ONE;
        for (uint32_t s = 0; s < ORR_N_STREAMS; s++)
            rank->lane[s].blocked_on = ORR_N_STREAMS;
    }
}

static void run_new(OrrPaceRun *x, const OrrExecOptions *options) {
    uint32_t n = x->bound->n_ranks, n_groups = (n - 1) / ORR_PACE_GROUP + 1;
    x->max_steps = options->max_steps ? options->max_steps : ORR_STEADY_MAX_STEPS;
    x->current = ORR_NONE;
    x->has_draws = options->jitter_frac > 0;
    x->jitter_frac = options->jitter_frac;
    x->random = orr_jitter_random(options->jitter_seed);
    times_new(x);
    ranks_new(x);
    orr_queue_init(&x->starts);
    if (x->bound->n_links > 0)
        x->fluid = orr_fluid_new(x->bound->capacity, x->bound->n_links);
    x->ended = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    x->next_ns = g_new(int64_t, n);
    x->group_next_ns = g_new(int64_t, n_groups);
    x->list = g_new(uint32_t, n);
    x->end_ns = g_new(int64_t, (gsize)x->max_steps * n);
    x->to_end = g_new(uint32_t, x->max_steps);
    for (uint32_t r = 0; r < n; r++)
        x->next_ns[r] = INT64_MAX;
    for (uint32_t g = 0; g < n_groups; g++)
        x->group_next_ns[g] = INT64_MAX;
    for (uint32_t k = 0; k < x->max_steps; k++)
        x->to_end[k] = n;
}

static void run_clear(OrrPaceRun *x) {
    orr_pace__meetings_clear(x);
    orr_queue_clear(&x->starts);
    if (x->fluid)
        orr_fluid_free(x->fluid);
    g_array_free(x->ended, TRUE);
    free(x->ranks);
    free(x->times);
    g_free(x->next_ns);
    g_free(x->group_next_ns);
    g_free(x->list);
    g_free(x->end_ns);
    g_free(x->to_end);
}

bool orr_pace_run(const OrrPace *pace, const OrrBound *bound, const OrrExecOptions *options,
                  int64_t *step_time_ns) {
    g_assert(bound->program == pace->program);
    if ((options->jitter_frac > 0 && !options->is_jitter_sampled) || orr_pace__sends_share(bound))
        return false;
    OrrPaceRun *x = g_new0(OrrPaceRun, 1);
    x->pace = pace;
    x->bound = bound;
    run_new(x, options);
    orr_pace__meetings_new(x);
    orr_pace__begin(x);
    loop(x);
    bool is_over = x->is_over;
    if (is_over)
        *step_time_ns = orr_steady_step_time_ns(x->end_ns, bound->n_ranks, x->ended_step);
    run_clear(x);
    g_free(x);
    return is_over;
}
