/* Where a list of GPUs sits in a cluster. */
#ifndef ORR_COLLECTIVE_PLACE_H
#define ORR_COLLECTIVE_PLACE_H

#include "sim/collective/collective.h"

/* Fills @out for the group of @n GPUs @gpus, in group order. @n at least 1, each a GPU of @c. */
void orr_comm_place_from_cluster(const OrrCluster *c, const uint32_t *gpus, uint32_t n,
                                 OrrCommPlace *out);
/* The same where each stands for @repeat [n] of them (see orr_cluster_group_shape). */
void orr_comm_place_repeated(const OrrCluster *c, const uint32_t *gpus, const uint32_t *repeat,
                             uint32_t n, OrrCommPlace *out);

#endif
