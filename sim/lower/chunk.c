/* Segments of one pass of one chunk: its layers in order, its ends, and what data parallelism does
 * inside: parameters gathered ahead of use (ZeRO-3), gradients reduced bucket by bucket as they
 * become final. */
#include "sim/lower/lower_priv.h"

#include <string.h>

/* Layers of a part in units of recompute: each group of `n` layers keeps only its input. */
static bool is_recomputed(const OrrLower *w, uint32_t index) {
    const OrrRecomputeSpec *r = &w->in->job->recompute;
    if (r->policy != ORR_RECOMPUTE_FULL)
        return false;
    return r->method == ORR_RECOMPUTE_UNIFORM || index < r->layers;
}

static uint32_t group_layers(const OrrLower *w) {
    const OrrRecomputeSpec *r = &w->in->job->recompute;
    bool is_grouped = r->policy == ORR_RECOMPUTE_FULL && r->method == ORR_RECOMPUTE_UNIFORM;
    return is_grouped ? MAX(r->layers, 1u) : 1;
}

static int64_t gathered_bytes(const OrrLower *w, uint64_t n_params) {
    return (int64_t)((double)n_params * orr_dtype_bytes(w->precision->gather));
}

/* Host order of ZeRO-3: unit i is gathered when the host comes to it, at most `prefetch` units
 * ahead of the compute stream: its gather waits for the end of unit i - prefetch - 1. */
typedef struct {
    uint32_t unit_end[64]; /* last compute operation of recent units, a ring */
    uint32_t n_units;
} Gathers;

#define N_RING 64u

/* Calls that take a list of views, one a rank, for each matrix: a view is made in Python and a copy
 * issued for each (DeepSpeed of 2021, partition_parameters.py, _allgather_param and
 * _reduce_scatter_gradient; PyTorch's ProcessGroupNCCL copies from and to the list one by one). */
static void copy_lists(OrrLower *w, uint64_t n_params, uint32_t gather) {
    if (!w->fw->calls_by_lists)
        return;
    uint64_t n_layers = n_params % w->local.layer == 0 ? n_params / w->local.layer : 0;
    uint32_t n_matrices = n_layers ? (uint32_t)n_layers * w->local.layer_matrices : 1; /* a table */
    double bytes = (double)gathered_bytes(w, n_params);
    OrrKernel k = {.kind = ORR_K_COPY,
                   .dtype = (uint8_t)w->precision->gather,
                   .label = "lists",
                   .bytes_read = bytes,
                   .bytes_written = bytes,
                   .launches = w->dp * n_matrices};
    orr_builder_kernel(w->b, ORR_STREAM_COMPUTE, &k);
    if (gather != ORR_NONE)
        orr_builder_wait(w->b, gather);
}

static uint32_t gather_unit(OrrLower *w, Gathers *g, uint64_t n_params, const char *label) {
    OrrColl coll = orr_lower__gather(w, n_params, label);
    uint32_t op = orr_emit_coll(&w->emit, w->b, ORR_STREAM_DP_PARAMETER, &coll);
    orr_builder_mem(w->b, ORR_MEM_WEIGHTS, false, gathered_bytes(w, n_params));
    uint32_t ahead = MIN(w->fw->fsdp_prefetch, N_RING - 2) + 1;
    if (w->fw->fsdp_rate_limit && g->n_units >= ahead)
        orr_builder_wait(w->b, g->unit_end[(g->n_units - ahead) % N_RING]);
    copy_lists(w, n_params, op);
    return op;
}

static bool is_zero3(const OrrLower *w) {
    return w->layout->zero_stage == 3 && w->dp > 1;
}

