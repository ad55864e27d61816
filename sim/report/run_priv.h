/* Inside the reports of runs. */
#ifndef ORR_REPORT_RUN_PRIV_H
#define ORR_REPORT_RUN_PRIV_H

#include "sim/report/report_priv.h"
#include "sim/report/run_report.h"

extern const OrrRunFormat orr_run__text, orr_run__json, orr_run__csv;
/* "3.2 d", "2.78 h", "12.3 min", "5.380 s". */
OrrFixed orr_run__span(double ns);
/* Causes by what they lost, largest first; returns how many lost anything. @ids has n_causes. */
uint32_t orr_run__by_loss(const OrrRunRecord *r, uint32_t *ids);
/* The loss that most of the time of a cause went on. */
OrrLoss orr_run__mostly(const OrrRunRecord *r, uint32_t cause);

#endif
