/* Measured kernel rows for the fit: reads gemm_GPU.csv and attention_forward_GPU.csv. */
#ifndef ORR_CALIBRATE_FIT_ROWS_H
#define ORR_CALIBRATE_FIT_ROWS_H

#include "sim/base/error.h"
#include "sim/facts/forms.h"

typedef struct {
    OrrGemmShape gemm;
    OrrAttnShape attn;
    double ns;
    double weight;    /* in the fit; below 1 for shapes that training hardly meets */
    bool is_judged;   /* counts in the residuals: m, n, k of 512 and more; long enough attention */
    bool is_held_out; /* its (n, k) pair, or attention shape, is kept from a trial fit */
} FitRow;

typedef struct {
    FitRow *rows;
    uint32_t n_rows;
} FitRows;

/* Rows of one column value (dtype as the file has it; mask "causal" or "full"). None is an empty
 * result; a line that can't be read is an error with file and line. */
bool fit_rows_gemm(const char *path, const char *dtype, double operand_bytes, FitRows *out,
                   GError **error);
bool fit_rows_attn(const char *path, const char *mask, const char *dtype, double operand_bytes,
                   FitRows *out, GError **error);
void fit_rows_clear(FitRows *rows);

#endif
