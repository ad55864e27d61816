/* Private to sim/cost. Times in ns as doubles, of the whole kernel with its fixed cost. */
#ifndef ORR_COST_COST_PRIV_H
#define ORR_COST_COST_PRIV_H

#include "sim/cost/cost.h"
#include "sim/facts/forms.h"

/* The analytic form with the numbers of this GPU, and the surface that corrects it. */
typedef struct {
    double params[16];
    const OrrSurface *surface; /* NULL: the form alone */
    double operand_bytes;
    char *origin;
} OrrCostModel;

enum { ORR_MASK_FULL, ORR_MASK_CAUSAL, ORR_N_MASKS };

struct OrrCost {
    const OrrGpu *gpu;
    double clock_frac;   /* clock in use over that of the rates; at most 1 */
    double throttled_ns; /* as in the surfaces */
    OrrCostModel gemm[ORR_N_DTYPES], gemm_block; /* gemm_block: FP8 with scales per 128 */
    OrrCostModel attn[ORR_N_DTYPES][ORR_N_MASKS];
    OrrCostModel attn_back[ORR_N_DTYPES][ORR_N_MASKS]; /* surface NULL: from the forward pass */
    bool is_training;                                  /* OrrSurfaceSet.is_training */
    OrrKernelRates rates;                              /* measured on this machine, or 0 */
    double fixed_ns;                                   /* of a kernel: measured, or the GPU's */
};

/* How the tensor cores of @gpu run @dtype: itself where there is a peak for it, else the next
 * that has one (a V100 runs BF16 as FP16). */
OrrDtype orr_cost__runs_as(const OrrGpu *gpu, OrrDtype dtype);

/* "surface gemm bf16 h100_sxm", with ", scaled to GPU" if measured on another; or "roofline". */
char *orr_cost__origin(const OrrGpu *gpu, const OrrSurfaceSet *set, const OrrSurface *surface);

/* Time of a measured kernel at the sustained clock, given @ns as the form and the surface have it
 * at cost->clock_frac: rows of long kernels were measured at the power limit already. */
double orr_cost__unthrottle(const OrrCost *cost, double ns);

void orr_cost__gemm_init(OrrCost *cost, const OrrSurfaceSet *set);
void orr_cost__attention_init(OrrCost *cost, const OrrSurfaceSet *set);
double orr_cost__gemm_ns(const OrrCost *cost, const OrrKernel *k);
double orr_cost__attention_ns(const OrrCost *cost, const OrrKernel *k);
double orr_cost__streaming_ns(const OrrCost *cost, const OrrKernel *k);

#endif
