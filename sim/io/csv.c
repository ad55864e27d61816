#include "sim/io/csv.h"

#include <csv.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "sim/base/units.h"
#include "sim/base/words.h"
#include "sim/io/text.h"

#define MAX_CSV_BYTES (256u << 20) /* ours: far above the largest table of measurements */
#define ROW_NOT_BEGUN 0            /* libcsv, libcsv.c: parser state between two rows */

typedef struct {
    guint first, n; /* cells */
    guint line;
} Row;

struct OrrCsv {
    char *name;
    GStringChunk *text;
    GPtrArray *cells;   /* of all rows, one after another; in text */
    GArray *rows;       /* Row, without the header */
    GPtrArray *columns; /* NULL-terminated */
};

/* What libcsv's callbacks fill. */
typedef struct {
    OrrCsv *csv;
    Row row;
} Filling;

static void take_cell(void *text, size_t length, void *data) {
    Filling *f = data;
    char *cell = text ? g_string_chunk_insert_len(f->csv->text, text, (gssize)length) : (char *)"";
    g_ptr_array_add(f->csv->cells, cell);
}

static void take_row(int terminator, void *data) {
    Filling *f = data;
    (void)terminator;
    f->row.n = f->csv->cells->len - f->row.first;
    g_array_append_val(f->csv->rows, f->row);
    f->row.first = f->csv->cells->len;
}

/* Feeds line by line, so that the line of each row is known. */
static bool fill(OrrCsv *csv, struct csv_parser *parser, const char *text, gsize length,
                 GError **error) {
    Filling f = {csv, {0, 0, 1}};
    guint line = 1;
    for (gsize at = 0; at < length; line++) {
        const char *newline = memchr(text + at, '\n', length - at);
        gsize n = newline ? (gsize)(newline - (text + at)) + 1 : length - at;
        if (parser->pstate == ROW_NOT_BEGUN)
            f.row.line = line;
        if (csv_parse(parser, text + at, n, take_cell, take_row, &f) != n)
            return orr_fail_input(error,
                                  "%s:%u: a quote inside a cell; put the whole cell in quotes and "
                                  "double those inside",
                                  csv->name, line);
        at += n;
    }
    if (csv_fini(parser, take_cell, take_row, &f) != 0)
        return orr_fail_input(error, "%s:%u: a quoted cell of this row does not end", csv->name,
                              f.row.line);
    return true;
}

static bool take_header(OrrCsv *csv, GError **error) {
    if (csv->rows->len == 0)
        return orr_fail_input(error, "%s: is empty; a header and rows will do", csv->name);
    Row header = g_array_index(csv->rows, Row, 0);
    for (guint i = 0; i < header.n; i++) {
        char *name = csv->cells->pdata[header.first + i];
        for (guint j = 0; j < i; j++)
            if (strcmp(name, csv->columns->pdata[j]) == 0)
                return orr_fail_input(error, "%s:%u: column \"%s\" stands twice in the header",
                                      csv->name, header.line, name);
        g_ptr_array_add(csv->columns, name);
    }
    g_array_remove_index(csv->rows, 0);
    return true;
}

static bool check_lengths(const OrrCsv *csv, guint n_columns, GError **error) {
    for (guint i = 0; i < csv->rows->len; i++) {
        const Row *row = &g_array_index(csv->rows, Row, i);
        if (row->n != n_columns)
            return orr_fail_input(error, "%s:%u: a row of %u cells; %u will do", csv->name,
                                  row->line, row->n, n_columns);
    }
    return true;
}

OrrCsv *orr_csv_parse(const char *name, const char *text, gsize length, OrrCsvFlags flags,
                      GError **error) {
    int skip = orr_text_check(name, text, length, error);
    if (skip < 0)
        return NULL;
    g_autoptr(OrrCsv) csv = g_new0(OrrCsv, 1);
    csv->name = g_strdup(name);
    csv->text = g_string_chunk_new(4096);
    csv->cells = g_ptr_array_new();
    csv->rows = g_array_new(FALSE, FALSE, sizeof(Row));
    csv->columns = g_ptr_array_new();
    struct csv_parser parser;
    csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI);
    bool is_sound = fill(csv, &parser, text + skip, length - (gsize)skip, error);
    csv_free(&parser);
    if (!is_sound || (!(flags & ORR_CSV_NO_HEADER) && !take_header(csv, error)))
        return NULL;
    g_ptr_array_add(csv->columns, NULL);
    if (!(flags & ORR_CSV_RAGGED) && !check_lengths(csv, orr_csv_n_columns(csv), error))
        return NULL;
    return g_steal_pointer(&csv);
}

OrrCsv *orr_csv_load(const char *path, OrrCsvFlags flags, GError **error) {
    gsize length;
    g_autofree char *text = orr_file_read(path, MAX_CSV_BYTES, &length, error);
    return text ? orr_csv_parse(path, text, length, flags, error) : NULL;
}

void orr_csv_free(OrrCsv *csv) {
    if (!csv)
        return;
    g_free(csv->name);
    g_string_chunk_free(csv->text);
    g_ptr_array_unref(csv->cells);
    g_array_unref(csv->rows);
    g_ptr_array_unref(csv->columns);
    g_free(csv);
}

const char *orr_csv_name(const OrrCsv *csv) {
    return csv->name;
}

guint orr_csv_n_rows(const OrrCsv *csv) {
    return csv->rows->len;
}

