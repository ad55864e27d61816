#include "sim/report/run_table.h"

#include <stdarg.h>
#include <string.h>

struct OrrTextTable {
    const char *align;
    guint n_columns;
    GPtrArray *cells; /* row by row */
};

OrrTextTable *orr_run__table_new(const char *align) {
    OrrTextTable *t = g_new0(OrrTextTable, 1);
    t->align = align;
    t->n_columns = (guint)strlen(align);
    t->cells = g_ptr_array_new_with_free_func(g_free);
    return t;
}

void orr_run__table_row(OrrTextTable *t, ...) {
    va_list cells;
    va_start(cells, t);
    const char *cell = va_arg(cells, const char *);
    for (guint c = 0; c < t->n_columns; c++) {
        g_ptr_array_add(t->cells, g_strdup(cell ? cell : ""));
        if (cell)
            cell = va_arg(cells, const char *);
    }
    g_assert(cell == NULL);
    va_end(cells);
}

static glong width(const OrrTextTable *t, guint column) {
    glong most = 0;
    for (guint i = column; i < t->cells->len; i += t->n_columns)
        most = MAX(most, g_utf8_strlen(t->cells->pdata[i], -1));
    return most;
}

void orr_run__table_write(OrrTextTable *t, OrrOut *out) {
    g_autofree glong *widths = g_new(glong, t->n_columns);
    for (guint c = 0; c < t->n_columns; c++)
        widths[c] = width(t, c);
    g_autoptr(GString) line = g_string_new(NULL);
    for (guint i = 0; i < t->cells->len; i++) {
        guint c = i % t->n_columns;
        const char *cell = t->cells->pdata[i];
        int pad = (int)(widths[c] - g_utf8_strlen(cell, -1));
        g_string_append_printf(line, "%s%*s%s%*s", c > 0 ? "  " : "", t->align[c] == 'r' ? pad : 0,
                               "", cell, t->align[c] == 'r' ? 0 : pad, "");
        if (c + 1 < t->n_columns)
            continue;
        while (line->len > 0 && line->str[line->len - 1] == ' ')
            g_string_truncate(line, line->len - 1);
        orr_out_puts(out, line->str);
        orr_out_puts(out, "\n");
        g_string_truncate(line, 0);
    }
    g_ptr_array_unref(t->cells);
    g_free(t);
}
