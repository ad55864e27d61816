/* An order of one's own: a row a rank, cells of virtual stage, pass and micro-batch ("2F0"). This
 * is the compute-only form that torch.distributed.pipelining reads and writes; its communication
 * actions (SEND_F, UNSHARD, ...) are refused, since who sends what follows from the order.
 * Untrusted input: nothing is sized by a number in a cell, only by the number of cells. */
#include "sim/schedule/schedules.h"

#include <glib.h>
#include <string.h>

#include "sim/io/text.h"

typedef struct {
    uint32_t row, virtual_stage, micro_batch;
    OrrPass pass;
} Cell;

/* Digits at *@text, which moves behind them; at most nine, so that it fits. */
static bool take_number(const char **text, uint32_t *value) {
    uint32_t n = 0;
    *value = 0;
    for (; g_ascii_isdigit(**text) && n < 10; (*text)++, n++)
        *value = *value * 10 + (uint32_t)(**text - '0');
    return n > 0 && n < 10;
}

static bool parse_cell(const char *text, Cell *cell) {
    if (!take_number(&text, &cell->virtual_stage))
        return false;
    int pass = 0;
    while (pass < ORR_N_PASSES && orr_pass_name(pass)[0] != *text)
        pass++;
    if (pass == ORR_N_PASSES)
        return false;
    cell->pass = (OrrPass)pass;
    text++;
    return take_number(&text, &cell->micro_batch) && *text == '\0';
}

static bool read_cells(const char *where, char ***rows, guint n_rows, GArray *cells,
                       GError **error) {
    for (guint r = 0; r < n_rows; r++) {
        for (guint c = 0; rows[r][c] != NULL; c++) {
            g_autofree char *text = g_strstrip(g_strdup(rows[r][c]));
            Cell cell = {.row = r};
            if (text[0] == '\0')
                continue;
            if (!parse_cell(text, &cell)) {
                g_autofree char *shown = orr_text_excerpt(text);
                return orr_fail_input(error,
                                      "%s: row %u, cell %u: '%s' is no pass; cells are a virtual "
                                      "stage, one of F B I W, and a micro-batch, such as 2F0",
                                      where, r + 1, c + 1, shown);
            }
            g_array_append_val(cells, cell);
        }
    }
    if (cells->len == 0)
        return orr_fail_input(error, "%s: no passes: a row a rank with cells such as 0F0 is needed",
                              where);
    return true;
}

/* P is the number of rows; V and M follow from the largest numbers, which no more cells than there
 * are can justify. */
static bool find_shape(const char *where, const GArray *cells, guint n_rows, OrrPipeShape *shape,
                       GError **error) {
    uint32_t n_virtual = 0, n_micro_batches = 0;
    for (guint i = 0; i < cells->len; i++) {
        const Cell *cell = &g_array_index(cells, Cell, i);
        n_virtual = MAX(n_virtual, cell->virtual_stage + 1);
        n_micro_batches = MAX(n_micro_batches, cell->micro_batch + 1);
    }
    if ((uint64_t)2 * n_virtual * n_micro_batches > cells->len)
        return orr_fail_input(
            error,
            "%s: %u virtual stages and %u micro-batches need F and B of each, and "
            "there are %u cells",
            where, n_virtual, n_micro_batches, cells->len);
    if (n_virtual % n_rows != 0 || n_virtual / n_rows > UINT16_MAX)
        return orr_fail_input(error,
                              "%s: %u virtual stages on %u ranks: every rank needs the same number",
                              where, n_virtual, n_rows);
    *shape = (OrrPipeShape){n_rows, n_virtual / n_rows, n_micro_batches};
    return true;
}

/* Chunk of each virtual stage on its rank, in ascending order. */
static bool place_chunks(const char *where, const GArray *cells, OrrOrder *order, uint32_t *chunk,
                         GError **error) {
    const OrrPipeShape *shape = &order->shape;
    uint32_t n_virtual = shape->n_stages * shape->n_chunks;
    g_autofree uint32_t *row_of = g_new(uint32_t, n_virtual);
    g_autofree uint32_t *n_placed = g_new0(uint32_t, shape->n_stages);
    for (uint32_t v = 0; v < n_virtual; v++)
        row_of[v] = ORR_NONE;
    for (guint i = 0; i < cells->len; i++) {
        const Cell *cell = &g_array_index(cells, Cell, i);
        uint32_t *row = &row_of[cell->virtual_stage];
        if (*row != ORR_NONE && *row != cell->row)
            return orr_fail_input(error, "%s: virtual stage %u is on row %u and on row %u", where,
                                  cell->virtual_stage, *row + 1, cell->row + 1);
        *row = cell->row;
    }
    for (uint32_t v = 0; v < n_virtual; v++) {
        if (row_of[v] == ORR_NONE)
            return orr_fail_input(error, "%s: virtual stage %u is on no row", where, v);
        if (n_placed[row_of[v]] == shape->n_chunks)
            return orr_fail_input(
                error,
                "%s: row %u has more than %u virtual stages: every rank needs the "
                "same number",
                where, row_of[v] + 1, shape->n_chunks);
        chunk[v] = n_placed[row_of[v]]++;
        order->virtual_stage[row_of[v] * shape->n_chunks + chunk[v]] = v;
    }
    return true;
}

OrrOrder *orr_schedule_custom(const char *where, char ***rows, guint n_rows, GError **error) {
    g_autoptr(GArray) cells = g_array_new(FALSE, FALSE, sizeof(Cell));
    OrrPipeShape shape;
    if (!read_cells(where, rows, n_rows, cells, error) ||
        !find_shape(where, cells, n_rows, &shape, error))
        return NULL;
    g_autoptr(OrrOrder) order = g_new0(OrrOrder, 1);
    order->shape = shape;
    order->slots = g_new0(OrrSlot, cells->len);
    order->first = g_new0(uint32_t, shape.n_stages + 1);
    order->virtual_stage = g_new0(uint32_t, (size_t)shape.n_stages * shape.n_chunks);
    g_autofree uint32_t *chunk = g_new0(uint32_t, (size_t)shape.n_stages * shape.n_chunks);
    if (!place_chunks(where, cells, order, chunk, error))
        return NULL;
    for (guint i = 0; i < cells->len; i++) {
        const Cell *cell = &g_array_index(cells, Cell, i);
        order->first[cell->row + 1] = i + 1;
        order->slots[i] = (OrrSlot){.pass = (uint8_t)cell->pass,
                                    .chunk = (uint16_t)chunk[cell->virtual_stage],
                                    .micro_batch = cell->micro_batch};
    }
    g_autofree char *flaw = orr_order_flaw(order);
    if (flaw != NULL) {
        orr_fail_input(error, "%s: %s", where, flaw);
        return NULL;
    }
    return g_steal_pointer(&order);
}
