/* NCCL's tuner: time = latency + bytes / bandwidth with its static tables, dated by version.
 * Source of all numbers here: NCCL, src/graph/tuning.cc (2.7, 2.18, 2.28), src/graph/topo.h and
 * the speed arrays of src/graph/search.cc. Bandwidths in GB/s and latencies in microseconds, as
 * there. Its search for graphs is replaced by what it finds on the usual machines: a ring at four
 * fifths of the nominal NVLink rate (20 of 25 GB/s a link in topo.h), NICs at 48 of 50 GB/s. Left
 * out: PAT, mixed architectures, the processor's vendor (taken as Intel), plugins. */
#include "sim/collective/tuner.h"

#include <math.h>

enum { VOLTA, AMPERE, HOPPER, BLACKWELL, N_CAPS };
enum { NVLINK, PCI, NET, N_HW };

typedef struct {
    uint32_t version; /* from this one on */
    double base_us[ORR_N_ALGOS][ORR_N_PROTOS];
    double hop_us[N_HW][ORR_N_ALGOS][ORR_N_PROTOS];
    double ll_max[N_CAPS][3];         /* by 1, 2, 4 nodes */
    double ring_ll128_max[N_CAPS][3]; /* per channel */
    double tree_ll128_max[N_CAPS][3];
    double tree_max[N_CAPS][3];
    double nvls_tree_max[N_CAPS][3];
    double tree_total[3]; /* over all channels; 0: no limit */
    double nvls_eff[N_CAPS];
    double ring_ll_share, plateau;
} Table;

#define BASE_218                                                                                   \
    {                                                                                              \
        [ORR_ALGO_RING] = {6.6, 14.0, 8.4}, [ORR_ALGO_TREE] = { 6.8, 14.0, 8.4 }                   \
    }
#define HOPS_218                                                                                   \
    {                                                                                              \
        [NVLINK] = {[ORR_ALGO_RING] = {0.6, 1.9, 3.4},                                             \
                    [ORR_ALGO_TREE] = {0.6, 1.25, 4.0},                                            \
                    [ORR_ALGO_COLLNET_DIRECT] = {0, 0, 3.7},                                       \
                    [ORR_ALGO_COLLNET_CHAIN] = {0, 0, 2.8},                                        \
                    [ORR_ALGO_NVLS] = {0, 0, 25},                                                  \
                    [ORR_ALGO_NVLS_TREE] = {0, 0, 25}},                                            \
        [PCI] = {[ORR_ALGO_RING] = {1.0, 2.5, 5.7},                                                \
                 [ORR_ALGO_TREE] = {1.0, 1.9, 4.0},                                                \
                 [ORR_ALGO_COLLNET_DIRECT] = {0, 0, 3.7},                                          \
                 [ORR_ALGO_COLLNET_CHAIN] = {0, 0, 2.8}},                                          \
        [NET] = {                                                                                  \
            [ORR_ALGO_RING] = {2.7, 4.0, 14.0},                                                    \
            [ORR_ALGO_TREE] = {5.0, 8.5, 14.0},                                                    \
            [ORR_ALGO_COLLNET_DIRECT] = {0, 0, 31},                                                \
            [ORR_ALGO_COLLNET_CHAIN] = {0, 0, 30},                                                 \
            [ORR_ALGO_NVLS] = {0, 0, 18},                                                          \
            [ORR_ALGO_NVLS_TREE] = {0, 0, 20.9}                                                    \
        }                                                                                          \
    }