guint orr_csv_n_columns(const OrrCsv *csv) {
    if (csv->columns->len > 1)
        return csv->columns->len - 1;
    return csv->rows->len > 0 ? g_array_index(csv->rows, Row, 0).n : 0;
}

const char *const *orr_csv_columns(const OrrCsv *csv) {
    return (const char *const *)csv->columns->pdata;
}

int orr_csv_column(const OrrCsv *csv, const char *column) {
    for (guint i = 0; csv->columns->pdata[i]; i++)
        if (strcmp(csv->columns->pdata[i], column) == 0)
            return (int)i;
    return -1;
}

bool orr_csv_need(const OrrCsv *csv, const char *const *names, int *index, GError **error) {
    g_autoptr(GString) missing = g_string_new(NULL);
    for (guint i = 0; names[i]; i++) {
        index[i] = orr_csv_column(csv, names[i]);
        if (index[i] >= 0)
            continue;
        const char *near = orr_words_nearest(names[i], orr_csv_columns(csv));
        g_string_append_printf(missing, "%s%s", missing->len ? ", " : "", names[i]);
        if (near)
            g_string_append_printf(missing, " (there is %s)", near);
    }
    if (missing->len == 0)
        return true;
    return orr_fail_input(error, "%s: the header lacks %s", csv->name, missing->str);
}

guint orr_csv_row_length(const OrrCsv *csv, guint row) {
    return g_array_index(csv->rows, Row, row).n;
}

const char *orr_csv_cell(const OrrCsv *csv, guint row, int column) {
    const Row *r = &g_array_index(csv->rows, Row, row);
    g_assert(column >= 0);
    return (guint)column < r->n ? csv->cells->pdata[r->first + (guint)column] : "";
}

guint orr_csv_line(const OrrCsv *csv, guint row) {
    return g_array_index(csv->rows, Row, row).line;
}

bool orr_csv_fail(const OrrCsv *csv, guint row, int column, GError **error, const char *format,
                  ...) {
    va_list args;
    va_start(args, format);
    g_autofree char *what = g_strdup_vprintf(format, args);
    va_end(args);
    g_autofree char *value = orr_text_excerpt(orr_csv_cell(csv, row, column));
    g_autofree char *number = g_strdup_printf("column %d", column + 1);
    bool is_named = (guint)column + 1 < csv->columns->len;
    return orr_fail_input(error, "%s:%u: %s = %s: %s", csv->name, orr_csv_line(csv, row),
                          is_named ? (char *)csv->columns->pdata[column] : number, value, what);
}

static bool fail_number(const OrrCsv *csv, guint row, int column, const char *what, double min,
                        double max, GError **error) {
    g_autofree char *range = orr_units_range(min, max, ORR_DIM_NONE);
    return orr_csv_fail(csv, row, column, error, "%s; %s will do", what, range);
}

bool orr_csv_number(const OrrCsv *csv, guint row, int column, double min, double max, double *value,
                    GError **error) {
    double v;
    const char *unit;
    if (!orr_units_split(orr_csv_cell(csv, row, column), &v, &unit, NULL))
        return fail_number(csv, row, column, "is not a number", min, max, error);
    if (*unit)
        return orr_csv_fail(
            csv, row, column, error,
            "\"%s\" behind the number; a plain number would do, in the unit of the header", unit);
    if (v < min || v > max)
        return fail_number(csv, row, column, "is out of range", min, max, error);
    *value = v;
    return true;
}

bool orr_csv_int(const OrrCsv *csv, guint row, int column, int64_t min, int64_t max, int64_t *value,
                 GError **error) {
    double v, low = (double)min, high = MIN((double)max, 0x1p53); /* a double skips those above */
    if (!orr_csv_number(csv, row, column, low, high, &v, error))
        return false;
    if (v != floor(v))
        return fail_number(csv, row, column, "is not a whole number", low, high, error);
    *value = (int64_t)v;
    return true;
}

void orr_csv_put(OrrCsvWriter *w, const char *text) {
    gsize n = strlen(text);
    bool is_first = !w->has_cell;
    if (!is_first)
        orr_out_write(w->out, ",", 1);
    w->has_cell = true;
    bool is_plain = n > 0 && !strpbrk(text, ",\"\r\n") && !g_ascii_isspace(text[0]) &&
                    !g_ascii_isspace(text[n - 1]);
    if (is_plain) {
        orr_out_write(w->out, text, n);
        return;
    }
    if (n == 0 && !is_first)
        return;
    orr_out_write(w->out, "\"", 1); /* "" keeps a row of one empty cell from being an empty line */
    for (; *text; text++) {
        if (*text == '"')
            orr_out_write(w->out, "\"", 1);
        orr_out_write(w->out, text, 1);
    }
    orr_out_write(w->out, "\"", 1);
}

void orr_csv_put_int(OrrCsvWriter *w, int64_t value) {
    char text[32];
    g_snprintf(text, sizeof text, "%" G_GINT64_FORMAT, value);
    orr_csv_put(w, text);
}

void orr_csv_put_double(OrrCsvWriter *w, double value) {
    g_autofree char *text = isfinite(value) ? orr_units_double(value) : g_strdup("");
    orr_csv_put(w, text);
}

void orr_csv_end_row(OrrCsvWriter *w) {
    orr_out_write(w->out, "\n", 1);
    w->has_cell = false;
}

void orr_csv_put_row(OrrCsvWriter *w, const char *const *cells) {
    for (; *cells; cells++)
        orr_csv_put(w, *cells);
    orr_csv_end_row(w);
}
