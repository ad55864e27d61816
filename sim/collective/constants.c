/* The shipped constants. Rings, NVLS and pairs by architecture are fitted by
 * tests/fit_collectives.c to nccl-tests runs on one node (2, 4 and 8 GPUs, 0.5 KiB to 512 MiB: the
 * public tables of ai-dynamo/aiconfigurator; V100: VIA-Research/vTrain's all-reduce tables);
 * networks to published multi-node logs, named at each. Residuals: doc/models/collectives.md.
 * Laws read {launch_ns, step_ns, eff_frac, full_frac, full_bytes}. */
#include "sim/collective/constants.h"

static const OrrCollConstants shipped = {
    .arch =
        {[ORR_ARCH_VOLTA] = {.ring = {{11519, 1449, 0.4370, 0.405, 4600},
                                      {22691, 2341, 0.9108, 19.444, 14500000},
                                      {12995, 5050, 0.9265, 0.000, 120000}},
                             .copy_bytes_per_s = 222e9,
                             .nvls = {20000, 300, 0.8, 0.1, 500e3}, /* has none */
                             .nvls_tree_frac = {1, 1},
                             .nvls_channels = 8,
                             .pairs_ll = {9000, 1300, 0.90, 0.25, 500e3}, /* as Ampere */
                             .pairs = {6000, 1500, 0.78, 0.5, 500e3},   /* as Ampere */
                             .pair_copy_bytes_per_s = 600e9,
                             .n_channels = 12,
                             .n_pair_channels = 12},
         [ORR_ARCH_AMPERE] = {.ring = {{7818, 945, 0.4992, 0.432, 5200},
                                       {12268, 14, 0.4759, 0.865, 5700},
                                       {25414, 5031, 0.7684, 0.778, 16000000}},
                              .copy_bytes_per_s = 402e9,
                              .nvls = {20000, 300, 0.8, 0.1, 500e3}, /* has none */
                              .nvls_tree_frac = {1, 1},
                              .nvls_channels = 8,
                              .pairs_ll = {9889, 1186, 0.9500, 1.265, 87500},
                              .pairs = {7587, 3029, 0.7149, 2.299, 980000},
                              .pair_copy_bytes_per_s = 685e9,
                              .n_channels = 24,
                              .n_pair_channels = 24},
         [ORR_ARCH_HOPPER] = {.ring = {{4523, 813, 0.3822, 0.198, 2100},
                                       {12184, 640, 0.7272, 0.353, 540000},
                                       {12396, 2626, 0.8148, 0.197, 4200}},
                              .copy_bytes_per_s = 644e9,
                              .nvls = {19630, 300, 0.6905, 3.627, 2190000},
                              .nvls_tree_frac = {0.91, 0.91}, /* 252 GB/s on two nodes, OCI's log */
                              .nvls_channels = 8,
                              .pairs_ll = {5086, 1124, 0.9485, 0.571, 9300},
                              .pairs = {6491, 2213, 0.7350, 2.582, 5440000},
                              .pair_copy_bytes_per_s = 2462e9,
                              .n_channels = 24,
                              .n_pair_channels = 24},
         [ORR_ARCH_BLACKWELL] = {.ring = {{7509, 1239, 0.3145, 0.111, 1600},
                                          {7388, 1283, 0.4901, 0.079, 6200},
                                          {11964, 6880, 0.8052, 0.095, 1500}},
                                 .copy_bytes_per_s = 1091e9,
                                 .nvls = {30710, 300, 0.6057, 5.430, 6900000},
                                 /* H0085 to H0108: 2 and 20 racks of GB200 NVL72 */
                                 .nvls_tree_frac = {0.79, 0.41},
                                 .nvls_channels = 16,
                                 .pairs_ll = {8459, 828, 0.9433, 1.130, 66600},
                                 .pairs = {11582, 1871, 0.7130, 0.934, 5640000},
                                 .pair_copy_bytes_per_s = 720e9,
                                 .n_channels = 24,
                                 .n_pair_channels = 32},
         [ORR_ARCH_BLACKWELL_ULTRA] = {.ring = {{7095, 1251, 0.3352, 0.122, 2400},
                                                {5343, 1286, 0.5049, 0.083, 4100},
                                                {10188, 6773, 0.8004, 0.180, 700}},
                                       .copy_bytes_per_s = 1248e9,
                                       .nvls = {29310, 300, 0.5695, 4.314, 5820000},
                                       .nvls_tree_frac = {0.79, 0.41}, /* as Blackwell */
                                       .nvls_channels = 16,
                                       .pairs_ll = {8459, 910, 0.2928, 2.265, 150000},
                                       .pairs = {12160, 1750, 0.7471, 1.203, 16000000},
                                       .pair_copy_bytes_per_s = 774e9,
                                       .n_channels = 24,
                                       .n_pair_channels = 32}},
    .net = {[ORR_NET_NONE] = {.eff_frac = 1},
            /* Hops of NCCL, src/graph/tuning.cc (2.7 to 5, 4 to 8.5, 14, trees 14 to 21 us) less the
             * wire; rate by H0065 to H0074 (386 of 400 GB/s); messages by H0617 (alltoall on 64
             * H800); LL by H0143 to H0150 (21 GB/s of size, 39 on a node's ring), as in llMaxBws of
             * tuning.cc. */
            [ORR_NET_IB] = {{3000, 5000, 12000}, 16000, 4000, 3000, 0.975, 39e9},
            [ORR_NET_ROCE] = {{3500, 5500, 13000}, 17000, 4000, 3000, 0.955, 39e9}, /* IB, headers */
            [ORR_NET_ETHERNET] = {{25000, 25000, 40000}, 60000, 20000, 8000, 0.93, 39e9},
            /* nccl-tests log of two p4d (161 us for 8 B, 42 of 50 GB/s), H0668 and H0669. */
            [ORR_NET_EFA] = {{50000, 55000, 55000}, 200000, 6000, 3000, 0.88, 39e9},
            /* H0109 to H0170; all-gather of dstack's a3-megagpu example (167 us for 8 MiB). */
            [ORR_NET_TCPXO] = {{35000, 40000, 50000}, 400000, 10000, 8000, 0.925, 39e9}},
    .pcie = {{8000, 1500, 0.40, 0.3, 4096}, {10000, 3000, 0.7, 0.1, 500e3}, {15000, 6000, 0.80, 0.3, 500e3}},
    .socket_bytes_per_s = 1.2e9, /* one TCP stream, about 10 Gb/s a core; cloud providers' guides */
    .tree_eff_frac = 0.85,       /* tuning.cc: factor of trees against rings since Hopper */
    .send_eff_frac = 0.86,       /* "8x A100 NVLink sendrecv": 195 of 300 GB/s */
    .lone_eff_frac = 0.965,      /* NVIDIA/nccl-tests issue 290: 46 to 48 GB/s a NDR NIC */
    .sharp_eff_frac = 0.5,       /* H0065 to H0074: a SHARP job at 195 of 400 GB/s */
};

const OrrCollConstants *orr_coll_constants_default(void)
{
    return &shipped;
}
