/* What a layer stores between forward and backward, and the state of parameters.
 *
 * The table follows Korthikanti et al., "Reducing Activation Recomputation in Large Transformer
 * Models" (arXiv 2205.05198), section 4, tensor by tensor, so that other architectures (RMSNorm,
 * gated MLP, grouped queries, fused attention, no dropout) follow from the same rules. Left out as
 * there: norm statistics and other buffers that grow with tokens only. State of parameters:
 * Rajbhandari et al., "ZeRO" (arXiv 1910.02054), section 3 and figure 1. */
#include "sim/model/emit_priv.h"

#include <math.h>

bool orr_emit__gathers_to_buffers(const OrrCtx *c) {
    return c->f->gather_buffers && c->is_sp;
}

int64_t orr_emit_buffer_bytes(const OrrEmit *e) {
    OrrCtx c = orr_emit__ctx(e, NULL, 0, ORR_F);
    if (!orr_emit__gathers_to_buffers(&c))
        return 0;
    return 2 * llround((double)(c.tokens * c.hidden) * c.size);
}

/* Bytes of the unfused attention core a score: FP32 scores, probabilities, and dropped
 * probabilities with a mask byte (arXiv 2205.05198, equation 1; Megatron-LM issue 965). */
static double core_bytes(const OrrCtx *c, OrrItem item) {
    double scores = (double)(c->batch * c->heads * c->seq * c->seq);
    bool is_eager = !c->f->fused_softmax && !c->f->compiled;
    if (c->f->attention != ORR_ATTENTION_UNFUSED)
        return item == ORR_ITEM_LSE ? 4.0 * (double)(c->tokens * c->heads) : 0.0; /* FP32 */
    if (item == ORR_ITEM_SCORES)
        return is_eager ? 4.0 * scores : 0.0; /* bytes of FP32 */
    if (item == ORR_ITEM_SOFTMAX)
        return c->size * scores;
    if (item == ORR_ITEM_ATT_DROPOUT && c->f->attention_dropout > 0.0)
        return (c->size + (c->f->store_dropout_mask ? 1.0 : 0.0)) * scores;
    return 0.0;
}

/* An eager RMSNorm keeps its input and its normalised form in FP32 and a narrow copy besides. */
static double norm_input_bytes(const OrrCtx *c, double elements) {
    bool is_eager = c->m->norm == ORR_RMS_NORM && !c->f->fused_norm && !c->f->compiled &&
                    !orr_emit__is_per_op(c);
    return elements * (c->residual_size + (is_eager ? 4.0 + c->size : 0.0));
}

/* FP32 softmax (arXiv 2205.05198, section 4.3); a fused loss on one rank keeps narrow logits. */
static double logits_bytes(const OrrCtx *c) {
    bool is_narrow =
        c->tp == 1 && !c->f->sharded_loss && c->f->fused_cross_entropy && !c->f->fp32_logits;
    return (double)(c->tokens * c->vocab) * (is_narrow ? c->size : 4.0);
}

/* Outputs of products that per-operation recompute keeps: not the keys, of a gated pair the gate.
 */
static double kept_width(const OrrCtx *c, OrrItem item) {
    bool is_per_op = orr_emit__is_per_op(c);
    if (item == ORR_ITEM_QKV)
        return (double)c->qkv_width -
               (is_per_op && !c->f->fused_qkv ? (double)(c->kv_heads * c->head_dim) : 0.0);
    return (double)c->up_width * (is_per_op && c->m->is_gated && !c->f->fused_gate_up ? 0.5 : 1.0);
}

