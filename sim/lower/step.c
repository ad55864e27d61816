/* Begin and end of a step: input and logging on the host; what is left to reduce, gradient norm,
 * overflow check, optimizer, gathers of updated parameters.
 *
 * Source: Megatron-LM, finalize_model_grads (norm gradients over TP under SP, tied embedding
 * between first and last stage) and the distributed optimizer (norm over all ranks, parameters
 * gathered behind the update). */
#include "sim/lower/lower_priv.h"

#include <string.h>

void orr_lower__step_begin(OrrLower *w, OrrPiece *piece) {
    orr_builder_segment_begin(w->b, "step begin");
    orr_builder_host(w->b, (uint32_t)w->fw->host_step_ns);
    orr_lower__piece_end(w, piece);
}

typedef struct {
    OrrLower *w;
    uint32_t stage;
    uint64_t n_params, n_shard; /* of this rank: whole, and after ZeRO */
    uint32_t n_tensors;
    bool has_embedding, has_head;
} End;

static uint32_t coll(End *e, OrrStream stream, OrrCollective kind, OrrGroup group, uint32_t comm,
                     OrrCommKind purpose, OrrDtype dtype, int64_t bytes, const char *label) {
    OrrColl c = {.kind = kind,
                 .group = group,
                 .comm = comm,
                 .purpose = purpose,
                 .dtype = dtype,
                 .bytes = bytes};
    g_strlcpy(c.label, label, sizeof c.label);
    return orr_emit_coll(&e->w->emit, e->w->b, stream, &c);
}

/* Norm weights are replicated over TP: under SP each rank has seen a part of the sequence. */
static uint32_t norm_gradients(End *e, uint32_t n_layers) {
    const OrrLower *w = e->w;
    if (!w->layout->sequence_parallel || w->layout->tp < 2 || n_layers == 0)
        return ORR_NONE;
    double bytes =
        (double)w->local.layer_norms * n_layers * orr_dtype_bytes(w->precision->gradients);
    return coll(e, ORR_STREAM_TP, ORR_ALL_REDUCE, ORR_GROUP_TP, 0, ORR_COMM_STEP_END,
                w->precision->gradients, (int64_t)bytes, "norm grads");
}

static uint32_t left_over_reduce(End *e) {
    OrrLower *w = e->w;
    if (!orr_lower__reduces(w) || orr_lower__reduces_inside(w))
        return ORR_NONE;
    uint32_t op = orr_lower__reduce(w, e->n_params, ORR_NONE);
    orr_builder_mem(w->b, ORR_MEM_GRADIENTS, true, -orr_lower__buffer_bytes(w, e->n_params));
    return op;
}

static uint32_t tied_embedding(End *e, uint32_t after) {
    const OrrLower *w = e->w;
    if (!w->in->model->is_tied || w->layout->pp < 2 || (!e->has_embedding && !e->has_head))
        return ORR_NONE;
    uint64_t n = orr_params_padded_vocab(w->in->model, w->layout, w->fw) / w->layout->tp *
                 w->in->model->hidden;
    uint32_t op =
        coll(e, ORR_STREAM_COPY, ORR_ALL_REDUCE, ORR_GROUP_EMBEDDING, 0, ORR_COMM_EMBEDDING,
             w->precision->gradients,
             (int64_t)((double)n * orr_dtype_bytes(w->precision->gradients)), "tied embedding");
    orr_builder_wait(w->b, after);
    return op;
}

static OrrKernel gradient_kernel(const End *e, double bytes_read, double bytes_written,
                                 const char *label) {
    OrrKernel k = {.kind = ORR_K_GRADIENT,
                   .pass = ORR_PASS_FORWARD,
                   .dtype = e->w->precision->gradients,
                   .batch = 1,
                   .bytes_read = bytes_read,
                   .bytes_written = bytes_written,
                   .launches = 1};
    g_strlcpy(k.label, label, sizeof k.label);
    return k;
}