/* The unit whose operations were appended since @from ends: what it waited for, what it frees. */
static void unit_end(OrrLower *w, Gathers *g, uint32_t from, uint32_t gather, uint64_t n_params,
                     bool is_kept) {
    uint32_t first = from, end = orr_builder_n_ops(w->b);
    while (first < end && orr_builder_stream(w->b, first) != ORR_STREAM_COMPUTE)
        first++;
    if (gather != ORR_NONE && first < end)
        orr_builder_op_wait(w->b, first, gather);
    OrrPiece *piece = w->building;
    piece->unit_op = g_renew(uint32_t, piece->unit_op, piece->n_units + 1);
    piece->unit_op[piece->n_units++] = first < end ? first : ORR_NONE;
    g->unit_end[g->n_units++ % N_RING] = orr_builder_last_on(w->b, ORR_STREAM_COMPUTE);
    if (is_zero3(w) && !is_kept)
        orr_builder_mem(w->b, ORR_MEM_WEIGHTS, true, -gathered_bytes(w, n_params));
}

/* Gradients of @n_params parameters are final: joins the bucket, and reduces it once full. */
typedef struct {
    uint64_t pending;
    bool is_active;
} Bucket;

static void bucket_flush(OrrLower *w, Bucket *k) {
    if (k->pending == 0)
        return;
    /* as the kernels wrote them, and packed for the wire */
    int64_t packed = (int64_t)((double)k->pending * (orr_dtype_bytes(w->precision->compute) +
                                                     orr_dtype_bytes(w->precision->reduce)));
    if (is_zero3(w)) {
        orr_emit_pack_gradients(&w->emit, w->b, k->pending);
        copy_lists(w, k->pending, ORR_NONE);
        orr_builder_mem(w->b, ORR_MEM_GRADIENTS, false, packed);
    }
    orr_lower__reduce(w, k->pending, orr_builder_last_on(w->b, ORR_STREAM_COMPUTE));
    if (is_zero3(w))
        orr_builder_mem(w->b, ORR_MEM_GRADIENTS, true, -packed);
    k->pending = 0;
}

static void bucket_take(OrrLower *w, Bucket *k, uint64_t n_params) {
    k->pending += n_params;
    double bytes = (double)k->pending * orr_dtype_bytes(w->precision->gradients);
    if (is_zero3(w) || bytes >= w->fw->bucket_bytes)
        bucket_flush(w, k);
}

/* @n_layers: of whole layers that the parameters are, 0: a table. */
static void bucket_add(OrrLower *w, Bucket *k, uint64_t n_params, uint32_t n_layers) {
    if (!k->is_active)
        return;
    const OrrLocalParams *l = &w->local;
    if (!w->fw->bucket_whole_tensors || w->fw->bucket_bytes <= 0 || is_zero3(w) || n_layers == 0) {
        bucket_take(w, k, n_params);
        return;
    }
    uint64_t in_matrices = 0;
    for (uint32_t i = 0; i < l->layer_matrices; i++)
        in_matrices += l->matrix[i];
    for (uint32_t layer = 0; layer < n_layers; layer++) {
        k->pending += l->layer - in_matrices; /* norms and biases */
        for (uint32_t i = 0; i < l->layer_matrices; i++)
            bucket_take(w, k, l->matrix[i]);
    }
}

/* Forward of `count` layers from @first that keep only the input of the first. */
static void forward_group(OrrLower *w, uint32_t first, uint32_t count) {
    int64_t input = orr_emit_layer_stored_bytes(&w->emit, true);
    for (uint32_t i = 0; i < count; i++) {
        orr_emit_layer_forward(&w->emit, w->b, first + i, true);
        if (i > 0)
            orr_builder_mem(w->b, ORR_MEM_ACTIVATIONS, true, -input);
    }
}

