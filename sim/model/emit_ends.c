/* Embedding and head.
 *
 * Embedding: the token table is split by rows over TP; each rank looks up its own rows, zeroes the
 * others, and the sum makes the output (Megatron-LM VocabParallelEmbedding). Under SP it is
 * reduce-scattered, or, with a learned position table, all-reduced, added to and then sliced
 * (Megatron-LM LanguageModelEmbedding). Backward: PyTorch fills a dense gradient of the table,
 * which is then added to the buffer.
 * Head: final norm, product with the padded vocabulary over TP, cross-entropy in FP32 with its
 * maximum, predicted logit and sum all-reduced over TP (core/tensor_parallel/cross_entropy.py); the
 * fused form sends the last two as one (core/fusions/fused_cross_entropy.py). */
#include "sim/model/emit_priv.h"

#include <math.h>

static double here(const OrrCtx *c) {
    return (double)(c->tokens_here * c->hidden);
}

static void lookup(OrrCtx *c) {
    double n = (double)(c->tokens * c->hidden) * c->size;
    if (c->tp > 1)
        /* range tests and offsets on 8-byte token numbers */
        orr_emit__stream(c, ORR_K_EMBEDDING, ORR_PASS_FORWARD, "token_mask",
                         4.0 * 8.0 * (double)c->tokens, 2.0 * 8.0 * (double)c->tokens, 4);
    orr_emit__stream(c, ORR_K_EMBEDDING, ORR_PASS_FORWARD, "embedding", n, n, 1);
    if (c->tp > 1) /* rows of other ranks to zero */
        orr_emit__stream(c, ORR_K_EMBEDDING, ORR_PASS_FORWARD, "embedding_zero", (double)c->tokens,
                         n * (1.0 - 1.0 / c->tp), 1);
}

void orr_emit_embedding_forward(const OrrEmit *e, OrrBuilder *b) {
    OrrCtx c = orr_emit__ctx(e, b, 0, ORR_F);
    bool has_positions = c.m->position == ORR_POS_LEARNED;
    double n = (double)(c.tokens * c.hidden) * c.size, own = here(&c);
    lookup(&c);
    if (c.is_sp && !has_positions) {
        orr_emit__coll_blocking(&c, ORR_REDUCE_SCATTER, n, "embedding");
    } else
        orr_emit__coll_blocking(&c, ORR_ALL_REDUCE, n, "embedding");
    if (has_positions)
        orr_emit__stream(&c, ORR_K_EMBEDDING, ORR_PASS_FORWARD, "position_add", 2.0 * n, n, 2);
    if (c.m->has_embedding_norm) {
        orr_emit__norm_forward(&c, "embedding_norm", own);
        orr_emit__hold(&c, ORR_ITEM_EMBEDDING_NORM_IN);
    }
    if (c.f->dropout > 0.0) {
        double mask = c.f->store_dropout_mask ? own : 0.0;
        orr_emit__stream(&c, ORR_K_DROPOUT, ORR_PASS_FORWARD, "dropout", own * c.size,
                         own * c.residual_size + mask, 1);
        orr_emit__hold(&c, ORR_ITEM_EMBEDDING_MASK);
    } else if (c.tp > 1) /* sequence first, as the layers have it; or the slice under SP */
        orr_emit__stream(&c, ORR_K_COPY, ORR_PASS_FORWARD, "embedding_out", own * c.size,
                         own * c.residual_size, 1);
    g_assert(c.after == ORR_NONE);
}

/* The dense gradient: zeroed, scattered into, added to the buffer. */
static void table_gradient(OrrCtx *c, const char *label, double rows, double share) {
    double table = rows * (double)c->hidden, n = (double)(c->tokens * c->hidden) * share;
    bool adds = c->f->fused_wgrad_accumulate || orr_emit__adds_weight_gradient(c);
    double g = c->weight_grad_size;
    orr_emit__stream(c, ORR_K_EMBEDDING, ORR_PASS_WGRAD, label, 2.0 * n * c->size,
                     (table + n) * c->size, 4); /* zero, sort twice, scatter */
    orr_emit__temp(c, table * c->size);
    if (adds)
        orr_emit__stream(c, ORR_K_GRADIENT, ORR_PASS_WGRAD, "weight_grad_add",
                         table * (c->size + g), table * g, 1);
    orr_emit__untemp(c, table * c->size);
}

