/* The kernels bound by memory and the constants that they share with their reference; plain C
 * without GLib, so that nvcc reads it too. */
#ifndef ORR_CALIBRATE_MEM_KERNELS_H
#define ORR_CALIBRATE_MEM_KERNELS_H

typedef enum {
    ORR_MEM_LAYER_NORM,
    ORR_MEM_RMS_NORM,
    ORR_MEM_ROTARY,
    ORR_MEM_SWIGLU,
    ORR_MEM_GELU,
    ORR_MEM_RESIDUAL_DROPOUT,
    ORR_MEM_SOFTMAX,
    ORR_MEM_CROSS_ENTROPY, /* loss and gradient in one pass over the logits */
    ORR_MEM_ADAM,
    ORR_MEM_CAST, /* FP32 to dtype */
    ORR_MEM_PERMUTE,
    ORR_N_MEM_KERNELS
} OrrMemKernel;

/* Epsilon of norms and Adam as PyTorch has them; Adam's rates as GPT-3's (Brown 2020, appendix B);
 * the dropout keeps nine in ten. */
#define ORR_NORM_EPSILON 1e-5
#define ORR_ROTARY_POSITIONS 4096
#define ORR_ROTARY_PAIRS 64 /* of one head of 128 */
#define ORR_DROPOUT_KEEP 0.9
#define ORR_DROPOUT_SEED 77
#define ORR_ADAM_RATE 1e-3
#define ORR_ADAM_BETA1 0.9
#define ORR_ADAM_BETA2 0.95
#define ORR_ADAM_EPSILON 1e-8
/* Row of the source for row i of a permutation; a prime that divides no power of two. */
#define ORR_PERMUTE_STRIDE 7919

#endif
