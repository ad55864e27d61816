/* What the readers of collective logs share. */
#ifndef ORR_CALIBRATE_NCCL_TESTS_PRIV_H
#define ORR_CALIBRATE_NCCL_TESTS_PRIV_H

#include "calibrate/nccl_tests.h"
#include "sim/io/log.h"

#define ORR_CALIBRATE_MAX_BYTES (INT64_C(1) << 50) /* ours: no buffer is as large */

/* A table in the making. */
typedef struct {
    OrrMeasuredTable *table;
    GArray *rows;      /* OrrMeasuredCollective */
    bool has_kind;     /* the file names the collective */
    bool is_failed;    /* the tool's own verdict: values out of bounds */
    bool has_redop;    /* a reduction is named in the first row */
    bool is_named_bad; /* the file names a collective that we have not */
    uint32_t line;     /* of the header */
} OrrTableDraft;

OrrTableDraft *orr_calibrate__draft_new(GPtrArray *drafts, const char *name, uint32_t line);
void orr_calibrate__draft_free(gpointer draft);
/* A line for stderr, "NAME:LINE: ..."; @line 0: of the whole file. */
void orr_calibrate__note(const OrrImport *import, uint32_t line, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
/* dtype and element size by the tool's name of it; size 0: unknown. */
OrrDtype orr_calibrate__dtype(const char *name, uint32_t *bytes);
/* "all_reduce_perf", "AllReduce", "all-reduce" to the kind; false: none of ours. */
bool orr_calibrate__collective(const char *name, OrrCollective *kind);
/* Judges the two timings of a row: n_wrong, times that are none. Sets row->flaw. */
void orr_calibrate__judge_row(OrrMeasuredCollective *row);
/* Kinds and ranks of all drafts, then one result; takes @drafts. */
OrrMeasuredTables *orr_calibrate__finish(const OrrImport *import, GPtrArray *drafts,
                                         GError **error);

/* The readers. Drafts are appended; false with @error. */
bool orr_calibrate__read_text(const OrrImport *import, const OrrLog *log, GPtrArray *drafts,
                              GError **error);
bool orr_calibrate__read_json(const OrrImport *import, const char *text, gsize length,
                              GPtrArray *drafts, GError **error);
bool orr_calibrate__read_torch_bench(const OrrImport *import, const OrrLog *log, GPtrArray *drafts,
                                     GError **error);

#endif