static void emit_forward(OrrLower *w, uint32_t v, uint32_t variant) {
    const OrrStagePart *p = &w->parts[v];
    bool gathers = is_zero3(w) && (!(variant & ORR_GATHER_KEEP) || variant & ORR_GRAD_FIRST);
    bool is_kept = (variant & ORR_GATHER_KEEP) != 0;
    Gathers g = {0};
    uint32_t gather = ORR_NONE, from = 0;
    if (p->has_embedding) {
        if (gathers)
            gather = gather_unit(w, &g, w->local.embedding, "embedding");
        from = orr_builder_n_ops(w->b);
        orr_emit_embedding_forward(&w->emit, w->b);
        unit_end(w, &g, from, gather, w->local.embedding, is_kept || !is_zero3(w));
    }
    uint32_t step = group_layers(w);
    for (uint32_t i = 0; i < p->n_layers; i += step) {
        uint32_t count = MIN(step, p->n_layers - i);
        if (gathers)
            gather = gather_unit(w, &g, w->local.layer * count, "layer");
        from = orr_builder_n_ops(w->b);
        if (count > 1)
            forward_group(w, p->first_layer + i, count);
        else
            orr_emit_layer_forward(&w->emit, w->b, p->first_layer + i, is_recomputed(w, i));
        unit_end(w, &g, from, gather, w->local.layer * count, is_kept || !is_zero3(w));
    }
    if (!p->has_head)
        return;
    if (gathers)
        gather = gather_unit(w, &g, w->local.head, "head");
    from = orr_builder_n_ops(w->b);
    orr_emit_head_forward(&w->emit, w->b);
    unit_end(w, &g, from, gather, w->local.head, is_kept || !is_zero3(w));
}

/* Backward of a group of recomputed layers: all forward again, then backward in reverse. */
static void backward_group(OrrLower *w, uint32_t first, uint32_t count, OrrPass pass) {
    if (pass != ORR_W)
        for (uint32_t i = 0; i < count; i++)
            orr_emit_layer_forward(&w->emit, w->b, first + i, false);
    for (uint32_t i = count; i-- > 0;)
        orr_emit_layer_backward(&w->emit, w->b, first + i, pass, false);
    if (pass != ORR_I)
        orr_builder_mem(w->b, ORR_MEM_ACTIVATIONS, true,
                        -orr_emit_layer_stored_bytes(&w->emit, true));
}

/* One unit of the backward: gather, compute, gradients. */
typedef struct {
    OrrPass pass;
    bool gathers, is_kept;
    Gathers g;
    Bucket bucket;
} Backward;

/* Narrow gradients of @n_params as autograd leaves them beside the buffer, which takes them at the
 * end of the backward only. */
static int64_t left_bytes(const OrrLower *w, const Backward *k, uint64_t n_params) {
    if (!w->fw->grads_until_end || k->pass == ORR_I || is_zero3(w))
        return 0;
    return (int64_t)((double)n_params * orr_dtype_bytes(w->precision->compute));
}

static void backward_unit(OrrLower *w, Backward *k, uint64_t n_params, uint32_t n_layers,
                          uint32_t from, uint32_t gather) {
    unit_end(w, &k->g, from, gather, n_params, k->is_kept || !is_zero3(w) || k->pass == ORR_I);
    orr_builder_mem(w->b, ORR_MEM_GRADIENTS, false, left_bytes(w, k, n_params));
    if (k->pass != ORR_I)
        bucket_add(w, &k->bucket, n_params, n_layers);
}

static void emit_backward(OrrLower *w, uint32_t v, OrrPass pass, uint32_t variant) {
    const OrrStagePart *p = &w->parts[v];
    bool keeps = (variant & ORR_GATHER_KEEP) != 0;
    Backward k = {.pass = pass,
                  .gathers = is_zero3(w) && !keeps && pass != ORR_W,
                  .is_kept = keeps && !(variant & ORR_GRAD_FINAL)};
    k.bucket.is_active = orr_lower__reduces_inside(w) && (is_zero3(w) || variant & ORR_GRAD_FINAL);
    uint64_t all = orr_lower__params(w, v);
    uint32_t gather = ORR_NONE, from = 0;
    if (p->has_head) {
        if (k.gathers)
            gather = gather_unit(w, &k.g, w->local.head, "head");
        from = orr_builder_n_ops(w->b);
        orr_emit_head_backward(&w->emit, w->b, pass);
        backward_unit(w, &k, w->local.head, 0, from, gather);
    }
    uint32_t step = group_layers(w), n_groups = (p->n_layers + step - 1) / step;
    for (uint32_t j = n_groups; j-- > 0;) {
        uint32_t i = j * step, count = MIN(step, p->n_layers - i);
        if (k.gathers)
            gather = gather_unit(w, &k.g, w->local.layer * count, "layer");
        from = orr_builder_n_ops(w->b);
        if (count > 1)
            backward_group(w, p->first_layer + i, count, pass);
        else
            orr_emit_layer_backward(&w->emit, w->b, p->first_layer + i, pass, is_recomputed(w, i));
        backward_unit(w, &k, w->local.layer * count, count, from, gather);
    }
    if (p->has_embedding) {
        if (k.gathers)
            gather = gather_unit(w, &k.g, w->local.embedding, "embedding");
        from = orr_builder_n_ops(w->b);
        orr_emit_embedding_backward(&w->emit, w->b, pass);
        backward_unit(w, &k, w->local.embedding, 0, from, gather);
    }
    bucket_flush(w, &k.bucket);
    orr_builder_mem(w->b, ORR_MEM_GRADIENTS, true, -left_bytes(w, &k, all));
    if (k.bucket.is_active)
        orr_builder_mem(w->b, ORR_MEM_GRADIENTS, true, -orr_lower__buffer_bytes(w, all));
}

