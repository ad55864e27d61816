/* Pairwise: point-to-point sends, alone (send_recv) or one to every peer (all_to_all). A rank
 * reaches the network through its own NIC only; all its peers share that. Source: NCCL,
 * src/enqueue.cc (p2p scheduling); NVIDIA/nccl-tests issue 267. */
#include "sim/collective/algorithm.h"
#include "sim/collective/duration.h"

#include <math.h>

static void cost(const OrrCollCase *c, OrrProto proto, OrrCollPlan *plan) {
    const OrrCommPlace *p = c->place;
    const OrrCollArch *arch = &c->constants->arch[p->arch];
    double n = p->n_ranks, local = p->max_per_domain;
    bool all = c->kind == ORR_ALL_TO_ALL;
    double away = all ? (n - p->min_per_domain) / n : p->n_domains > 1 ? 1 : 0;
    /* Sends that follow one another: rounds of a domain's ranks overlap, those over the net too. */
    OrrCollWork work = {.law = proto == ORR_PROTO_LL ? &arch->pairs_ll : &arch->pairs,
                        .intra_steps = all ? log2(fmax(2, local)) : 1,
                        .inter_steps = away > 0 ? 1 : 0,
                        .nvlink_per_rank = all         ? (local - 1) / n
                                           : local > 1 ? 1
                                                       : 0,
                        .copy_per_rank = all ? 1 / n : 0,
                        .copy_bytes_per_s = arch->pair_copy_bytes_per_s,
                        .extra_per_rank =
                            all || local < 2 ? 0 : 1 / c->constants->send_eff_frac - 1,
                        .nic_per_nic = away * (all ? local / orr_collective__nics(c) : 1),
                        .messages = all ? n - p->min_per_domain : 1,
                        .n_channels = arch->n_pair_channels};
    orr_collective__price(c, proto, &work, plan);
}

const OrrAlgorithm orr_algorithm_pairwise = {
    .id = ORR_ALGO_PAIRWISE,
    .name = "pairwise",
    .summary = "A send to every peer; over the network through the rank's own NIC.",
    .source = "NCCL src/enqueue.cc; NVIDIA/nccl-tests issue 267",
    .collectives = ORR_BIT(ORR_ALL_TO_ALL) | ORR_BIT(ORR_SEND_RECV),
    .protos = ORR_BIT(ORR_PROTO_LL) | ORR_BIT(ORR_PROTO_SIMPLE),
    .is_nccl = true,
    .pattern = ORR_PATTERN_PAIRS,
    .cost = cost};
