/* What the files that emit operations share: sizes of one rank's part of the model, helpers that
 * append a kernel or TP collective with its waits, and the table of stored tensors. */
#ifndef ORR_MODEL_EMIT_PRIV_H
#define ORR_MODEL_EMIT_PRIV_H

#include "sim/model/emit.h"

/* Tensors that live from forward to backward; doc/models/memory.md is this table in words. */
typedef enum {
    ORR_ITEM_LAYER_INPUT, /* residual stream: input of the first norm */
    ORR_ITEM_NORM1_OUT,   /* input of the QKV product */
    ORR_ITEM_QK_NORM_IN,
    ORR_ITEM_QKV,         /* q, k, v as attention reads them */
    ORR_ITEM_SCORES,      /* unfused, eager softmax: FP32 scores */
    ORR_ITEM_SOFTMAX,     /* unfused: probabilities */
    ORR_ITEM_ATT_DROPOUT, /* unfused: dropped probabilities and mask */
    ORR_ITEM_LSE,         /* fused: log-sum-exp a query and head */
    ORR_ITEM_CONTEXT,     /* input of the output product */
    ORR_ITEM_POST_NORM1_IN,
    ORR_ITEM_MASK1,      /* dropout mask behind attention */
    ORR_ITEM_NORM2_IN,   /* residual stream between attention and MLP */
    ORR_ITEM_NORM2_OUT,  /* input of the up product */
    ORR_ITEM_UP,         /* input of the activation */
    ORR_ITEM_ACTIVATION, /* input of the down product */
    ORR_ITEM_POST_NORM2_IN,
    ORR_ITEM_MASK2,
    ORR_ITEM_FINAL_NORM_IN,
    ORR_ITEM_FINAL_NORM_OUT,
    ORR_ITEM_LOGITS, /* head */
    ORR_ITEM_EMBEDDING_MASK,
    ORR_ITEM_EMBEDDING_NORM_IN,
    ORR_N_ITEMS
} OrrItem;

typedef struct {
    const OrrEmit *e;
    OrrBuilder *b;
    const OrrModel *m;
    const OrrFramework *f;
    int64_t batch, seq;  /* sequences of a micro-batch, tokens of a sequence */
    int64_t tokens;      /* batch x seq */
    int64_t tokens_here; /* of norms, dropout and residual: over TP under SP */
    int64_t hidden, head_dim, heads, kv_heads, ffn, vocab; /* heads, ffn, vocab: of this TP rank */
    int64_t qkv_width, up_width;
    uint32_t tp;
    bool is_sp;
    double size;             /* bytes of an activation element */
    double residual_size;    /* of the residual stream */
    double weight_grad_size; /* of the buffer that gradients are added to */
    double attention_pairs;  /* query-key pairs of a sequence and head that a fused kernel visits */
    uint8_t dtype, gemm_dtype;
    OrrPass pass;
    bool is_storing;      /* false: forward under full recompute */
    uint32_t after;       /* TP collective whose result the next kernel needs */
    uint32_t beside;      /* the same, but the next product runs beside it */
    double owed_bytes[2]; /* working memory that the next kernel allocates */
    uint32_t n_owed;
} OrrCtx;

OrrCtx orr_emit__ctx(const OrrEmit *e, OrrBuilder *b, uint32_t layer, OrrPass pass);
/* Host work of one layer and pass. */
void orr_emit__host(OrrCtx *c);

/* A memory-bound kernel. @launches: device kernels. */
void orr_emit__stream(OrrCtx *c, OrrKernelKind kind, OrrKernelPass pass, const char *label,
                      double bytes_read, double bytes_written, uint32_t launches);
/* C[m,n] = A[m,k] B[k,n]. */
void orr_emit__gemm(OrrCtx *c, OrrKernelPass pass, const char *label, int64_t m, int64_t n,
                    int64_t k);
