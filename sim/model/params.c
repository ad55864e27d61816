/* Parameter counts of a decoder-only transformer, to the unit.
 *
 * Layer: attention q (h x a d), k and v (h x k d each), output (a d x h); MLP up (gated: two) and
 * down; biases and norms as the model says. Oracle: the counts that model cards publish
 * (doc/models/parameters.md). Left out: buffers that are not trained (rotary tables, masks). */
#include "sim/model/params.h"

typedef struct {
    uint64_t qkv, qkv_bias, out, out_bias; /* attention */
    uint64_t up, up_bias, down, down_bias; /* MLP */
    uint64_t norms;                        /* all that TP does not split */
    uint64_t norm;                         /* one norm of the hidden size */
} LayerParts;

/* One layer of which a rank holds @heads, @kv_heads and @ffn columns. */
static LayerParts layer_parts(const OrrModel *m, uint64_t heads, uint64_t kv_heads, uint64_t ffn) {
    uint64_t h = m->hidden, d = m->head_dim, n_up = m->is_gated ? 2 : 1;
    uint64_t qkv_width = (heads + 2 * kv_heads) * d;
    LayerParts p = {0};
    p.qkv = h * qkv_width;
    p.qkv_bias = m->qkv_bias ? qkv_width : 0;
    p.out = heads * d * h;
    p.out_bias = m->out_bias ? h : 0;
    p.up = n_up * h * ffn;
    p.up_bias = m->mlp_bias ? n_up * ffn : 0;
    p.down = ffn * h;
    p.down_bias = m->mlp_bias ? h : 0;
    p.norm = h * (m->norm_bias ? 2 : 1);
    uint64_t n_norms = (m->is_parallel && m->shares_norm ? 1 : 2) + (m->has_post_norms ? 2 : 0);
    p.norms = n_norms * p.norm + (m->has_qk_norm ? 2 * d : 0);
    return p;
}

static uint64_t layer_sum(const LayerParts *p) {
    return p->qkv + p->qkv_bias + p->out + p->out_bias + p->up + p->up_bias + p->down +
           p->down_bias + p->norms;
}

void orr_params_count(const OrrModel *model, OrrParams *out) {
    LayerParts p = layer_parts(model, model->heads, model->kv_heads, model->ffn);
    uint64_t table = (uint64_t)model->vocab * model->hidden;
    *out = (OrrParams){0};
    out->embedding = table + (model->has_embedding_norm ? p.norm : 0);
    if (model->position == ORR_POS_LEARNED)
        out->position = (uint64_t)model->max_positions * model->hidden;
    out->layer = layer_sum(&p);
    out->final_norm = p.norm;
    out->head = (model->is_tied ? 0 : table) + (model->head_bias ? model->vocab : 0);
    out->total =
        out->embedding + out->position + model->layers * out->layer + out->final_norm + out->head;
    out->active = out->total; /* dense: every parameter serves every token */
}

uint64_t orr_params_padded_vocab(const OrrModel *model, const OrrLayout *layout,
                                 const OrrFramework *framework) {
    uint64_t multiple = (uint64_t)framework->vocab_multiple * layout->tp;
    if (multiple == 0)
        return model->vocab;
    return (model->vocab + multiple - 1) / multiple * multiple;
}

static uint32_t qkv_matrices(const OrrFramework *f) {
    return f->fused_qkv ? 1 : 3;
}

static uint32_t up_matrices(const OrrModel *m, const OrrFramework *f) {
    return m->is_gated && !f->fused_gate_up ? 2 : 1;
}

static uint32_t layer_tensors(const OrrModel *m, const OrrFramework *f) {
    uint32_t n_qkv = qkv_matrices(f), n_up = up_matrices(m, f);
    uint32_t n_norms = (m->is_parallel && m->shares_norm ? 1 : 2) + (m->has_post_norms ? 2 : 0);
    return n_qkv * (m->qkv_bias ? 2 : 1) + (m->out_bias ? 2 : 1) + n_up * (m->mlp_bias ? 2 : 1) +
           (m->mlp_bias ? 2 : 1) + n_norms * (m->norm_bias ? 2 : 1) + (m->has_qk_norm ? 2 : 0);
}

/* The last first: down, up (and gate), output, then k, v and q. */
static uint32_t fill_matrices(const LayerParts *p, const OrrModel *m, uint64_t kv_heads,
                              const OrrFramework *f, uint64_t *matrix) {
    uint32_t n = 0, n_up = up_matrices(m, f);
    matrix[n++] = p->down;
    for (uint32_t i = 0; i < n_up; i++)
        matrix[n++] = p->up / n_up;
    matrix[n++] = p->out;
    uint64_t kv = m->hidden * kv_heads * m->head_dim;
    for (uint32_t i = 1; i < qkv_matrices(f); i++)
        matrix[n++] = kv;
    matrix[n++] = f->fused_qkv ? p->qkv : p->qkv - 2 * kv;
    return n;
}

void orr_params_local(const OrrModel *model, const OrrLayout *layout, const OrrFramework *framework,
                      OrrLocalParams *out) {
    uint64_t t = layout->tp;
    uint64_t kv_heads = model->kv_heads < t ? 1 : model->kv_heads / t;
    LayerParts p = layer_parts(model, model->heads / t, kv_heads, model->ffn / t);
    uint64_t vocab = orr_params_padded_vocab(model, layout, framework) / t;
    uint64_t table = vocab * model->hidden;
    *out = (OrrLocalParams){0};
    out->layer = layer_sum(&p);
    out->layer_norms = p.norms + p.out_bias + p.down_bias;
    out->embedding = table + (model->has_embedding_norm ? p.norm : 0);
    if (model->position == ORR_POS_LEARNED)
        out->embedding += (uint64_t)model->max_positions * model->hidden;
    bool has_table = !model->is_tied || layout->pp > 1;
    out->head = p.norm + (has_table ? table : 0) + (model->head_bias ? vocab : 0);
    out->layer_tensors = layer_tensors(model, framework);
    out->layer_matrices = fill_matrices(&p, model, kv_heads, framework, out->matrix);
}