static const Table tables[] = {
    {.version = 0, /* NCCL 2.7 to 2.10, src/graph/tuning.cc; no NVLS, no Hopper */
     .base_us = {[ORR_ALGO_RING] = {3.6, 10.0, 8.4},
                 [ORR_ALGO_TREE] = {4.4, 4.4, 0.0},
                 [ORR_ALGO_COLLNET_CHAIN] = {4.4, 4.4, 0.0}},
     .hop_us = {[NVLINK] = {[ORR_ALGO_RING] = {0.47, 1.9, 3.4},
                            [ORR_ALGO_TREE] = {0.52, 1.2, 28.0},
                            [ORR_ALGO_COLLNET_CHAIN] = {0.5, 1.2, 4.0}},
                [PCI] = {[ORR_ALGO_RING] = {1.0, 2.5, 5.7},
                         [ORR_ALGO_TREE] = {1.0, 1.9, 28.0},
                         [ORR_ALGO_COLLNET_CHAIN] = {1.0, 1.9, 5.5}},
                [NET] = {[ORR_ALGO_RING] = {2.7, 4.0, 9.6},
                         [ORR_ALGO_TREE] = {5.0, 8.5, 50.0},
                         [ORR_ALGO_COLLNET_CHAIN] = {5.0, 5.0, 10.7}}},
     .ll_max = {{1e9, 1e9, 1e9}, {1e9, 1e9, 1e9}, {1e9, 1e9, 1e9}, {1e9, 1e9, 1e9}},
     .ring_ll128_max =
         {{16.7, 16.7, 16.7}, {16.7, 16.7, 16.7}, {16.7, 16.7, 16.7}, {16.7, 16.7, 16.7}},
     .tree_ll128_max = {{13, 13, 13}, {13, 13, 13}, {13, 13, 13}, {13, 13, 13}}, /* 7/9 of ring */
     .tree_max = {{1e9, 1e9, 1e9}, {1e9, 1e9, 1e9}, {1e9, 1e9, 1e9}, {1e9, 1e9, 1e9}},
     .tree_total = {110, 110, 80},
     .ring_ll_share = 0.25,
     .plateau = 1.9},
    {.version = 21800, /* NCCL 2.18 to 2.26, src/graph/tuning.cc */
     .base_us = BASE_218,
     .hop_us = HOPS_218,
     .ll_max = {{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141, 45, 35}, {282, 90, 70}},
     .ring_ll128_max = {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {73.4, 73.4, 73.4}},
     .tree_ll128_max = {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {73.4, 73.4, 58}},
     .tree_max = {{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {77.4, 82.8, 72}},
     .nvls_tree_max = {{26.5, 18.5, 10}, {24, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 115.4, 91}},
     .nvls_eff = {0, 0, 0.85, 0.74},
     .ring_ll_share = 0.5,
     .plateau = 1.4},
    {.version = 22700, /* NCCL 2.27 and 2.28, src/graph/tuning.cc */
     .base_us = BASE_218,
     .hop_us = HOPS_218,
     .ll_max = {{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141, 45, 35}, {282, 90, 70}},
     .ring_ll128_max = {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {40, 40, 40}},
     .tree_ll128_max = {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}},
     .tree_max = {{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}},
     .nvls_tree_max = {{26.5, 18.5, 10}, {24, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96, 43.8}},
     .nvls_eff = {0, 0, 0.85, 0.74},
     .ring_ll_share = 0.5,
     .plateau = 1.4}};

/* Share of its bandwidth that a tree is believed to reach, by log2(bytes / 64). */
static const double tree_correction[ORR_N_PROTOS][23] = {
    [ORR_PROTO_LL] = {1,  1,  1,  1,  .9, .8, .7, .7, .7, .7, .6, .5,
                      .4, .4, .5, .6, .7, .8, .9, 1,  1,  1,  1},
    [ORR_PROTO_LL128] = {1,  1,  1,  1,  1,  .9, .8, .8, .8, .7, .6, .6,
                         .6, .6, .6, .6, .8, .9, .9, .9, .9, 1,  1},
    [ORR_PROTO_SIMPLE] = {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
                          .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}};

/* What a network's own tuner plugin adds to a hop, LL, LL128 and Simple; Simple all-reduce again,
 * by trees: the plugins stay with LL up to 8 or 16 MiB on two nodes (published a3-megagpu log,
 * H0109 to H0170, and a log of two p4d), while gathers leave it early (dstack's a3-megagpu
 * example). */
static const double plugin_hop_us[ORR_N_NETS][ORR_N_PROTOS + 1] = {
    [ORR_NET_EFA] = {50, 55, 55, 200}, [ORR_NET_TCPXO] = {35, 40, 50, 400}};

static const Table *table_of(const OrrCollCase *c) {
    size_t i = sizeof(tables) / sizeof(tables[0]) - 1;
    while (c->force->version && i > 0 && c->force->version < tables[i].version)
        i--;
    return &tables[i];
}

static int cap_of(OrrArch arch) {
    static const int caps[ORR_N_ARCHS] = {VOLTA, AMPERE, HOPPER, BLACKWELL, BLACKWELL};
    return caps[arch];
}

/* Total rate of the ring channels inside a domain, GB/s: topo.h counts 20 to 20.6 (40.1) of 25
 * (50) GB/s a link, and 12 of 16 on PCIe. */
static double intra_total(const OrrCollCase *c) {
    bool pcie = orr_collective__is_pcie(c);
    return orr_collective__intra_bytes_per_s(c) / 1e9 * (pcie ? 0.75 : 0.8);
}

/* Of all NICs of a domain; 48 of 50 GB/s, 24 of 25 in the speed arrays of search.cc. */
static double inter_total(const OrrCollCase *c) {
    return orr_collective__nics(c) * orr_collective__nic_bytes_per_s(c) / 1e9 * 0.96;
}

