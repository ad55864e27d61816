/* The same step with other seeds: draws of speeds, random placement, hashes of routes.
 *
 * Each seed is a function of the job and its number, so the result does not depend on how many
 * threads share the work. Seeds share what was read, the program and its compilation; where only
 * speeds are drawn just the binding is made again, else the whole preparation. Of a seed only the
 * step time is asked, so it is not executed where that can be told without (sim/exec/pace.h). */
#include "sim/api/step_priv.h"

#include <math.h>

#include "sim/base/parallel.h"
#include "sim/base/stats.h"

typedef struct {
    OrrStepRun *run;
    OrrBound *whole; /* of all ranks, for seeds that draw nothing but jitter; or NULL */
    OrrPace *pace;   /* of the program of @run; NULL: seeds are executed */
    uint32_t n;
    double *step_ns;
    GError **errors; /* [n] */
} Seeds;

static bool changes_places(const OrrStepRun *run) {
    return run->job->is_random_placement ||
           orr_cluster_spec(run->cluster)->routing == ORR_ROUTE_ECMP_HASH;
}

#define MOST_HARDWARE                                                                              \
    2 /* ours: where half of the ranks are of a kind of their own little folds                     \
       */

static OrrBound *fold(const OrrStepRun *run, const OrrBound *bound) {
    bool is_whole = run->request->is_unfolded || orr_perturbs_jitter(run->perturbs) > 0;
    return is_whole ? NULL : orr_fold(bound);
}

/* @pace: of the program of @bound, or NULL. */
static bool execute(const OrrStepRun *run, const OrrPace *pace, const OrrBound *bound,
                    uint64_t seed, double *step_ns, GError **error) {
    OrrExecOptions options = {.self_check = run->request->self_check};
    orr_step__set_jitter(run, true, seed, &options);
    bool is_mixed = bound->n_hw > bound->n_ranks / MOST_HARDWARE;
    g_autoptr(OrrBound) folded = pace && is_mixed ? NULL : fold(run, bound);
    int64_t step_time_ns;
    if (pace && orr_pace_run(pace, folded ? folded : bound, &options, &step_time_ns)) {
        *step_ns = (double)step_time_ns;
        return true;
    }
    if (!folded)
        folded = fold(run, bound);
    g_autoptr(OrrExecResult) result = orr_exec_run(folded ? folded : bound, &options, error);
    if (result)
        *step_ns = (double)result->step_time_ns;
    return result != NULL;
}

/* A seed that needs a preparation of its own. */
static bool run_placed(const OrrStepRun *run, uint64_t seed, double *step_ns, GError **error) {
    OrrStepRequest request = *run->request;
    request.seed = seed;
    request.has_seed = true;
    request.note = NULL; /* it has been said */
    request.is_unfolded |= orr_perturbs_jitter(run->perturbs) > 0;
    g_autoptr(OrrStepRun) own = orr_step_prepare(&request, error);
    if (!own)
        return false;
    g_autoptr(OrrPace) pace = request.self_check ? NULL : orr_pace_new(own->bound);
    return execute(own, pace, own->bound, seed, step_ns, error);
}

static bool run_seed(const Seeds *s, uint32_t i, double *step_ns, GError **error) {
    const OrrStepRun *run = s->run;
    uint64_t seed = run->job->seed + i;
    if (changes_places(run))
        return run_placed(run, seed, step_ns, error);
    if (s->whole)
        return execute(run, s->pace, s->whole, seed, step_ns, error);
    OrrLowering in = orr_step__lowering(run);
    in.seed = seed;
    in.is_whole |= orr_perturbs_jitter(run->perturbs) > 0;
    g_autoptr(OrrBound) bound = orr_lower_bind(&in, run->program, error);
    return bound && execute(run, s->pace, bound, seed, step_ns, error);
}

static void run_piece(void *data, uint32_t i) {
    Seeds *s = data;
    run_seed(s, i, &s->step_ns[i], &s->errors[i]);
}

static void summarise(const Seeds *s, OrrRecordPercentiles *p) {
    double deviation = orr_stats_deviation(s->step_ns, s->n);
    *p = (OrrRecordPercentiles){.n_seeds = s->n,
                                .p5_ns = llround(orr_stats_percentile(s->step_ns, s->n, 0.05)),
                                .p50_ns = llround(orr_stats_percentile(s->step_ns, s->n, 0.5)),
                                .p95_ns = llround(orr_stats_percentile(s->step_ns, s->n, 0.95)),
                                .mean_ns = llround(orr_stats_mean(s->step_ns, s->n)),
                                .ci95_ns = llround(orr_stats_half_width95(deviation, s->n))};
}

/* Seeds that draw nothing but jitter share one binding. */
static bool bind_whole(Seeds *s, GError **error) {
    const OrrStepRun *run = s->run;
    if (changes_places(run) || orr_perturbs_are_drawn(run->perturbs))
        return true;
    OrrLowering in = orr_step__lowering(run);
    in.is_whole = true;
    s->whole = orr_lower_bind(&in, run->program, error);
    return s->whole != NULL;
}

bool orr_step_run_seeds(OrrStepRun *run, const OrrStepSeeds *in, GError **error) {
    if (!changes_places(run) && !orr_perturbs_are_drawn(run->perturbs) &&
        orr_perturbs_jitter(run->perturbs) == 0)
        return orr_fail_usage(error, "--seeds: nothing in this job depends on the seed; "
                                     "--jitter 0.02, --perturb 'gpu:*:speed~normal(1,0.01)', --set "
                                     "network.placement=random or --set network.routing=ecmp-hash "
                                     "would do");
    Seeds s = {.run = run, .n = in->n_seeds};
    if (!bind_whole(&s, error))
        return false;
    if (!run->request->self_check)
        s.pace = orr_pace_new(run->bound);
    s.step_ns = g_new0(double, s.n);
    s.errors = g_new0(GError *, s.n);
    OrrParallelProgress progress = {in->progress, in->progress_data};
    orr_parallel(s.n, in->n_threads, run_piece, &s, &progress);
    uint32_t bad = 0;
    while (bad < s.n && !s.errors[bad])
        bad++;
    if (bad < s.n)
        g_propagate_error(error, g_steal_pointer(&s.errors[bad]));
    else
        summarise(&s, &run->record->percentiles);
    for (uint32_t i = 0; i < s.n; i++)
        g_clear_error(&s.errors[i]);
    g_free(s.errors);
    orr_bound_free(s.whole);
    orr_pace_free(s.pace);
    g_free(s.step_ns);
    return bad == s.n;
}
