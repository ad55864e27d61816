/* NCCL's own estimate of every algorithm and protocol: what it *believes* a collective takes.
 * Used for the choice only, never as a duration. */
#ifndef ORR_COLLECTIVE_TUNER_H
#define ORR_COLLECTIVE_TUNER_H

#include "sim/collective/collective_priv.h"

/**
 * orr_tuner_time_us: NCCL's estimate by the constants of @c's version (0: the newest table).
 * Returns: microseconds; negative where NCCL does not consider the pair.
 */
double orr_tuner_time_us(const OrrCollCase *c, OrrAlgo algo, OrrProto proto);

#endif
