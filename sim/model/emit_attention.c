/* Attention between the QKV and the output product: norms on q and k, rotary, scores, softmax,
 * dropout, context; fused (flash) or as separate kernels.
 *
 * Fused causal kernels visit half the square, or the window; unfused ones compute it whole.
 * Fused backward: 5 products against 2 forward (Dao, FlashAttention-2, arXiv 2307.08691), with a
 * kernel before it (rowsum of dO O) and one behind (dQ from FP32). Selective recompute runs the
 * core again, fused or not, as Megatron-LM's checkpointed core attention does. */
#include "sim/model/emit_priv.h"

static double score_elements(const OrrCtx *c) {
    return (double)(c->batch * c->heads * c->seq * c->seq);
}

/* q, k and v as attention reads them, whatever of them is kept. */
static double qkv_bytes(const OrrCtx *c) {
    return (double)(c->tokens * c->qkv_width) * c->size;
}

static bool is_fused(const OrrCtx *c) {
    return c->f->attention != ORR_ATTENTION_UNFUSED;
}

static void fused_kernel(OrrCtx *c, OrrKernelPass pass, double n_products, double bytes_read,
                         double bytes_written, uint32_t launches) {
    OrrKernel k = {.kind = ORR_K_ATTENTION,
                   .pass = (uint8_t)pass,
                   .dtype = c->dtype,
                   .is_causal = 1,
                   .heads = (uint32_t)c->heads,
                   .kv_heads = (uint32_t)c->kv_heads,
                   .m = c->seq,
                   .n = c->seq,
                   .k = c->head_dim,
                   .batch = c->batch,
                   .bytes_read = bytes_read,
                   .bytes_written = bytes_written,
                   .launches = launches,
                   .label = "attention"};
    k.flops = n_products * 2.0 * (double)(c->batch * c->heads * c->head_dim) * c->attention_pairs;
    orr_emit__kernel(c, &k);
}

/* A product a head: C[m,n] = A[m,k] B[k,n]; @adds: onto what C holds. */
static void head_product_onto(OrrCtx *c, OrrKernelPass pass, const char *label, int64_t m,
                              int64_t n, int64_t k_dim, bool adds) {
    OrrKernel k = {.kind = ORR_K_BATCHED_GEMM,
                   .pass = (uint8_t)pass,
                   .dtype = c->dtype,
                   .m = m,
                   .n = n,
                   .k = k_dim,
                   .batch = c->batch * c->heads,
                   .launches = 1};
    double each = (double)k.batch;
    k.flops = 2.0 * each * (double)m * (double)n * (double)k_dim;
    k.bytes_read = each * ((double)m + (double)n) * (double)k_dim * c->size;
    k.bytes_written = each * (double)m * (double)n * c->size;
    k.bytes_read += adds ? k.bytes_written : 0.0;
    g_strlcpy(k.label, label, sizeof k.label);
    orr_emit__kernel(c, &k);
}

static void head_product(OrrCtx *c, OrrKernelPass pass, const char *label, int64_t m, int64_t n,
                         int64_t k_dim) {
    head_product_onto(c, pass, label, m, n, k_dim, false);
}

/* ALiBi without a fused kernel: baddbmm spreads the slopes over all scores first, then adds to them
 * (Megatron-DeepSpeed, model/transformer.py; PyTorch baddbmm copies what it adds to). */
static void scores(OrrCtx *c) {
    bool has_bias = c->m->position == ORR_POS_ALIBI;
    if (has_bias)
        orr_emit__stream(c, ORR_K_COPY, ORR_PASS_FORWARD, "alibi_spread", 0.0,
                         score_elements(c) * c->size, 1);
    head_product_onto(c, ORR_PASS_FORWARD, "scores", c->seq, c->seq, c->head_dim, has_bias);
}

/* Megatron-LM's causal softmax kernel reads the lower half and writes the whole; the eager chain
 * casts to FP32, scales, masks (a byte an element), takes the softmax and casts back. */
static void softmax_forward(OrrCtx *c) {
    double n = score_elements(c), e = c->size;
    bool is_eager = !c->f->fused_softmax && !c->f->compiled;
    if (is_eager)
        orr_emit__stream(c, ORR_K_SOFTMAX, ORR_PASS_FORWARD, "softmax", n * (e + 4.0 * 4.0 + 1.0),
                         n * (4.0 * 4.0 + e), 5);
    else
        orr_emit__stream(c, ORR_K_SOFTMAX, ORR_PASS_FORWARD, "softmax", n * 0.5 * e, n * e, 1);
}

