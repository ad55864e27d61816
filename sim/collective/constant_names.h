/* Measured constants by name, as calibration files write them: "hopper.ring.simple.eff_frac",
 * "ib.launch_ns", "pcie.ll.step_ns", "tree.eff_frac". The name's end tells the unit. */
#ifndef ORR_COLLECTIVE_CONSTANT_NAMES_H
#define ORR_COLLECTIVE_CONSTANT_NAMES_H

#include "sim/base/units.h"
#include "sim/collective/constants.h"

/* Where the constant @name of @constants is; NULL: no such constant. */
double *orr_coll_constant(OrrCollConstants *constants, const char *name);
/* Time, bytes, rate, fraction (at most 1) or a bare number. */
OrrDim orr_coll_constant_dim(const char *name);
/* Its unit with a space before it, "" for shares and bare numbers. */
const char *orr_coll_constant_unit(const char *name);

#endif
