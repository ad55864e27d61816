/* Measured constants by name, as calibration files write them: "hopper.ring.simple.eff_frac",
 * "ib.launch_ns". */
#ifndef ORR_COLLECTIVE_CONSTANT_NAMES_H
#define ORR_COLLECTIVE_CONSTANT_NAMES_H

#include "sim/collective/constants.h"

/* Where the constant @name of @constants is; NULL: no such constant. */
double *orr_coll_constant(OrrCollConstants *constants, const char *name);

#endif
