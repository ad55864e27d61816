/* Blocks: stretches of kernels that meet nobody. Alone, a block is a max-plus map of the stream's
 * and the host's clock (closed form); while its rate changes it is walked kernel by kernel. Both
 * use the same integers and give the same nanoseconds. */
#include "sim/exec/exec_priv.h"
#include "sim/exec/jitter.h"
#include "sim/exec/stretch.h"

#include <string.h>

static const int64_t *kernel_ns(const OrrExec *x, uint32_t r) {
    return x->bound->kernel_ns + (gsize)x->bound->hw[r] * x->bound->program->n_kernels;
}

/* Time of a kernel in a stretch with jitter. */
static int64_t drawn(const OrrProgress *p, int64_t ns) {
    return orr_stretch_drawn_ns(ns, p->factor);
}

static void show_kernel(OrrExec *x, uint32_t r, const OrrBlockKernel *k, int64_t begun,
                        int64_t end) {
    const OrrLane *l = orr_exec__lane(x, r, ORR_STREAM_COMPUTE);
    const OrrCompiledRole *role = orr_exec__role(x, r);
    const OrrCall *call = &role->calls[l->call];
    OrrSpan span = {.rank = r,
                    .step = l->step,
                    .stream = ORR_STREAM_COMPUTE,
                    .op_kind = ORR_OP_KERNEL,
                    .pass = call->pass,
                    .what = k->kernel,
                    .call = l->call,
                    .op = k->op,
                    .chunk = call->chunk,
                    .micro_batch = call->micro_batch,
                    .group = ORR_NONE,
                    .start_ns = begun,
                    .arrived_ns = begun,
                    .end_ns = end};
    orr_exec__show(x, &span);
}

/* Advances @p to @limit_ns at the rank's present rates. Returns the end of the block if it ends by
 * then, else INT64_MAX. @is_real: spans are shown. */
static int64_t walk(OrrExec *x, uint32_t r, OrrProgress *p, int64_t limit_ns, bool is_real) {
    const OrrRank *rank = &x->ranks[r];
    const OrrBlock *block = &x->compiled->blocks[p->block];
    const OrrBlockKernel *kernels = x->compiled->kernels + block->first_kernel;
    const int64_t *ns = kernel_ns(x, r);
    for (;;) {
        const OrrBlockKernel *k = &kernels[p->kernel];
        uint64_t rate = rank->rate[k->is_memory];
        int64_t end = p->at_ns + orr_stretch_takes_ns(p->left, rate);
        if (end > limit_ns) {
            if (limit_ns > p->at_ns) {
                p->left -= (uint64_t)(limit_ns - p->at_ns) * rate;
                p->at_ns = limit_ns;
            }
            return INT64_MAX;
        }
        p->extra_ns += end - p->begun_ns - drawn(p, ns[k->kernel]);
        if (is_real && orr_exec__is_probed(x, r))
            show_kernel(x, r, k, p->begun_ns, end);
        if (++p->kernel == block->n_kernels)
            return end;
        k = &kernels[p->kernel];
        p->at_ns = p->begun_ns = MAX(end, p->host_ns + k->issue_ns);
        p->gap_ns += p->at_ns - end;
        p->left = (uint64_t)drawn(p, ns[k->kernel]) * ORR_RATE_ONE;
    }
}

static void schedule_end(OrrExec *x, uint32_t r, uint32_t s, int64_t end_ns) {
    uint32_t *generation = orr_exec__generation(x, r, s);
    *generation = (*generation + 1) & ORR_GENERATION_MASK;
    orr_exec__push_local(x, r, end_ns, ORR_EV_BLOCK_END, *generation, r * ORR_N_STREAMS + s);
}

/* Jitter drawn for the stretch that begins on the compute stream. */
static uint32_t factor(const OrrExec *x, uint32_t r) {
    const OrrLane *l = orr_exec__lane(x, r, ORR_STREAM_COMPUTE);
    return x->draws ? orr_jitter_factor(x->draws, (OrrJitterSpot){r, l->step, l->call, l->item})
                    : ORR_RATE_ONE;
}

/* Work of the block that its end hangs on: all, or that from the kernel on which the host holds up;
 * as long as it takes at the present rates. */
