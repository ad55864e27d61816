/* How fast a framework's attention library is, relative to the kernels that sim/cost times: on
 * Ampere FlashAttention-2, on later GPUs the measured tables' kernels, which are made for them.
 *
 * Sources: Dao, FlashAttention-2 (arXiv 2307.08691), section 4.1: FlashAttention-1 is about twice
 * as slow, its Triton version 1.3 to 1.5 times forward and about twice backward; PyTorch blog on
 * FlashAttention-3 (2024-07-11): FlashAttention-2 reaches 35 % of H100's peak, FlashAttention-3
 * is 1.5 to 1.75 times as fast backward. */
#include "sim/lower/lower_priv.h"

#include <math.h>

/* Of FlashAttention-2 on each generation, forward and backward. */
static const double flash2_rate[ORR_N_ARCHS][2] = {
    [ORR_ARCH_VOLTA] = {1.0, 1.0}, /* no such kernels: as they are timed */
    [ORR_ARCH_AMPERE] = {1.0, 1.0},
    /* 346 of 564 TFLOP/s, the tables' best causal kernel; backward 1 / 1.625, the blog's middle */
    [ORR_ARCH_HOPPER] = {0.61, 0.62},
    /* assumption: its instructions run as fast as on Hopper: 346 of 1,209 TFLOP/s */
    [ORR_ARCH_BLACKWELL] = {0.29, 0.29},
    [ORR_ARCH_BLACKWELL_ULTRA] = {0.29, 0.29},
};

/* Of each library, relative to FlashAttention-2 (paper, section 4.1). */
static const double library_rate[][2] = {
    [ORR_ATTENTION_FLASH2] = {1.0, 1.0},
    [ORR_ATTENTION_FLASH1] = {1.0 / 2.0, 1.0 / 2.0},
    [ORR_ATTENTION_TRITON] = {1.0 / 1.4, 1.0 / 2.0},
};

double orr_lower__attention_rate(OrrAttentionLibrary library, OrrArch arch, OrrKernelPass pass) {
    int is_backward = pass != ORR_PASS_FORWARD;
    if (library == ORR_ATTENTION_NATIVE)
        return 1.0;
    return flash2_rate[arch][is_backward] * library_rate[library][is_backward];
}

int64_t orr_lower__kernel_ns(const OrrLowering *in, const OrrKernel *kernel) {
    int64_t ns = orr_cost_in_step_ns(in->cost, kernel);
    if (kernel->kind != ORR_K_ATTENTION)
        return ns;
    OrrArch arch = orr_cluster_spec(in->cluster)->node->gpu->arch;
    return (int64_t)ceil((double)ns / orr_lower__attention_rate(in->framework->attention_library,
                                                                arch, kernel->pass));
}
