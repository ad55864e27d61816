/* The analytic forms of kernel time that surfaces correct, as pure functions of shape: a roofline
 * with tile and wave quantisation for matrix products, the same over query tiles for fused
 * attention. sim/cost evaluates them, calibrate/ fits their parameters: one formula for both. */
#ifndef ORR_FACTS_FORMS_H
#define ORR_FACTS_FORMS_H

#include "sim/facts/surface.h"

/* Parameters of a matrix product, by place in OrrSurface.params. */
typedef enum {
    ORR_GEMM_PEAK,        /* FLOP/s, dense, all SMs, at the clock of the measurement */
    ORR_GEMM_SMS,         /* SMs that share the tiles */
    ORR_GEMM_HBM,         /* bytes/s */
    ORR_GEMM_FIXED,       /* ns: start and drain of the kernel */
    ORR_GEMM_EFF,         /* share of peak that the largest tile reaches within its main loop */
    ORR_GEMM_HBM_FRAC,    /* share of the HBM rate that operands stream at */
    ORR_GEMM_WAVE_FRAC,   /* how much of the last partial wave is lost: 0 none, 1 all of it */
    ORR_GEMM_K_EXTRA,     /* prologue and epilogue of a tile, in steps of k */
    ORR_GEMM_EFF_128,     /* rate of a 128 x 128 tile relative to 128 x 256 */
    ORR_GEMM_EFF_64,      /* of a 128 x 64 tile */
    ORR_GEMM_EFF_64_64,   /* of a 64 x 64 tile */
    ORR_GEMM_SPLIT,       /* ns: second kernel or barrier of split-K */
    ORR_GEMM_QUANT_BYTES, /* bytes of traffic per element of A that the measured path spends on
                             quantising it (0 for BF16): not part of the product itself */
    ORR_GEMM_QUANT_FIXED, /* ns of the same */
    ORR_N_GEMM_PARAMS
} OrrGemmParam;

typedef enum {
    ORR_ATTN_PEAK,
    ORR_ATTN_SMS,
    ORR_ATTN_HBM,
    ORR_ATTN_FIXED, /* as above */
    ORR_ATTN_EFF,   /* share of peak in the main loop */
    ORR_ATTN_HBM_FRAC,
    ORR_ATTN_WAVE_FRAC,
    ORR_ATTN_KV_EXTRA,   /* prologue and epilogue of a query tile, in keys */
    ORR_ATTN_PREP_BYTES, /* bytes of traffic per element of Q, K and V that the measured path spends
                            on rotary embedding and cache writes: not part of attention itself */
    ORR_N_ATTN_PARAMS
} OrrAttnParam;

typedef struct {
    double m, n, k, batch;
    double operand_bytes; /* of one element of A and B */
    double bytes;         /* HBM traffic of the whole kernel */
} OrrGemmShape;

typedef struct {
    double batch, heads, kv_heads, m, n; /* m queries, n keys */
    double dim_qk, dim_v;
    double bytes;
    double visited_frac; /* share of the mask's keys that are visited: below 1 with a window */
    bool is_causal;
} OrrAttnShape;

/* FLOPs of fused attention's backward pass over its forward: five products for two (Dao 2023,
 * FlashAttention-2, section 4.1). */
#define ORR_ATTN_BACKWARD_FLOPS 2.5

/* HBM traffic of C = A B with a 2-byte result (4 for FP32), perfect reuse. */
double orr_form_gemm_bytes(const OrrGemmShape *shape);
/* HBM traffic of fused attention forward: Q, K, V read, O written (2 bytes). */
double orr_form_attn_bytes(const OrrAttnShape *shape, double operand_bytes);
/* FLOPs of fused attention forward; a causal mask with m = n counts the lower triangle. */
double orr_form_attn_flops(const OrrAttnShape *shape);

/**
 * orr_form_gemm_ns: the product itself. @p: ORR_N_GEMM_PARAMS values.
 * @clock_frac: clock in use over that of the measurement; scales what the SMs do, not HBM.
 */
double orr_form_gemm_ns(const double *p, const OrrGemmShape *shape, double clock_frac);
/* What the measured path spends besides: quantising A. */
double orr_form_gemm_prep_ns(const double *p, const OrrGemmShape *shape);

double orr_form_attn_ns(const double *p, const OrrAttnShape *shape, double clock_frac);
double orr_form_attn_prep_ns(const double *p, const OrrAttnShape *shape);

/* Coordinates of a shape on the surface's axes: (m, n, k) of the product, batches stacked along
 * m; (keys, batch x heads, head size) of attention; all log2. */
void orr_form_gemm_place(const OrrGemmShape *shape, double x[ORR_SURFACE_AXES]);
void orr_form_attn_place(const OrrAttnShape *shape, double x[ORR_SURFACE_AXES]);

#endif
