/* A validation as text, JSON (schema orrery.validate/1) and CSV (a line a row). */
#ifndef ORR_REPORT_VALIDATION_H
#define ORR_REPORT_VALIDATION_H

#include "sim/io/file.h"
#include "sim/result/validation.h"

void orr_report_validation_text(const OrrValidation *v, OrrOut *out);
void orr_report_validation_json(const OrrValidation *v, OrrOut *out);
void orr_report_validation_csv(const OrrValidation *v, OrrOut *out);
/* The table of the plot: measured, predicted (ms) and the number of the group, by framework. */
void orr_report_validation_plot(const OrrValidation *v, OrrOut *out);

#endif
