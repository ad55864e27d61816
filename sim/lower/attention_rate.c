/* How fast a framework's attention library is, relative to the kernels that sim/cost times: on
 * Ampere FlashAttention-2, on later GPUs the measured tables' kernels, which are made for them.
 *
 * Sources: Dao, FlashAttention-2 (arXiv 2307.08691), section 4.1: FlashAttention-1 is about twice
 * as slow, its Triton version 1.3 to 1.5 times forward and about twice backward. FlashAttention-2
 * on later GPUs: measured there by its own benchmark script, in TFLOP/s at 8,192 tokens, against
 * the tables' causal kernel at the same length (medians; backward 0.86 of them, sim/cost). */
#include "sim/lower/lower_priv.h"

#include <math.h>

#define SMALL_HEAD 64.0 /* head sizes that were measured; between them by the logarithm */
#define LARGE_HEAD 128.0

/* Of FlashAttention-2 on each generation, forward and backward, at both head sizes. */
static const double flash2_rate[ORR_N_ARCHS][2][2] = {
    [ORR_ARCH_VOLTA] = {{1.0, 1.0}, {1.0, 1.0}}, /* no such kernels: as they are timed */
    [ORR_ARCH_AMPERE] = {{1.0, 1.0}, {1.0, 1.0}},
    /* head 64: 310 and 299 without a mask on H100 (flash-attention pull request 2688), of which
     * 0.92 and 0.99 with one, of 398 and 342; head 128: 284 and 287 (1791), of 487 and 419 */
    [ORR_ARCH_HOPPER] = {{0.72, 0.86}, {0.58, 0.69}},
    /* head 64: 360 and 329 without a mask on B200 (flash-attention issue 1589), of 642 and 552;
     * head 128: assumption, faster than on H100 as head 64 is: 330 and 316, of 979 and 842 */
    [ORR_ARCH_BLACKWELL] = {{0.52, 0.59}, {0.34, 0.38}},
    [ORR_ARCH_BLACKWELL_ULTRA] = {{0.52, 0.59}, {0.34, 0.38}},
};

/* Of each library, relative to FlashAttention-2 (paper, section 4.1). */
static const double library_rate[][2] = {
    [ORR_ATTENTION_FLASH2] = {1.0, 1.0},
    [ORR_ATTENTION_FLASH1] = {1.0 / 2.0, 1.0 / 2.0},
    [ORR_ATTENTION_TRITON] = {1.0 / 1.4, 1.0 / 2.0},
};

double orr_lower__attention_rate(OrrAttentionLibrary library, OrrArch arch, OrrKernelPass pass,
                                 double head_dim) {
    int is_backward = pass != ORR_PASS_FORWARD;
    if (library == ORR_ATTENTION_NATIVE)
        return 1.0;
    double at = log2(fmin(fmax(head_dim, SMALL_HEAD), LARGE_HEAD) / SMALL_HEAD);
    double small = flash2_rate[arch][0][is_backward], large = flash2_rate[arch][1][is_backward];
    return (small + at * (large - small)) * library_rate[library][is_backward];
}

int64_t orr_lower__kernel_ns(const OrrLowering *in, const OrrKernel *kernel) {
    int64_t ns = orr_cost_in_step_ns(in->cost, kernel);
    if (kernel->kind != ORR_K_ATTENTION)
        return ns;
    OrrArch arch = orr_cluster_spec(in->cluster)->node->gpu->arch;
    double rate = orr_lower__attention_rate(in->framework->attention_library, arch, kernel->pass,
                                            (double)kernel->k);
    return (int64_t)ceil((double)ns / rate);
}
