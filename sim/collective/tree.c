/* Double binary tree over domains, a chain inside each: two trees carry half of the bytes each,
 * inner nodes of one are leaves of the other. Source: Sanders, Speck, Traff, Two-tree algorithms
 * for full bandwidth broadcast, reduction and scan, Parallel Computing 2009; NCCL,
 * src/graph/trees.cc. */
#include "sim/collective/algorithm.h"
#include "sim/collective/duration.h"

#include <math.h>

double orr_collective__tree_nic_volume(uint32_t n_domains) {
    /* Each tree edge carries half of the bytes up and half down. Two domains have one edge in
     * each tree; with three one domain is an inner node twice at most (1.5); with more an inner
     * node has three edges in one tree and one in the other. */
    return n_domains < 2 ? 0 : n_domains == 2 ? 1 : n_domains == 3 ? 1.5 : 2;
}

static void cost(const OrrCollCase *c, OrrProto proto, OrrCollPlan *plan) {
    const OrrCommPlace *p = c->place;
    double ppn = p->max_per_domain;
    /* A chain's middle ranks send all bytes up and all down; with two ranks only one way each. */
    double chain = ppn > 2 ? 2 : ppn > 1 ? 1 : 0;
    OrrCollWork work = {.law = orr_collective__ring_law(c, proto),
                        .intra_steps = 2 * (ppn - 1),
                        .inter_steps = 2 * orr_collective__log2(p->n_domains),
                        .is_tree = true,
                        .nvlink_per_rank = chain,
                        .extra_per_rank = chain * (1 / c->constants->tree_eff_frac - 1),
                        .nic_per_nic =
                            orr_collective__tree_nic_volume(p->n_domains) / orr_collective__nics(c),
                        .n_channels = c->constants->arch[p->arch].n_channels};
    orr_collective__price(c, proto, &work, plan);
}

const OrrAlgorithm orr_algorithm_tree = {
    .id = ORR_ALGO_TREE,
    .name = "tree",
    .summary = "Double binary tree over nodes, chain inside; latency grows with log of nodes.",
    .source = "Sanders, Speck and Traff, Parallel Computing 2009; NCCL src/graph/trees.cc",
    .collectives = ORR_BIT(ORR_ALL_REDUCE),
    .protos = ORR_BIT(ORR_PROTO_LL) | ORR_BIT(ORR_PROTO_LL128) | ORR_BIT(ORR_PROTO_SIMPLE),
    .is_nccl = true,
    .pattern = ORR_PATTERN_TREE,
    .cost = cost};
