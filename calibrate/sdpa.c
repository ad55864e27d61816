/* Attention as graphs: the unified operation forward where it has no mask to apply, else its parts,
 * which cuDNN's engines know as a pattern and fuse. Formulas: Dao 2023 (FlashAttention-2),
 * algorithms 1 and 2. In the versions that this was written for (9.13 to 9.19) the unified
 * operation takes no causal mask, and no engine has it backward. */
#include "calibrate/sdpa.h"

typedef struct {
    OrrGraph *g;
    const OrrCase *c;
    const OrrSdpaBuffers *b;
    cudnnDataType_t type;
} Build;

/* A tensor of heads that lies batch, sequence, heads, width. */
static OrrDescriptor heads(const Build *s, void *data, int64_t n_heads) {
    const OrrCase *c = s->c;
    OrrTensor t = {
        .size = {c->batch, n_heads, c->sequence, c->head_dim},
        .stride = {c->sequence * n_heads * c->head_dim, c->head_dim, n_heads * c->head_dim, 1},
        .type = s->type,
        .data = data};
    return orr_graph_tensor(s->g, &t);
}

/* The same read as width by sequence. */
static OrrDescriptor heads_transposed(const Build *s, void *data, int64_t n_heads) {
    const OrrCase *c = s->c;
    OrrTensor t = {
        .size = {c->batch, n_heads, c->head_dim, c->sequence},
        .stride = {c->sequence * n_heads * c->head_dim, c->head_dim, 1, n_heads * c->head_dim},
        .type = s->type,
        .data = data};
    return orr_graph_tensor(s->g, &t);
}

/* One value a query. */
static OrrDescriptor per_query(const Build *s, void *data) {
    const OrrCase *c = s->c;
    OrrTensor t = {.size = {c->batch, c->heads, c->sequence, 1},
                   .stride = {c->heads * c->sequence, c->sequence, 1, 1},
                   .type = CUDNN_DATA_FLOAT,
                   .data = data};
    return orr_graph_tensor(s->g, &t);
}

/* Queries by keys, within the graph. */
static OrrDescriptor scores(const Build *s, cudnnDataType_t type) {
    int64_t n = s->c->sequence, h = s->c->heads;
    OrrTensor t = {
        .size = {s->c->batch, h, n, n}, .stride = {h * n * n, n * n, n, 1}, .type = type};
    return orr_graph_tensor(s->g, &t);
}

static OrrDescriptor scores_transposed(const Build *s) {
    int64_t n = s->c->sequence, h = s->c->heads;
    OrrTensor t = {
        .size = {s->c->batch, h, n, n}, .stride = {h * n * n, n * n, 1, n}, .type = s->type};
    return orr_graph_tensor(s->g, &t);
}

static OrrDescriptor scalar(const Build *s, float *value) {
    OrrTensor t = {.size = {1, 1, 1, 1},
                   .stride = {1, 1, 1, 1},
                   .type = CUDNN_DATA_FLOAT,
                   .is_by_value = true,
                   .data = value};
    return orr_graph_tensor(s->g, &t);
}

static void unified_forward(const Build *s) {
    const cudnnBackendAttributeName_t names[] = {
        CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC,     CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC,
        CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC,     CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC,
        CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC, CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC};
    const OrrSdpaBuffers *b = s->b;
    const OrrDescriptor tensors[] = {heads(s, b->q, s->c->heads),    heads(s, b->k, s->c->kv_heads),
                                     heads(s, b->v, s->c->kv_heads), heads(s, b->o, s->c->heads),
                                     per_query(s, b->stats),         scalar(s, b->scale)};
    orr_graph_op(s->g, CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR, names, tensors,
                 G_N_ELEMENTS(names));
}

/* Q K' times the scale, the future replaced by the lowest number. */
static OrrDescriptor masked_scores(const Build *s, OrrDescriptor q) {
    OrrGraph *g = s->g;
    OrrDescriptor raw = scores(s, CUDNN_DATA_FLOAT), scaled = scores(s, CUDNN_DATA_FLOAT);
    orr_graph_matmul(g, q, heads_transposed(s, s->b->k, s->c->kv_heads), raw);
    orr_graph_pointwise(g, CUDNN_POINTWISE_MUL, raw, scalar(s, s->b->scale), NULL, scaled);
    if (!s->c->is_causal)
        return scaled;
    OrrDescriptor row = scores(s, CUDNN_DATA_INT32), column = scores(s, CUDNN_DATA_INT32);
    OrrDescriptor is_past = scores(s, CUDNN_DATA_BOOLEAN), masked = scores(s, CUDNN_DATA_FLOAT);
    orr_graph_index(g, 2, scaled, row);
    orr_graph_index(g, 3, scaled, column);
    orr_graph_pointwise(g, CUDNN_POINTWISE_CMP_GE, row, column, NULL, is_past);
    orr_graph_pointwise(g, CUDNN_POINTWISE_BINARY_SELECT, scaled, scalar(s, s->b->lowest), is_past,
                        masked);
    return masked;
}

