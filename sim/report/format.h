/* A rendering of the metrics record. One file a format; the table is in formats.c. */
#ifndef ORR_REPORT_FORMAT_H
#define ORR_REPORT_FORMAT_H

#include "sim/io/file.h"
#include "sim/result/record.h"

typedef struct {
    const char *name, *summary, *source;
    void (*write)(const OrrRecord *record, OrrOut *out);
} OrrReportFormat;

#endif
