/* Ring: chunks go round, reduced on the first lap and copied on the second. Source: Patarasuk and
 * Yuan, Bandwidth optimal all-reduce algorithms, JPDC 2009; NCCL, src/device/all_reduce.h. */
#include "sim/collective/algorithm.h"
#include "sim/collective/duration.h"

/* Laps of the ring: hops of one chunk. */
static double hops(OrrCollective kind, double n) {
    return kind == ORR_ALL_REDUCE ? 2 * (n - 1) : n - 1;
}

/* Those of them that leave a domain, for the last chunk to arrive. A lap has one a domain and a
 * chunk spares one hop of each lap: for chunks that begin inside a domain that is one inside, too
 * (both of an all-reduce, if a domain has three members). A broadcast begins with its domain. */
static double net_hops(const OrrCollCase *c) {
    const OrrCommPlace *p = c->place;
    bool is_rooted = c->kind == ORR_BROADCAST || c->kind == ORR_REDUCE;
    double d = p->n_domains;
    if (p->n_domains == 1)
        return 0;
    if (p->max_per_domain == 1 || is_rooted)
        return hops(c->kind, d);
    return c->kind != ORR_ALL_REDUCE ? d : p->max_per_domain == 2 ? 2 * d - 1 : 2 * d;
}

/* A gather or scatter reads and writes the rank's own share; an all-reduce mostly writes it, in the
 * hop that ends the reduction. */
static double own_copies(OrrCollective kind, const OrrCollArch *arch) {
    return kind == ORR_ALL_GATHER || kind == ORR_REDUCE_SCATTER ? 1
           : kind == ORR_ALL_REDUCE                             ? arch->reduce_copy_frac
                                                                : 0;
}

static void cost(const OrrCollCase *c, OrrProto proto, OrrCollPlan *plan) {
    const OrrCommPlace *p = c->place;
    double n = p->n_ranks, d = p->n_domains;
    double volume = orr_collective_bus_factor(c->kind, p->n_ranks);
    double steps = hops(c->kind, n);
    double inter = net_hops(c);
    const OrrCollArch *arch = &c->constants->arch[p->arch];
    OrrCollWork work = {.law = orr_collective__ring_law(c, proto),
                        .intra_steps = steps - inter,
                        .inter_steps = inter,
                        .nvlink_per_rank = p->max_per_domain > 1 ? volume : 0,
                        .copy_per_rank = own_copies(c->kind, arch) / n,
                        .copy_bytes_per_s = arch->copy_bytes_per_s,
                        .nic_per_nic = d > 1 ? volume / orr_collective__nics(c) : 0,
                        .n_channels = arch->n_channels};
    orr_collective__price(c, proto, &work, plan);
}

const OrrAlgorithm orr_algorithm_ring = {
    .id = ORR_ALGO_RING,
    .name = "ring",
    .summary = "Chunks go round a ring; least bytes on every link, latency grows with ranks.",
    .source = "Patarasuk and Yuan, JPDC 2009; NCCL src/device/all_reduce.h",
    .collectives = ORR_BIT(ORR_ALL_REDUCE) | ORR_BIT(ORR_ALL_GATHER) | ORR_BIT(ORR_REDUCE_SCATTER) |
                   ORR_BIT(ORR_BROADCAST) | ORR_BIT(ORR_REDUCE),
    .protos = ORR_BIT(ORR_PROTO_LL) | ORR_BIT(ORR_PROTO_LL128) | ORR_BIT(ORR_PROTO_SIMPLE),
    .is_nccl = true,
    .pattern = ORR_PATTERN_RING,
    .cost = cost};