void orr_emit_embedding_backward(const OrrEmit *e, OrrBuilder *b, OrrPass pass) {
    OrrCtx c = orr_emit__ctx(e, b, 0, pass);
    double own = here(&c);
    if (pass == ORR_I) /* nothing stands before it: all of it is weights */
        return;
    if (c.f->dropout > 0.0) {
        orr_emit__stream(&c, ORR_K_DROPOUT, ORR_PASS_DGRAD, "dropout", own * (c.size + 1.0),
                         own * c.size, 1);
        orr_emit__drop(&c, ORR_ITEM_EMBEDDING_MASK);
    }
    if (c.m->has_embedding_norm) {
        orr_emit__norm_backward(&c, "embedding_norm", own, false);
        orr_emit__drop(&c, ORR_ITEM_EMBEDDING_NORM_IN);
    }
    if (c.is_sp)
        orr_emit__coll_blocking(&c, ORR_ALL_GATHER, (double)(c.tokens * c.hidden) * c.size,
                                "embedding");
    if (c.m->position == ORR_POS_LEARNED)
        table_gradient(&c, "position_grad", c.m->max_positions, 1.0);
    table_gradient(&c, "embedding_grad", (double)c.vocab, 1.0 / c.tp);
    if (c.e->layout->pp == 1)
        orr_emit__metrics_behind(&c);
    g_assert(c.after == ORR_NONE);
}

static OrrLinear logits_linear(const OrrCtx *c) {
    return (OrrLinear){.label = "logits",
                       .in = c->hidden,
                       .out = {c->vocab},
                       .n_parts = 1,
                       .is_column = true,
                       .input = ORR_ITEM_FINAL_NORM_OUT,
                       .grad_bytes = (double)(c->tokens * c->vocab) * c->size};
}

/* The head multiplies in the activations' dtype also where layers use FP8. */
static OrrCtx head_ctx(const OrrEmit *e, OrrBuilder *b, OrrPass pass) {
    OrrCtx c = orr_emit__ctx(e, b, 0, pass);
    c.gemm_dtype = c.dtype;
    return c;
}

/* Bytes of FP32 are 4 in what follows.
 *
 * Over TP, kernels apart: cast, maximum, subtraction, exponential, sum, division; fused: cast,
 * maximum, and one sweep that does the rest. */
static void loss_forward_tp(OrrCtx *c, bool is_fused) {
    double n = (double)(c->tokens * c->vocab), e = c->size;
    double token = 4.0 * (double)c->tokens;
    orr_emit__stream(c, ORR_K_CROSS_ENTROPY, ORR_PASS_FORWARD, "loss_max", n * (e + 4.0), n * 4.0,
                     2);
    orr_emit__hold(c, ORR_ITEM_LOGITS);
    orr_emit__temp(c, is_fused ? 0.0 : 4.0 * n);
    orr_emit__coll_blocking(c, ORR_ALL_REDUCE, token, "loss_max");
    if (is_fused) {
        orr_emit__stream(c, ORR_K_CROSS_ENTROPY, ORR_PASS_FORWARD, "loss", n * 4.0, n * 4.0, 2);
        orr_emit__coll_blocking(c, ORR_ALL_REDUCE, 2.0 * token, "loss_sums");
    } else {
        orr_emit__stream(c, ORR_K_CROSS_ENTROPY, ORR_PASS_FORWARD, "loss_shift", n * 4.0, n * 4.0,
                         5);
        orr_emit__coll_blocking(c, ORR_ALL_REDUCE, token, "loss_predicted");
        orr_emit__stream(c, ORR_K_CROSS_ENTROPY, ORR_PASS_FORWARD, "loss_exp", n * 8.0, n * 4.0, 2);
        orr_emit__coll_blocking(c, ORR_ALL_REDUCE, token, "loss_sum");
    }
    orr_emit__stream(c, ORR_K_CROSS_ENTROPY, ORR_PASS_FORWARD, "loss_out",
                     is_fused ? token : n * 4.0, is_fused ? token : n * 4.0, 3);
    orr_emit__untemp(c, n * e);
    orr_emit__untemp(c, is_fused ? 0.0 : 4.0 * n);
}

/* On one rank. Fused (flash-attn, Apex, Liger, torch.compile): the narrow logits are read once,
 * kept, and become their gradient in place. Else PyTorch's: a copy in FP32, log-softmax. */