static double decisive_ns(const OrrExec *x, uint32_t r, const OrrProgress *p, int64_t start_ns,
                          int64_t work_ns) {
    const OrrBlock *block = &x->compiled->blocks[p->block];
    const OrrBlockKernel *k = x->compiled->kernels + block->first_kernel;
    int64_t left = 0, latest = start_ns + work_ns;
    double slowed = 0, decisive = 0;
    bool is_held = false;
    for (uint32_t i = block->n_kernels; i > 0; i--) {
        int64_t ns = kernel_ns(x, r)[k[i - 1].kernel];
        left += ns;
        slowed += (double)ns * ORR_RATE_ONE / x->ranks[r].rate[k[i - 1].is_memory];
        if (p->host_ns + k[i - 1].issue_ns + left > latest) {
            latest = p->host_ns + k[i - 1].issue_ns + left;
            decisive = slowed;
            is_held = true;
        }
    }
    return is_held ? decisive : slowed;
}

/* What a draw adds to the block or takes from it goes to its longest kernel kind. */
static void charge_draw(OrrExec *x, uint32_t r, const OrrProgress *p, const OrrBlockTime *t) {
    if (p->factor == ORR_RATE_ONE)
        return;
    const OrrBlock *block = &x->compiled->blocks[p->block];
    const int64_t *ns = kernel_ns(x, r);
    int64_t more = 0;
    for (uint32_t i = 0; i < block->n_kernels; i++) {
        int64_t sound = ns[x->compiled->kernels[block->first_kernel + i].kernel];
        more += drawn(p, sound) - sound;
    }
    const OrrShare *share = &x->compiled->shares[t->first_share], *longest = share;
    for (uint32_t i = 1; i < t->n_shares; i++)
        longest = share[i].ns > longest->ns ? &share[i] : longest;
    *orr_exec__owner_ns(x, r, longest->kind) += more;
}

/* Walks ahead to the end that the present rates make. */
static void schedule_walked(OrrExec *x, uint32_t r) {
    OrrProgress *p = &x->ranks[r].progress, ahead = *p;
    schedule_end(x, r, ORR_STREAM_COMPUTE, walk(x, r, &ahead, INT64_MAX - 1, false));
    p->goal_gap_ns = ahead.gap_ns;
    p->goal_extra_ns = ahead.extra_ns;
}

void orr_exec__block_start(OrrExec *x, uint32_t r, const OrrItem *item, int64_t start_ns) {
    OrrRank *rank = &x->ranks[r];
    const OrrBlockTime *t =
        &x->compiled->times[(gsize)x->bound->hw[r] * x->compiled->n_blocks + item->what];
    int64_t host = orr_exec__host_at(x, r, item->stream);
    if (item->stream != ORR_STREAM_COMPUTE) {
        schedule_end(x, r, item->stream, MAX(start_ns + t->work_ns, host + t->host_ns));
        return;
    }
    const OrrBlock *block = &x->compiled->blocks[item->what];
    uint32_t first = x->compiled->kernels[block->first_kernel].kernel;
    OrrProgress *p = &rank->progress;
    *p = (OrrProgress){.block = item->what,
                       .host_ns = host,
                       .at_ns = start_ns,
                       .begun_ns = start_ns,
                       .factor = factor(x, r)};
    p->left = (uint64_t)drawn(p, kernel_ns(x, r)[first]) * ORR_RATE_ONE;
    if (x->jitter)
        orr_jitter_block(x->jitter, r, item->stream, decisive_ns(x, r, p, start_ns, t->work_ns));
    if (rank->rate[0] == ORR_RATE_ONE && rank->rate[1] == ORR_RATE_ONE && !x->draws) {
        schedule_end(x, r, ORR_STREAM_COMPUTE, MAX(start_ns + t->work_ns, host + t->host_ns));
        return;
    }
    p->is_walked = true;
    schedule_walked(x, r);
}

