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
 * @is_sustained: clocks as in a long step under the power limit (the default of `step`), else
 * boost.
 */
OrrCost *orr_cost_new(const OrrGpu *gpu, const OrrSurfaceSet *surfaces, bool is_sustained);
void orr_cost_free(OrrCost *cost);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrCost, orr_cost_free)
/* Dense peak of products in @dtype at boost, FLOP/s: of the tensor cores, for FP32 without such
 * ones of the vector units; 0: the GPU does not compute in it. */
double orr_cost_peak_flops_per_s(const OrrCost *cost, OrrDtype dtype);
/* Time on the GPU of kernel @k alone, without the host's launch; ns, rounded up, at least 1. */
int64_t orr_cost_kernel_ns(const OrrCost *cost, const OrrKernel *k);
/* The same between the other kernels of a training step, where kernels run slower than alone. */
int64_t orr_cost_in_step_ns(const OrrCost *cost, const OrrKernel *k);
/* "surface gemm bf16 h100_sxm", "roofline": where the time of @k comes from; owned by @cost. */
const char *orr_cost_origin(const OrrCost *cost, const OrrKernel *k);

/* A linear layer's forward as the measured tables time it: the product and, below BF16, the
 * quantisation of its input, which in a training step is a cast kernel of its own; @is_alone: the
 * product without it. For comparison with measurements. @is_block_scaled: FP8 with scales per 128.
 * Positive sizes. ns. */
double orr_cost_linear_ns(const OrrCost *cost, OrrDtype dtype, bool is_block_scaled, bool is_alone,
                          int64_t m, int64_t n, int64_t k);
/* Attention forward as the measured tables time it: with rotary embedding and cache writes. ns. */
double orr_cost_attention_op_ns(const OrrCost *cost, OrrDtype dtype, bool is_causal, int64_t batch,
                                int64_t seq_len, uint32_t heads, uint32_t kv_heads,
                                int64_t head_dim);

#endif
