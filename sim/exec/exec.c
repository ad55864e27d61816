/* The event loop: take all events of one instant, then settle the links once. */
#include "sim/exec/exec.h"

#include "sim/base/large.h"
#include "sim/exec/cause.h"
#include "sim/exec/jitter.h"
#include "sim/exec/steady.h"

#include <stdlib.h>

void orr_exec__show(const OrrExec *x, const OrrSpan *span) {
    const OrrExecOptions *o = x->options;
    if (span->end_ns <= o->probe_begin_ns || span->start_ns >= o->probe_end_ns)
        return;
    OrrSpan cut = *span;
    cut.start_ns = MAX(cut.start_ns, o->probe_begin_ns) - o->probe_begin_ns;
    cut.end_ns = MIN(cut.end_ns, o->probe_end_ns) - o->probe_begin_ns;
    cut.arrived_ns = CLAMP(cut.arrived_ns - o->probe_begin_ns, cut.start_ns, cut.end_ns);
    o->probe->span(o->probe->data, &cut);
}

static void exec_init(OrrExec *x, const OrrBound *bound, const OrrExecOptions *options,
                      uint32_t first_step) {
    x->bound = bound;
    x->options = options;
    x->max_steps = options->max_steps ? options->max_steps : ORR_STEADY_MAX_STEPS;
    x->compiled = orr_compile(bound);
    orr_queue_init(&x->queue);
    x->ranks = orr_large_new((gsize)bound->n_ranks * sizeof *x->ranks);
    orr_exec__places_new(x);
    orr_exec__islands_new(x);
    orr_exec__rooms_new(x);
    if (bound->n_links > 0) {
        x->fluid = orr_fluid_new(bound->capacity, bound->n_links);
        orr_fluid_on_crowded(x->fluid, orr_exec__empty_link, x);
    }
    uint32_t n_comms = bound->program->n_colls + bound->program->n_p2ps;
    x->end_ns = g_new0(int64_t, (gsize)x->max_steps * bound->n_ranks);
    x->window_ns =
        orr_large_new((gsize)ORR_WINDOWS * bound->n_ranks * ORR_N_OWNERS * sizeof *x->window_ns);
    x->to_end = g_new(uint32_t, x->max_steps);
    x->sums = g_new0(OrrCommSum, (gsize)ORR_WINDOWS * (n_comms + 1));
    x->ended_step = x->next_island = ORR_NONE;
    x->stop_ns = INT64_MAX;
    for (uint32_t k = 0; k < x->max_steps; k++)
        x->to_end[k] = bound->n_ranks;
    for (uint32_t r = 0; r < bound->n_ranks; r++) {
        for (int c = 0; c < 2; c++)
            x->ranks[r].rate[c] = orr_exec__outer(x, r)[c] = ORR_RATE_ONE;
        x->ranks[r].sync_index = ORR_NONE;
    }
    orr_exec__causes_new(x, first_step);
    if (options->has_launches)
        x->launches = orr_large_new((gsize)ORR_LAUNCH_STEPS * bound->program->n_colls *
                                    bound->n_ranks * sizeof *x->launches);
    if (options->jitter_frac > 0)
        *(options->is_jitter_sampled ? &x->draws : &x->jitter) = orr_jitter_new(x);
    orr_exec__passes_new(x);
    orr_exec__convoys_new(x);
}

static void exec_clear(OrrExec *x) {
    orr_jitter_free(x->jitter);
    orr_jitter_free(x->draws);
    orr_exec__convoys_clear(x);
    orr_exec__passes_clear(x);
    orr_exec__causes_clear(x);
    orr_exec__islands_clear(x);
    orr_exec__rooms_clear(x);
    orr_compiled_free(x->compiled);
    orr_queue_clear(&x->queue);
    if (x->fluid)
        orr_fluid_free(x->fluid);
    free(x->ranks);
    free(x->places);
    free(x->launches);
    g_free(x->is_early);
    g_free(x->end_ns);
    free(x->window_ns);
    g_free(x->to_end);
    g_free(x->sums);
    g_free(x->mismatch);
}

