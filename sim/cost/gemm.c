/* GEMM: roofline with tile and wave quantisation over the SMs. */
#include "sim/cost/cost_priv.h"

#include <math.h>

double orr_cost__peak_flops_per_s(const OrrGpu *gpu, OrrDtype dtype) {
    /* each row: what runs the dtype, in order of preference */
    static const OrrDtype ladder[ORR_N_DTYPES][4] = {
        [ORR_FP32] = {ORR_FP32, ORR_FP32, ORR_FP32, ORR_FP32},
        [ORR_TF32] = {ORR_TF32, ORR_FP32, ORR_FP32, ORR_FP32},
        [ORR_BF16] = {ORR_BF16, ORR_FP16, ORR_FP32, ORR_FP32},
        [ORR_FP16] = {ORR_FP16, ORR_BF16, ORR_FP32, ORR_FP32},
        [ORR_FP8] = {ORR_FP8, ORR_BF16, ORR_FP16, ORR_FP32},
        [ORR_FP4] = {ORR_FP4, ORR_FP8, ORR_BF16, ORR_FP16},
        [ORR_INT8] = {ORR_INT8, ORR_FP8, ORR_FP16, ORR_BF16},
    };
    for (int i = 0; i < 4; i++) {
        double peak = gpu->peak_flops_per_s[ladder[dtype][i]];
        if (peak > 0.0)
            return peak;
    }
    return gpu->vector_flops_per_s;
}

double orr_cost__gemm_ns(const OrrCost *cost, const OrrKernel *k) {
    const OrrGpu *gpu = cost->gpu;
    if (k->m <= 0 || k->n <= 0 || k->k <= 0 || k->batch < 0)
        return gpu->kernel_fixed_ns;
    double batch = k->batch > 0 ? (double)k->batch : 1.0;
    double per_sm = orr_cost__peak_flops_per_s(gpu, k->dtype) / gpu->n_sms * cost->clock_frac;
    double tiles = ceil((double)k->m / 128) * ceil((double)k->n / 128) * batch;
    double waves = ceil(tiles / gpu->n_sms);
    double compute_ns = waves * 2.0 * 128 * 128 * (double)k->k / (per_sm * 0.88) * 1e9;
    double bytes = k->bytes_read + k->bytes_written;
    double memory_ns = bytes / (gpu->hbm_bytes_per_s * gpu->mem_eff_frac) * 1e9;
    return fmax(compute_ns, memory_ns) + gpu->kernel_fixed_ns * (k->launches ? k->launches : 1);
}
