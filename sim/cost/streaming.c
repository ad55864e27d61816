/* Memory-bound kernels: bytes over the bandwidth that streaming reaches, and a fixed cost for each
 * device kernel. */
#include "sim/cost/cost_priv.h"

#include <math.h>

double orr_cost__streaming_ns(const OrrCost *cost, const OrrKernel *k) {
    const OrrGpu *gpu = cost->gpu;
    double bytes = k->bytes_read + k->bytes_written;
    double memory_ns = bytes / (gpu->hbm_bytes_per_s * gpu->mem_eff_frac) * 1e9;
    double vector_ns = gpu->vector_flops_per_s > 0.0 ? k->flops / gpu->vector_flops_per_s * 1e9 : 0.0;
    return fmax(memory_ns, vector_ns) + gpu->kernel_fixed_ns * (k->launches ? k->launches : 1);
}