static double item_bytes(const OrrCtx *c, OrrItem item) {
    double here = (double)(c->tokens_here * c->hidden), all = (double)c->tokens;
    bool has_mask = c->f->dropout > 0.0 && c->f->store_dropout_mask;
    /* Eager SwiGLU keeps silu(gate) for the gradient of the product. */
    bool keeps_silu = c->m->is_gated && !c->f->fused_bias_gelu && !c->f->compiled;
    double qk = (double)((c->heads + c->kv_heads) * c->head_dim);
    switch (item) {
    case ORR_ITEM_LAYER_INPUT:
        return norm_input_bytes(c, here);
    case ORR_ITEM_NORM1_OUT:
        return here * c->size;
    case ORR_ITEM_QK_NORM_IN:
        return c->m->has_qk_norm ? all * qk * c->size : 0.0;
    case ORR_ITEM_QKV:
        return all * kept_width(c, item) * c->size;
    case ORR_ITEM_CONTEXT:
        return all * (double)(c->heads * c->head_dim) * c->size;
    case ORR_ITEM_POST_NORM1_IN:
    case ORR_ITEM_POST_NORM2_IN:
        return c->m->has_post_norms && !c->m->is_parallel ? norm_input_bytes(c, here) : 0.0;
    case ORR_ITEM_MASK1:
        return has_mask && !c->m->is_parallel ? here : 0.0;
    case ORR_ITEM_MASK2:
        return has_mask ? here : 0.0;
    case ORR_ITEM_NORM2_IN:
        return c->m->is_parallel ? 0.0 : norm_input_bytes(c, here);
    case ORR_ITEM_NORM2_OUT:
        return c->m->is_parallel && c->m->shares_norm ? 0.0 : here * c->size;
    case ORR_ITEM_UP:
        return all * kept_width(c, item) * c->size;
    case ORR_ITEM_ACTIVATION:
        return all * (double)c->ffn * c->size * (keeps_silu ? 2.0 : 1.0);
    case ORR_ITEM_SCORES:
    case ORR_ITEM_SOFTMAX:
    case ORR_ITEM_ATT_DROPOUT:
    case ORR_ITEM_LSE:
        return core_bytes(c, item);
    case ORR_ITEM_FINAL_NORM_IN:
        return norm_input_bytes(c, here);
    case ORR_ITEM_FINAL_NORM_OUT:
        return here * c->size;
    case ORR_ITEM_LOGITS:
        return logits_bytes(c);
    case ORR_ITEM_EMBEDDING_MASK:
        return has_mask ? here : 0.0;
    case ORR_ITEM_EMBEDDING_NORM_IN:
        return c->m->has_embedding_norm ? here * c->size : 0.0;
    case ORR_N_ITEMS:
        break;
    }
    g_assert_not_reached();
}

int64_t orr_emit__item_bytes(const OrrCtx *c, OrrItem item) {
    return llround(item_bytes(c, item));
}

bool orr_emit__is_per_op(const OrrCtx *c) {
    return c->e->recompute->policy == ORR_RECOMPUTE_PER_OP;
}

bool orr_emit__keeps(const OrrCtx *c, OrrItem item) {
    bool is_core = item >= ORR_ITEM_SCORES && item <= ORR_ITEM_LSE;
    if (item == ORR_ITEM_LAYER_INPUT)
        return true;
    if (!c->is_storing || (is_core && c->e->recompute->policy == ORR_RECOMPUTE_SELECTIVE))
        return false;
    if (item == ORR_ITEM_NORM1_OUT || item == ORR_ITEM_NORM2_OUT)
        return c->f->store_norm_output && !orr_emit__is_per_op(c);
    if (item == ORR_ITEM_ACTIVATION && orr_emit__is_per_op(c))
        return false;
    return item != ORR_ITEM_ACTIVATION || c->f->store_activation_output;
}

static void change(OrrCtx *c, OrrItem item, bool is_after, int sign) {
    int64_t bytes = orr_emit__item_bytes(c, item);
    if (bytes != 0)
        orr_builder_mem(c->b, item == ORR_ITEM_LOGITS ? ORR_MEM_LOGITS : ORR_MEM_ACTIVATIONS,
                        is_after, sign * bytes);
}

void orr_emit__hold(OrrCtx *c, OrrItem item) {
    change(c, item, false, 1);
}

void orr_emit__drop(OrrCtx *c, OrrItem item) {
    change(c, item, true, -1);
}

void orr_emit__consumed(OrrCtx *c, OrrItem item) {
    if (!orr_emit__keeps(c, item))
        orr_emit__drop(c, item);
}

