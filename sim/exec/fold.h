/* Folding: ranks that cannot differ are executed once. */
#ifndef ORR_EXEC_FOLD_H
#define ORR_EXEC_FOLD_H

#include "sim/bound/bound.h"

/**
 * orr_fold: the quotient of @bound by the coarsest equitable partition of ranks, groups, pairs and
 * links that respects roles, hardware, speeds, classes and capacities. Executing it gives the same
 * nanoseconds as executing @bound. Its program is that of @bound. @bound may be folded in part, its
 * ranks, groups and links with weights.
 * Cost: a few passes over members and load vectors, and one to check the outcome.
 */
OrrBound *orr_fold(const OrrBound *bound);

#endif
