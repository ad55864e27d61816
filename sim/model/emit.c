/* One layer, forward and backward.
 *
 * Sequential: norm, attention, residual, norm, MLP, residual (GPT-2, Llama). Parallel: both on the
 * layer's input, their partial sums added and reduced once (GPT-J, GPT-NeoX, Falcon). With norms
 * behind attention and MLP as Gemma 2 has them. Each backward ends on the compute stream with the
 * kernel behind which the layer's gradients are final. Backward order of a weight half: down, up,
 * out, qkv. */
#include "sim/model/emit.h"

#include "sim/model/emit_priv.h"

static double here(const OrrCtx *c) {
    return (double)(c->tokens_here * c->hidden);
}

/* Output of a row-parallel product before it is reduced. */
static double output_bytes(const OrrCtx *c) {
    return (double)(c->tokens * c->hidden) * c->size;
}

/* Bias, dropout, residual: one kernel, or one each (an eager bias is a kernel only where the sum
 * over TP stands between it and its product). */
static void residual_forward(OrrCtx *c, bool has_bias, OrrItem mask) {
    double n = here(c), e = c->size, r = c->residual_size;
    bool has_dropout = c->f->dropout > 0.0;
    double mask_bytes = has_dropout && c->f->store_dropout_mask ? n : 0.0;
    if (c->f->fused_bias_dropout_add || c->f->compiled) {
        orr_emit__stream(c, ORR_K_RESIDUAL, ORR_PASS_FORWARD, "residual", n * (e + r),
                         n * r + mask_bytes, 1);
    } else {
        double n_before = (has_dropout ? 1.0 : 0.0) + (has_bias && c->tp > 1 ? 1.0 : 0.0);
        orr_emit__stream(c, ORR_K_RESIDUAL, ORR_PASS_FORWARD, "residual",
                         n * (e + r + n_before * e), n * (r + n_before * e) + mask_bytes,
                         1 + (uint32_t)n_before);
    }
    orr_emit__hold(c, mask);
    orr_emit__consumed(c, mask);
}

static void residual_backward(OrrCtx *c, bool has_bias, OrrItem mask, double grad_bytes) {
    double n = here(c), e = c->size;
    orr_emit__temp_next(c, grad_bytes);
    if (c->f->dropout > 0.0) {
        orr_emit__stream(c, ORR_K_DROPOUT, ORR_PASS_DGRAD, "dropout",
                         n * (e + (c->f->store_dropout_mask ? 1.0 : 0.0)), n * e, 1);
        orr_emit__drop(c, mask);
    }
    if (has_bias)
        orr_emit__stream(c, ORR_K_GRADIENT, ORR_PASS_WGRAD, "bias_grad", n * e, 0.0, 1);
}

static void post_norm_forward(OrrCtx *c, OrrItem input) {
    if (!c->m->has_post_norms)
        return;
    orr_emit__norm_forward(c, "post_norm", here(c));
    orr_emit__hold(c, input);
    orr_emit__consumed(c, input);
}

static void post_norm_backward(OrrCtx *c, OrrItem input) {
    if (!c->m->has_post_norms)
        return;
    orr_emit__norm_backward(c, "post_norm", here(c), false);
    orr_emit__drop(c, input);
}

/* To the output product, whose partial sums stay. */
static void attention_products(OrrCtx *c) {
    OrrLinear qkv = orr_emit__qkv(c), out = orr_emit__out(c);
    orr_emit__linear_forward(c, &qkv);
    orr_emit__hold(c, ORR_ITEM_QKV);
    if (!(c->m->is_parallel && c->m->shares_norm))
        orr_emit__consumed(c, ORR_ITEM_NORM1_OUT);
    orr_emit__attention_forward(c);
    orr_emit__linear_forward(c, &out);
    orr_emit__temp(c, output_bytes(c));
    orr_emit__consumed(c, ORR_ITEM_CONTEXT);
}

static void mlp_to_activation(OrrCtx *c) {
    OrrLinear up = orr_emit__up(c);
    orr_emit__linear_forward(c, &up);
    orr_emit__hold(c, ORR_ITEM_UP);
    if (c->m->is_parallel && c->m->shares_norm)
        orr_emit__consumed(c, ORR_ITEM_NORM1_OUT);
    orr_emit__consumed(c, ORR_ITEM_NORM2_OUT);
    orr_emit__activation_forward(c);
}

/* Its partial sums stay. */
static void down_product(OrrCtx *c) {
    OrrLinear down = orr_emit__down(c);
    orr_emit__linear_forward(c, &down);
    orr_emit__temp(c, output_bytes(c));
    orr_emit__consumed(c, ORR_ITEM_ACTIVATION);
}

/* @holds_input: false where the checkpoint holds it already. */
static void forward_norm1(OrrCtx *c, bool holds_input) {
    orr_emit__norm_forward(c, "norm1", here(c));
    if (holds_input)
        orr_emit__hold(c, ORR_ITEM_LAYER_INPUT);
    orr_emit__hold(c, ORR_ITEM_NORM1_OUT);
}

