/* Measured kernel rows for the fit: reads gemm_GPU.csv and attention_forward_GPU.csv. */
#ifndef ORR_CALIBRATE_FIT_ROWS_H
#define ORR_CALIBRATE_FIT_ROWS_H

#include "calibrate/fit_form.h"
#include "sim/base/error.h"

/* Rows of one column value (dtype as the file has it; mask "causal" or "full"). None is an empty
 * result; a line that can't be read is an error with file and line. */
bool fit_rows_gemm(const char *path, const char *dtype, double operand_bytes, FitRows *out,
                   GError **error);
bool fit_rows_attn(const char *path, const char *mask, const char *dtype, double operand_bytes,
                   FitRows *out, GError **error);

#endif