/* Channels of the ring graph, after doubling (search.cc, connect.cc). On Blackwell inferred from
 * where the measured tables pass from LL to LL128 to Simple: NCCL 2.27.5 and 2.28 take LL128 for
 * 16 and 32 MiB gathers on 8 GPUs, the other versions only where it is best by far. */
static double n_channels(const OrrCollCase *c) {
    static const double intra[N_CAPS] = {12, 24, 24, 24};
    const OrrCommPlace *p = c->place;
    uint32_t v = c->force->version;
    if (orr_collective__is_pcie(c))
        return 2;
    if (p->n_domains > 1)
        return fmax(2, fmin(32, 2 * orr_collective__nics(c)));
    if (cap_of(p->arch) == BLACKWELL && v && (v < 22705 || v >= 22900))
        return 14;
    return intra[cap_of(p->arch)];
}

/* The NVLS graph: a channel per head, each GPU carries its own twice; the fastest entry of
 * search.cc's speed array that fits. Returns the channel's rate. */
static double nvls_channel(const OrrCollCase *c, double heads) {
    static const double hopper[] = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3, 0};
    static const double blackwell[] = {90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18, 0};
    const double *speed = cap_of(c->place->arch) == BLACKWELL ? blackwell : hopper;
    double limit = intra_total(c) / (heads + 1);
    while (*speed > limit)
        speed++;
    return *speed;
}

/* NVLS and NVLS tree: GB/s as NCCL's bus bandwidth over all channels. */
static double nvls_bus(const OrrCollCase *c, const Table *t, OrrAlgo algo) {
    const OrrCommPlace *p = c->place;
    int cap = cap_of(p->arch), scale = p->n_domains <= 2 ? (int)p->n_domains - 1 : 2;
    double heads = fmin(p->max_per_domain, 16); /* channels of the graph; most have 8 */
    double ppn = orr_collective__ppn(p);
    double bw = nvls_channel(c, heads) * t->nvls_eff[cap] * (heads - 1) / heads;
    bw *= c->kind == ORR_ALL_REDUCE ? 2 : (ppn - 1) / ppn;
    if (p->n_domains > 1) {
        double inter = inter_total(c) / heads;
        bw = fmin(bw, inter * (p->n_domains <= 2 && algo == ORR_ALGO_NVLS_TREE ? 2 : 1));
        if (algo == ORR_ALGO_NVLS_TREE)
            bw = fmin(bw, t->nvls_tree_max[cap][scale]);
    }
    return heads * bw;
}

static double ring_bus(const OrrCollCase *c, const Table *t, OrrProto proto, double total) {
    const OrrCommPlace *p = c->place;
    int cap = cap_of(p->arch), scale = p->n_domains <= 2 ? (int)p->n_domains - 1 : 2;
    if (proto == ORR_PROTO_LL)
        return fmin(total * t->ring_ll_share, t->ll_max[p->n_domains == 1 ? cap : VOLTA][scale]);
    if (proto == ORR_PROTO_LL128)
        return fmin(total * 0.92, n_channels(c) * t->ring_ll128_max[cap][scale]);
    return total;
}

static double tree_bus(const OrrCollCase *c, const Table *t, OrrProto proto, double total) {
    const OrrCommPlace *p = c->place;
    int cap = cap_of(p->arch), scale = p->n_domains <= 2 ? (int)p->n_domains - 1 : 2;
    double bus = fmin(total * 0.92, n_channels(c) * t->tree_max[cap][scale]);
    if (t->tree_total[scale] > 0)
        bus = fmin(bus, t->tree_total[scale]);
    if (proto == ORR_PROTO_LL)
        bus = fmin(bus / 3.8, t->ll_max[p->n_domains == 1 ? cap : VOLTA][scale]);
    if (proto == ORR_PROTO_LL128)
        bus = fmin(bus * (p->n_domains == 1 ? 7.0 / 9.0 : 120.0 / 128.0),
                   n_channels(c) * t->tree_ll128_max[cap][scale]);
    return bus;
}

