/* Packing of gradients and the optimizer's update: both stream over parameters. What bytes an
 * update moves is the framework's (Adam on FP32 state with BF16 weights: reads gradient, master,
 * two moments, 16 bytes; writes the last three and the weight, 14 bytes). */
#include "sim/model/emit_priv.h"

#define READ_SHARE (16.0 / 30.0) /* of the update's traffic, from the count above */

static uint32_t launches_of(const OrrCtx *c, uint32_t n_tensors) {
    uint32_t n = c->f->optimizer_launches ? c->f->optimizer_launches : n_tensors;
    return MAX(n, 1);
}

void orr_emit_optimizer(const OrrEmit *e, OrrBuilder *b, uint64_t n_params, uint32_t n_tensors) {
    OrrCtx c = orr_emit__ctx(e, b, 0, ORR_F);
    /* the profile's traffic includes the pass of the norm, which is a kernel of its own before the
     * barrier (sim/lower/step.c) */
    bool has_norm = c.f->grad_norm || c.f->overflow_check;
    double norm = has_norm ? orr_dtype_bytes(e->precision->gradients) : 0;
    double bytes = (double)n_params * MAX(c.f->optimizer_bytes_per_param - norm, 0.0);
    orr_emit__stream(&c, ORR_K_OPTIMIZER, ORR_PASS_FORWARD, "optimizer", bytes * READ_SHARE,
                     bytes * (1.0 - READ_SHARE), launches_of(&c, n_tensors));
}

void orr_emit_pack_gradients(const OrrEmit *e, OrrBuilder *b, uint64_t n_params) {
    OrrCtx c = orr_emit__ctx(e, b, 0, ORR_B);
    orr_emit__stream(&c, ORR_K_GRADIENT, ORR_PASS_WGRAD, "gradient_pack", (double)n_params * c.size,
                     (double)n_params * orr_dtype_bytes(e->precision->reduce), 1);
}
