/* The CSV file of measurements: a row a case, appended as soon as it is measured, so that an
 * interrupted run loses at most the row it was at, and the next one goes on behind the last. */
#ifndef ORR_CALIBRATE_RECORDS_H
#define ORR_CALIBRATE_RECORDS_H

#include "calibrate/sample.h"

typedef struct OrrRecords OrrRecords;

/* What a row says besides its case. */
typedef enum {
    ORR_STATUS_OK,
    ORR_STATUS_WRONG,   /* measured, but the result is not what it should be */
    ORR_STATUS_REFUSED, /* can't be measured here; reason says why */
} OrrStatus;

typedef struct {
    OrrStatus status;
    OrrSummary summary; /* not if refused */
    OrrReadings readings;
    double error_frac;
    const char *reason; /* "" if ok */
} OrrCaseRecord;

/**
 * orr_records_open: @path NULL or "-" is standard output, which knows no earlier rows. A file that
 * is there must have these columns and be of this device with these libraries. A row that was cut
 * off is dropped. The file is locked until it is closed.
 * Errors: ORR_ERROR_INPUT (another file, another device), ORR_ERROR_ENV (can't be written, in use).
 */
OrrRecords *orr_records_open(const char *path, const OrrDeviceFacts *facts, GError **error);
/* Whether there is a row of this case. */
bool orr_records_has(const OrrRecords *r, const OrrCase *c);
/* Appends; on failure (ORR_ERROR_ENV: disk full) the file ends behind the row before. */
bool orr_records_add(OrrRecords *r, const OrrCase *c, const OrrCaseRecord *record, GError **error);
void orr_records_free(OrrRecords *r);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrRecords, orr_records_free)

/* The header, without the line's end; g_free. */
char *orr_records_header(void);

#endif
