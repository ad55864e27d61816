/* What the JSON of steps, runs and shared clusters has in common. */
#ifndef ORR_REPORT_JSON_HEAD_H
#define ORR_REPORT_JSON_HEAD_H

#include "sim/io/json_write.h"
#include "sim/result/run_record.h"

/* Schema, version and seed: how each object begins. */
void orr_report__json_begin(const OrrRecord *r, const char *schema, OrrJsonWriter *w);
void orr_report__json_inputs(const OrrRecord *r, OrrJsonWriter *w);
void orr_report__json_overrides(const OrrRecord *r, OrrJsonWriter *w);
void orr_report__json_assumptions(const OrrRecord *r, OrrJsonWriter *w);
void orr_report__json_warnings(const OrrRecord *r, OrrJsonWriter *w);
/* "percentiles": an object a figure. */
void orr_report__json_figures(const OrrRunFigure *figures, uint32_t n, OrrJsonWriter *w);

#endif
