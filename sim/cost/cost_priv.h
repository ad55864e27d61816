/* Private to sim/cost. All times in ns as doubles, the whole kernel including its fixed cost. */
#ifndef ORR_COST_COST_PRIV_H
#define ORR_COST_COST_PRIV_H

#include "sim/cost/cost.h"

struct OrrCost {
    const OrrGpu *gpu;
    const OrrSurfaceSet *surfaces;
    double clock_frac; /* clock in use over boost */
};

double orr_cost__gemm_ns(const OrrCost *cost, const OrrKernel *k);
double orr_cost__attention_ns(const OrrCost *cost, const OrrKernel *k);
double orr_cost__streaming_ns(const OrrCost *cost, const OrrKernel *k);

/* Dense tensor-core peak for @dtype at boost; where the GPU has none, that of the nearest wider
 * type that it does have (a V100 runs BF16 as FP16; casts are other kernels). Above 0. */
double orr_cost__peak_flops_per_s(const OrrGpu *gpu, OrrDtype dtype);

#endif