void orr_exec__block_end(OrrExec *x, uint32_t r, uint32_t s, const OrrItem *item) {
    if (s != ORR_STREAM_COMPUTE)
        return;
    OrrRank *rank = &x->ranks[r];
    OrrProgress *p = &rank->progress;
    const OrrBlockTime *t =
        &x->compiled->times[(gsize)x->bound->hw[r] * x->compiled->n_blocks + item->what];
    int64_t start = *orr_exec__start_ns(x, r, s);
    bool is_shown = orr_exec__is_probed(x, r) || x->options->self_check;
    if (p->is_walked && !is_shown && p->kernel < x->compiled->blocks[p->block].n_kernels) {
        p->gap_ns = p->goal_gap_ns;
        p->extra_ns = p->goal_extra_ns;
    } else if (p->is_walked || is_shown) {
        if (p->kernel < x->compiled->blocks[p->block].n_kernels) {
            int64_t end = walk(x, r, p, x->now_ns, true);
            g_assert(end == x->now_ns);
        }
    } else {
        p->gap_ns = x->now_ns - start - t->work_ns;
    }
    charge_draw(x, r, p, t);
    *orr_exec__owner_ns(x, r, ORR_OWN_HOST) += p->gap_ns;
    *orr_exec__owner_ns(x, r, ORR_OWN_INTERFERENCE) += p->extra_ns;
}

/* Lowers the rates to what resident kernels leave: those of the island, or external ones. */
void orr_exec__lower_rate(const OrrExec *x, uint32_t r, bool is_inner, uint32_t rate[2]) {
    const OrrRank *rank = &x->ranks[r];
    for (uint32_t k = 0; k < ORR_N_COMM_KINDS; k++) {
        if ((is_inner ? rank->inner[k] : rank->resident[k]) == 0)
            continue;
        for (int c = 0; c < 2; c++)
            rate[c] = MIN(rate[c], x->bound->rate[c][k]);
    }
}

/* Kernels of the rank go on at the rate that what is resident leaves them. */
void orr_exec__rate(OrrExec *x, uint32_t r) {
    OrrRank *rank = &x->ranks[r];
    uint32_t rate[2] = {orr_exec__outer(x, r)[0], orr_exec__outer(x, r)[1]};
    orr_exec__lower_rate(x, r, true, rate);
    if (rate[0] == rank->rate[0] && rate[1] == rank->rate[1])
        return;
    const OrrLane *l = orr_exec__lane(x, r, ORR_STREAM_COMPUTE);
    bool is_running = l->state == ORR_LANE_RUNNING &&
                      rank->progress.kernel < x->compiled->blocks[rank->progress.block].n_kernels;
    if (is_running) {
        rank->progress.is_walked = true;
        /* a block that ends at this very instant keeps its event */
        is_running = walk(x, r, &rank->progress, x->now_ns, true) == INT64_MAX;
    }
    rank->rate[0] = rate[0];
    rank->rate[1] = rate[1];
    if (is_running) {
        schedule_walked(x, r);
    }
}

static bool is_memory_in_hand(const OrrExec *x, uint32_t r) {
    const OrrProgress *p = &x->ranks[r].progress;
    const OrrBlock *block = &x->compiled->blocks[p->block];
    return orr_exec__lane(x, r, ORR_STREAM_COMPUTE)->state == ORR_LANE_RUNNING &&
           p->kernel < block->n_kernels &&
           x->compiled->kernels[block->first_kernel + p->kernel].is_memory;
}

/* A communication kernel of stream @s becomes resident (or leaves): kernels of the rank change
 * their rate. */
void orr_exec__resident(OrrExec *x, uint32_t r, uint32_t s, uint32_t purpose, int change) {
    OrrRank *rank = &x->ranks[r];
    if (!orr_exec__slows_kernels(x, purpose))
        return;
    uint32_t rate[2] = {ORR_RATE_ONE, ORR_RATE_ONE};
    bool is_outer = x->is_external[s];
    if (is_outer) {
        orr_exec__tell_over(x, x->island_of[r]);
        orr_exec__catch_up_island(x, x->island_of[r]);
    }
    if (is_outer)
        rank->resident[purpose] += change;
    else
        rank->inner[purpose] += change;
    orr_exec__lower_rate(x, r, false, rate);
    if (x->passes && orr_exec__note_rate(x, r, is_outer, rate))
        return;
    if (is_outer)
        memcpy(orr_exec__outer(x, r), rate, sizeof rate);
    uint32_t was[2] = {rank->rate[0], rank->rate[1]};
    orr_exec__rate(x, r);
    if (x->jitter) {
        bool is_memory = is_memory_in_hand(x, r);
        if (was[is_memory] != rank->rate[is_memory])
            orr_jitter_edge(x->jitter, x, r, s, was[is_memory], rank->rate[is_memory]);
    }
}
