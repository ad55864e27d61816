/* The shipped constants. Rings, NVLS and pairs by architecture are fitted by
 * tests/fit_collectives.c to nccl-tests runs on one node (2, 4 and 8 GPUs, 0.5 KiB to 512 MiB: the
 * public tables of ai-dynamo/aiconfigurator; V100: VIA-Research/vTrain's all-reduce tables);
 * networks to published multi-node logs, named at each. Residuals: doc/models/collectives.md.
 * Laws read {launch_ns, step_ns, eff_frac, full_frac, full_bytes}. */
#include "sim/collective/constants.h"

static const OrrCollConstants shipped = {
    .arch = {[ORR_ARCH_VOLTA] = {.ring = {{11853, 1423, 0.4395, 0.412, 4500},
                                          {22671, 2349, 0.9113, 19.471, 14600000},
                                          {12994, 5051, 0.9265, 0.000, 130000}},
                                 .copy_bytes_per_s = 222e9,
                                 .reduce_copy_frac = 0.50,
                                 .nvls = {20000, 300, 0.8, 0.1, 500e3}, /* has none */
                                 .nvls_tree_frac = {1, 1},
                                 .nvls_channels = 8,
                                 .pairs_ll = {9000, 1300, 0.90, 0.25, 500e3}, /* as Ampere */
                                 .pairs = {6000, 1500, 0.78, 0.5, 500e3},     /* as Ampere */
                                 .pair_copy_bytes_per_s = 600e9,
                                 .n_channels = 12,
                                 .n_pair_channels = 12},
             [ORR_ARCH_AMPERE] = {.ring = {{7814, 945, 0.4990, 0.432, 5200},
                                           {12228, 34, 0.4806, 0.842, 9500},
                                           {23321, 5659, 0.8044, 0.986, 16000000}},
                                  .copy_bytes_per_s = 409e9,
                                  .reduce_copy_frac = 0.84,
                                  .nvls = {20000, 300, 0.8, 0.1, 500e3}, /* has none */
                                  .nvls_tree_frac = {1, 1},
                                  .nvls_channels = 8,
                                  .pairs_ll = {9885, 1188, 0.9500, 1.261, 87200},
                                  .pairs = {7679, 3081, 0.7150, 2.269, 1010000},
                                  .pair_copy_bytes_per_s = 685e9,
                                  .n_channels = 24,
                                  .n_pair_channels = 24},
             [ORR_ARCH_HOPPER] = {.ring = {{4519, 814, 0.3839, 0.197, 2100},
                                           {10038, 543, 0.7382, 0.688, 420000},
                                           {12051, 2781, 0.8301, 0.197, 3700}},
                                  .copy_bytes_per_s = 617e9,
                                  .reduce_copy_frac = 0.77,
                                  .nvls = {19628, 300, 0.6906, 3.633, 2190000},
                                  .nvls_tree_frac = {0.91,
                                                     0.91}, /* 252 GB/s on two nodes, OCI's log */
                                  .nvls_channels = 8,
                                  .pairs_ll = {5084, 1119, 0.9500, 0.563, 8900},
                                  .pairs = {6484, 2214, 0.7350, 2.585, 5440000},
                                  .pair_copy_bytes_per_s = 2461e9,
                                  .n_channels = 24,
                                  .n_pair_channels = 24},
             [ORR_ARCH_BLACKWELL] = {.ring = {{7495, 1241, 0.3214, 0.112, 1500},
                                              {10937, 974, 0.5499, 0.208, 3100},
                                              {11554, 7493, 0.8503, 0.043, 1400}},
                                     .copy_bytes_per_s = 983e9,
                                     .reduce_copy_frac = 1.08,
                                     .nvls = {30767, 298, 0.6057, 5.446, 6960000},
                                     /* H0085 to H0108: 2 and 20 racks of GB200 NVL72 */
                                     .nvls_tree_frac = {0.79, 0.41},
                                     .nvls_channels = 32,
                                     .pairs_ll = {8458, 830, 0.9500, 1.140, 67400},
                                     .pairs = {11586, 1869, 0.7146, 0.949, 5730000},
                                     .pair_copy_bytes_per_s = 719e9,
                                     .n_channels = 24,
                                     .n_pair_channels = 32},
             [ORR_ARCH_BLACKWELL_ULTRA] = {.ring = {{7061, 1254, 0.3388, 0.122, 2300},
                                                    {10937, 974, 0.5499, 0.208,
                                                     3100}, /* as Blackwell */
                                                    {8451, 6719, 0.8558, 0.257, 100}},
                                           .copy_bytes_per_s = 1104e9,
                                           .reduce_copy_frac = 1.08,
                                           .nvls = {29291, 303, 0.5696, 4.323, 5830000},
                                           .nvls_tree_frac = {0.79, 0.41}, /* as Blackwell */
                                           .nvls_channels = 32,
                                           .pairs_ll = {8463, 909, 0.2950, 2.334, 150000},
                                           .pairs = {12158, 1752, 0.7474, 1.203, 16000000},
                                           .pair_copy_bytes_per_s = 773e9,
                                           .n_channels = 24,
                                           .n_pair_channels = 32}},
    .net =
        {[ORR_NET_NONE] = {.eff_frac = 1},
         /* Hops of NCCL, src/graph/tuning.cc (2.7 to 5, 4 to 8.5, 14, trees 14 to 21 us) less the
          * wire; rate by H0065 to H0074 (386 of 400 GB/s); messages by H0617 (alltoall on 64
          * H800); LL by H0143 to H0150 (21 GB/s of size, 39 on a node's ring), as in llMaxBws of
          * tuning.cc. Short trees take a ring's hop here. */
         [ORR_NET_IB] = {{3000, 5000, 12000}, {3000, 5000, 16000}, 4000, 3000, 0.975, 39e9},
         /* IB, headers */
         [ORR_NET_ROCE] = {{3500, 5500, 13000}, {3500, 5500, 17000}, 4000, 3000, 0.955, 39e9},
         [ORR_NET_ETHERNET] =
             {{25000, 25000, 40000}, {25000, 25000, 60000}, 20000, 8000, 0.93, 39e9},
         /* Trees: nccl-tests log of two p4d (161 us for 8 B). Rings: its 238 to 309 us for 256 KiB
          * to 1 MiB, and gathers and all-reduces of two p5 (doc/models/collectives.md, "EFA"): four
          * hops over the net of an all-reduce, two of a gather. H0668 and H0669; 42 of 50 GB/s. */
         [ORR_NET_EFA] = {{20000, 15000, 15000}, {50000, 55000, 200000}, 6000, 3000, 0.88, 39e9},
         /* Trees and rings: H0109 to H0170; rings: all-gather of dstack's a3-megagpu example (167
          * us for 8 MiB). */
         [ORR_NET_TCPXO] =
             {{11500, 14000, 19000}, {35000, 40000, 400000}, 10000, 8000, 0.925, 39e9}},
    .pcie = {{8000, 1500, 0.40, 0.3, 4096},
             {10000, 3000, 0.7, 0.1, 500e3},
             {15000, 6000, 0.80, 0.3, 500e3}},
    .socket_bytes_per_s = 1.2e9, /* one TCP stream, about 10 Gb/s a core; cloud providers' guides */
    .tree_eff_frac = 0.85,       /* tuning.cc: factor of trees against rings since Hopper */
    .send_eff_frac = 0.86,       /* "8x A100 NVLink sendrecv": 195 of 300 GB/s */
    .lone_eff_frac = 0.965,      /* NVIDIA/nccl-tests issue 290: 46 to 48 GB/s a NDR NIC */
    .sharp_eff_frac = 0.5,       /* H0065 to H0074: a SHARP job at 195 of 400 GB/s */
    /* Messages that no kernel needs so long for, a GPU of eight A100: 4.3 us (nccl-tests logs of
     * NCCL 2.8, the same for all collectives and for 0 bytes), 5.2 (H0181 less its channel), 5.3
     * (NVIDIA/nccl issue 1809): mean 4.9. */
    .host_launch_ns = 4900,
    /* Those logs from 64 KiB to 1 MiB (36.0, 40, 47, 60, 75 us with 2, 4, 8, 16, 24 channels): 0.21
     * us; H0181 to H0188 0.31; vTrain's tables at 1 MiB, 11.6 us a GPU with 24 channels, 0.28. */
    .host_channel_ns = 270,
};

const OrrCollConstants *orr_coll_constants_default(void) {
    return &shipped;
}
