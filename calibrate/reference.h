/* What kernels must give, computed on the host in doubles from the random data of fill.h: single
 * elements or rows, so that large sizes can be checked too. Independent of CUDA. */
#ifndef ORR_CALIBRATE_REFERENCE_H
#define ORR_CALIBRATE_REFERENCE_H

#include "calibrate/case.h"

/* A matrix of random data: element (i, j) is number offset + i * row + j * column of the buffer. */
typedef struct {
    uint64_t seed;
    int steps;
    int64_t offset, row, column;
} OrrMatrix;

/* Element (i, j) of the product with inner size @k. */
double orr_reference_product(const OrrMatrix *a, const OrrMatrix *b, int64_t i, int64_t j,
                             int64_t k);

/* Attention of one query: q is row @i of @query, keys and values are the rows below @n of theirs
 * (at most i + 1 of them if causal), all @head_dim wide; scores are multiplied by @scale. Writes
 * the output, and the gradient of the query for the output gradient @grad (row @i) unless it is
 * NULL. */
typedef struct {
    OrrMatrix query, key, value, grad;
    int64_t n, head_dim, i;
    bool is_causal;
    double scale;
} OrrQuery;
void orr_reference_attention(const OrrQuery *q, double *output, double *query_gradient);

/* Row @row of the memory-bound kernel of @c, from buffers of random data seeded 1, 2, 3 (in the
 * order of kernels.h); @output has room for c->columns. Only the first output of a kernel is given.
 */
void orr_reference_kernel(const OrrCase *c, int64_t row, double *output);

#endif
