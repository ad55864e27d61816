/* Memory-bound kernels: bytes over the bandwidth that streaming reaches, and a fixed cost for each
 * device kernel. What the kernel before has just written is read from L2 as far as it fits. */
#include "sim/cost/cost_priv.h"

#include <math.h>

double orr_cost__streaming_ns(const OrrCost *cost, const OrrKernel *k) {
    const OrrGpu *gpu = cost->gpu;
    double rate = gpu->hbm_bytes_per_s * (gpu->mem_eff_frac > 0.0 ? gpu->mem_eff_frac : 1.0);
    double memory_ns = (k->bytes_read + k->bytes_written) / rate * 1e9;
    double vector_ns = gpu->vector_flops_per_s > 0.0
                           ? k->flops / (gpu->vector_flops_per_s * cost->clock_frac) * 1e9
                           : 0.0;
    double launches = k->launches > 1 ? k->launches : 1.0;
    return fmax(memory_ns, vector_ns) + gpu->kernel_fixed_ns * launches;
}
