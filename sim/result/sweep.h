/* The record of a sweep: the same job with other values of some keys. */
#ifndef ORR_RESULT_SWEEP_H
#define ORR_RESULT_SWEEP_H

#include "sim/result/record.h"

#include <glib.h>

typedef struct {
    char *key;     /* "layout.tp" */
    char **values; /* NULL-terminated */
    uint32_t n;
} OrrSweepAxis;

/* A combination of values. */
typedef struct {
    char *refused;       /* why there is no such step; NULL: it was simulated */
    char *flops_formula; /* what model FLOPs are by; "" */
    uint32_t n_gpus, dp;
    int64_t step_time_ns, tokens_per_step;
    double tokens_per_s, tflops_per_gpu, mfu_frac, hfu_frac;
    double bubble_of_step_frac, communication_share_frac;
    int64_t peak_bytes, capacity_bytes; /* of the worst stage */
    OrrVerdict verdict;
} OrrSweepRow;

#define ORR_SWEEP_NONE UINT32_MAX

typedef struct {
    const char *version; /* static */
    char *job;
    GArray *axes;      /* OrrSweepAxis */
    OrrSweepRow *rows; /* [n_rows] the last axis goes fastest */
    uint32_t n_rows;
    uint32_t fastest; /* row with the most tokens a second of those that fit; ORR_SWEEP_NONE */
} OrrSweep;

OrrSweep *orr_sweep_new(void);
void orr_sweep_free(OrrSweep *sweep);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrSweep, orr_sweep_free)
/* Adds an axis; texts are copied. */
void orr_sweep_add_axis(OrrSweep *sweep, const char *key, const char *const *values);
/* Combinations of the axes; UINT64_MAX: more than that. */
uint64_t orr_sweep_n(const OrrSweep *sweep);
/* Value of @axis in @row. */
const char *orr_sweep_value(const OrrSweep *sweep, uint32_t row, guint axis);

#endif