void orr_emit__temp(OrrCtx *c, double bytes) {
    if (bytes > 0.0)
        orr_builder_mem(c->b, ORR_MEM_ACTIVATIONS, false, llround(bytes));
}

void orr_emit__temp_next(OrrCtx *c, double bytes) {
    if (bytes <= 0.0)
        return;
    g_assert(c->n_owed < G_N_ELEMENTS(c->owed_bytes));
    c->owed_bytes[c->n_owed++] = bytes;
}

void orr_emit__untemp(OrrCtx *c, double bytes) {
    if (bytes > 0.0)
        orr_builder_mem(c->b, ORR_MEM_ACTIVATIONS, true, -llround(bytes));
}

void orr_emit__untemp_sent(OrrCtx *c, double bytes) {
    if (bytes > 0.0 && c->tp > 1 && c->f->records_streams)
        orr_builder_mem_shared(c->b, ORR_MEM_ACTIVATIONS, llround(bytes));
    else
        orr_emit__untemp(c, bytes);
}

int64_t orr_emit_layer_stored_bytes(const OrrEmit *e, bool recompute_all) {
    OrrCtx c = orr_emit__ctx(e, NULL, 0, ORR_F);
    int64_t sum = 0;
    c.is_storing = !recompute_all;
    for (int item = 0; item < ORR_ITEM_FINAL_NORM_IN; item++)
        if (orr_emit__keeps(&c, (OrrItem)item))
            sum += orr_emit__item_bytes(&c, (OrrItem)item);
    return sum;
}

int64_t orr_emit_boundary_bytes(const OrrEmit *e) {
    OrrCtx c = orr_emit__ctx(e, NULL, 0, ORR_F);
    double bytes = (double)(c.tokens_here * c.hidden) * c.residual_size;
    if (!c.is_sp && e->framework->scatter_gather)
        bytes /= c.tp;
    return llround(bytes);
}

#define MOMENT_BYTES 8 /* Adam: two moments of FP32 a parameter */

/* What one of the data-parallel ranks has of @n_params that are sharded over them. */
static uint64_t part_of(const OrrLayout *l, uint64_t n_params) {
    uint64_t shards = l->hsdp_shard ? l->hsdp_shard : (uint64_t)l->dp * l->cp;
    return (n_params + shards - 1) / shards;
}

int64_t orr_moment_bytes(const OrrEmit *e, uint64_t n_params) {
    const OrrLayout *l = e->layout;
    return (int64_t)(l->zero_stage > 0 ? part_of(l, n_params) : n_params) * MOMENT_BYTES;
}

void orr_state_bytes(const OrrEmit *e, uint64_t n_params, int64_t by_kind[ORR_N_MEM_KINDS]) {
    const OrrPrecision *p = e->precision;
    const OrrLayout *l = e->layout;
    double n = (double)n_params, part = (double)part_of(l, n_params);
    bool shards_gradients =
        l->zero_stage == 3 || (l->zero_stage == 2 && e->framework->shard_gradient_buffer);
    double gradient_size =
        orr_dtype_bytes(e->framework->grads_as_parameters ? p->parameters : p->gradients);
    /* and a master copy where the weights are narrow */
    double optimizer_size = MOMENT_BYTES + (p->has_master ? orr_dtype_bytes(p->master) : 0.0);
    for (int kind = 0; kind < ORR_N_MEM_KINDS; kind++)
        by_kind[kind] = 0;
    by_kind[ORR_MEM_WEIGHTS] =
        llround((l->zero_stage == 3 ? part : n) * orr_dtype_bytes(p->parameters));
    by_kind[ORR_MEM_GRADIENTS] = llround((shards_gradients ? part : n) * gradient_size);
    if (e->framework->bucket_copies && l->zero_stage == 0 && l->dp * l->cp > 1)
        by_kind[ORR_MEM_GRADIENTS] += llround(n * orr_dtype_bytes(p->compute));
    by_kind[ORR_MEM_OPTIMIZER] = llround((l->zero_stage > 0 ? part : n) * optimizer_size);
}