/* Gradient norm and overflow flag: every rank must know before the update. */
static void barrier(End *e, const uint32_t *after, uint32_t n_after) {
    OrrLower *w = e->w;
    bool is_sharded = w->layout->zero_stage > 0 && w->dp > 1;
    if (!w->fw->grad_norm && !w->fw->overflow_check) {
        /* nothing to know: the update waits itself */
        OrrKernel start = gradient_kernel(e, 0, 4, "update begins");
        orr_builder_kernel(w->b, ORR_STREAM_COMPUTE, &start);
        for (uint32_t i = 0; i < n_after; i++)
            orr_builder_wait(w->b, after[i]);
        return;
    }
    double bytes = (double)e->n_shard * orr_dtype_bytes(w->precision->gradients);
    OrrKernel norm = gradient_kernel(e, bytes, 0, "grad norm");
    uint32_t op = orr_builder_kernel(w->b, ORR_STREAM_COMPUTE, &norm);
    for (uint32_t i = 0; i < n_after; i++)
        orr_builder_wait(w->b, after[i]);
    OrrGroup group = is_sharded ? ORR_GROUP_WORLD : ORR_GROUP_MODEL;
    uint32_t n_calls = w->fw->grad_norm + w->fw->overflow_check, last = op;
    if (orr_layout_group_size(w->layout, group) > 1)
        for (uint32_t i = 0; i < n_calls; i++) {
            last = coll(e, ORR_STREAM_COPY, ORR_ALL_REDUCE, group, 1, ORR_COMM_STEP_END, ORR_FP32,
                        4, i == 0 && w->fw->overflow_check ? "overflow flag" : "grad norm");
            orr_builder_wait(w->b, op);
        }
    /* the host reads the value before it goes on */
    orr_builder_host(w->b, 0);
    orr_builder_wait(w->b, last);
}

/* Parameters of unit @unit of virtual stage @v: embedding, layers, head, as far as they are there;
 * 0 behind the last. */
static uint64_t unit_params(const OrrLower *w, uint32_t v, uint32_t unit) {
    const OrrStagePart *p = &w->parts[v];
    uint32_t n = p->has_embedding + p->n_layers + p->has_head;
    if (unit >= n)
        return 0;
    if (p->has_embedding && unit == 0)
        return w->local.embedding;
    return p->has_head && unit == n - 1 ? w->local.head : w->local.layer;
}

/* Gathers of a stage in order: buckets of units where they hide under the next forward, else one a
 * chunk. Calls back (if @emit) for each; returns the number of the one that brings the unit asked
 * for. */
static uint32_t walk_gathers(const OrrLower *w, uint32_t stage, uint32_t chunk, uint32_t unit,
                             void (*emit)(End *, uint64_t), End *e) {
    const OrrOrder *o = w->in->order;
    double size = orr_dtype_bytes(w->precision->gather);
    uint32_t n = 0, found = ORR_NONE;
    for (uint32_t c = 0; c < o->shape.n_chunks; c++) {
        uint32_t v = o->virtual_stage[stage * o->shape.n_chunks + c];
        uint64_t pending = 0, params;
        for (uint32_t u = 0; (params = unit_params(w, v, u)) > 0; u++) {
            pending += params;
            if (c == chunk && u == unit)
                found = n;
            bool is_full =
                orr_lower__gathers_behind(w) && (double)pending * size >= w->fw->param_bucket_bytes;
            if (!is_full && unit_params(w, v, u + 1) > 0)
                continue;
            if (emit)
                emit(e, pending);
            pending = 0;
            n++;
        }
    }
    return found;
}

static void emit_gather(End *e, uint64_t n_params) {
    uint32_t updated = orr_builder_last_on(e->w->b, ORR_STREAM_COMPUTE);
    OrrColl gather = orr_lower__gather(e->w, n_params, "parameters");
    orr_emit_coll(&e->w->emit, e->w->b, ORR_STREAM_DP_PARAMETER, &gather);
    orr_builder_wait(e->w->b, updated);
}

/* What was gathered flat goes to each tensor's slice of each rank by a kernel of its own; before,
 * the slices were joined rank by rank into the buffers (nanotron distributed.py,
 * all_gather_coalesced). Half a launch each: a bare copy has no module and no autograd around it
 * (cudaLaunchKernel alone is 3 to 7 us in Kineto traces, where a profile's launch is 10). */