static void loss_forward_alone(OrrCtx *c, bool is_fused) {
    double n = (double)(c->tokens * c->vocab), e = c->size;
    bool is_cast = is_fused && c->f->fp32_logits;
    if (is_cast)
        orr_emit__stream(c, ORR_K_CAST, ORR_PASS_FORWARD, "loss_cast", n * e, n * 4.0, 1);
    if (is_fused)
        orr_emit__stream(c, ORR_K_CROSS_ENTROPY, ORR_PASS_FORWARD, "loss", n * (is_cast ? 4.0 : e),
                         0.0, 1);
    else
        orr_emit__stream(c, ORR_K_CROSS_ENTROPY, ORR_PASS_FORWARD, "loss", n * (e + 8.0), n * 8.0,
                         4);
    orr_emit__hold(c, ORR_ITEM_LOGITS);
    orr_emit__temp(c, is_fused ? 0.0 : 4.0 * n);
    orr_emit__untemp(c, n * e);
    orr_emit__untemp(c, is_fused ? 0.0 : 4.0 * n);
}

static bool has_fused_loss(const OrrCtx *c) {
    return c->f->fused_cross_entropy;
}

/* Megatron-LM's chain, whose collectives are none on one rank. */
static bool is_sharded_loss(const OrrCtx *c) {
    return c->tp > 1 || c->f->sharded_loss;
}

/* To the gradient of the narrow logits: softmax minus one-hot, times the loss' gradient, cast. On
 * one rank PyTorch fills a dense gradient of the log-softmax first. */
static void loss_backward(OrrCtx *c) {
    double n = (double)(c->tokens * c->vocab), e = c->size;
    bool is_fused = has_fused_loss(c);
    double read = is_fused ? 4.0 : 8.0, written = e + (is_fused ? 0.0 : 4.0);
    bool is_alone = !is_sharded_loss(c);
    bool is_cast = is_alone && is_fused && c->f->fp32_logits; /* in place in FP32, then cast */
    if (is_alone) {
        read = is_cast ? 8.0 : is_fused ? e : 12.0;
        written = e + (is_cast ? 4.0 : is_fused ? 0.0 : 8.0);
    }
    orr_emit__stream(c, ORR_K_CROSS_ENTROPY, ORR_PASS_DGRAD, "loss", n * read, n * written,
                     is_fused ? 2 : 5);
    if (is_alone && !is_fused && !c->f->loss_in_place) {
        /* PyTorch's: a dense gradient of the log-softmax and that of the FP32 logits beside it */
        orr_emit__temp(c, 4.0 * n);
        orr_emit__temp(c, 4.0 * n);
        orr_emit__untemp(c, 4.0 * n);
        orr_emit__untemp(c, 4.0 * n);
    }
    orr_emit__temp(c, n * e);
    orr_emit__drop(c, ORR_ITEM_LOGITS);
}

void orr_emit_head_forward(const OrrEmit *e, OrrBuilder *b) {
    OrrCtx c = head_ctx(e, b, ORR_F);
    OrrLinear logits = logits_linear(&c);
    orr_emit__norm_forward(&c, "final_norm", here(&c));
    orr_emit__hold(&c, ORR_ITEM_FINAL_NORM_IN);
    orr_emit__hold(&c, ORR_ITEM_FINAL_NORM_OUT);
    orr_emit__linear_forward(&c, &logits);
    orr_emit__temp(&c, logits.grad_bytes); /* the logits themselves */
    orr_emit__metrics_with_loss(&c);
    if (is_sharded_loss(&c))
        loss_forward_tp(&c, has_fused_loss(&c));
    else
        loss_forward_alone(&c, has_fused_loss(&c));
    g_assert(c.after == ORR_NONE);
}

void orr_emit_head_backward(const OrrEmit *e, OrrBuilder *b, OrrPass pass) {
    OrrCtx c = head_ctx(e, b, pass);
    OrrLinear logits = logits_linear(&c);
    if (pass == ORR_W) {
        orr_emit__linear_backward(&c, &logits);
        return;
    }
    loss_backward(&c);
    orr_emit__linear_backward(&c, &logits);
    orr_emit__norm_backward(&c, "final_norm", here(&c), false);
    orr_emit__untemp(&c, (double)(c.tokens * c.hidden) * c.size);
    orr_emit__drop(&c, ORR_ITEM_FINAL_NORM_IN);
    if (e->layout->pp > 1)
        orr_emit__metrics_behind(&c);
    g_assert(c.after == ORR_NONE);
}
