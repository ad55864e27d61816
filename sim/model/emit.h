/* Architecture to operations: appends the kernels, TP collectives and memory effects of one part of
 * the model to the open segment of a builder. Compute on ORR_STREAM_COMPUTE, TP collectives on
 * ORR_STREAM_TP (group TP, comm 0) with waits both ways, host work as the profile says.
 *
 * Memory: a forward allocates what the backward needs (activations, categories of the profile's
 * table) and the backward frees the same amount, so that effects balance over a step. */
#ifndef ORR_MODEL_EMIT_H
#define ORR_MODEL_EMIT_H

#include "sim/model/params.h"
#include "sim/program/builder.h"

typedef struct {
    const OrrModel *model;
    const OrrLayout *layout;
    const OrrBatch *batch;
    const OrrPrecision *precision;
    const OrrRecomputeSpec *recompute;
    const OrrFramework *framework;
} OrrEmit;

/* A collective over any group; behind the comparison of hosts, where the profile has one. Returns
 * its operation. */
uint32_t orr_emit_coll(const OrrEmit *e, OrrBuilder *b, OrrStream stream, const OrrColl *coll);
/* Forward of one layer. @recompute_all: this layer keeps only its input (full recompute). */
void orr_emit_layer_forward(const OrrEmit *e, OrrBuilder *b, uint32_t layer, bool recompute_all);
/* Backward of one layer: ORR_B whole, ORR_I input half, ORR_W weight half; with @recompute_all it
 * starts with the forward again. Selective recompute is in the profile of @e. */
void orr_emit_layer_backward(const OrrEmit *e, OrrBuilder *b, uint32_t layer, OrrPass pass,
                             bool recompute_all);
void orr_emit_embedding_forward(const OrrEmit *e, OrrBuilder *b);
void orr_emit_embedding_backward(const OrrEmit *e, OrrBuilder *b, OrrPass pass);
/* Final norm, logits, vocabulary-parallel cross-entropy. */
void orr_emit_head_forward(const OrrEmit *e, OrrBuilder *b);
void orr_emit_head_backward(const OrrEmit *e, OrrBuilder *b, OrrPass pass);
/* The update of @n_params parameters that this rank holds (after ZeRO), @n_tensors tensors. */
void orr_emit_optimizer(const OrrEmit *e, OrrBuilder *b, uint64_t n_params, uint32_t n_tensors);
/* ZeRO-3: gradients of @n_params parameters into one buffer in the dtype of the wire (FSDP1: the
 * flat parameter's gradient; FSDP2: chunk_cat; DeepSpeed: the bucket). */
void orr_emit_pack_gradients(const OrrEmit *e, OrrBuilder *b, uint64_t n_params);
/* Bytes of the activation that goes from stage to stage, per rank that sends: b s h x size, over TP
 * under SP or scatter-gather. */
int64_t orr_emit_boundary_bytes(const OrrEmit *e);
/* Bytes of the buffers that what is gathered over TP lies in, held throughout; 0: there are none.
 */
int64_t orr_emit_buffer_bytes(const OrrEmit *e);
/* Activation bytes that one layer keeps until its backward (sum of what forward allocates). */
int64_t orr_emit_layer_stored_bytes(const OrrEmit *e, bool recompute_all);

/* Bytes of the two moments of Adam that this rank holds for @n_params local parameters. */
int64_t orr_moment_bytes(const OrrEmit *e, uint64_t n_params);
/* Weights, gradients, optimizer state of @n_params local parameters, by ZeRO stage and profile;
 * sets all kinds, the others to 0. */
void orr_state_bytes(const OrrEmit *e, uint64_t n_params, int64_t by_kind[ORR_N_MEM_KINDS]);

#endif
