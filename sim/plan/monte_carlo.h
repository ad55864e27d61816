/* Many seeds of one run, in parallel. The result does not depend on the number of threads, nor on
 * which seeds came from a store: each is a function of the spec and its number. */
#ifndef ORR_PLAN_MONTE_CARLO_H
#define ORR_PLAN_MONTE_CARLO_H

#include "sim/job/engine.h"

/* Where finished seeds are kept. Called from the thread that called orr_monte_carlo only. */
typedef struct {
    /* Fills @seed (whose number is set) if it is there. */
    bool (*get)(void *data, OrrRunSeed *seed);
    bool (*put)(void *data, const OrrRunSeed *seed, GError **error);
    void *data;
} OrrSeedStore;

typedef struct {
    const OrrRunSpec *spec;
    uint64_t first_seed;
    uint32_t n_seeds, n_threads;                 /* 0 threads: as many as there are processors */
    const OrrSeedStore *store;                   /* may be NULL */
    void (*progress)(void *data, uint64_t done); /* may be NULL */
    void *progress_data;
} OrrMonteCarlo;

/**
 * orr_monte_carlo: fills @out[0..n_seeds), zeroed by the caller, whose orr_run_seed_clear is his
 * too. Returns: false with @error if the store refuses or a run would not end for its failures;
 * what is done by then is in the store.
 */
bool orr_monte_carlo(const OrrMonteCarlo *mc, OrrRunSeed *out, GError **error);

/* Mean share of useful time with a checkpoint each @steps steps; store and progress are not used.
 */
double orr_goodput_at(const OrrMonteCarlo *mc, uint32_t steps);

/**
 * orr_search_interval: the number of steps between two checkpoints with the best mean goodput over
 * the seeds; the same failures meet each candidate. A coarse pass over a geometric grid around
 * @guess_steps, then a finer one around the best.
 */
uint32_t orr_search_interval(const OrrMonteCarlo *mc, uint32_t guess_steps);

#endif