/* Heads of all lanes at the first item of the first call that has one. */
static void start_all(OrrExec *x) {
    for (uint32_t r = 0; r < x->bound->n_ranks; r++)
        for (uint32_t s = 0; s < ORR_N_STREAMS; s++)
            orr_exec__settle_head(x, r, s);
    for (uint32_t r = 0; r < x->bound->n_ranks; r++)
        for (uint32_t s = 0; s < ORR_N_STREAMS; s++)
            orr_exec__try_start(x, r, s);
}

void orr_exec__handle(OrrExec *x, const OrrEvent *e) {
    uint32_t r = e->id / ORR_N_STREAMS, s = e->id % ORR_N_STREAMS;
    switch (orr_event_class(e)) {
    case ORR_EV_BLOCK_END:
        if (orr_event_generation(e) == *orr_exec__generation(x, r, s))
            orr_exec__complete(x, r, s);
        break;
    case ORR_EV_COMM_END:
        if (orr_event_generation(e) == x->places[e->id].generation &&
            orr_exec__is_due(x, e->id, e->time_ns))
            orr_exec__comm_end(x, e->id);
        break;
    case ORR_EV_LANE_END:
        if (x->leaves_records)
            orr_exec__cause_batch(x, r, s);
        orr_exec__complete(x, r, s);
        break;
    case ORR_EV_FLOW_START:
        orr_exec__flow_start(x, e->id);
        break;
    case ORR_EV_LAUNCH:
        orr_exec__launch(x, r, s);
        break;
    case ORR_EV_PASS:
        orr_exec__pass(x, e->id, orr_event_generation(e));
        break;
    case ORR_EV_RATE:
        orr_exec__rate_event(x, e->id);
        break;
    case ORR_EV_LOOK:
        orr_exec__look(x, e->id);
        break;
    case ORR_EV_CONVOY:
        orr_exec__convoy_end(x, e->id, orr_event_generation(e));
        break;
    case ORR_EV_SET_OUT:
        orr_exec__convoy_leaves(x, e->id, orr_event_generation(e));
        break;
    case ORR_EV_CONVOY_FLOW:
        orr_exec__convoy_flows(x, e->id, orr_event_generation(e));
        break;
    case ORR_EV_LAND:
        orr_exec__convoy_lands(x, e->id, orr_event_generation(e));
        break;
    case ORR_EV_ISLAND:
        if (orr_event_generation(e) == x->islands[e->id].generation)
            orr_exec__run_island(x, e->id);
        break;
    }
}

static void settle(OrrExec *x) {
    if (!x->is_fluid_dirty)
        return;
    x->is_fluid_dirty = false;
    orr_fluid_settle(x->fluid, x->now_ns);
    if (x->options->self_check) {
        g_autofree char *flaw = orr_fluid_flaw(x->fluid);
        if (flaw)
            g_error("self-check at %" G_GINT64_FORMAT " ns: %s", x->now_ns, flaw);
    }
}

#define PROGRESS_EVERY (1u << 18) /* events: a few times a second */
#define PROGRESS_RANKS 8u

static void tell_progress(const OrrExec *x) {
    uint64_t least = UINT64_MAX;
    uint32_t stride = MAX(x->bound->n_ranks / PROGRESS_RANKS, 1u);
    for (uint32_t r = 0; r < x->bound->n_ranks; r += stride) {
        const OrrLane *l = orr_exec__lane(x, r, ORR_STREAM_COMPUTE);
        uint32_t n = orr_exec__role(x, r)->n_calls;
        uint64_t done = l->step * 1000ull + (n > 0 ? l->call * 1000ull / n : 0);
        least = MIN(least, done);
    }
    x->options->progress(x->options->progress_data, least);
}

/* All events of an instant have been handled: on to the next, at which the queue has one or a
 * transfer in the fluid is over; false if there is none before the end of the last step. */
static bool advance(OrrExec *x) {
    settle(x);
    int64_t next_ns = x->queue.n > 0 ? x->queue.heap[0].time_ns : INT64_MAX;
    int64_t end_ns = x->fluid ? orr_fluid_next_end(x->fluid) : INT64_MAX;
    if (MIN(next_ns, end_ns) >= x->stop_ns)
        return false;
    x->global_ns = x->now_ns = MIN(next_ns, end_ns);
    if (end_ns <= next_ns) {
        orr_fluid_take_ended(x->fluid, end_ns, orr_exec__flow_ended, x);
        orr_exec__flows_ended(x);
    }
    return true;
}

