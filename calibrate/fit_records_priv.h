/* What the files of the records' fit share. */
#ifndef ORR_CALIBRATE_FIT_RECORDS_PRIV_H
#define ORR_CALIBRATE_FIT_RECORDS_PRIV_H

#include "calibrate/fit_records.h"

typedef struct {
    const OrrRecordRows *rows;
    const OrrGpu *gpu;
    OrrRecordFit *fit;
} OrrFitWork;

/* Adds a point. */
void orr_fit__point(OrrFitWork *w, const char *series, double work, const OrrRecordRow *row,
                    double measured_ns, double fitted_ns);
/* Surfaces of products by type, of attention by type, mask and pass. */
void orr_fit__products(OrrFitWork *w);
/* Kernels bound by memory, copies, launches, overlap. */
void orr_fit__streams(OrrFitWork *w);
/* Median of @n values, which it sorts; 0 of none. */
double orr_fit__median(double *values, guint n);

#endif