/* Algorithm bandwidth in GB/s, as the tuner has it. */
static double bandwidth(const OrrCollCase *c, const Table *t, OrrAlgo algo, OrrProto proto) {
    const OrrCommPlace *p = c->place;
    double n = p->n_ranks, d = p->n_domains;
    double nsteps = c->kind == ORR_ALL_REDUCE                                    ? 2 * (n - 1)
                    : c->kind == ORR_ALL_GATHER || c->kind == ORR_REDUCE_SCATTER ? n - 1
                                                                                 : n;
    double intra = intra_total(c), inter = d > 1 ? inter_total(c) : intra;
    switch (algo) {
    case ORR_ALGO_RING:
        return ring_bus(c, t, proto, p->max_per_domain > 1 ? fmin(intra, inter) : inter) * n /
               nsteps;
    case ORR_ALGO_TREE:
        return tree_bus(c, t, proto,
                        p->max_per_domain > 1 ? fmin(intra, d == 2 ? 2 * inter : inter) : inter) *
               0.5;
    case ORR_ALGO_NVLS:
    case ORR_ALGO_NVLS_TREE:
        return nvls_bus(c, t, algo) * (c->kind == ORR_ALL_REDUCE ? n / nsteps : 1);
    case ORR_ALGO_COLLNET_DIRECT: {
        double factor = orr_collective__ppn(p) / fmax(1, orr_collective__nics(c));
        factor -= (factor - 1) / 2;
        return fmin(intra, inter) / factor * (cap_of(p->arch) >= HOPPER ? 0.85 : 1) * 0.5;
    }
    case ORR_ALGO_COLLNET_CHAIN:
        return fmin(intra, inter) * 0.5;
    case ORR_ALGO_DIRECT:
    case ORR_ALGO_HIERARCHICAL:
    case ORR_ALGO_PAIRWISE:
    case ORR_ALGO_NAIVE:
    case ORR_N_ALGOS:
        break;
    }
    return 0;
}

static double latency(const OrrCollCase *c, const Table *t, OrrAlgo algo, OrrProto proto) {
    const OrrCommPlace *p = c->place;
    double n = p->n_ranks, d = p->n_domains, local = floor(n / d);
    const double(*hop)[ORR_N_PROTOS] = t->hop_us[orr_collective__is_pcie(c) ? PCI : NVLINK];
    double base = t->base_us[algo][proto], intra = hop[algo][proto];
    /* With one rank a node nothing hides the network: the tree's hop is taken. */
    bool is_tuned = proto == ORR_PROTO_SIMPLE && c->kind == ORR_ALL_REDUCE;
    double inter = t->hop_us[NET][local <= 1 ? ORR_ALGO_TREE : algo][proto] +
                   plugin_hop_us[orr_collective__net(c)][is_tuned ? ORR_N_PROTOS : proto];
    double levels = orr_collective__log2(p->n_domains);
    switch (algo) {
    case ORR_ALGO_RING: {
        double steps = c->kind == ORR_ALL_REDUCE ? 2 * (n - 1) : n - 1;
        double across = d > 1 ? (c->kind == ORR_ALL_REDUCE ? 2 * (d - 1) : d - 1) : 0;
        if (c->kind == ORR_BROADCAST || c->kind == ORR_REDUCE)
            return base + (d > 1 ? inter : intra);
        if (d > 1) /* launching a network operation: 1 us, three times in Simple */
            intra = fmax(intra, proto == ORR_PROTO_SIMPLE ? 3.0 : 1.0);
        return base + (steps - across) * intra + across * inter;
    }
    case ORR_ALGO_TREE:
        return base + 2 * ((local - 1) * intra + levels * inter);
    case ORR_ALGO_NVLS:
        return intra + (d > 1 ? inter : 0);
    case ORR_ALGO_NVLS_TREE:
        return base + intra + 2 * levels * inter;
    case ORR_ALGO_COLLNET_DIRECT:
        return base + 2 * (fmin(1, local - 1) * intra + (local - 1) * 0.4) + inter;
    case ORR_ALGO_COLLNET_CHAIN:
        return base + 2 * (local - 1) * intra + inter;
    case ORR_ALGO_DIRECT:
    case ORR_ALGO_HIERARCHICAL:
    case ORR_ALGO_PAIRWISE:
    case ORR_ALGO_NAIVE:
    case ORR_N_ALGOS:
        break;
    }
    return 0;
}

double orr_tuner_time_us(const OrrCollCase *c, OrrAlgo algo, OrrProto proto) {
    const OrrCommPlace *p = c->place;
    const Table *t = table_of(c);
    double bw = bandwidth(c, t, algo, proto), lat = latency(c, t, algo, proto);
    if (bw <= 0)
        return -1;
    uint32_t log_size = orr_collective__log2((uint32_t)fmin(c->bytes / 64, 4e9));
    if (algo == ORR_ALGO_TREE && log_size < 23)
        bw *= tree_correction[proto][log_size];
    if (algo == ORR_ALGO_RING && proto == ORR_PROTO_SIMPLE && p->n_domains > 1 &&
        c->kind == ORR_ALL_REDUCE && c->bytes / (n_channels(c) * p->n_ranks) >= 64)
        lat *= cap_of(p->arch) < AMPERE ? 1.9 : t->plateau;
    return lat + c->bytes / (1000 * bw);
}