static void loop(OrrExec *x) {
    while (x->global_ns < x->stop_ns && !x->mismatch) {
        if (x->next_island != ORR_NONE) {
            uint32_t island = x->next_island;
            x->next_island = ORR_NONE;
            orr_exec__run_island(x, island);
            continue;
        }
        if (x->queue.n == 0 || x->queue.heap[0].time_ns > x->global_ns) {
            if (!advance(x))
                return;
            continue; /* there may be nothing to do: what is over is told of late */
        }
        if (x->causes && x->causes->n_words > x->causes->limit)
            orr_exec__causes_clear_up(x);
        OrrEvent e = orr_queue_pop(&x->queue);
        if (x->options->progress && (x->n_taken++ & (PROGRESS_EVERY - 1)) == 0)
            tell_progress(x);
        x->n_events += orr_event_class(&e) != ORR_EV_ISLAND;
        orr_exec__fetch_next(x);
        orr_exec__handle(x, &e);
    }
}

/* Who waits for what, for the first few ranks. */
static void stuck(const OrrExec *x, GError **error) {
    g_autoptr(GString) text = g_string_new("execution stopped: ranks wait for each other for ever");
    uint32_t shown = 0;
    for (uint32_t r = 0; r < x->bound->n_ranks && shown < 8; r++) {
        const OrrCompiledRole *role = orr_exec__role(x, r);
        for (uint32_t s = 1; s < ORR_N_STREAMS; s++) {
            const OrrLane *l = orr_exec__lane(x, r, s);
            if (l->state == ORR_LANE_DONE || shown >= 8)
                continue;
            const OrrCall *call = &role->calls[l->call];
            g_string_append_printf(text, "\n  rank %u, stream %s: step %u, call %u (%s), %s", r,
                                   orr_stream_name(s), l->step, l->call,
                                   x->bound->program->segments[call->segment].label,
                                   l->state == ORR_LANE_RUNNING ? "waits for its partners"
                                                                : "waits for other streams");
            shown++;
        }
    }
    orr_fail_input(error, "%s", text->str);
}

static void count(const OrrExec *x, OrrExecResult *result) {
    for (uint32_t r = 0; r < x->bound->n_ranks; r++) {
        const OrrCompiledRole *role = orr_exec__role(x, r);
        result->n_operations += role->n_ops * result->n_steps;
        result->n_blocks += role->n_blocks * result->n_steps;
    }
    result->n_events = x->n_events;
    OrrFluidStats stats = {0};
    if (x->fluid)
        orr_fluid_stats(x->fluid, &stats);
    result->n_solves = stats.solves;
    result->n_headroom = stats.headroom + x->n_booked;
}

/* Ranks leave records for the path from @first_step on; NULL without @error: that is too late. */
static OrrExecResult *run(const OrrBound *bound, const OrrExecOptions *options, uint32_t first_step,
                          GError **error) {
    OrrExec *x = g_new0(OrrExec, 1);
    OrrExecResult *result = NULL;
    exec_init(x, bound, options, first_step);
    start_all(x);
    loop(x);
    if (x->mismatch)
        orr_fail_input(error, "%s", x->mismatch);
    else if (!x->is_over)
        stuck(x, error);
    else if (!orr_exec__causes_are_short(x)) {
        result = g_new0(OrrExecResult, 1);
        orr_exec__result(x, result);
        count(x, result);
    }
    exec_clear(x);
    g_free(x);
    return result;
}

#define UNTOLD_STEPS 2u /* ours: as a rule the third step is like the second, and is told */

OrrExecResult *orr_exec_run(const OrrBound *bound, const OrrExecOptions *options, GError **error) {
    GError *flaw = NULL;
    OrrExecResult *result = run(bound, options, options->probe ? 1 : UNTOLD_STEPS, &flaw);
    if (!result && !flaw) /* the second step was like the first: that is never too late */
        result = run(bound, options, 1, &flaw);
    if (flaw)
        g_propagate_error(error, flaw);
    return result;
}

void orr_exec_result_free(OrrExecResult *result) {
    if (!result)
        return;
    g_free(result->rank_account_ns);
    g_free(result->rank_end_ns);
    g_free(result->launch_ns);
    g_free(result->colls);
    g_free(result->p2ps);
    g_free(result);
}
