/* Hierarchical all-reduce: reduce-scatter inside each domain, a ring over domains on every rail
 * for the own share, all-gather inside. The network carries 1/ranks-per-domain of a flat
 * exchange's bytes per NIC. Source: Jia et al., Highly scalable deep learning training system
 * with mixed-precision, arXiv 1807.11205, section 4; Goyal et al., arXiv 1706.02677, section 4. */
#include "sim/collective/algorithm.h"
#include "sim/collective/duration.h"

static const char *refuse(const OrrCollCase *c) {
    if (c->place->n_domains < 2)
        return "needs at least two domains";
    return c->place->min_per_domain != c->place->max_per_domain
               ? "needs the same number of ranks in every domain"
               : NULL;
}

static void cost(const OrrCollCase *c, OrrProto proto, OrrCollPlan *plan) {
    const OrrCommPlace *p = c->place;
    double local = p->max_per_domain, d = p->n_domains;
    double both = c->kind == ORR_ALL_REDUCE ? 2 : 1;
    const OrrCollArch *arch = &c->constants->arch[p->arch];
    OrrCollWork work = {.law = orr_collective__ring_law(c, proto),
                        .intra_steps = both * (local - 1),
                        .inter_steps = both * (d - 1),
                        .nvlink_per_rank = both * (local - 1) / local,
                        .nic_per_nic = both * (d - 1) / d / orr_collective__nics(c),
                        .n_channels = arch->n_channels};
    orr_collective__price(c, proto, &work, plan);
}

const OrrAlgorithm orr_algorithm_hierarchical = {
    .id = ORR_ALGO_HIERARCHICAL,
    .name = "hierarchical",
    .summary = "Reduce-scatter in the node, ring over nodes by rail, all-gather in the node.",
    .source = "Jia et al., arXiv 1807.11205, section 4",
    .collectives = ORR_BIT(ORR_ALL_REDUCE) | ORR_BIT(ORR_ALL_GATHER) | ORR_BIT(ORR_REDUCE_SCATTER),
    .protos = ORR_BIT(ORR_PROTO_SIMPLE),
    .pattern = ORR_PATTERN_RAIL,
    .refuse = refuse,
    .cost = cost};
