/* A shared cluster as text, JSON (schema orrery.share/1) and CSV (a row a job); its events as CSV
 * and as a Chrome trace; tables of its plots. */
#ifndef ORR_REPORT_SHARE_REPORT_H
#define ORR_REPORT_SHARE_REPORT_H

#include "sim/io/file.h"
#include "sim/job/share.h"
#include "sim/result/run_record.h"

/* A job over the seeds. */
typedef struct {
    double waited_mean_ns, waited_p50_ns, waited_p95_ns, end_p50_ns, end_p95_ns;
} OrrShareJobSpread;

typedef struct {
    char *name, *summary;
    OrrRecord *head; /* version, seed, inputs, overrides, assumptions */
    const OrrShareSpec *spec;
    uint32_t n_seeds;
    bool is_drawn;
    OrrShareResult *results; /* of the first seed */
    OrrShareAccount account;
    OrrShareJobSpread *spreads; /* n_jobs */
    OrrRunFigure *figures;
    uint32_t n_figures;
    char *prices, *prices_date; /* "": none */
    const char *contract;
    double usd_per_gpu_h, usd_per_spot_gpu_h;
} OrrShareReport;

void orr_share_text(const OrrShareReport *r, OrrOut *out);
void orr_share_json(const OrrShareReport *r, OrrOut *out);
void orr_share_csv(const OrrShareReport *r, OrrOut *out);

/* GPU-hours of so many unit-nanoseconds. */
double orr_share_gpu_hours(const OrrShareSpec *spec, OrrUnitNs unit_ns);
/* What a job has cost; 0 without prices. */
double orr_share_usd(const OrrShareReport *r, const OrrShareResult *job);
const OrrRunFigure *orr_share_figure(const OrrShareReport *r, const char *name);

/* Writers of the events of one seed, in the order they come. */
typedef struct OrrShareWriter OrrShareWriter;
OrrShareWriter *orr_share_events_csv(const OrrShareSpec *spec, OrrOut *out);
OrrShareWriter *orr_share_events_trace(const OrrShareSpec *spec, const char *name, OrrOut *out);
/* Tables of plots: units by what they do, a row at the begin and the end of each interval; and what
 * each job did, a row a span, time in the queue among them. */
OrrShareWriter *orr_share_events_levels(const OrrShareSpec *spec, OrrOut *out);
OrrShareWriter *orr_share_events_spans(const OrrShareSpec *spec, OrrOut *out);
/* As OrrShareProbe wants it: data is the writer. */
void orr_share_events_write(void *writer, const OrrShareEvent *event);
/* Finishes the text (the caller commits the output) and frees. */
void orr_share_events_close(OrrShareWriter *w);
/* Jobs by how long they waited, the longest first. */
void orr_share_waits_table(const OrrShareReport *r, OrrOut *out);

#endif
