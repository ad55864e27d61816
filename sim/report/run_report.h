/* Whole runs as text for people, JSON (schema orrery.run/1) and tidy CSV; their events as CSV and
 * as a Chrome trace. */
#ifndef ORR_REPORT_RUN_REPORT_H
#define ORR_REPORT_RUN_REPORT_H

#include "sim/io/file.h"
#include "sim/job/engine.h"
#include "sim/result/run_record.h"

typedef struct {
    const char *name, *summary, *source;
    void (*write)(const OrrRunRecord *record, OrrOut *out);
} OrrRunFormat;
extern const OrrRunFormat *const orr_run_formats[];        /* NULL-terminated */
const OrrRunFormat *orr_run_format_find(const char *name); /* NULL if there is none */

/* Names that events refer to by number. */
typedef struct {
    const char *run;
    const char *(*cause)(const void *data, uint32_t cause);
    const void *data;
} OrrRunNames;

/* Writers of the events of one seed, in the order they come. */
typedef struct OrrRunEventWriter OrrRunEventWriter;
OrrRunEventWriter *orr_run_events_csv(OrrOut *out, const OrrRunNames *names);
OrrRunEventWriter *orr_run_events_trace(OrrOut *out, const OrrRunNames *names);
/* As OrrRunProbe wants it: data is the writer. */
void orr_run_events_write(void *writer, const OrrRunEvent *event);
/* Finishes the text (the caller commits the output) and frees. */
void orr_run_events_close(OrrRunEventWriter *w);

/* Tables of plots, each with a header and units in its names. */
void orr_run_losses_table(const OrrRunRecord *r, OrrOut *out);
void orr_run_costs_table(const OrrRunRecord *r, OrrOut *out);

#endif