/* torch.compile makes one kernel of both. */
static void residual_and_norm2(OrrCtx *c) {
    double n = here(c), e = c->size, r = c->residual_size;
    if (c->f->compiled) {
        double mask = (double)orr_emit__item_bytes(c, ORR_ITEM_MASK1);
        orr_emit__stream(c, ORR_K_NORM, ORR_PASS_FORWARD, "residual_norm2", n * (e + r),
                         n * (r + e) + mask, 1);
        orr_emit__hold(c, ORR_ITEM_MASK1);
        orr_emit__consumed(c, ORR_ITEM_MASK1);
    } else
        residual_forward(c, c->m->out_bias, ORR_ITEM_MASK1);
    orr_emit__hold(c, ORR_ITEM_NORM2_IN);
    orr_emit__untemp_sent(c, output_bytes(c));
    if (!c->f->compiled)
        orr_emit__norm_forward(c, "norm2", here(c));
    orr_emit__hold(c, ORR_ITEM_NORM2_OUT);
}

/* Behind the activation only the residual's dropout mask and a post-norm's input are needed by the
 * backward: without these a checkpoint that stops early ends there (PyTorch, non-reentrant). */
static bool stops_early(const OrrCtx *c, bool holds_input) {
    bool is_again = !holds_input;
    return is_again && c->f->recompute_early_stop && c->f->dropout == 0.0 && !c->m->has_post_norms;
}

static void forward_sequential(OrrCtx *c, bool holds_input) {
    double left = 1.0 - c->f->tp_overlap_frac;
    forward_norm1(c, holds_input);
    attention_products(c);
    orr_emit__reduce_output(c, "out", left);
    post_norm_forward(c, ORR_ITEM_POST_NORM1_IN);
    residual_and_norm2(c);
    mlp_to_activation(c);
    if (stops_early(c, holds_input)) {
        orr_emit__consumed(c, ORR_ITEM_ACTIVATION);
        return;
    }
    down_product(c);
    orr_emit__reduce_output(c, "ffn2", left);
    post_norm_forward(c, ORR_ITEM_POST_NORM2_IN);
    residual_forward(c, c->m->mlp_bias, ORR_ITEM_MASK2);
    orr_emit__consumed(c, ORR_ITEM_NORM2_IN);
    orr_emit__untemp_sent(c, output_bytes(c));
}

static void forward_parallel(OrrCtx *c, bool holds_input) {
    double n = (double)(c->tokens * c->hidden) * c->size;
    forward_norm1(c, holds_input);
    if (!c->m->shares_norm) {
        orr_emit__norm_forward(c, "norm2", here(c));
        orr_emit__hold(c, ORR_ITEM_NORM2_OUT);
    }
    attention_products(c);
    mlp_to_activation(c);
    down_product(c);
    orr_emit__stream(c, ORR_K_RESIDUAL, ORR_PASS_FORWARD, "branch_add", 2.0 * n, n, 1);
    orr_emit__untemp(c, n);
    orr_emit__reduce_output(c, "branches", 1.0);
    residual_forward(c, c->m->out_bias || c->m->mlp_bias, ORR_ITEM_MASK2);
    orr_emit__untemp(c, n);
}

static void forward(OrrCtx *c, bool holds_input) {
    if (c->m->is_parallel)
        forward_parallel(c, holds_input);
    else
        forward_sequential(c, holds_input);
    g_assert(c->after == ORR_NONE);
}

void orr_emit_layer_forward(const OrrEmit *e, OrrBuilder *b, uint32_t layer, bool recompute_all) {
    OrrCtx c = orr_emit__ctx(e, b, layer, ORR_F);
    c.is_storing = !recompute_all;
    orr_emit__host(&c);
    forward(&c, true);
}

/* Gathers the gradient of what was scattered: needed by both gradients of the product. */
static void gather_gradient(OrrCtx *c, const char *label) {
    double share = c->f->tp_overlap_frac;
    if (!c->is_sp)
        return;
    if (c->f->tp_own_shard_first)
        share = 1.0;
    orr_emit__coll_blocking(c, ORR_ALL_GATHER, output_bytes(c) * (1.0 - share), label);
    c->beside = orr_emit__coll(c, ORR_ALL_GATHER, output_bytes(c) * share, label);
}

static void norm_again(OrrCtx *c, OrrItem output, const char *label) {
    if (orr_emit__keeps(c, output))
        return;
    orr_emit__norm_forward(c, label, here(c));
    orr_emit__hold(c, output);
}

static void mlp_products_backward(OrrCtx *c) {
    OrrLinear up = orr_emit__up(c), down = orr_emit__down(c);
    if (!orr_emit__keeps(c, ORR_ITEM_ACTIVATION))
        orr_emit__activation_again(c);
    orr_emit__linear_backward(c, &down);
    orr_emit__activation_backward(c);
    if (!(c->m->is_parallel && c->m->shares_norm))
        norm_again(c, ORR_ITEM_NORM2_OUT, "norm2");
    orr_emit__linear_backward(c, &up);
}

