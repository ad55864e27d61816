/* The table of report formats. */
#include "sim/report/formats.h"

#include "sim/report/report_priv.h"

#include <string.h>

const OrrReportFormat *const orr_report_formats[] = {
    &orr_report__text,
    &orr_report__json,
    &orr_report__csv,
    NULL,
};

const OrrReportFormat *orr_report_format_find(const char *name) {
    for (int i = 0; orr_report_formats[i]; i++)
        if (strcmp(orr_report_formats[i]->name, name) == 0)
            return orr_report_formats[i];
    return NULL;
}
