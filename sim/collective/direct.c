/* Direct: every rank exchanges with every other at once, one step for a gather or scatter, two for
 * an all-reduce (scatter-reduce, then gather). Least latency where a switch joins all ranks.
 * Source: Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in
 * MPICH, IJHPCA 2005. */
#include "sim/collective/algorithm.h"
#include "sim/collective/duration.h"

static const char *refuse(const OrrCollCase *c) {
    if (c->place->n_domains > 1)
        return "stays inside one NVLink domain";
    return c->place->nvlink == ORR_NVLINK_NONE ? "needs NVLink between all ranks" : NULL;
}

static void cost(const OrrCollCase *c, OrrProto proto, OrrCollPlan *plan) {
    const OrrCommPlace *p = c->place;
    const OrrCollArch *arch = &c->constants->arch[p->arch];
    OrrCollWork work = {.law = &arch->pairs,
                        .intra_steps = c->kind == ORR_ALL_REDUCE ? 2 : 1,
                        .nvlink_per_rank = orr_collective_bus_factor(c->kind, p->n_ranks),
                        .copy_per_rank = 1.0 / p->n_ranks,
                        .copy_bytes_per_s = arch->pair_copy_bytes_per_s,
                        .n_channels = arch->n_pair_channels};
    orr_collective__price(c, proto, &work, plan);
}

const OrrAlgorithm orr_algorithm_direct = {
    .id = ORR_ALGO_DIRECT,
    .name = "direct",
    .summary = "Every rank exchanges with every other at once inside one domain.",
    .source = "Thakur, Rabenseifner and Gropp, IJHPCA 2005",
    .collectives = ORR_BIT(ORR_ALL_REDUCE) | ORR_BIT(ORR_ALL_GATHER) | ORR_BIT(ORR_REDUCE_SCATTER),
    .protos = ORR_BIT(ORR_PROTO_SIMPLE),
    .pattern = ORR_PATTERN_PAIRS,
    .refuse = refuse,
    .cost = cost};
