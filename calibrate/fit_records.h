/* Records of one machine to what the simulator reads: efficiency surfaces of products and attention
 * (fit_form.h, the form of the shipped tables), shares of the memory's rate by kernel, copies,
 * launches, the price of overlap. Collectives are fitted elsewhere (sim/judge/fit.h).
 *
 * Left out: unfused attention, which the simulator composes of products and softmax. */
#ifndef ORR_CALIBRATE_FIT_RECORDS_H
#define ORR_CALIBRATE_FIT_RECORDS_H

#include "calibrate/record_rows.h"
#include "sim/facts/surface.h"

/* A row and what the fit says of it. */
typedef struct {
    char series[32]; /* "gemm.bf16", "attention.bf16.causal", "norm.forward", "copy.h2d" */
    double work;     /* FLOPs, or bytes where there are none */
    double measured_ns, fitted_ns;
    guint row; /* of the records */
    guint file, line;
} OrrFitPoint;

typedef struct {
    char series[32];
    guint n;
    double median_frac, p90_frac, bias_frac; /* of fitted over measured less 1; absolute, signed */
} OrrFitResidual;

/* 0: not measured. */
typedef struct {
    OrrSurfaceSet *set; /* with the rates of kernels without surfaces */
    double copy_bytes_per_s[ORR_N_COPIES], copy_ns[ORR_N_COPIES]; /* long copies; the shortest */
    double launch_ns[ORR_N_LAUNCHES];
    double compute_rate_frac, send_rate_frac; /* of a product beside a collective, beside a send */
    double collective_rate_frac;              /* of a collective beside products */
    double best_flops_per_s[ORR_N_DTYPES];    /* of long products */
    GArray *points;                           /* OrrFitPoint */
    GArray *residuals;                        /* OrrFitResidual, by series in order of coming */
    GPtrArray *notes; /* char *: what was not fitted and why, rows far from the fit */
} OrrRecordFit;

/* @rows are judged (orr_record_rows_judge). @name: of the calibration. Never fails: what has no
 * rows is 0. */
OrrRecordFit *orr_fit_records(const OrrRecordRows *rows, const OrrGpu *gpu, const char *name);
void orr_record_fit_free(OrrRecordFit *fit);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrRecordFit, orr_record_fit_free)

#endif
