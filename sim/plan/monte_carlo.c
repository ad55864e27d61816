#include "sim/plan/monte_carlo.h"

#include <math.h>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "sim/job/strikes.h"

typedef struct {
    const OrrMonteCarlo *mc;
    OrrRunSeed *out;
    const uint32_t *todo; /* which of out */
    uint32_t n_todo;
    gint next; /* of todo; atomic */
    gint is_stopped;
    GAsyncQueue *done; /* index + 1 */
} Work;

static gpointer worker(gpointer data) {
    Work *w = data;
    for (;;) {
        uint32_t i = (uint32_t)g_atomic_int_add(&w->next, 1);
        if (i >= w->n_todo || g_atomic_int_get(&w->is_stopped))
            return NULL;
        OrrRunSeed *seed = &w->out[w->todo[i]];
        orr_run_simulate(w->mc->spec, seed->seed, NULL, seed);
        g_async_queue_push(w->done, GUINT_TO_POINTER(w->todo[i] + 1));
    }
}

static bool keep(const OrrMonteCarlo *mc, const OrrRunSeed *seed, GError **error) {
    if (seed->has_most_strikes) {
        g_autofree char *each = orr_units_time(seed->wall_ns / ORR_MOST_STRIKES);
        return orr_fail_input(
            error,
            "run %s: stopped after %u failures in one seed: one each %s leaves no "
            "time to train; longer times between failures (mtbf, reclaim_mtbf, "
            "failure_scale) would do",
            mc->spec->name, ORR_MOST_STRIKES, each);
    }
    return !mc->store || mc->store->put(mc->store->data, seed, error);
}

/* Takes finished seeds as they come, until all are there. */
static bool collect(Work *w, uint32_t already, GError **error) {
    const OrrMonteCarlo *mc = w->mc;
    for (uint32_t n = 0; n < w->n_todo; n++) {
        uint32_t i = GPOINTER_TO_UINT(g_async_queue_pop(w->done)) - 1;
        if (!keep(mc, &w->out[i], error))
            return false;
        if (mc->progress)
            mc->progress(mc->progress_data, already + n + 1);
    }
    return true;
}

bool orr_monte_carlo(const OrrMonteCarlo *mc, OrrRunSeed *out, GError **error) {
    uint32_t n_causes = orr_run_n_causes(mc->spec), n_threads = mc->n_threads;
    g_autofree uint32_t *todo = g_new(uint32_t, mc->n_seeds + 1);
    Work w = {.mc = mc, .out = out, .todo = todo, .done = g_async_queue_new()};
    for (uint32_t i = 0; i < mc->n_seeds; i++) {
        orr_run_seed_init(&out[i], mc->first_seed + i, n_causes);
        if (!mc->store || !mc->store->get(mc->store->data, &out[i]))
            todo[w.n_todo++] = i;
    }
    if (n_threads == 0)
        n_threads = g_get_num_processors();
    n_threads = MIN(n_threads, MAX(w.n_todo, 1));
    g_autofree GThread **threads = g_new(GThread *, n_threads);
    for (uint32_t t = 0; t < n_threads; t++)
        threads[t] = g_thread_new("seed", worker, &w);
    bool is_done = collect(&w, mc->n_seeds - w.n_todo, error);
    g_atomic_int_set(&w.is_stopped, 1);
    for (uint32_t t = 0; t < n_threads; t++)
        g_thread_join(threads[t]);
    g_async_queue_unref(w.done);
    return is_done;
}

double orr_goodput_at(const OrrMonteCarlo *mc, uint32_t steps) {
    OrrRunSpec spec = *mc->spec; /* borrows everything but the interval */
    spec.checkpoint.interval_ns = 0;
    spec.checkpoint.interval_steps = steps;
    OrrMonteCarlo one = *mc;
    one.spec = &spec;
    one.store = NULL, one.progress = NULL;
    g_autofree OrrRunSeed *out = g_new0(OrrRunSeed, mc->n_seeds);
    double sum = 0;
    orr_monte_carlo(&one, out, NULL);
    for (uint32_t i = 0; i < mc->n_seeds; i++) {
        sum += (double)out[i].useful_ns / (double)MAX(out[i].wall_ns, 1);
        orr_run_seed_clear(&out[i]);
    }
    return sum / mc->n_seeds;
}

static uint32_t best_around(const OrrMonteCarlo *mc, uint32_t centre, double ratio, int each_way) {
    uint32_t best = centre, before = 0;
    double best_goodput = -1;
    for (int k = -each_way; k <= each_way; k++) {
        uint32_t steps = (uint32_t)fmin(fmax(1, round(centre * pow(ratio, k))), 1e9);
        if (steps == before)
            continue;
        before = steps;
        double share = orr_goodput_at(mc, steps);
        if (share > best_goodput) {
            best_goodput = share;
            best = steps;
        }
    }
    return best;
}

uint32_t orr_search_interval(const OrrMonteCarlo *mc, uint32_t guess_steps) {
    uint32_t coarse = best_around(mc, MAX(guess_steps, 1), 2, 5); /* 1/32 to 32 times the guess */
    return best_around(mc, coarse, pow(2, 0.2), 4); /* steps of 15 % around the best */
}
