/* What tools see of a collective besides its kernels: the host that issues them. Published tables
 * and logs hold it; a training step has the host's time in its profile and none of this. */
#ifndef ORR_COLLECTIVE_TIMED_H
#define ORR_COLLECTIVE_TIMED_H

#include "sim/collective/constants.h"
#include "sim/facts/measured.h"

/* ns that a tool which times as @timed says shows for @plan over @bytes at @place. @constants NULL:
 * the shipped ones. */
double orr_collective_timed_ns(const OrrCollPlan *plan, int64_t bytes, const OrrCommPlace *place,
                               OrrTimed timed, const OrrCollConstants *constants);

#endif