static void attention_products_backward(OrrCtx *c) {
    OrrLinear qkv = orr_emit__qkv(c), out = orr_emit__out(c);
    orr_emit__linear_backward(c, &out);
    orr_emit__attention_backward(c);
    norm_again(c, ORR_ITEM_NORM1_OUT, "norm1");
    orr_emit__linear_backward(c, &qkv);
}

/* What per-operation recompute runs again before the backward, but for norms and the activation,
 * which run where they are needed; the last product is never reached (early stop). */
static void per_op_again(OrrCtx *c) {
    OrrLinear qkv = orr_emit__qkv(c), out = orr_emit__out(c), up = orr_emit__up(c);
    double n = here(c), e = c->size, r = c->residual_size;
    uint32_t count = 0;
    orr_emit__host(c);
    orr_emit__second_products(c, &qkv, &count);
    orr_emit__rotary_again(c);
    orr_emit__second_products(c, &out, &count);
    if (!c->f->compiled)
        orr_emit__stream(c, ORR_K_RESIDUAL, ORR_PASS_FORWARD, "residual", n * (e + r), n * r, 1);
    orr_emit__second_products(c, &up, &count);
}

static void backward_sequential(OrrCtx *c) {
    double n = here(c);
    residual_backward(c, c->m->mlp_bias, ORR_ITEM_MASK2, orr_emit__down(c).grad_bytes);
    post_norm_backward(c, ORR_ITEM_POST_NORM2_IN);
    gather_gradient(c, "ffn2");
    mlp_products_backward(c);
    if (c->f->norms_again) /* what leads to the norm: the sum */
        orr_emit__stream(c, ORR_K_RESIDUAL, ORR_PASS_FORWARD, "residual",
                         n * (c->size + c->residual_size), n * c->residual_size, 1);
    orr_emit__norm_backward(c, "norm2", n, true);
    orr_emit__untemp_sent(c, output_bytes(c));
    orr_emit__drop(c, ORR_ITEM_NORM2_IN);
    residual_backward(c, c->m->out_bias, ORR_ITEM_MASK1, orr_emit__out(c).grad_bytes);
    post_norm_backward(c, ORR_ITEM_POST_NORM1_IN);
    gather_gradient(c, "out");
    attention_products_backward(c);
    orr_emit__norm_backward(c, "norm1", n, true);
    orr_emit__untemp_sent(c, output_bytes(c));
    orr_emit__drop(c, ORR_ITEM_LAYER_INPUT);
}

static void backward_parallel(OrrCtx *c) {
    double n = here(c);
    residual_backward(c, c->m->out_bias || c->m->mlp_bias, ORR_ITEM_MASK2,
                      orr_emit__down(c).grad_bytes);
    gather_gradient(c, "branches");
    mlp_products_backward(c);
    if (!c->m->shares_norm)
        orr_emit__norm_backward(c, "norm2", n, true);
    attention_products_backward(c);
    if (c->m->shares_norm)
        orr_emit__stream(c, ORR_K_GRADIENT, ORR_PASS_DGRAD, "input_grad_add", 2.0 * n * c->size,
                         n * c->size, 1);
    orr_emit__norm_backward(c, "norm1", n, true);
    orr_emit__untemp(c, output_bytes(c));
    orr_emit__untemp(c, output_bytes(c));
    orr_emit__drop(c, ORR_ITEM_LAYER_INPUT);
}

static void weights_only(OrrCtx *c) {
    OrrLinear down = orr_emit__down(c), up = orr_emit__up(c), out = orr_emit__out(c),
              qkv = orr_emit__qkv(c);
    orr_emit__linear_backward(c, &down);
    orr_emit__linear_backward(c, &up);
    orr_emit__linear_backward(c, &out);
    orr_emit__linear_backward(c, &qkv);
}

void orr_emit_layer_backward(const OrrEmit *e, OrrBuilder *b, uint32_t layer, OrrPass pass,
                             bool recompute_all) {
    OrrCtx c = orr_emit__ctx(e, b, layer, pass);
    double gradient = here(&c) * c.size; /* of the layer's output, alive throughout */
    g_assert(pass != ORR_F);
    orr_emit__host(&c);
    if (pass == ORR_W) {
        weights_only(&c);
        return;
    }
    if (recompute_all) {
        orr_emit__host(&c);
        forward(&c, false);
    }
    if (orr_emit__is_per_op(&c))
        per_op_again(&c);
    orr_emit__temp_next(&c, gradient);
    if (c.m->is_parallel)
        backward_parallel(&c);
    else
        backward_sequential(&c);
    orr_emit__untemp(&c, gradient);
    g_assert(c.after == ORR_NONE);
}
