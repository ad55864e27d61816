/* Kernels and TP collectives with their bytes and waits.
 *
 * HBM traffic assumes perfect reuse inside a kernel; memory-bound kernels carry no FLOPs. A TP
 * collective starts behind the last kernel on the compute stream, as a process group of PyTorch
 * orders it, and the kernel that needs its result waits. */
#include "sim/model/emit_priv.h"
#include "sim/model/groups.h"

#include <math.h>
#include <string.h>

static bool is_narrow(OrrDtype d) {
    return d == ORR_FP8 || d == ORR_FP4;
}

/* Pairs of a causal sequence: half the square (as the FLOP formulas have it); with a window w
 * shorter than s: w s - w^2 / 2. */
static double causal_pairs(const OrrModel *m, uint32_t layer, double seq) {
    bool is_windowed = m->window > 0 && m->window_every > 0 &&
                       (m->window_every == 1 || (layer + 1) % m->window_every != 0);
    if (!is_windowed || m->window >= seq)
        return seq * seq / 2.0;
    double w = m->window;
    return w * seq - w * w / 2.0;
}

OrrCtx orr_emit__ctx(const OrrEmit *e, OrrBuilder *b, uint32_t layer, OrrPass pass) {
    const OrrModel *m = e->model;
    const OrrFramework *f = e->framework;
    OrrCtx c = {.e = e, .b = b, .m = m, .f = f, .pass = pass, .is_storing = true};
    uint32_t t = e->layout->tp;
    c.tp = t;
    c.is_sp = e->layout->sequence_parallel && t > 1;
    c.batch = e->batch->micro_sequences;
    c.seq = e->batch->sequence_tokens;
    c.tokens = c.batch * c.seq;
    c.tokens_here = c.is_sp ? c.tokens / t : c.tokens;
    c.hidden = m->hidden;
    c.head_dim = m->head_dim;
    c.heads = m->heads / t;
    c.kv_heads = m->kv_heads < t ? 1 : m->kv_heads / t;
    c.ffn = m->ffn / t;
    c.vocab = (int64_t)(orr_params_padded_vocab(m, e->layout, f) / t);
    c.qkv_width = (c.heads + 2 * c.kv_heads) * c.head_dim;
    c.up_width = c.ffn * (m->is_gated ? 2 : 1);
    /* FP8 and FP4 are formats of products' operands; activations stay BF16 (Transformer Engine). */
    c.gemm_dtype = (uint8_t)e->precision->compute;
    c.dtype = (uint8_t)(is_narrow(e->precision->compute) ? ORR_BF16 : e->precision->compute);
    c.size = orr_dtype_bytes((OrrDtype)c.dtype);
    c.residual_size = f->store_fp32_residual ? 4.0 : c.size; /* bytes of FP32 */
    c.weight_grad_size = orr_dtype_bytes(f->grads_as_parameters ? e->precision->parameters
                                                                : e->precision->gradients);
    c.attention_pairs = causal_pairs(m, layer, (double)c.seq);
    c.after = c.beside = ORR_NONE;
    return c;
}

void orr_emit__host(OrrCtx *c) {
    if (!c->f->cuda_graphs && c->f->host_layer_ns > 0.0)
        orr_builder_host(c->b, (uint32_t)llround(c->f->host_layer_ns));
}

void orr_emit__kernel(OrrCtx *c, const OrrKernel *k) {
    orr_builder_kernel(c->b, ORR_STREAM_COMPUTE, k);
    orr_builder_wait(c->b, c->after);
    c->after = ORR_NONE;
    for (uint32_t i = 0; i < c->n_owed; i++)
        orr_emit__temp(c, c->owed_bytes[i]);
    c->n_owed = 0;
}

void orr_emit__stream(OrrCtx *c, OrrKernelKind kind, OrrKernelPass pass, const char *label,
                      double bytes_read, double bytes_written, uint32_t launches) {
    OrrKernel k = {.kind = (uint8_t)kind,
                   .pass = (uint8_t)pass,
                   .dtype = c->dtype,
                   .bytes_read = bytes_read,
                   .bytes_written = bytes_written,
                   .launches = launches};
    g_strlcpy(k.label, label, sizeof k.label);
    orr_emit__kernel(c, &k);
}

void orr_emit__gemm(OrrCtx *c, OrrKernelPass pass, const char *label, int64_t m, int64_t n,
                    int64_t k) {
    double in_size = orr_dtype_bytes((OrrDtype)c->gemm_dtype), out = (double)m * (double)n;
    OrrKernel kernel = {.kind = ORR_K_GEMM,
                        .pass = (uint8_t)pass,
                        .dtype = c->gemm_dtype,
                        .m = m,
                        .n = n,
                        .k = k,
                        .batch = 1,
                        .launches = 1};
    kernel.flops = 2.0 * out * (double)k;
    kernel.bytes_read = ((double)m + (double)n) * (double)k * in_size;
    kernel.bytes_written = out * c->size;
    if (pass == ORR_PASS_WGRAD && c->f->fused_wgrad_accumulate) {
        kernel.bytes_read += out * c->weight_grad_size; /* adds into the buffer */
        kernel.bytes_written = out * c->weight_grad_size;
    }
    g_strlcpy(kernel.label, label, sizeof kernel.label);
    orr_emit__kernel(c, &kernel);
}

/* PyTorch's debug mode (ProcessGroupWrapper.cpp) has all ranks of the group compare what they are
 * about to call, over sockets: a barrier that goes through rank 0 one by one and gathers around a
 * ring, so the host of each is held for a time that grows with the group. */
uint32_t orr_emit_coll(const OrrEmit *e, OrrBuilder *b, OrrStream stream, const OrrColl *coll) {
    uint32_t n = orr_layout_group_size(e->layout, (OrrGroup)coll->group);
    double check_ns = e->framework->host_check_ns * n;
    if (n > 1 && check_ns > 0.0 && !e->framework->cuda_graphs)
        orr_builder_host(b, (uint32_t)MIN(llround(check_ns), (long long)UINT32_MAX));
    return orr_builder_coll(b, stream, coll);
}

uint32_t orr_emit__coll(OrrCtx *c, OrrCollective kind, double bytes, const char *label) {
    if (c->tp == 1 || bytes <= 0.0)
        return ORR_NONE;
    OrrColl coll = {.kind = (uint8_t)kind,
                    .group = ORR_GROUP_TP,
                    .purpose = ORR_COMM_TP,
                    .dtype = c->dtype,
                    .bytes = llround(bytes)};
    g_strlcpy(coll.label, label, sizeof coll.label);
    uint32_t computed = orr_builder_last_on(c->b, ORR_STREAM_COMPUTE);
    uint32_t op = orr_emit_coll(c->e, c->b, ORR_STREAM_TP, &coll);
    orr_builder_wait(c->b, computed);
    return op;
}

void orr_emit__coll_blocking(OrrCtx *c, OrrCollective kind, double bytes, const char *label) {
    uint32_t op = orr_emit__coll(c, kind, bytes, label);
    if (op != ORR_NONE)
        c->after = op;
}

void orr_emit__reduce_output(OrrCtx *c, const char *label, double share) {
    orr_emit__coll_blocking(c, c->is_sp ? ORR_REDUCE_SCATTER : ORR_ALL_REDUCE,
                            share * (double)(c->tokens * c->hidden) * c->size, label);
}
