/* Linear layers under tensor parallelism, and norms.
 *
 * Forward: column-parallel layers gather their input under SP; row-parallel ones leave partial
 * sums. Backward, as Megatron-LM's LinearWithGradAccumulationAndAsyncCommunication
 * (core/tensor_parallel/layers.py) orders it: under SP the saved shard of the input is gathered
 * again beside the input-gradient product; the input gradient is reduced beside the
 * weight-gradient product. The split into I and W follows zero-bubble schedules (arXiv 2401.10241):
 * the second gather belongs to W. A weight gradient that its product does not add into the buffer
 * itself costs a kernel that does. */
#include "sim/model/emit_priv.h"

OrrLinear orr_emit__qkv(const OrrCtx *c) {
    int64_t d = c->head_dim;
    OrrLinear l = {.label = "qkv",
                   .in = c->hidden,
                   .is_column = true,
                   .has_bias = c->m->qkv_bias,
                   .input = ORR_ITEM_NORM1_OUT};
    if (c->f->fused_qkv) {
        l.n_parts = 1;
        l.out[0] = c->qkv_width;
    } else {
        l.n_parts = 3;
        l.out[0] = c->heads * d;
        l.out[1] = l.out[2] = c->kv_heads * d;
    }
    l.grad_bytes = (double)(c->tokens * c->qkv_width) * c->size;
    return l;
}

OrrLinear orr_emit__up(const OrrCtx *c) {
    OrrLinear l = {.label = "ffn1",
                   .in = c->hidden,
                   .is_column = true,
                   .has_bias = c->m->mlp_bias,
                   .input = ORR_ITEM_NORM2_OUT};
    l.n_parts = c->m->is_gated && !c->f->fused_gate_up ? 2 : 1;
    for (uint32_t i = 0; i < l.n_parts; i++)
        l.out[i] = c->up_width / l.n_parts;
    l.grad_bytes = (double)(c->tokens * c->up_width) * c->size;
    return l;
}

/* The output gradient of a row-parallel layer: gathered under SP; else the one that came in, but
 * for dropout's backward or a weight half that needs it later. */
static double row_grad_bytes(const OrrCtx *c) {
    if (orr_emit__gathers_to_buffers(c))
        return 0.0;
    bool is_own = c->is_sp || c->f->dropout > 0.0 || c->pass != ORR_B;
    return is_own ? (double)(c->tokens * c->hidden) * c->size : 0.0;
}

OrrLinear orr_emit__out(const OrrCtx *c) {
    return (OrrLinear){.label = "out",
                       .in = c->heads * c->head_dim,
                       .out = {c->hidden},
                       .n_parts = 1,
                       .has_bias = c->m->out_bias,
                       .input = ORR_ITEM_CONTEXT,
                       .grad_bytes = c->m->is_parallel ? 0.0 : row_grad_bytes(c)};
}

OrrLinear orr_emit__down(const OrrCtx *c) {
    return (OrrLinear){.label = "ffn2",
                       .in = c->ffn,
                       .out = {c->hidden},
                       .n_parts = 1,
                       .has_bias = c->m->mlp_bias,
                       .input = ORR_ITEM_ACTIVATION,
                       .grad_bytes = row_grad_bytes(c)};
}

static double input_bytes(const OrrCtx *c, const OrrLinear *l) {
    return (double)(c->tokens * l->in) * c->size;
}

/* FP8 operands are made from BF16 in two layouts, one for each later product (Transformer Engine,
 * cast_transpose). Weights are cast once a step and counted with the optimizer. */
static void cast(OrrCtx *c, OrrKernelPass pass, const char *label, double elements) {
    if (c->gemm_dtype == c->dtype)
        return;
    orr_emit__stream(c, ORR_K_CAST, pass, label, elements * c->size,
                     2.0 * elements * orr_dtype_bytes((OrrDtype)c->gemm_dtype), 1);
}

static bool is_gathered(const OrrCtx *c, const OrrLinear *l) {
    return l->is_column && c->is_sp;
}

/* Working memory for the gathered input. */
static double gathered_bytes(const OrrCtx *c, const OrrLinear *l) {
    return is_gathered(c, l) && !orr_emit__gathers_to_buffers(c) ? input_bytes(c, l) : 0.0;
}

/* nanotron multiplies its own shard of the rows beside the gather and what came before and behind
 * it afterwards, as it lies in memory (functional.py, _ColumnLinearAsyncCommunication and
 * _RowLinearAsyncCommunication): two products on the first and last rank, three on those between,
 * for which all wait. */
static void product_by_shards(OrrCtx *c, OrrKernelPass pass, const char *label, int64_t n,
                              int64_t k, uint32_t gather) {
    int64_t shard = c->tokens / c->tp, before = ((int64_t)c->tp - 1) / 2 * shard;
    int64_t behind = c->tokens - shard - before;
    orr_emit__gemm(c, pass, label, shard, n, k);
    c->after = gather;
    if (before > 0)
        orr_emit__gemm(c, pass, label, before, n, k);
    orr_emit__gemm(c, pass, label, behind, n, k);
}

