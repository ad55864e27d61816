/* Which GPU each rank runs on. */
#ifndef ORR_CLUSTER_PLACEMENT_H
#define ORR_CLUSTER_PLACEMENT_H

#include "sim/cluster/cluster.h"

typedef struct {
    uint32_t n_ranks;
    uint32_t *gpu_of_rank; /* [n_ranks]; NULL: rank r on GPU r */
} OrrPlacement;

static inline uint32_t orr_placement_gpu(const OrrPlacement *p, uint32_t rank) {
    return p->gpu_of_rank ? p->gpu_of_rank[rank] : rank;
}

/* Rank r on GPU r. Errors (ORR_ERROR_INPUT), here and below: more ranks than GPUs. */
OrrPlacement *orr_placement_linear(const OrrCluster *c, uint32_t n_ranks, GError **error);
/* Ranks in blocks of a node's GPUs, the nodes in random order: a hash of @seed and the node, so
 * the order does not depend on how many ranks there are. A node that is only partly in use stays
 * last. */
OrrPlacement *orr_placement_random(const OrrCluster *c, uint32_t n_ranks, uint64_t seed,
                                   GError **error);
/* As listed in @gpus [@n_ranks]. Errors: a GPU that is not there, or comes twice. */
OrrPlacement *orr_placement_explicit(const OrrCluster *c, const uint32_t *gpus, uint32_t n_ranks,
                                     GError **error);
void orr_placement_free(OrrPlacement *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrPlacement, orr_placement_free)

#endif
