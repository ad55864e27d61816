/* The activation between the up and the down product.
 *
 * Fused: one kernel (Megatron-LM bias_gelu, bias_swiglu). Eager gated: silu, then the product;
 * backward both gradients of the product, that of silu, and the join of the halves. An eager GELU
 * is one kernel all the same, its bias added by the GEMM. */
#include "sim/model/emit_priv.h"

static bool is_fused(const OrrCtx *c) {
    return c->f->fused_bias_gelu || c->f->compiled;
}

static void forward_kernels(OrrCtx *c) {
    double out = (double)(c->tokens * c->ffn) * c->size;
    if (!c->m->is_gated)
        orr_emit__stream(c, ORR_K_ACTIVATION, ORR_PASS_FORWARD, "gelu", out, out, 1);
    else if (is_fused(c))
        orr_emit__stream(c, ORR_K_ACTIVATION, ORR_PASS_FORWARD, "swiglu", 2.0 * out, out, 1);
    else
        orr_emit__stream(c, ORR_K_ACTIVATION, ORR_PASS_FORWARD, "swiglu", 3.0 * out, 2.0 * out, 2);
}

void orr_emit__activation_forward(OrrCtx *c) {
    forward_kernels(c);
    orr_emit__hold(c, ORR_ITEM_ACTIVATION);
    orr_emit__consumed(c, ORR_ITEM_UP);
}

void orr_emit__activation_again(OrrCtx *c) {
    forward_kernels(c);
    orr_emit__hold(c, ORR_ITEM_ACTIVATION);
}

void orr_emit__activation_backward(OrrCtx *c) {
    double out = (double)(c->tokens * c->ffn) * c->size;
    double up = (double)(c->tokens * c->up_width) * c->size;
    if (!c->m->is_gated)
        orr_emit__stream(c, ORR_K_ACTIVATION, ORR_PASS_DGRAD, "gelu", 2.0 * out, out, 1);
    else if (is_fused(c))
        orr_emit__stream(c, ORR_K_ACTIVATION, ORR_PASS_DGRAD, "swiglu", 3.0 * out, 2.0 * out, 1);
    else /* two products (2 + 1 each), silu (2 + 1), join (2 + 2) */
        orr_emit__stream(c, ORR_K_ACTIVATION, ORR_PASS_DGRAD, "swiglu", 8.0 * out, 5.0 * out, 4);
    orr_emit__temp(c, up);
    orr_emit__untemp(c, out); /* the gradient that came in */
    orr_emit__drop(c, ORR_ITEM_UP);
}
