/* Uses of links that never set a rate, since others are always filled before them. */
#ifndef ORR_BOUND_DOMINATED_H
#define ORR_BOUND_DOMINATED_H

#include "sim/bound/bound.h"

/* Takes them out of the load vectors; links keep their numbers. No rate changes by it. */
void orr_bound_drop_dominated(OrrBound *bound);

#endif
