/* Constants of collectives fitted to measured tables: launch, hop and share of the link of each law
 * that the tables' algorithms use, and of the network. Starts from the shipped constants; what the
 * tables do not tell apart stays as it is.
 *
 * Least squares of ln(predicted / measured) by Levenberg and Marquardt (Marquardt 1963, J. SIAM
 * 11), each parameter held loosely at its shipped value, so that what few rows hardly tell does not
 * run away. Left out: NCCL's choice, which has constants of its own. */
#ifndef ORR_JUDGE_FIT_H
#define ORR_JUDGE_FIT_H

#include "sim/collective/collective.h"
#include "sim/collective/constants.h"
#include "sim/facts/measured.h"

typedef struct {
    const OrrMeasuredTable *table;
    OrrCommPlace place;
    OrrNcclForce force; /* constants are set by the fit */
} OrrFitTable;

typedef struct {
    char *name; /* "hopper.ring.simple.eff_frac", "ib.eff_frac" */
    double before, after;
} OrrFitParameter;

/* A row with what shipped and fitted constants say of it. */
typedef struct {
    const OrrFitTable *table;
    uint32_t row; /* of the table */
    OrrAlgo algo; /* as chosen or forced */
    OrrProto proto;
    bool is_held; /* beyond the sizes that were fitted */
    double measured_ns, before_ns, after_ns;
} OrrFitCall;

/* Of one algorithm and protocol. */
typedef struct {
    OrrAlgo algo;
    OrrProto proto;
    uint32_t n_rows;
    double before_frac, after_frac; /* mean absolute error */
} OrrFitLaw;

typedef struct {
    OrrCollConstants constants;
    OrrFitParameter *parameters;
    uint32_t n_parameters;
    uint32_t n_rows, n_refused;               /* refused: faster than the link could be */
    uint32_t n_outliers;                      /* left out: far from what the others tell */
    double before_frac, after_frac;           /* mean absolute error over the rows used */
    uint32_t n_held;                          /* rows of other sizes than were fitted ... */
    double held_before_frac, held_after_frac; /* ... and their errors */
    OrrFitCall *calls;                        /* n_rows + n_held of them */
    OrrFitLaw *laws;
    uint32_t n_laws;
    GPtrArray *notes; /* char *: each refused row and outlier, and why */
} OrrFit;

/* Sizes to fit, bytes, both ends included; the rows of other sizes are held out. */
typedef struct {
    int64_t min_bytes, max_bytes; /* max 0: all */
} OrrFitSizes;

/* @tables are borrowed while the result lives. @sizes may be NULL: all. NULL with @error
 * (ORR_ERROR_INPUT): no sound row. */
OrrFit *orr_judge_fit(const OrrFitTable *tables, uint32_t n_tables, const OrrFitSizes *sizes,
                      GError **error);
void orr_fit_free(OrrFit *fit);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrFit, orr_fit_free)

#endif
