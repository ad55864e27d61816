/* Fused attention: roofline. */
#include "sim/cost/cost_priv.h"

#include <math.h>

double orr_cost__attention_ns(const OrrCost *cost, const OrrKernel *k) {
    const OrrGpu *gpu = cost->gpu;
    double peak = orr_cost__peak_flops_per_s(gpu, k->dtype) * cost->clock_frac;
    double share = k->pass == ORR_PASS_FORWARD ? 0.6 : 0.5;
    double compute_ns = k->flops / (peak * share) * 1e9;
    double bytes = k->bytes_read + k->bytes_written;
    double memory_ns = bytes / (gpu->hbm_bytes_per_s * gpu->mem_eff_frac) * 1e9;
    return fmax(compute_ns, memory_ns) + gpu->kernel_fixed_ns * (k->launches ? k->launches : 1);
}
