/* Naive all-reduce: every rank sends all its bytes to every other and sums for itself. Its volume
 * grows with the ranks, n - 1 times the bytes against 2(n-1)/n of a ring: here to show why not. */
#include "sim/collective/algorithm.h"
#include "sim/collective/duration.h"

static void cost(const OrrCollCase *c, OrrProto proto, OrrCollPlan *plan) {
    const OrrCommPlace *p = c->place;
    const OrrCollArch *arch = &c->constants->arch[p->arch];
    double n = p->n_ranks, local = p->max_per_domain;
    double away = n - p->min_per_domain;
    OrrCollWork work = {.law = &arch->pairs,
                        .intra_steps = 1,
                        .inter_steps = away > 0 ? 1 : 0,
                        .nvlink_per_rank = local - 1,
                        .nic_per_nic = away > 0 ? away * local / orr_collective__nics(c) : 0,
                        .n_channels = arch->n_pair_channels};
    orr_collective__price(c, proto, &work, plan);
}

const OrrAlgorithm orr_algorithm_naive = {
    .id = ORR_ALGO_NAIVE,
    .name = "naive",
    .summary = "Every rank sends everything to every other: n - 1 times the bytes.",
    .source = "counting; the baseline in Patarasuk and Yuan, JPDC 2009",
    .collectives = ORR_BIT(ORR_ALL_REDUCE),
    .protos = ORR_BIT(ORR_PROTO_SIMPLE),
    .pattern = ORR_PATTERN_PAIRS,
    .cost = cost};
