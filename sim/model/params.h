/* Parameter and FLOP counts, exact to the unit. */
#ifndef ORR_MODEL_PARAMS_H
#define ORR_MODEL_PARAMS_H

#include "sim/model/groups.h"

typedef struct {
    uint64_t embedding, position, layer, final_norm, head; /* layer: one layer; head: 0 if tied */
    uint64_t total, active;
} OrrParams;
/* Of the model as published (no vocabulary padding). */
void orr_params_count(const OrrModel *model, OrrParams *out);

#define ORR_MAX_MATRICES 7 /* q, k, v, output, gate, up, down */
/* Parameters that one TP rank holds: matrices split by TP, norms and row-parallel biases whole.
 * Padded vocabulary where the profile pads. */
typedef struct {
    uint64_t layer;          /* one layer */
    uint64_t layer_norms;    /* of these, replicated over TP (all-reduced over TP under SP) */
    uint64_t embedding;      /* token and position tables, embedding norm */
    uint64_t head;           /* final norm, output table (its copy, if tied and on another stage) */
    uint32_t layer_matrices; /* of them, weights of products */
    uint64_t matrix[ORR_MAX_MATRICES]; /* parameters of each, as the backward comes to them */
    uint32_t layer_tensors; /* parameter tensors of a layer: kernels of an unfused optimizer */
} OrrLocalParams;
void orr_params_local(const OrrModel *model, const OrrLayout *layout, const OrrFramework *framework,
                      OrrLocalParams *out);
uint64_t orr_params_padded_vocab(const OrrModel *model, const OrrLayout *layout,
                                 const OrrFramework *framework);

/* FLOPs of one step (B sequences of s tokens) by named formula, as the source prints them:
 * "megatron" (causal attention counted half), "megatron-full", "palm", "palm-causal", "6n", "mpt",
 * "sc21" (includes the recomputed forward), "torchtitan"; each documented with its source in
 * doc/models/flops.md. NULL-terminated. Errors: unknown formula. */
extern const char *const orr_flops_formulas[];
bool orr_flops_model(const char *formula, const OrrModel *model, const OrrBatch *batch,
                     double *flops, GError **error);
/* Share of that number that is model FLOPs, for the MFU: 0.75 for "sc21", else 1. */
double orr_flops_model_share(const char *formula);
/* The model's FLOPs and what recompute adds, by the same way of counting; "sc21": as it stands.
 * Block recompute runs recompute->layers of each chunk again: hence the layout. */
bool orr_flops_hardware(const char *formula, const OrrModel *model, const OrrLayout *layout,
                        const OrrBatch *batch, const OrrRecomputeSpec *recompute, double *flops,
                        GError **error);

#endif