/* With pipelined products (Transformer Engine's userbuffers) a share of the collective runs beside
 * its product: that share of a gather, which the kernel behind the product waits for, and that
 * share of a reduction, which starts with the product. */
void orr_emit__linear_forward(OrrCtx *c, const OrrLinear *l) {
    double gathered = input_bytes(c, l), share = c->f->tp_overlap_frac;
    bool is_by_shards = is_gathered(c, l) && c->f->tp_own_shard_first;
    uint32_t gather = ORR_NONE;
    if (is_by_shards) {
        gather = orr_emit__coll(c, ORR_ALL_GATHER, gathered, l->label);
    } else if (is_gathered(c, l)) {
        orr_emit__coll_blocking(c, ORR_ALL_GATHER, gathered * (1.0 - share), l->label);
        c->beside = orr_emit__coll(c, ORR_ALL_GATHER, gathered * share, l->label);
    } else if (!l->is_column && share > 0.0 && !c->m->is_parallel) {
        uint32_t before = c->after;
        orr_emit__reduce_output(c, l->label, share);
        c->after = before;
    }
    cast(c, ORR_PASS_FORWARD, l->label, (double)(c->tokens * l->in));
    for (uint32_t i = 0; i < l->n_parts; i++) {
        if (is_by_shards)
            product_by_shards(c, ORR_PASS_FORWARD, l->label, l->out[i], l->in, gather);
        else
            orr_emit__gemm(c, ORR_PASS_FORWARD, l->label, c->tokens, l->out[i], l->in);
        if (i == 0)
            orr_emit__temp(c, gathered_bytes(c, l));
    }
    orr_emit__untemp(c, gathered_bytes(c, l));
    if (c->beside != ORR_NONE)
        c->after = c->beside;
    c->beside = ORR_NONE;
}

/* PyTorch's selective checkpoint as torchtitan uses it (parallelize_llama.py, _custom_policy): the
 * outputs of attention, reduce-scatters and products are kept, but not of every second product. */
void orr_emit__second_products(OrrCtx *c, const OrrLinear *l, uint32_t *count) {
    for (uint32_t i = 0; i < l->n_parts; i++) {
        if (++*count % 2 != 0)
            continue;
        if (is_gathered(c, l))
            orr_emit__coll_blocking(c, ORR_ALL_GATHER, input_bytes(c, l), l->label);
        orr_emit__gemm(c, ORR_PASS_FORWARD, l->label, c->tokens, l->out[i], l->in);
        orr_emit__temp(c, (double)(c->tokens * l->out[i]) * c->size);
        orr_emit__untemp(c, (double)(c->tokens * l->out[i]) * c->size);
    }
}

static void dgrad(OrrCtx *c, const OrrLinear *l) {
    double bytes = input_bytes(c, l);
    for (uint32_t i = 0; i < l->n_parts; i++) {
        cast(c, ORR_PASS_DGRAD, l->label, (double)(c->tokens * l->out[i]));
        if (c->is_sp && !l->is_column && c->f->tp_own_shard_first) {
            product_by_shards(c, ORR_PASS_DGRAD, l->label, l->in, l->out[i], c->beside);
            c->beside = ORR_NONE;
        } else
            orr_emit__gemm(c, ORR_PASS_DGRAD, l->label, c->tokens, l->in, l->out[i]);
        if (i == 0)
            orr_emit__temp(c, bytes);
        else /* gradients of one input through several products add up */
            orr_emit__stream(c, ORR_K_GRADIENT, ORR_PASS_DGRAD, "input_grad_add", 2.0 * bytes,
                             bytes, 1);
    }
}

/* Autograd adds a micro-batch's weight gradient to what is there; a buffer that is reduced and
 * emptied each micro-batch takes it as it is. */
bool orr_emit__adds_weight_gradient(const OrrCtx *c) {
    const OrrEmit *e = c->e;
    if (c->f->fused_wgrad_accumulate)
        return false;
    if (!c->f->grads_as_parameters && e->layout->zero_stage < 3)
        return true; /* main_grad of Megatron-LM: a buffer of another dtype, always added to */
    bool is_emptied =
        e->layout->zero_stage >= 2 && c->f->reduce_when == ORR_REDUCE_EACH_MICRO_BATCH;
    return !is_emptied && orr_layout_micro_batches(e->layout, e->batch) > 1;
}

static void wgrad(OrrCtx *c, const OrrLinear *l) {
    for (uint32_t i = 0; i < l->n_parts; i++) {
        double weights = (double)l->out[i] * (double)l->in;
        orr_emit__gemm(c, ORR_PASS_WGRAD, l->label, l->out[i], l->in, c->tokens);
        if (orr_emit__adds_weight_gradient(c))
            orr_emit__stream(c, ORR_K_GRADIENT, ORR_PASS_WGRAD, "weight_grad_add",
                             weights * (c->size + c->weight_grad_size),
                             weights * c->weight_grad_size, 1);
    }
}

static void weight_half(OrrCtx *c, const OrrLinear *l, uint32_t gather) {
    if (gather != ORR_NONE)
        c->after = gather;
    wgrad(c, l);
    orr_emit__untemp(c, gathered_bytes(c, l));
    orr_emit__untemp(c, l->grad_bytes);
    orr_emit__drop(c, l->input);
}

