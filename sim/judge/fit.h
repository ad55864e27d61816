/* Constants of collectives fitted to measured tables: launch, hop and share of the link of each law
 * that the tables' algorithms use, and of the network. Starts from the shipped constants; what the
 * tables do not tell apart stays as it is.
 *
 * Least squares of ln(predicted / measured) by Levenberg and Marquardt (Marquardt 1963, J. SIAM
 * 11). Left out: the growth of chunks (full_frac, full_bytes), and NCCL's choice, which has
 * constants of its own. */
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

typedef struct {
    OrrCollConstants constants;
    OrrFitParameter *parameters;
    uint32_t n_parameters;
    uint32_t n_rows, n_refused;     /* refused: faster than the link could be */
    double before_frac, after_frac; /* mean absolute error over the rows used */
    GPtrArray *notes;               /* char *: each refused row and why */
} OrrFit;

/* NULL with @error (ORR_ERROR_INPUT): no sound row. */
OrrFit *orr_judge_fit(const OrrFitTable *tables, uint32_t n_tables, GError **error);
void orr_fit_free(OrrFit *fit);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrFit, orr_fit_free)

#endif
