/* CSV tables (RFC 4180 through libcsv), with lines for messages.
 *
 * Quoted cells may hold commas, line ends and doubled quotes; blanks around an unquoted cell don't
 * count; empty lines are skipped. A quote inside an unquoted cell and a row of another length than
 * the header are errors. */
#ifndef ORR_IO_CSV_H
#define ORR_IO_CSV_H

#include "sim/io/file.h"

typedef struct OrrCsv OrrCsv;

typedef enum {
    ORR_CSV_PLAIN = 0,
    ORR_CSV_NO_HEADER = 1, /* the first row is data too: columns go by number */
    ORR_CSV_RAGGED = 2     /* rows may be of different length */
} OrrCsvFlags;

OrrCsv *orr_csv_load(const char *path, OrrCsvFlags flags, GError **error);
/* @name stands for the file in messages. */
OrrCsv *orr_csv_parse(const char *name, const char *text, gsize length, OrrCsvFlags flags,
                      GError **error);
void orr_csv_free(OrrCsv *csv);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrCsv, orr_csv_free)

const char *orr_csv_name(const OrrCsv *csv);
guint orr_csv_n_rows(const OrrCsv *csv);               /* without the header */
guint orr_csv_n_columns(const OrrCsv *csv);            /* of the header, or of the first row */
const char *const *orr_csv_columns(const OrrCsv *csv); /* names, NULL-terminated */
/* Number of the column of that name, or -1. */
int orr_csv_column(const OrrCsv *csv, const char *column);
/* Numbers of the columns @names (NULL-terminated) in @index; false with @error that names every
 * missing one and the nearest that is there. */
bool orr_csv_need(const OrrCsv *csv, const char *const *names, int *index, GError **error);
guint orr_csv_row_length(const OrrCsv *csv, guint row);
/* "" beyond the end of a ragged row. */
const char *orr_csv_cell(const OrrCsv *csv, guint row, int column);
guint orr_csv_line(const OrrCsv *csv, guint row);

/* A plain decimal within [@min, @max]; the error says "FILE:LINE: COLUMN = VALUE: ...". */
bool orr_csv_number(const OrrCsv *csv, guint row, int column, double min, double max, double *value,
                    GError **error);
bool orr_csv_int(const OrrCsv *csv, guint row, int column, int64_t min, int64_t max, int64_t *value,
                 GError **error);

/* Sets @error to "FILE:LINE: COLUMN = VALUE: what"; returns false. */
bool orr_csv_fail(const OrrCsv *csv, guint row, int column, GError **error, const char *format, ...)
    G_GNUC_PRINTF(5, 6);

/* A writer: cells, then orr_csv_end_row; quotes where needed, lines end with a line feed. */
typedef struct {
    OrrOut *out;   /* borrowed */
    bool has_cell; /* the row has begun */
} OrrCsvWriter;

void orr_csv_put(OrrCsvWriter *w, const char *text);
void orr_csv_put_int(OrrCsvWriter *w, int64_t value);
void orr_csv_put_double(OrrCsvWriter *w, double value); /* empty if not finite */
void orr_csv_end_row(OrrCsvWriter *w);
/* A whole row of texts, NULL-terminated. */
void orr_csv_put_row(OrrCsvWriter *w, const char *const *cells);

#endif