static void parts_forward(const Build *s) {
    OrrGraph *g = s->g;
    OrrDescriptor x = masked_scores(s, heads(s, s->b->q, s->c->heads));
    OrrDescriptor most = per_query(s, NULL), sum = per_query(s, NULL), log = per_query(s, NULL);
    OrrDescriptor less = scores(s, CUDNN_DATA_FLOAT), exponent = scores(s, CUDNN_DATA_FLOAT);
    OrrDescriptor p = scores(s, s->type);
    orr_graph_reduce(g, CUDNN_REDUCE_TENSOR_MAX, x, most);
    orr_graph_pointwise(g, CUDNN_POINTWISE_SUB, x, most, NULL, less);
    orr_graph_pointwise(g, CUDNN_POINTWISE_EXP, less, NULL, NULL, exponent);
    orr_graph_reduce(g, CUDNN_REDUCE_TENSOR_ADD, exponent, sum);
    orr_graph_pointwise(g, CUDNN_POINTWISE_LOG, sum, NULL, NULL, log);
    orr_graph_pointwise(g, CUDNN_POINTWISE_ADD, most, log, NULL, per_query(s, s->b->stats));
    orr_graph_pointwise(g, CUDNN_POINTWISE_DIV, exponent, sum, NULL, p);
    orr_graph_matmul(g, p, heads(s, s->b->v, s->c->kv_heads), heads(s, s->b->o, s->c->heads));
}

/* dQ = dS K, summed in FP32 over blocks of keys, then rounded. */
static void query_gradient(const Build *s, OrrDescriptor ds, OrrDescriptor k) {
    const OrrCase *c = s->c;
    OrrTensor t = {
        .size = {c->batch, c->heads, c->sequence, c->head_dim},
        .stride = {c->sequence * c->heads * c->head_dim, c->head_dim, c->heads * c->head_dim, 1},
        .type = CUDNN_DATA_FLOAT,
        .data = s->b->d_q_sum};
    OrrDescriptor sum = orr_graph_tensor(s->g, &t);
    orr_graph_matmul(s->g, ds, k, sum);
    orr_graph_pointwise(s->g, CUDNN_POINTWISE_IDENTITY, sum, NULL, NULL,
                        heads(s, s->b->d_q, c->heads));
}

/* Gradients of keys or values; heads that share one add up. */
static void key_gradient(const Build *s, OrrDescriptor transposed, OrrDescriptor x, void *data) {
    const OrrCase *c = s->c;
    OrrDescriptor y = heads(s, data, c->kv_heads);
    if (c->heads == c->kv_heads) {
        orr_graph_matmul(s->g, transposed, x, y);
        return;
    }
    OrrDescriptor each = heads(s, NULL, c->heads);
    orr_graph_matmul(s->g, transposed, x, each);
    orr_graph_reduce(s->g, CUDNN_REDUCE_TENSOR_ADD, each, y);
}

static void parts_backward(const Build *s) {
    OrrGraph *g = s->g;
    int64_t h = s->c->heads, kv = s->c->kv_heads;
    OrrDescriptor q = heads(s, s->b->q, h), d_o = heads(s, s->b->d_o, h);
    OrrTensor like = {.size = {s->c->batch, h, s->c->sequence, s->c->head_dim},
                      .stride = {h * s->c->sequence * s->c->head_dim,
                                 s->c->sequence * s->c->head_dim, s->c->head_dim, 1},
                      .type = CUDNN_DATA_FLOAT};
    OrrDescriptor product = orr_graph_tensor(g, &like), sum = per_query(s, NULL);
    OrrDescriptor delta = per_query(s, s->b->delta);
    orr_graph_pointwise(g, CUDNN_POINTWISE_MUL, d_o, heads(s, s->b->o, h), NULL, product);
    orr_graph_reduce(g, CUDNN_REDUCE_TENSOR_ADD, product, sum);
    orr_graph_pointwise(g, CUDNN_POINTWISE_MUL, sum, scalar(s, s->b->one), NULL, delta);
    OrrDescriptor x = masked_scores(s, q), less = scores(s, CUDNN_DATA_FLOAT);
    OrrDescriptor p = scores(s, CUDNN_DATA_FLOAT), p_transposed = scores_transposed(s);
    orr_graph_pointwise(g, CUDNN_POINTWISE_SUB, x, per_query(s, s->b->stats), NULL, less);
    orr_graph_pointwise(g, CUDNN_POINTWISE_EXP, less, NULL, NULL, p);
    orr_graph_reshape(g, p, p_transposed);
    key_gradient(s, p_transposed, d_o, s->b->d_v);
    OrrDescriptor dp = scores(s, CUDNN_DATA_FLOAT), centred = scores(s, CUDNN_DATA_FLOAT);
    OrrDescriptor raw = scores(s, CUDNN_DATA_FLOAT), ds = scores(s, s->type);
    OrrDescriptor ds_transposed = scores_transposed(s);
    orr_graph_matmul(g, d_o, heads_transposed(s, s->b->v, kv), dp);
    orr_graph_pointwise(g, CUDNN_POINTWISE_SUB, dp, delta, NULL, centred);
    orr_graph_pointwise(g, CUDNN_POINTWISE_MUL, centred, p, NULL, raw);
    orr_graph_pointwise(g, CUDNN_POINTWISE_MUL, raw, scalar(s, s->b->scale), NULL, ds);
    orr_graph_reshape(g, ds, ds_transposed);
    key_gradient(s, ds_transposed, q, s->b->d_k);
    query_gradient(s, ds, heads(s, s->b->k, kv));
}

void orr_sdpa_build(OrrGraph *g, const OrrCase *c, const OrrSdpaBuffers *b) {
    Build s = {g, c, b, c->dtype == ORR_FP16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16};
    bool is_back = c->pass != ORR_PASS_FORWARD;
    if (is_back)
        parts_backward(&s);
    else if (!c->is_causal)
        unified_forward(&s);
    else
        parts_forward(&s);
}