static void allocate_buffer(OrrLower *w, uint32_t v, OrrPass pass, uint32_t variant) {
    int64_t bytes = orr_lower__buffer_bytes(w, orr_lower__params(w, v));
    if (pass == ORR_F || pass == ORR_I || !(variant & ORR_GRAD_FIRST) || bytes == 0)
        return;
    orr_builder_host(w->b, 0);
    orr_builder_mem(w->b, ORR_MEM_GRADIENTS, false, bytes);
}

/* Timers of the pass: its host goes on when the device has done what the pass gave it. */
static void sync_pass(OrrLower *w) {
    static const OrrStream streams[] = {ORR_STREAM_COMPUTE, ORR_STREAM_TP};
    if (!w->fw->host_sync_passes)
        return;
    uint32_t last[2];
    for (int k = 0; k < 2; k++)
        last[k] = orr_builder_last_on(w->b, streams[k]);
    orr_builder_host(w->b, 0);
    for (int k = 0; k < 2; k++)
        orr_builder_wait(w->b, last[k]);
}

void orr_lower__piece_end(OrrLower *w, OrrPiece *piece) {
    for (int s = 0; s < ORR_N_STREAMS; s++) {
        piece->first[s] = orr_builder_first_on(w->b, s);
        piece->last[s] = orr_builder_last_on(w->b, s);
    }
    piece->segment = orr_builder_segment_end(w->b);
    piece->is_built = true;
}

/* Virtual stages whose parts look alike share a piece: the first of them builds it. */
static uint32_t twin(const OrrLower *w, uint32_t v) {
    const OrrStagePart *p = &w->parts[v];
    for (uint32_t u = 0; u < v; u++)
        if (w->parts[u].n_layers == p->n_layers && w->parts[u].has_embedding == p->has_embedding &&
            w->parts[u].has_head == p->has_head &&
            (w->in->model->window_every <= 1 ||
             w->parts[u].first_layer % w->in->model->window_every ==
                 p->first_layer % w->in->model->window_every))
            return u;
    return v;
}

const OrrPiece *orr_lower__piece(OrrLower *w, uint32_t v, OrrPass pass, uint32_t variant) {
    uint32_t u = twin(w, v);
    OrrPiece *piece = &w->pieces[(u * ORR_N_PASSES + pass) * ORR_N_VARIANTS + variant];
    if (piece->is_built)
        return piece;
    const OrrStagePart *p = &w->parts[u];
    g_autofree char *label = g_strdup_printf(
        "%s %u layers%s%s%s", orr_pass_name(pass), p->n_layers, p->has_embedding ? " +emb" : "",
        p->has_head ? " +head" : "", variant & ORR_GRAD_FINAL && pass != ORR_F ? " last" : "");
    orr_builder_segment_begin(w->b, label);
    w->building = piece;
    allocate_buffer(w, u, pass, variant);
    if (pass == ORR_F)
        emit_forward(w, u, variant);
    else
        emit_backward(w, u, pass, variant);
    sync_pass(w);
    orr_lower__piece_end(w, piece);
    return piece;
}
