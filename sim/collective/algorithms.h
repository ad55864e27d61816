/* The table of algorithms. */
#ifndef ORR_COLLECTIVE_ALGORITHMS_H
#define ORR_COLLECTIVE_ALGORITHMS_H

#include "sim/collective/algorithm.h"

/* Indexed by OrrAlgo. */
const OrrAlgorithm *orr_algorithm(OrrAlgo algo);

#endif
