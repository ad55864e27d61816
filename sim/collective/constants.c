/* The shipped constants. Rings, NVLS and pairs by architecture are fitted by
 * tests/fit_collectives.c to nccl-tests runs on one node (2, 4 and 8 GPUs, 0.5 KiB to 512 MiB: the
 * public tables of ai-dynamo/aiconfigurator; V100: VIA-Research/vTrain's all-reduce tables);
 * networks to published multi-node logs, named at each. Residuals: doc/models/collectives.md.
 * Laws read {launch_ns, step_ns, eff_frac, ramp_ns, full_frac}. */
#include "sim/collective/constants.h"

static const OrrCollConstants shipped = {
    .arch =
        {[ORR_ARCH_VOLTA] = {.ring = {{7346, 1505, 0.4415, 506, 0.433},
                                      {11988, 3363, 0.7818, 395, 0.117},
                                      {11780, 4642, 0.9265, 0, 0.097}},
                             .copy_bytes_per_s = 222e9,
                             .nvls = {20000, 300, 0.8, 300, 0.1}, /* has none */
                             .nvls_tree_frac = {1, 1},
                             .nvls_channels = 8,
                             .pairs_ll = {9000, 1300, 0.90, 500, 0.25}, /* as Ampere */
                             .pairs = {6000, 1500, 0.78, 15000, 0.5},   /* as Ampere */
                             .pair_copy_bytes_per_s = 600e9,
                             .n_channels = 12,
                             .n_pair_channels = 12},
         [ORR_ARCH_AMPERE] = {.ring = {{7779, 935, 0.5894, 972, 0.355},
                                       {12336, 3, 0.4860, 213, 0.732},
                                       {21198, 3619, 0.7883, 7296, 0.002}},
                              .copy_bytes_per_s = 499e9,
                              .nvls = {20000, 300, 0.8, 300, 0.1}, /* has none */
                              .nvls_tree_frac = {1, 1},
                              .nvls_channels = 8,
                              .pairs_ll = {9123, 1315, 0.95, 100, 0.259},
                              .pairs = {3793, 95, 0.7737, 20022, 2.182},
                              .pair_copy_bytes_per_s = 1069e9,
                              .n_channels = 24,
                              .n_pair_channels = 24},
         [ORR_ARCH_HOPPER] = {.ring = {{4568, 827, 0.4781, 750, 0.129},
                                       {12942, 593, 0.7438, 615, 0.021},
                                       {10814, 1984, 0.8338, 1318, 0.164}},
                              .copy_bytes_per_s = 751e9,
                              .nvls = {7260, 303, 0.7802, 56080, 0.253},
                              .nvls_tree_frac = {0.87, 0.87}, /* H0668: 237 GB/s on two nodes */
                              .nvls_channels = 8,
                              .pairs_ll = {5092, 977, 0.95, 5027, 0.349},
                              .pairs = {8233, 652, 0.7667, 5234, 0.008},
                              .pair_copy_bytes_per_s = 2613e9,
                              .n_channels = 24,
                              .n_pair_channels = 24},
         [ORR_ARCH_BLACKWELL] = {.ring = {{7623, 1277, 0.3633, 342, 0.064},
                                          {5343, 1286, 0.5049, 281, 0.083},
                                          {13088, 7532, 0.8051, 0, 0}},
                                 .copy_bytes_per_s = 1091e9,
                                 .nvls = {16365, 444, 0.6420, 85188, 0},
                                 /* H0085 to H0108: 2 and 20 racks of GB200 NVL72 */
                                 .nvls_tree_frac = {0.76, 0.39},
                                 .nvls_channels = 12,
                                 .pairs_ll = {8319, 800, 0.95, 9238, 0.137},
                                 .pairs = {9760, 1049, 0.7478, 2796, 0.209},
                                 .pair_copy_bytes_per_s = 762e9,
                                 .n_channels = 24,
                                 .n_pair_channels = 32},
         [ORR_ARCH_BLACKWELL_ULTRA] = {.ring = {{7175, 1277, 0.4063, 689, 0.066},
                                                {5343, 1286, 0.5049, 281, 0.083},
                                                {11998, 7958, 0.8001, 0, 0.004}},
                                       .copy_bytes_per_s = 1249e9,
                                       .nvls = {15792, 300, 0.6556, 84507, 0.002},
                                       .nvls_tree_frac = {0.76, 0.39}, /* as Blackwell */
                                       .nvls_channels = 12,
                                       .pairs_ll = {8590, 616, 0.95, 75471, 0.012},
                                       .pairs = {11696, 1363, 0.7604, 1212, 0.011},
                                       .pair_copy_bytes_per_s = 766e9,
                                       .n_channels = 24,
                                       .n_pair_channels = 32}},
    .net = {[ORR_NET_NONE] = {.eff_frac = 1},
            /* Hops of NCCL, src/graph/tuning.cc (2.7 to 5, 4 to 8.5, 14 us) less the wire; rate by
             * H0065 to H0074 (386 of 400 GB/s); messages by H0617 (alltoall on 64 H800). */
            [ORR_NET_IB] = {{3000, 5000, 12000}, 4000, 3000, 0.975, 5000},
            [ORR_NET_ROCE] = {{3500, 5500, 13000}, 4000, 3000, 0.955, 5000}, /* IB less headers */
            [ORR_NET_ETHERNET] = {{25000, 25000, 40000}, 20000, 8000, 0.93, 40000},
            [ORR_NET_EFA] = {{10000, 12000, 20000}, 6000, 3000, 0.93, 10000},   /* H0668, H0669 */
            [ORR_NET_TCPXO] = {{35000, 40000, 400000}, 10000, 8000, 0.925, 0}}, /* H0109 to H0170 */
    .pcie = {{8000, 1500, 0.40, 500, 0.3}, {10000, 3000, 0.7, 500, 0.1}, {15000, 6000, 0.80, 4000, 0}},
    .socket_bytes_per_s = 1.2e9, /* one TCP stream, about 10 Gb/s a core; cloud providers' guides */
    .tree_eff_frac = 0.85,       /* tuning.cc: factor of trees against rings since Hopper */
    .sharp_eff_frac = 0.5,       /* H0065 to H0074: a SHARP job at 195 of 400 GB/s */
};

const OrrCollConstants *orr_coll_constants_default(void)
{
    return &shipped;
}
