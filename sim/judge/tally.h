/* Groups and totals of a validation from its rows. */
#ifndef ORR_JUDGE_TALLY_H
#define ORR_JUDGE_TALLY_H

#include "sim/facts/residuals.h"
#include "sim/result/validation.h"

/* Predicted over measured, less one. */
double orr_judge_error(const OrrValidationRow *row);
/* Fills groups, all, macro_mape_frac, big_mape_frac and skips. Groups stand in order of `by`, then
 * of first appearance; time O(rows x groups). */
void orr_judge_tally(OrrValidation *v);
/* The errors of the compared steps by regime, as the table that intervals rest on. */
OrrResiduals *orr_judge_residuals(const OrrValidation *v);

#endif
