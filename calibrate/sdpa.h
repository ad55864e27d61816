/* Graphs of scaled dot product attention for cuDNN. Tensors lie batch, sequence, heads, width, as
 * frameworks hold them. */
#ifndef ORR_CALIBRATE_SDPA_H
#define ORR_CALIBRATE_SDPA_H

#include "calibrate/case.h"
#include "calibrate/cudnn_graph.h"

/* Device memory; lengths in elements of the dtype unless said otherwise. The gradients are for the
 * backward pass only. */
typedef struct {
    void *q, *k, *v, *o;
    void *stats; /* FP32, a value a query and head: maximum plus logarithm of the sum */
    void *d_o, *d_q, *d_k, *d_v;
    void *delta;                 /* FP32, a value a query and head: the backward pass's own */
    void *d_q_sum;               /* FP32, as large as q: sums before they are rounded */
    float *scale, *one, *lowest; /* on the host */
} OrrSdpaBuffers;

/* Appends the operations of @c to @g; says nothing of its success (orr_graph_plan does). */
void orr_sdpa_build(OrrGraph *g, const OrrCase *c, const OrrSdpaBuffers *b);

#endif
