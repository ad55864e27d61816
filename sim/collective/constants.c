/* The shipped constants. Rings, NVLS and pairs by architecture are fitted by
 * calibrate/fit_collectives.c to nccl-tests runs on one node (2, 4 and 8 GPUs, 0.5 KiB to 512 MiB;
 * the public tables of ai-dynamo/aiconfigurator); networks to the published multi-node logs. The
 * residuals are in doc/models/collectives.md. */
#include "sim/collective/constants.h"

static const OrrCollConstants shipped = {
    .arch =
        {[ORR_ARCH_VOLTA] = {.ring = {{5000, 1000, 0.30, 0}, {8000, 2000, 0.75, 0},
                                      {15000, 4000, 0.91, 2000}},
                             .copy_frac = 0.3,
                             .nvls = {20000, 1000, 0.8, 0},
                             .pairs = {8000, 2000, 0.8, 2000},
                             .n_channels = 12, .n_pair_channels = 12},
         [ORR_ARCH_AMPERE] = {.ring = {{8000, 1000, 0.30, 0}, {8000, 2000, 0.65, 0},
                                       {15000, 4000, 0.78, 4000}},
                              .copy_frac = 0.33,
                              .nvls = {20000, 1000, 0.8, 0},
                              .pairs = {10000, 1000, 0.72, 4000},
                              .n_channels = 24, .n_pair_channels = 24},
         [ORR_ARCH_HOPPER] = {.ring = {{4500, 800, 0.38, 0}, {4500, 2300, 0.68, 0},
                                       {12000, 4000, 0.81, 2000}},
                              .copy_frac = 0.33,
                              .nvls = {20000, 1000, 0.66, 2000},
                              .pairs = {6500, 500, 0.75, 4000},
                              .n_channels = 24, .n_pair_channels = 24},
         [ORR_ARCH_BLACKWELL] = {.ring = {{6500, 1200, 0.30, 0}, {6500, 2500, 0.60, 0},
                                          {15000, 5000, 0.76, 4000}},
                                 .copy_frac = 0.33,
                                 .nvls = {25000, 2000, 0.58, 4000},
                                 .pairs = {9000, 500, 0.70, 6000},
                                 .n_channels = 24, .n_pair_channels = 32},
         [ORR_ARCH_BLACKWELL_ULTRA] = {.ring = {{6500, 1200, 0.30, 0}, {6500, 2500, 0.60, 0},
                                                {15000, 5000, 0.76, 4000}},
                                       .copy_frac = 0.33,
                                       .nvls = {25000, 2000, 0.58, 4000},
                                       .pairs = {9000, 500, 0.70, 6000},
                                       .n_channels = 24, .n_pair_channels = 32}},
    .net = {[ORR_NET_NONE] = {{0, 0, 0}, 0, 1, 0},
            [ORR_NET_IB] = {{4000, 5000, 9000}, 5000, 0.97, 20000},
            [ORR_NET_ROCE] = {{4000, 5000, 9000}, 5000, 0.95, 20000},
            [ORR_NET_ETHERNET] = {{25000, 25000, 40000}, 20000, 0.93, 40000}},
    .pcie = {{8000, 1500, 0.30, 0}, {10000, 3000, 0.7, 0}, {15000, 6000, 0.80, 4000}},
    .socket_bytes_per_s = 1.2e9, /* one TCP stream, about 10 Gb/s a core; cloud providers' guides */
    .tree_eff_frac = 0.85,       /* tuning.cc: factor of trees against rings since Hopper */
};

const OrrCollConstants *orr_coll_constants_default(void)
{
    return &shipped;
}
