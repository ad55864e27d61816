/* Runs an emitter into a one-segment program and sums what came out. */
#ifndef TESTS_EMIT_PROBE_H
#define TESTS_EMIT_PROBE_H

#include "tests/model_samples.h"

#include "sim/model/emit.h"

typedef struct {
    OrrModel model;
    OrrLayout layout;
    OrrBatch batch;
    OrrPrecision precision;
    OrrRecomputeSpec recompute;
    OrrFramework framework;
    OrrEmit emit;
} Sample;

static inline void sample_init(Sample *s, OrrModel model, uint32_t tp, bool is_sp) {
    s->model = model;
    s->layout = sample_layout(tp, 1, 1);
    s->layout.sequence_parallel = is_sp;
    s->batch = (OrrBatch){8, 2, 2048};
    s->precision = (OrrPrecision){ORR_BF16, ORR_BF16, ORR_FP32, ORR_FP32, ORR_BF16, ORR_FP32, true};
    s->recompute = (OrrRecomputeSpec){ORR_RECOMPUTE_NONE, ORR_RECOMPUTE_UNIFORM, 1};
    s->framework = sample_megatron();
    s->emit =
        (OrrEmit){&s->model, &s->layout, &s->batch, &s->precision, &s->recompute, &s->framework};
}

static inline OrrModel sample_gpt_22b(void) {
    return sample_gpt(48, 6144, 64, 51200, 2048);
}

static inline OrrModel sample_llama_8b(void) {
    return sample_llama(32, 4096, 32, 8, 14336, 128256);
}

/* Sums over the operations of a segment. */
typedef struct {
    double flops[ORR_N_KERNEL_KINDS][ORR_N_KERNEL_PASSES];
    uint32_t n_colls[ORR_N_COLLECTIVES];
    int64_t coll_bytes[ORR_N_COLLECTIVES];
    int64_t end_bytes;  /* memory at the end */
    int64_t peak_bytes; /* highest on the way */
    int64_t low_bytes;  /* lowest on the way, 0 or below */
    uint32_t n_kernels, n_host;
} Sums;

static inline void sums_add_op(Sums *sums, const OrrProgram *p, const OrrOp *op) {
    if (op->kind == ORR_OP_KERNEL) {
        const OrrKernel *k = &p->kernels[op->what];
        sums->flops[k->kind][k->pass] += k->flops;
        sums->n_kernels++;
    } else if (op->kind == ORR_OP_COLL) {
        sums->n_colls[p->colls[op->what].kind]++;
        sums->coll_bytes[p->colls[op->what].kind] += p->colls[op->what].bytes;
    } else
        sums->n_host++;
    for (int is_after = 0; is_after < 2; is_after++)
        for (uint32_t i = 0; i < op->n_mem; i++) {
            const OrrMem *mem = &p->mems[op->first_mem + i];
            if (mem->is_after != is_after)
                continue;
            sums->end_bytes += mem->delta_bytes;
            sums->peak_bytes = MAX(sums->peak_bytes, sums->end_bytes);
            sums->low_bytes = MIN(sums->low_bytes, sums->end_bytes);
        }
}

static inline Sums sums_of(const OrrProgram *p) {
    Sums sums = {0};
    for (uint32_t i = 0; i < p->n_ops; i++)
        sums_add_op(&sums, p, &p->ops[i]);
    return sums;
}

typedef enum { PART_LAYER, PART_LAYER_AGAIN, PART_EMBEDDING, PART_HEAD, N_PARTS } Part;

/* Forward, backward whole or in halves, and forward with each. */
typedef enum { RUN_F, RUN_B, RUN_I, RUN_W, RUN_F_B, RUN_F_I_W, N_RUNS } Run;

static inline void emit_one(const Sample *s, OrrBuilder *b, Part part, OrrPass pass) {
    bool again = part == PART_LAYER_AGAIN;
    if (part == PART_EMBEDDING && pass == ORR_F)
        orr_emit_embedding_forward(&s->emit, b);
    else if (part == PART_EMBEDDING)
        orr_emit_embedding_backward(&s->emit, b, pass);
    else if (part == PART_HEAD && pass == ORR_F)
        orr_emit_head_forward(&s->emit, b);
    else if (part == PART_HEAD)
        orr_emit_head_backward(&s->emit, b, pass);
    else if (pass == ORR_F)
        orr_emit_layer_forward(&s->emit, b, 0, again);
    else
        orr_emit_layer_backward(&s->emit, b, 0, pass, again);
}

static inline OrrProgram *emit_run(const Sample *s, Part part, Run run) {
    OrrBuilder *b = orr_builder_new();
    orr_builder_segment_begin(b, "probe");
    if (run == RUN_F || run == RUN_F_B || run == RUN_F_I_W)
        emit_one(s, b, part, ORR_F);
    if (run == RUN_B || run == RUN_F_B)
        emit_one(s, b, part, ORR_B);
    if (run == RUN_I || run == RUN_F_I_W)
        emit_one(s, b, part, ORR_I);
    if (run == RUN_W || run == RUN_F_I_W)
        emit_one(s, b, part, ORR_W);
    orr_builder_segment_end(b);
    return orr_builder_finish(b);
}

static inline Sums emit_sums(const Sample *s, Part part, Run run) {
    g_autoptr(OrrProgram) p = emit_run(s, part, run);
    return sums_of(p);
}

#endif