void orr_emit__linear_backward(OrrCtx *c, const OrrLinear *l) {
    bool has_dgrad = c->pass != ORR_W, has_wgrad = c->pass != ORR_I;
    bool is_async = c->f->tp_async_wgrad && has_dgrad && has_wgrad;
    uint32_t gather = ORR_NONE, reduce = ORR_NONE;
    double bytes = input_bytes(c, l);
    OrrCollective kind = c->is_sp ? ORR_REDUCE_SCATTER : ORR_ALL_REDUCE;

    if (has_dgrad && l->is_column && l->has_bias)
        orr_emit__stream(c, ORR_K_GRADIENT, ORR_PASS_WGRAD, "bias_grad", l->grad_bytes, 0.0, 1);
    if (has_wgrad && is_gathered(c, l)) {
        gather = orr_emit__coll(c, ORR_ALL_GATHER, bytes, l->label);
        orr_emit__temp(c, gathered_bytes(c, l));
        if (!is_async)
            c->after = gather;
    }
    if (has_dgrad)
        dgrad(c, l);
    if (c->beside != ORR_NONE) /* the rest of a gathered gradient came beside that product */
        c->after = c->beside;
    c->beside = ORR_NONE;
    if (l->is_column && has_dgrad && (is_async || !has_wgrad))
        reduce = orr_emit__coll(c, kind, bytes, l->label);
    if (has_wgrad)
        weight_half(c, l, is_async ? gather : c->after);
    if (l->is_column && has_dgrad && has_wgrad && !is_async)
        reduce = orr_emit__coll(c, kind, bytes, l->label);
    if (reduce != ORR_NONE)
        c->after = reduce;
}

static bool is_eager_rms(const OrrCtx *c) {
    return c->m->norm == ORR_RMS_NORM && !c->f->fused_norm && !c->f->compiled;
}

/* The input of norms cast to FP32 by a kernel of its own (InternLM: norm1(residual.float())). */
static bool is_cast(const OrrCtx *c) {
    return c->f->fp32_norms && !c->f->compiled && !is_eager_rms(c);
}

void orr_emit__norm_forward(OrrCtx *c, const char *label, double elements) {
    double n = elements, e = c->size;
    if (is_cast(c)) /* bytes of FP32 are 4 */
        orr_emit__stream(c, ORR_K_CAST, ORR_PASS_FORWARD, "norm_cast", n * c->residual_size,
                         n * 4.0, 1);
    if (is_eager_rms(c))
        /* to FP32, square, mean, x rsqrt, to BF16, x weight, and two kernels on the means
         * (Hugging Face LlamaRMSNorm in eager PyTorch); 4: bytes of FP32. */
        orr_emit__stream(c, ORR_K_NORM, ORR_PASS_FORWARD, label, n * (2.0 * e + 4.0 * 4.0),
                         n * (2.0 * e + 3.0 * 4.0), 8);
    else
        orr_emit__stream(c, ORR_K_NORM, ORR_PASS_FORWARD, label,
                         n * (is_cast(c) ? 4.0 : c->residual_size), n * e, 1);
}

void orr_emit__norm_backward(OrrCtx *c, const char *label, double elements, bool adds_residual) {
    double n = elements, e = c->size, r = c->residual_size;
    if (c->f->norms_again && adds_residual)
        orr_emit__norm_forward(c, label, elements);
    double out = is_cast(c) ? 4.0 : e; /* in FP32, then cast: 4 is its bytes */
    r = is_cast(c) ? 4.0 : r;
    /* The eager chain backward: products, casts, sums and squares, most of them in FP32. Fused: one
     * kernel for the input and partial weight gradients and one to sum these; PyTorch's own
     * LayerNorm reads both tensors again for the weights. */
    if (is_eager_rms(c))
        orr_emit__stream(c, ORR_K_NORM, ORR_PASS_DGRAD, label, n * (5.0 * e + 8.0 * 4.0),
                         n * (3.0 * e + 5.0 * 4.0), 12);
    else if (c->f->compiled) /* adds the residual's gradient too: one read more */
        orr_emit__stream(c, ORR_K_NORM, ORR_PASS_DGRAD, label,
                         n * (e + r + (adds_residual ? r : 0.0)), n * e, 2);
    else if (c->f->fused_norm)
        orr_emit__stream(c, ORR_K_NORM, ORR_PASS_DGRAD, label, n * (e + r), n * out, 2);
    else
        orr_emit__stream(c, ORR_K_NORM, ORR_PASS_DGRAD, label, n * 2.0 * (e + r), n * out, 3);
    if (is_cast(c))
        orr_emit__stream(c, ORR_K_CAST, ORR_PASS_DGRAD, "norm_cast", n * out, n * e, 1);
    r = c->residual_size;
    if (adds_residual && !c->f->compiled)
        orr_emit__stream(c, ORR_K_RESIDUAL, ORR_PASS_DGRAD, "residual_grad", n * 2.0 * r, n * r, 1);
}
