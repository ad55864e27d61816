/* Which algorithm and protocol NCCL takes, or the user forces. */
#ifndef ORR_COLLECTIVE_CHOOSE_H
#define ORR_COLLECTIVE_CHOOSE_H

#include "sim/collective/algorithms.h"

/* Errors (ORR_ERROR_INPUT): what is forced cannot serve this collective here; says why. */
bool orr_collective__choose(const OrrCollCase *c, OrrAlgo *algo, OrrProto *proto, GError **error);

#endif
