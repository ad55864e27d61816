/* Spans to files: which ranks, which window, one file or one a rank, and what was left out. */
#ifndef TRACES_TRACE_H
#define TRACES_TRACE_H

#include "traces/exporter.h"

typedef struct {
    const OrrExporter *exporter;
    const OrrTraceContext *context;
    const char *path;      /* one file, NULL or "-": standard output; ".gz" compresses */
    const char *directory; /* not NULL: one file a rank in it, "rank-0000012.json.gz" */
    const uint32_t *ranks; /* ascending, of the job */
    uint32_t n_ranks;
    int64_t from_ns, to_ns; /* INT64_MAX: to the end */
} OrrTraceRequest;

typedef struct OrrTrace OrrTrace;
/* @request is borrowed until close. Errors: ORR_ERROR_ENV; ORR_ERROR_USAGE: more files than can be
 * open at once. */
OrrTrace *orr_trace_open(const OrrTraceRequest *request, GError **error);
/* To pass to the execution. */
OrrProbe orr_trace_probe(OrrTrace *trace);
/* Ends and commits all files; *@counts (may be NULL) says what was written and left out. */
bool orr_trace_close(OrrTrace *trace, OrrTraceCounts *counts, GError **error);
/* Without close before it, leaves no file behind. */
void orr_trace_free(OrrTrace *trace);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrTrace, orr_trace_free)

/**
 * orr_trace_ranks: "0-7,64" as ascending ranks without repetition, in *@ranks (g_free) and *@n.
 * Errors (ORR_ERROR_USAGE): not such a list, a rank that the job does not have.
 */
bool orr_trace_ranks(const char *text, uint32_t world_size, uint32_t **ranks, uint32_t *n,
                     GError **error);

#endif
