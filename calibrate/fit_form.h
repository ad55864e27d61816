/* The fit of one efficiency surface: first the parameters of the analytic form (coordinate descent
 * on the mean absolute log error), then a smooth surface over what is left. The shipped tables
 * (fit_kernels.c) and a user's own records (fit_records.c) go through the same steps. The same
 * rows give the same bytes. */
#ifndef ORR_CALIBRATE_FIT_FORM_H
#define ORR_CALIBRATE_FIT_FORM_H

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

/* What is fitted: the kind of kernel, its type, and the GPU's own numbers, which stay. */
typedef struct {
    OrrKernelKind kind; /* ORR_K_GEMM or ORR_K_ATTENTION */
    OrrDtype dtype;
    const char *variant;
    double peak_flops_per_s, n_sms, hbm_bytes_per_s;
    bool is_quantised; /* products: the measured path quantises A from BF16 first */
    bool has_prep;     /* attention: the measured path holds rotary embedding and cache writes */
    const FitRows *rows;
    bool is_trial; /* leaves held-out rows out */
} FitForm;

/* Fills all of @surface, which is zero before. At least one row is used. */
void fit_form(const FitForm *form, OrrSurface *surface);
/* The form's time of @row under @params, with what the measured path spends besides. */
double fit_form_ns(const FitForm *form, const double *params, const FitRow *row);
/* The same with the surface's correction: what the fit says of the row. */
double fit_form_fitted_ns(const FitForm *form, const OrrSurface *surface, const FitRow *row);
double fit_form_flops(const FitForm *form, const FitRow *row);

void fit_rows_clear(FitRows *rows);

#endif
