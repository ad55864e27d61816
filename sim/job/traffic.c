/* Max-min fairness by the solver of sim/net: a flow to a store of the training's network uses NICs
 * and leaf, one to a store of its own network the front end, each its own cap; the training uses
 * NICs and leaf without a cap. Left out: traffic above the leaf switches (stores hang on the
 * spine), and that a NIC sends and receives at the same time without one slowing the other: the
 * training's collectives do both, so what takes either takes both. */
#include "sim/job/traffic.h"

#include "sim/net/solver.h"

#include <math.h>

enum { NICS, LEAF, FRONT, N_LINKS };

/* No limit is more than any link has. */
#define NO_LIMIT (ORR_MAX_CAPACITY - 1)

static uint64_t whole(double bytes_per_s) {
    return bytes_per_s > 0 && bytes_per_s < (double)NO_LIMIT ? (uint64_t)ceil(bytes_per_s)
                                                             : NO_LIMIT;
}

static OrrUse use(uint32_t link) {
    return (OrrUse){.constraint = link, .coef = ORR_COEF_ONE, .count = 1};
}

void orr_traffic_share(const OrrTraffic *t, double rate[ORR_MAX_TIERS], double *job) {
    OrrSolveActivity activities[ORR_MAX_TIERS + 1] = {0};
    OrrUse uses[2 * (ORR_MAX_TIERS + 1)];
    uint64_t rates[ORR_MAX_TIERS + 1];
    const uint64_t capacity[N_LINKS] = {whole(t->nics), whole(t->leaf), whole(t->front)};
    uint32_t n = t->n + t->has_job, n_uses = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool is_job = i == t->n;
        bool is_own = !is_job && t->flows[i].network == ORR_STORE_OWN;
        OrrSolveActivity *a = &activities[i];
        *a = (OrrSolveActivity){.first_use = n_uses, .weight = 1};
        a->cap = is_job ? UINT64_MAX : whole(t->flows[i].cap);
        uses[n_uses++] = use(is_own ? FRONT : NICS);
        if (!is_own)
            uses[n_uses++] = use(LEAF);
        a->n_uses = n_uses - a->first_use;
    }
    OrrSolver *solver = orr_solver_new();
    orr_solver_solve(solver, activities, n, uses, capacity, N_LINKS, rates);
    orr_solver_free(solver);
    for (uint32_t i = 0; i < t->n; i++)
        rate[i] = (double)rates[i];
    if (job)
        *job = t->has_job ? (double)rates[t->n] : 0;
}
