/* Kernel times: efficiency surfaces fitted from measurements where there are any, else a roofline
 * with tile and wave quantisation, HBM bytes, and a fixed cost per kernel. No clock, no files. */
#ifndef ORR_COST_COST_H
#define ORR_COST_COST_H

#include "sim/cluster/gpu.h"
#include "sim/facts/surface.h"
#include "sim/program/program.h"

typedef struct OrrCost OrrCost;
/**
 * orr_cost_new: @gpu and @surfaces are borrowed for the life of the cost. @surfaces may be NULL or
 * lack a kind or dtype: then the roofline serves and orr_cost_origin says so.
 * @is_sustained: clocks as in a long step under the power limit (the default of `step`), else boost.
 */
OrrCost *orr_cost_new(const OrrGpu *gpu, const OrrSurfaceSet *surfaces, bool is_sustained);
void orr_cost_free(OrrCost *cost);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrCost, orr_cost_free)
/* Time on the GPU of kernel @k alone, without the host's launch; ns, rounded up, at least 1. */
int64_t orr_cost_kernel_ns(const OrrCost *cost, const OrrKernel *k);
/* "surface gemm bf16 h100_sxm", "roofline": where the time of @k comes from; static text. */
const char *orr_cost_origin(const OrrCost *cost, const OrrKernel *k);

#endif
