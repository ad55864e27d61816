/* A sweep as text, JSON (schema orrery.sweep/1) and CSV (a line a combination). */
#ifndef ORR_REPORT_SWEEP_H
#define ORR_REPORT_SWEEP_H

#include "sim/io/file.h"
#include "sim/result/sweep.h"

void orr_report_sweep_text(const OrrSweep *sweep, OrrOut *out);
void orr_report_sweep_json(const OrrSweep *sweep, OrrOut *out);
void orr_report_sweep_csv(const OrrSweep *sweep, OrrOut *out);

#endif