static void softmax_backward(OrrCtx *c) {
    double n = score_elements(c), e = c->size;
    bool is_eager = !c->f->fused_softmax && !c->f->compiled;
    if (is_eager)
        orr_emit__stream(c, ORR_K_SOFTMAX, ORR_PASS_DGRAD, "softmax", n * (e + 5.0 * 4.0 + 1.0),
                         n * (4.0 * 4.0 + e), 5);
    else
        orr_emit__stream(c, ORR_K_SOFTMAX, ORR_PASS_DGRAD, "softmax", n * e, n * e, 1);
}

/* Grouped heads are repeated to all query heads before unfused products. */
static void repeat_heads(OrrCtx *c) {
    double tokens_d = (double)(c->tokens * c->head_dim) * c->size;
    if (c->kv_heads < c->heads)
        orr_emit__stream(c, ORR_K_COPY, ORR_PASS_FORWARD, "kv_repeat",
                         2.0 * tokens_d * (double)c->kv_heads, 2.0 * tokens_d * (double)c->heads,
                         2);
}

static void unfused_core_forward(OrrCtx *c) {
    double n = score_elements(c), e = c->size;
    double context = (double)(c->tokens * c->heads * c->head_dim) * e;
    repeat_heads(c);
    scores(c);
    orr_emit__temp(c, n * e);
    orr_emit__hold(c, ORR_ITEM_SCORES);
    softmax_forward(c);
    orr_emit__hold(c, ORR_ITEM_SOFTMAX);
    orr_emit__untemp(c, n * e);
    if (c->f->attention_dropout > 0.0) {
        orr_emit__stream(c, ORR_K_DROPOUT, ORR_PASS_FORWARD, "attention_dropout", n * e,
                         n * (e + 1.0), 1);
        orr_emit__hold(c, ORR_ITEM_ATT_DROPOUT);
    }
    head_product(c, ORR_PASS_FORWARD, "context", c->seq, c->head_dim, c->seq);
    /* Heads back beside each other, as the output product reads them. */
    orr_emit__stream(c, ORR_K_COPY, ORR_PASS_FORWARD, "context_copy", context, context, 1);
}

static void core_forward(OrrCtx *c) {
    double qkv = qkv_bytes(c);
    double context = (double)orr_emit__item_bytes(c, ORR_ITEM_CONTEXT);
    if (is_fused(c)) {
        double lse = 4.0 * (double)(c->tokens * c->heads); /* FP32 */
        fused_kernel(c, ORR_PASS_FORWARD, 2.0, qkv, context + lse, 1);
        orr_emit__hold(c, ORR_ITEM_LSE);
    } else
        unfused_core_forward(c);
}

static void drop_core_if_not_kept(OrrCtx *c) {
    for (int item = ORR_ITEM_SCORES; item <= ORR_ITEM_LSE; item++)
        orr_emit__consumed(c, (OrrItem)item);
}

static void rotary(OrrCtx *c, OrrKernelPass pass) {
    if (c->m->position != ORR_POS_ROPE)
        return;
    double all = (double)(c->tokens * (c->heads + c->kv_heads) * c->head_dim) * c->size;
    if (c->f->compiled || c->f->fused_rotary) {
        double turned = all * c->m->rotary_frac;
        orr_emit__stream(c, ORR_K_ROTARY, pass, "rotary", turned, turned, c->f->compiled ? 1 : 2);
    } else
        /* q and k each: x cos, negate half, join, x sin, add (Hugging Face apply_rotary_pos_emb) */
        orr_emit__stream(c, ORR_K_ROTARY, pass, "rotary", 5.5 * all, 4.5 * all, 10);
}

/* Layouts that attention takes and the products do not: heads sorted out of the joint projection,
 * keys joined with values for the rotary kernel, tokens before sequences again; mirrored in the
 * backward, beside the join that fused projections need anyway (nanotron models/llama.py,
 * CausalSelfAttention: permute().contiguous(), torch.cat, permute().contiguous(), transpose;
 * autograd of unbind, split and cat). Forward, lengths of sequences are made of their mask for q
 * and for k: zeros, sum, cumsum, whose two kernels count (CoreAttention). */
