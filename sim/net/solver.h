/* Weighted max-min fairness, pure: it has never heard of a network.
 *
 * Activity i has one scalar rate x_i and uses coef_il * x_i of each constraint l. All x_i are
 * raised together, x_i = weight_i / (largest coef_il) * level, until a constraint is full or the
 * activity reaches its own cap; it freezes there. Integers throughout (rates in bytes per second,
 * coefficients in 1/2^16), so that no sum depends on order and k equal activities are exactly one
 * whose uses have count k. Rates are rounded down: no constraint is ever exceeded. */
#ifndef ORR_NET_SOLVER_H
#define ORR_NET_SOLVER_H

#include "sim/core/use.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint32_t first_use, n_uses;
    uint32_t weight;     /* number of connections, at least 1 */
    uint32_t scale_coef; /* largest coef of the activity where @uses lacks some; 0: that of @uses */
    uint64_t cap;        /* own limit of x; UINT64_MAX: none */
} OrrSolveActivity;

/* 128 bits: capacities in 1/ORR_COEF_ONE bytes per second, work in 1e-9 bytes. */
__extension__ typedef unsigned __int128 OrrWide;

#define ORR_MAX_CAPACITY (UINT64_C(1) << 60) /* above it a level might not fit: 1.15e18 bytes/s */
#define ORR_BY_CAP UINT32_MAX

typedef struct {
    const OrrSolveActivity *activities;
    uint32_t n;
    const OrrUse *uses;
    const OrrWide *capacity; /* [n_constraints] in 1/ORR_COEF_ONE bytes per second */
    uint32_t n_constraints;
    uint64_t *rate;       /* [n] result: x in bytes per second */
    uint32_t *bottleneck; /* [n] result: the constraint that stopped it, or ORR_BY_CAP; or NULL */
    uint64_t *constraint_level; /* [n_constraints] result: the level at which each is full, or
                                 * UINT64_MAX where all its activities stop before; or NULL */
} OrrSolveProblem;

/* Scratch is kept in the solver between calls: no allocation per solve once warm. An activity with
 * neither uses nor cap is the caller's error. */
typedef struct OrrSolver OrrSolver;
OrrSolver *orr_solver_new(void);
void orr_solver_free(OrrSolver *s);
void orr_solver_run(OrrSolver *s, const OrrSolveProblem *problem);

/* The same with capacities in bytes per second. */
void orr_solver_solve(OrrSolver *s, const OrrSolveActivity *activities, uint32_t n,
                      const OrrUse *uses, const uint64_t *capacity, uint32_t n_constraints,
                      uint64_t *rate);

#endif
