/* The tables that the plots of a step draw (plots/time_account.gp, plots/memory.gp). */
#ifndef ORR_REPORT_PLOT_TABLES_H
#define ORR_REPORT_PLOT_TABLES_H

#include "sim/io/file.h"
#include "sim/result/record.h"

/* A row "mean" and one a stage, a column a group of owners, in ms; rows add up to the step. */
void orr_report_account_table(const OrrRecord *record, OrrOut *out);
/* A row a stage: capacity, peak and a column a kind, in GiB. */
void orr_report_memory_table(const OrrRecord *record, OrrOut *out);

#endif
