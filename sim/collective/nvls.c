/* NVLS: the NVLink switch reduces what it reads from all ranks and multicasts what is written.
 * Rank j owns a chunk of n: it reads the sum of it through the switch (every rank sends its part)
 * and writes the result once, to all. NVLS over several domains reduces in the fabric too
 * (SHARP); NVLS tree sends each owner's chunk up and down a double tree over its own rail.
 * Source: Klenk et al., An in-network architecture for accelerating shared-memory multiprocessor
 * collectives, ISCA 2020; NCCL, src/device/all_reduce.h (NVLS kernels). */
#include "sim/collective/algorithm.h"
#include "sim/collective/duration.h"

/* Of one head in one channel (NCCL, src/enqueue.cc: 64 KiB along trees of four nodes and more). */
#define CHUNK_BYTES (64.0 * 1024)

static const char *refuse(const OrrCollCase *c) {
    if (!c->place->has_nvls || c->place->nvlink != ORR_NVLINK_SWITCH)
        return "needs NVLink SHARP in the switch";
    if (c->force->nvls_off)
        return "is off (NCCL_NVLS_ENABLE=0)";
    if (c->kind != ORR_ALL_GATHER && (c->dtype == ORR_INT8 || c->dtype == ORR_FP8))
        return "cannot reduce one-byte types in the switch";
    if (c->place->min_per_domain < 2)
        return "needs at least two ranks in every domain";
    return NULL;
}

static const char *refuse_one(const OrrCollCase *c) {
    const char *why = refuse(c);
    if (!why && c->place->n_domains > 1 && (!c->place->has_sharp || !c->force->sharp_on))
        return "needs in-network reduction (SHARP, NCCL_COLLNET_ENABLE=1) to leave the domain";
    return why;
}

static const char *refuse_tree(const OrrCollCase *c) {
    const char *why = refuse(c);
    return !why && c->place->n_domains < 2 ? "needs at least two domains" : why;
}

/* Bytes through a rank's link, the busier direction, per byte of size. */
static double volume(OrrCollective kind, double n) {
    return kind == ORR_ALL_REDUCE ? 1 + 1 / n : 1;
}

/* A channel's loop over a domain: each of the ranks' heads a chunk. */
static double loop_bytes(const OrrCollCase *c) {
    return CHUNK_BYTES * c->constants->arch[c->place->arch].nvls_channels *
           c->place->max_per_domain;
}

static void cost(const OrrCollCase *c, OrrProto proto, OrrCollPlan *plan) {
    const OrrCommPlace *p = c->place;
    const OrrCollArch *arch = &c->constants->arch[p->arch];
    bool out = p->n_domains > 1;
    OrrCollWork work = {.law = &arch->nvls,
                        .intra_steps = p->max_per_domain,
                        .inter_steps = out ? 2 : 0,
                        .nvlink_per_rank = volume(c->kind, p->max_per_domain),
                        .nic_per_nic = out ? 1 / orr_collective__nics(c) : 0,
                        .nic_eff_frac = c->constants->sharp_eff_frac,
                        .fill_bytes = loop_bytes(c),
                        .n_channels = arch->n_channels};
    orr_collective__price(c, proto, &work, plan);
}

static void cost_tree(const OrrCollCase *c, OrrProto proto, OrrCollPlan *plan) {
    const OrrCommPlace *p = c->place;
    const OrrCollArch *arch = &c->constants->arch[p->arch];
    double moved = volume(c->kind, p->max_per_domain);
    OrrCollWork work = {.law = &arch->nvls,
                        .intra_steps = p->max_per_domain,
                        .inter_steps = 2 * orr_collective__log2(p->n_domains),
                        .is_tree = true,
                        .nvlink_per_rank = moved,
                        .extra_per_rank = moved * (1 / arch->nvls_tree_frac[p->n_domains > 2] - 1),
                        .nic_per_nic =
                            orr_collective__tree_nic_volume(p->n_domains) / orr_collective__nics(c),
                        .fill_bytes = loop_bytes(c),
                        .n_channels = arch->n_channels};
    orr_collective__price(c, proto, &work, plan);
}

const OrrAlgorithm orr_algorithm_nvls = {
    .id = ORR_ALGO_NVLS,
    .name = "nvls",
    .summary = "The NVLink switch reduces and multicasts; with SHARP also over nodes.",
    .source = "Klenk et al., ISCA 2020; NCCL src/device/all_reduce.h",
    .collectives = ORR_BIT(ORR_ALL_REDUCE) | ORR_BIT(ORR_ALL_GATHER) | ORR_BIT(ORR_REDUCE_SCATTER),
    .protos = ORR_BIT(ORR_PROTO_SIMPLE),
    .is_nccl = true,
    .pattern = ORR_PATTERN_SWITCH,
    .refuse = refuse_one,
    .cost = cost};

const OrrAlgorithm orr_algorithm_nvls_tree = {
    .id = ORR_ALGO_NVLS_TREE,
    .name = "nvls_tree",
    .summary = "NVLS inside each domain, a double tree over domains on every rail.",
    .source = "NCCL src/device/all_reduce.h, 2.18",
    .collectives = ORR_BIT(ORR_ALL_REDUCE),
    .protos = ORR_BIT(ORR_PROTO_SIMPLE),
    .is_nccl = true,
    .pattern = ORR_PATTERN_TREE,
    .refuse = refuse_tree,
    .cost = cost_tree};