static void head_copies(OrrCtx *c, OrrKernelPass pass) {
    double kv = 2.0 * (double)(c->tokens * c->kv_heads * c->head_dim) * c->size;
    double context = (double)(c->tokens * c->heads * c->head_dim) * c->size;
    double moved = pass == ORR_PASS_FORWARD ? qkv_bytes(c) + 2.0 * kv + context
                                            : qkv_bytes(c) + kv + 2.0 * context;
    if (c->f->head_copies)
        orr_emit__stream(c, ORR_K_COPY, pass, "head_copies", moved, moved, 4);
    if (c->f->head_copies && pass == ORR_PASS_FORWARD) {
        double mask = (double)c->tokens; /* a byte a token */
        orr_emit__stream(c, ORR_K_COPY, pass, "lengths", 2.0 * mask, 4.0 * (double)c->batch, 8);
    }
}

void orr_emit__rotary_again(OrrCtx *c) {
    rotary(c, ORR_PASS_FORWARD);
}

void orr_emit__attention_forward(OrrCtx *c) {
    if (c->m->has_qk_norm) {
        orr_emit__norm_forward(c, "qk_norm",
                               (double)(c->tokens * (c->heads + c->kv_heads) * c->head_dim));
        orr_emit__hold(c, ORR_ITEM_QK_NORM_IN);
        orr_emit__consumed(c, ORR_ITEM_QK_NORM_IN);
    }
    head_copies(c, ORR_PASS_FORWARD);
    rotary(c, ORR_PASS_FORWARD);
    core_forward(c);
    orr_emit__hold(c, ORR_ITEM_CONTEXT);
    drop_core_if_not_kept(c);
    orr_emit__consumed(c, ORR_ITEM_QKV);
}

static void unfused_core_backward(OrrCtx *c) {
    double n = score_elements(c), e = c->size;
    head_product(c, ORR_PASS_DGRAD, "scores_grad", c->seq, c->seq, c->head_dim);
    orr_emit__temp(c, 2.0 * n * e);
    head_product(c, ORR_PASS_DGRAD, "value_grad", c->seq, c->head_dim, c->seq);
    if (c->f->attention_dropout > 0.0)
        orr_emit__stream(c, ORR_K_DROPOUT, ORR_PASS_DGRAD, "attention_dropout", n * (e + 1.0),
                         n * e, 1);
    softmax_backward(c);
    head_product(c, ORR_PASS_DGRAD, "query_grad", c->seq, c->head_dim, c->seq);
    head_product(c, ORR_PASS_DGRAD, "key_grad", c->seq, c->head_dim, c->seq);
    orr_emit__untemp(c, 2.0 * n * e);
}

static void core_backward(OrrCtx *c) {
    double qkv = qkv_bytes(c);
    double context = (double)orr_emit__item_bytes(c, ORR_ITEM_CONTEXT);
    if (is_fused(c)) {
        double lse = 4.0 * (double)(c->tokens * c->heads);
        double dq = 4.0 * (double)(c->tokens * c->heads * c->head_dim); /* FP32 accumulator */
        fused_kernel(c, ORR_PASS_DGRAD, 5.0, qkv + 2.0 * context + lse, qkv + dq, 3);
        orr_emit__temp(c, dq);
        orr_emit__untemp(c, dq);
    } else
        unfused_core_backward(c);
    for (int item = ORR_ITEM_SCORES; item <= ORR_ITEM_LSE; item++)
        orr_emit__drop(c, (OrrItem)item);
    orr_emit__drop(c, ORR_ITEM_QKV);
}

void orr_emit__attention_backward(OrrCtx *c) {
    double qkv = qkv_bytes(c);
    double context = (double)orr_emit__item_bytes(c, ORR_ITEM_CONTEXT);
    if (!orr_emit__keeps(c, ORR_ITEM_LSE)) {
        core_forward(c);
        /* Its context is the stored one once more. */
        orr_emit__temp(c, context);
        orr_emit__untemp(c, context);
    }
    core_backward(c);
    orr_emit__untemp(c, context); /* the gradient that came in */
    orr_emit__temp(c, qkv);
    rotary(c, ORR_PASS_DGRAD);
    head_copies(c, ORR_PASS_DGRAD);
    if (c->m->has_qk_norm) {
        orr_emit__norm_backward(
            c, "qk_norm", (double)(c->tokens * (c->heads + c->kv_heads) * c->head_dim), false);
        orr_emit__drop(c, ORR_ITEM_QK_NORM_IN);
    }
    if (c->f->fused_qkv) /* the three gradients joined, as the fused product reads them */
        orr_emit__stream(c, ORR_K_COPY, ORR_PASS_DGRAD, "qkv_grad_join", qkv, qkv, 1);
}
