#include "sim/cluster/placement.h"

#include <stdlib.h>

#include "sim/base/random.h"

static OrrPlacement *placement_new(const OrrCluster *c, uint32_t n_ranks, GError **error) {
    const OrrClusterSpec *s = orr_cluster_spec(c);
    if (!n_ranks || n_ranks > s->n_gpus) {
        orr_fail_input(error, "placement of %u ranks on %s with %u GPUs: 1 to %u ranks would do",
                       n_ranks, s->name ? s->name : "a cluster", s->n_gpus, s->n_gpus);
        return NULL;
    }
    OrrPlacement *p = g_new0(OrrPlacement, 1);
    p->n_ranks = n_ranks;
    return p;
}

OrrPlacement *orr_placement_linear(const OrrCluster *c, uint32_t n_ranks, GError **error) {
    return placement_new(c, n_ranks, error);
}

typedef struct {
    uint64_t key;
    uint32_t node;
} Draw;

static int by_key(const void *a, const void *b) {
    const Draw *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

OrrPlacement *orr_placement_random(const OrrCluster *c, uint32_t n_ranks, uint64_t seed,
                                   GError **error) {
    const OrrClusterSpec *s = orr_cluster_spec(c);
    OrrPlacement *p = placement_new(c, n_ranks, error);
    if (!p)
        return NULL;
    uint32_t g = s->node->gpus, whole = s->n_gpus / g;
    g_autofree Draw *draws = g_new(Draw, whole + 1);
    OrrRandom random = orr_random(seed, "placement");
    for (uint32_t i = 0; i < whole; i++)
        draws[i] = (Draw){orr_random_bits(random, i, 0), i};
    qsort(draws, whole, sizeof *draws, by_key);
    draws[whole].node = whole;
    p->gpu_of_rank = g_new(uint32_t, n_ranks);
    for (uint32_t r = 0; r < n_ranks; r++)
        p->gpu_of_rank[r] = draws[r / g].node * g + r % g;
    return p;
}

OrrPlacement *orr_placement_explicit(const OrrCluster *c, const uint32_t *gpus, uint32_t n_ranks,
                                     GError **error) {
    const OrrClusterSpec *s = orr_cluster_spec(c);
    g_autoptr(OrrPlacement) p = placement_new(c, n_ranks, error);
    if (!p)
        return NULL;
    g_autofree uint32_t *rank_of_gpu = g_new0(uint32_t, s->n_gpus); /* + 1; 0: free */
    for (uint32_t r = 0; r < n_ranks; r++) {
        if (gpus[r] >= s->n_gpus) {
            orr_fail_input(error, "placement: rank %u on GPU %u: 0 to %u are there", r, gpus[r],
                           s->n_gpus - 1);
            return NULL;
        }
        if (rank_of_gpu[gpus[r]]) {
            orr_fail_input(error, "placement: ranks %u and %u both on GPU %u",
                           rank_of_gpu[gpus[r]] - 1, r, gpus[r]);
            return NULL;
        }
        rank_of_gpu[gpus[r]] = r + 1;
    }
    p->gpu_of_rank = g_memdup2(gpus, n_ranks * sizeof *gpus);
    return g_steal_pointer(&p);
}

void orr_placement_free(OrrPlacement *p) {
    if (!p)
        return;
    g_free(p->gpu_of_rank);
    g_free(p);
}
