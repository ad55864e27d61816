/* Inside sim/report: the formats, and how numbers and paragraphs are laid out for people. */
#ifndef ORR_REPORT_REPORT_PRIV_H
#define ORR_REPORT_REPORT_PRIV_H

#include "sim/report/format.h"

extern const OrrReportFormat orr_report__text;
extern const OrrReportFormat orr_report__json;
extern const OrrReportFormat orr_report__csv;

#define ORR_REPORT_COLUMNS 96 /* width of the text report */

/* A fixed number of decimals, no locale. */
typedef struct {
    char text[40];
} OrrFixed;
OrrFixed orr_report__fixed(double value, int decimals);
/* "12.3 %"; of a fraction. */
OrrFixed orr_report__percent(double frac);
/* "12.345 s", "123.4 ms", "12.3 us": four digits. */
OrrFixed orr_report__time(double ns);
/* "71.2 GiB": one unit for all bytes of a report, so that columns compare. */
OrrFixed orr_report__gib(double bytes);
/* "1,234,567". */
OrrFixed orr_report__count(double n);
/* Names in files to words for people: "exposed_dp_gradient" -> "exposed: DP gradient". */
const char *orr_report__owner_words(OrrOwner owner);
OrrFixed orr_report__path_words(uint32_t path_owner);
const char *orr_report__mem_words(OrrMemKind kind);

/* Words of @text broken at ORR_REPORT_COLUMNS; the first line starts with @first, the others with
 * as many spaces as @first has characters. */
void orr_report__wrap(OrrOut *out, const char *first, const char *text);

/* Tables of the text report. */
void orr_report__memory(const OrrRecord *r, OrrOut *out);
void orr_report__time_account(const OrrRecord *r, OrrOut *out);
void orr_report__critical_path(const OrrRecord *r, OrrOut *out);
void orr_report__sensitivities(const OrrRecord *r, OrrOut *out);
void orr_report__communication(const OrrRecord *r, OrrOut *out);
void orr_report__groups(const OrrRecord *r, OrrOut *out);
void orr_report__perturbs(const OrrRecord *r, OrrOut *out);

#endif
