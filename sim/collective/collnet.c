/* CollNet: the fabric's switches reduce (SHARP), so that a domain sends its bytes up once and gets
 * the sum back once. Direct scatters over the ranks of a domain first; chain walks through them.
 * Source: Graham et al., SHARP, COMHPC 2016; NCCL, src/device/all_reduce.h (CollNet kernels). */
#include "sim/collective/algorithm.h"
#include "sim/collective/duration.h"

static const char *refuse(const OrrCollCase *c) {
    if (!c->place->has_sharp)
        return "needs in-network reduction (SHARP) in the fabric";
    if (!c->force->sharp_on)
        return "is off (NCCL_COLLNET_ENABLE=1 turns it on)";
    return c->place->n_domains < 2 ? "needs at least two domains" : NULL;
}

static const char *refuse_direct(const OrrCollCase *c) {
    const char *why = refuse(c);
    if (!why && c->place->nvlink != ORR_NVLINK_SWITCH)
        return "needs an NVLink switch in the node";
    return why;
}

static void price(const OrrCollCase *c, OrrProto proto, double steps, double volume,
                  OrrCollPlan *plan) {
    const OrrCommPlace *p = c->place;
    OrrCollWork work = {.law = orr_collective__ring_law(c, proto),
                        .intra_steps = steps,
                        .inter_steps = 2,
                        .nvlink_per_rank = volume,
                        .nic_per_nic = 1 / orr_collective__nics(c),
                        .nic_eff_frac = c->constants->sharp_eff_frac,
                        .n_channels = c->constants->arch[p->arch].n_channels};
    orr_collective__price(c, proto, &work, plan);
}

static void cost_direct(const OrrCollCase *c, OrrProto proto, OrrCollPlan *plan) {
    double n = c->place->max_per_domain;
    double volume = orr_collective_bus_factor(c->kind, (uint32_t)n);
    price(c, proto, n > 1 ? 2 : 0, volume, plan);
}

static void cost_chain(const OrrCollCase *c, OrrProto proto, OrrCollPlan *plan) {
    double n = c->place->max_per_domain;
    price(c, proto, 2 * (n - 1), n > 2 ? 2 : n - 1, plan);
}

const OrrAlgorithm orr_algorithm_collnet_direct = {
    .id = ORR_ALGO_COLLNET_DIRECT,
    .name = "collnet_direct",
    .summary = "Scatter over the node's ranks, reduction in the fabric's switches, gather.",
    .source = "Graham et al., COMHPC 2016; NCCL src/device/all_reduce.h",
    .collectives = ORR_BIT(ORR_ALL_REDUCE),
    .protos = ORR_BIT(ORR_PROTO_SIMPLE),
    .is_nccl = true,
    .pattern = ORR_PATTERN_RAIL,
    .refuse = refuse_direct,
    .cost = cost_direct};

const OrrAlgorithm orr_algorithm_collnet_chain = {
    .id = ORR_ALGO_COLLNET_CHAIN,
    .name = "collnet_chain",
    .summary = "Chain through the node's ranks, reduction in the fabric's switches, chain back.",
    .source = "Graham et al., COMHPC 2016; NCCL src/device/all_reduce.h",
    .collectives = ORR_BIT(ORR_ALL_REDUCE),
    .protos = ORR_BIT(ORR_PROTO_SIMPLE),
    .is_nccl = true,
    .pattern = ORR_PATTERN_TREE,
    .refuse = refuse,
    .cost = cost_chain};