static void copy_slices(End *e, uint32_t gathered) {
    const OrrLower *w = e->w;
    double bytes = (double)e->n_params * orr_dtype_bytes(w->precision->gather);
    OrrKernel k = {.kind = ORR_K_COPY,
                   .dtype = (uint8_t)w->precision->gather,
                   .label = "slices",
                   .bytes_read = 2.0 * bytes,
                   .bytes_written = 2.0 * bytes,
                   .launches = w->dp * (e->n_tensors + 1) / 2 + 1};
    orr_builder_kernel(w->b, ORR_STREAM_COMPUTE, &k);
    orr_builder_wait(w->b, gathered);
    /* the own slices joined, those of each rank joined, and PyTorch's flat output of a gather to a
     * list (ProcessGroupNCCL::allgather) */
    int64_t flat = (int64_t)bytes, slice = flat / w->dp;
    for (int sign = 1; sign >= -1; sign -= 2) {
        for (uint32_t i = 0; i < w->dp + 1; i++)
            orr_builder_mem(w->b, ORR_MEM_WEIGHTS, sign < 0, sign * slice);
        orr_builder_mem(w->b, ORR_MEM_WEIGHTS, sign < 0, sign * flat);
    }
}

/* Each rank owns whole tensors and sends them to all as one (InternEvo hybrid_zero_optim.py,
 * broadcast_params): as many calls as there are ranks, or tensors where these are fewer. */
static void broadcast_updated(End *e) {
    const OrrLower *w = e->w;
    uint32_t updated = orr_builder_last_on(w->b, ORR_STREAM_COMPUTE);
    uint64_t n_owners = MIN((uint64_t)w->dp, (uint64_t)e->n_tensors);
    for (uint64_t i = 0; i < n_owners; i++) {
        uint64_t first = e->n_params * i / n_owners, next = e->n_params * (i + 1) / n_owners;
        OrrColl send = orr_lower__gather(w, next - first, "parameters");
        send.kind = ORR_BROADCAST;
        orr_builder_coll(w->b, ORR_STREAM_DP_PARAMETER, &send);
        orr_builder_wait(w->b, updated);
    }
}

static void gather_updated(End *e) {
    const OrrLower *w = e->w;
    bool is_sharded = w->layout->zero_stage == 1 || w->layout->zero_stage == 2;
    if (w->dp > 1 && is_sharded && w->fw->gather_by_broadcasts && !orr_lower__gathers_behind(w)) {
        broadcast_updated(e);
        return;
    }
    if (w->dp > 1 && (w->layout->zero_stage == 1 || w->layout->zero_stage == 2))
        walk_gathers(w, e->stage, ORR_NONE, 0, emit_gather, e);
    else
        return;
    if (w->fw->gather_by_copies && !orr_lower__gathers_behind(w))
        copy_slices(e, orr_builder_last_on(w->b, ORR_STREAM_DP_PARAMETER));
}

uint32_t orr_lower__gather_of_unit(const OrrLower *w, uint32_t stage, uint32_t chunk,
                                   uint32_t unit) {
    return walk_gathers(w, stage, chunk, unit, NULL, NULL);
}

void orr_lower__step_end(OrrLower *w, uint32_t stage, OrrPiece *piece) {
    const OrrOrder *o = w->in->order;
    End e = {.w = w, .stage = stage};
    uint32_t n_layers = 0;
    for (uint32_t c = 0; c < o->shape.n_chunks; c++) {
        uint32_t v = o->virtual_stage[stage * o->shape.n_chunks + c];
        e.n_params += orr_lower__params(w, v);
        n_layers += w->parts[v].n_layers;
        e.has_embedding |= w->parts[v].has_embedding;
        e.has_head |= w->parts[v].has_head;
    }
    e.n_tensors = n_layers * w->local.layer_tensors + e.has_embedding + 2 * e.has_head;
    e.n_shard = w->layout->zero_stage > 0 ? (e.n_params + w->dp - 1) / w->dp : e.n_params;
    orr_builder_segment_begin(w->b, "step end");
    uint32_t after[3];
    after[0] = norm_gradients(&e, n_layers);
    after[1] = left_over_reduce(&e);
    after[2] = tied_embedding(&e, after[1]);
    barrier(&e, after, 3);
    orr_emit_optimizer(&w->emit, w->b, e.n_shard, e.n_tensors);
    orr_builder_step_end(w->b);
    gather_updated(&e);
    orr_lower__piece_end(w, piece);
}
