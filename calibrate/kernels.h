/* Our own kernels, for C: each function launches on @stream and returns a cudaError_t as int. */
#ifndef ORR_CALIBRATE_KERNELS_H
#define ORR_CALIBRATE_KERNELS_H

#include "calibrate/mem_kernels.h"
#include "sim/terms/terms.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Buffers of a memory-bound kernel, all of rows x columns elements of dtype unless said otherwise:
 *   norms       in: x, weight (a row), output gradient (backward); out: y or the gradient of x
 *   rotary      in: x; out: y; table: cosines and sines, ORR_ROTARY_POSITIONS x PAIRS float2
 *   swiglu      in: gate, up, output gradient (backward); out: y, or the gradients of both
 *   gelu        in: x, -, output gradient (backward)
 *   residual    in: x, residual; out: y, mask (bytes)
 *   softmax     in: x, or (backward) y, -, output gradient
 *   cross_entropy  in: logits; out: their gradient, losses (FP32, a row each)
 *   adam        in and out: weights, moments (FP32); in: gradient; out: weights of dtype
 *   cast        in: x (FP32); out: y
 *   permute     in: x; out: y */
typedef struct {
    int op;    /* OrrMemKernel */
    int dtype; /* OrrDtype: BF16, FP16 or FP32 */
    int is_backward;
    int64_t rows, columns;
    void *in[4];
    void *out[2];
    void *table;
} OrrKernelArguments;
int orr_kernels_run(const OrrKernelArguments *a, void *stream);

/* Random data of fill.h, of FP32 (also for TF32), BF16, FP16 or FP8 (E4M3). */
int orr_kernels_fill(void *data, int dtype, int64_t n, uint64_t seed, void *stream);
int orr_kernels_rotary_table(void *table, void *stream);
/* A kernel that does nothing. */
int orr_kernels_empty(void *stream);

#ifdef __cplusplus
}
#endif

#endif
