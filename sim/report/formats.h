/* The table of report formats: "text" for people, "json" and "csv" for programs. */
#ifndef ORR_REPORT_FORMATS_H
#define ORR_REPORT_FORMATS_H

#include "sim/report/format.h"

extern const OrrReportFormat *const orr_report_formats[]; /* NULL-terminated */
/* NULL if there is none of that name. */
const OrrReportFormat *orr_report_format_find(const char *name);

#endif
