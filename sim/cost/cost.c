/* Kernel times: dispatch by kind. */
#include "sim/cost/cost.h"

#include "sim/cost/cost_priv.h"

#include <math.h>

OrrCost *orr_cost_new(const OrrGpu *gpu, const OrrSurfaceSet *surfaces, bool is_sustained) {
    g_assert(gpu && gpu->n_sms > 0);
    OrrCost *cost = g_new0(OrrCost, 1);
    cost->gpu = gpu;
    cost->surfaces = surfaces;
    cost->clock_frac = 1.0;
    if (is_sustained && gpu->sustained_hz > 0.0 && gpu->boost_hz > 0.0)
        cost->clock_frac = fmin(1.0, gpu->sustained_hz / gpu->boost_hz);
    return cost;
}

void orr_cost_free(OrrCost *cost) {
    g_free(cost);
}

int64_t orr_cost_kernel_ns(const OrrCost *cost, const OrrKernel *k) {
    double ns = 0.0;
    switch ((OrrKernelKind)k->kind) {
    case ORR_K_GEMM:
    case ORR_K_GROUPED_GEMM:
    case ORR_K_BATCHED_GEMM:
        ns = orr_cost__gemm_ns(cost, k);
        break;
    case ORR_K_ATTENTION:
        ns = orr_cost__attention_ns(cost, k);
        break;
    case ORR_K_SOFTMAX:
    case ORR_K_NORM:
    case ORR_K_ROTARY:
    case ORR_K_ACTIVATION:
    case ORR_K_RESIDUAL:
    case ORR_K_DROPOUT:
    case ORR_K_EMBEDDING:
    case ORR_K_CROSS_ENTROPY:
    case ORR_K_ROUTER:
    case ORR_K_PERMUTE:
    case ORR_K_CAST:
    case ORR_K_COPY:
    case ORR_K_GRADIENT:
    case ORR_K_OPTIMIZER:
    case ORR_N_KERNEL_KINDS:
        ns = orr_cost__streaming_ns(cost, k);
        break;
    }
    return (int64_t)fmax(1.0, ceil(ns));
}

const char *orr_cost_origin(const OrrCost *cost, const OrrKernel *k) {
    (void)cost;
    (void)k;
    return "roofline";
}