void orr_emit__kernel(OrrCtx *c, const OrrKernel *k);
/* A TP collective behind what was computed so far; ORR_NONE if there is no TP. */
uint32_t orr_emit__coll(OrrCtx *c, OrrCollective kind, double bytes, const char *label);
/* The same, and the next kernel waits for it. */
void orr_emit__coll_blocking(OrrCtx *c, OrrCollective kind, double bytes, const char *label);
/* Sum over TP of partial outputs: reduce-scatter under SP, else all-reduce; @share of it. */
void orr_emit__reduce_output(OrrCtx *c, const char *label, double share);

/* Bytes of @item on this rank if it exists in this profile and layer, else 0. */
int64_t orr_emit__item_bytes(const OrrCtx *c, OrrItem item);
/* True if the backward makes each second product and all that is element-wise again. */
bool orr_emit__is_per_op(const OrrCtx *c);
/* What SP gathers lies in buffers that live throughout: no working memory of its own. */
bool orr_emit__gathers_to_buffers(const OrrCtx *c);
/* True if the forward keeps @item for the backward. */
bool orr_emit__keeps(const OrrCtx *c, OrrItem item);
void orr_emit__hold(OrrCtx *c, OrrItem item);     /* allocated with the last operation */
void orr_emit__drop(OrrCtx *c, OrrItem item);     /* freed behind it */
void orr_emit__consumed(OrrCtx *c, OrrItem item); /* forward: freed here unless it is kept */
/* Working memory of the last operation: allocated before it, freed behind a later one. */
void orr_emit__temp(OrrCtx *c, double bytes);
void orr_emit__temp_next(OrrCtx *c, double bytes); /* allocated before the next kernel */
void orr_emit__untemp(OrrCtx *c, double bytes);

/* The same of what a collective over TP has read or written. */
void orr_emit__untemp_sent(OrrCtx *c, double bytes);

/* A linear layer of up to 3 products that share an input (q, k, v; gate, up). */
typedef struct {
    const char *label;
    int64_t in;
    int64_t out[3];
    uint32_t n_parts;
    bool is_column; /* output split over TP; else input split, partial sums to reduce */
    bool has_bias;
    OrrItem input;
    double grad_bytes; /* gradient of its output, freed when the weights' gradient is done */
} OrrLinear;
OrrLinear orr_emit__qkv(const OrrCtx *c);
OrrLinear orr_emit__out(const OrrCtx *c);
OrrLinear orr_emit__up(const OrrCtx *c);
OrrLinear orr_emit__down(const OrrCtx *c);
void orr_emit__linear_forward(OrrCtx *c, const OrrLinear *l);
/* The halves that the pass asks for; the input gradient is complete for the next kernel. */
void orr_emit__linear_backward(OrrCtx *c, const OrrLinear *l);
/* True if a weight gradient is added to a buffer by a kernel of its own. */
bool orr_emit__adds_weight_gradient(const OrrCtx *c);

/* Metrics from the logits: with the loss, and behind the backward of a micro-batch. */
void orr_emit__metrics_with_loss(OrrCtx *c);
void orr_emit__metrics_behind(OrrCtx *c);

void orr_emit__norm_forward(OrrCtx *c, const char *label, double elements);
/* @adds_residual: the gradient that came along the residual is added. */
void orr_emit__norm_backward(OrrCtx *c, const char *label, double elements, bool adds_residual);

/* Of a layer's products in the order of the forward, @count so far, every second one again. */
void orr_emit__second_products(OrrCtx *c, const OrrLinear *l, uint32_t *count);
/* Turns q and k once more. */
void orr_emit__rotary_again(OrrCtx *c);
/* Between the QKV product and the output product. */
void orr_emit__attention_forward(OrrCtx *c);
void orr_emit__attention_backward(OrrCtx *c);
/* Between the up and the down product. */
void orr_emit__activation_forward(OrrCtx *c);
void orr_emit__activation_again(OrrCtx *c); /* its output was not kept */
void orr_emit__activation_backward(OrrCtx *c);

#endif
