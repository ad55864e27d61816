/* A shared cluster as text, JSON (schema orrery.share/1) and CSV (a row a job). */
#ifndef ORR_REPORT_SHARE_REPORT_H
#define ORR_REPORT_SHARE_REPORT_H

#include "sim/io/file.h"
#include "sim/job/share.h"

typedef struct {
    const char *name, *summary, *version;
    const OrrShareSpec *spec;
    const OrrShareResult *results;
    const OrrShareAccount *account;
} OrrShareReport;

void orr_share_text(const OrrShareReport *r, OrrOut *out);
void orr_share_json(const OrrShareReport *r, OrrOut *out);
void orr_share_csv(const OrrShareReport *r, OrrOut *out);

#endif
