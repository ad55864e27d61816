/* The shipped constants. Rings, NVLS and pairs by architecture are fitted by
 * tests/fit_collectives.c to nccl-tests runs on one node (2, 4 and 8 GPUs, 0.5 KiB to 512 MiB: the
 * public tables of ai-dynamo/aiconfigurator; V100: VIA-Research/vTrain's all-reduce tables);
 * networks to published multi-node logs, named at each. Residuals: doc/models/collectives.md.
 * Laws read {launch_ns, step_ns, eff_frac, ramp_ns, full_frac}. */
#include "sim/collective/constants.h"

static const OrrCollConstants shipped = {
    .arch =
        {[ORR_ARCH_VOLTA] = {.ring = {{8000, 1500, 0.45, 500, 0.30},
                                      {10000, 2000, 0.75, 500, 0.10},
                                      {18000, 4000, 0.91, 2000, 0.05}},
                             .copy_bytes_per_s = 600e9,
                             .nvls = {20000, 300, 0.8, 300, 0.1}, /* has none */
                             .nvls_tree_frac = {1, 1},
                             .nvls_channels = 8,
                             .pairs_ll = {9000, 1300, 0.90, 500, 0.25}, /* as Ampere */
                             .pairs = {6000, 1500, 0.78, 15000, 0.5},   /* as Ampere */
                             .pair_copy_bytes_per_s = 600e9,
                             .n_channels = 12,
                             .n_pair_channels = 12},
         [ORR_ARCH_AMPERE] = {.ring = {{7775, 936, 0.5787, 776, 0.360},
                                       {16258, 503, 0.5538, 557, 0.186},
                                       {21608, 5095, 0.7660, 3070, 0.005}},
                              .copy_bytes_per_s = 485e9,
                              .nvls = {20000, 300, 0.8, 300, 0.1}, /* has none */
                              .nvls_tree_frac = {1, 1},
                              .nvls_channels = 8,
                              .pairs_ll = {9130, 1315, 0.95, 111, 0.257},
                              .pairs = {3606, 156, 0.7796, 20399, 2.173},
                              .pair_copy_bytes_per_s = 983e9,
                              .n_channels = 24,
                              .n_pair_channels = 24},
         [ORR_ARCH_HOPPER] = {.ring = {{4566, 828, 0.4754, 701, 0.131},
                                       {12889, 591, 0.7448, 635, 0.022},
                                       {11337, 2066, 0.8298, 1062, 0.134}},
                              .copy_bytes_per_s = 740e9,
                              .nvls = {7300, 300, 0.7876, 59149, 0.210},
                              .nvls_tree_frac = {0.87, 0.87}, /* H0668: 237 GB/s on two nodes */
                              .nvls_channels = 8,
                              .pairs_ll = {5101, 965, 0.95, 5573, 0.351},
                              .pairs = {8167, 650, 0.7670, 5239, 0.016},
                              .pair_copy_bytes_per_s = 2597e9,
                              .n_channels = 24,
                              .n_pair_channels = 24},
         [ORR_ARCH_BLACKWELL] = {.ring = {{7630, 1273, 0.3618, 333, 0.066},
                                          {20000, 1500, 0.6500, 917, 0.011},
                                          {15032, 6077, 0.7863, 0, 0}},
                                 .copy_bytes_per_s = 1152e9,
                                 .nvls = {20500, 300, 0.6375, 66388, 0},
                                 /* H0085 to H0108: 2 and 20 racks of GB200 NVL72 */
                                 .nvls_tree_frac = {0.76, 0.39},
                                 .nvls_channels = 14,
                                 .pairs_ll = {8320, 800, 0.95, 9259, 0.137},
                                 .pairs = {9739, 1049, 0.7468, 2779, 0.211},
                                 .pair_copy_bytes_per_s = 763e9,
                                 .n_channels = 24,
                                 .n_pair_channels = 32},
         [ORR_ARCH_BLACKWELL_ULTRA] = {.ring = {{7157, 1277, 0.4194, 858, 0.065},
                                                {20000, 1500, 0.6500, 917, 0.011},
                                                {12820, 7316, 0.7926, 0, 0.003}},
                                       .copy_bytes_per_s = 1279e9,
                                       .nvls = {15800, 300, 0.6556, 84478, 0.002},
                                       .nvls_tree_frac = {0.76, 0.39}, /* as Blackwell */
                                       .nvls_channels = 14,
                                       .pairs_ll = {8611, 607, 0.95, 72238, 0.016},
                                       .pairs = {11655, 1376, 0.7603, 1202, 0.013},
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
