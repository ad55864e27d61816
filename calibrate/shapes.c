/* Shapes that a user brings, as `orrery show shapes` writes them. */
#include "calibrate/grid.h"

#include "sim/io/csv.h"

#include <string.h>

/* Kernels of the simulator's programs that the calibrator measures under another name, or not at
 * all (op NULL). */
static const struct {
    const char *simulated;
    OrrCaseKind kind;
    const char *op;
} aliases[] = {
    {"norm", ORR_CASE_KERNEL, "rms_norm"},     {"rotary", ORR_CASE_KERNEL, "rotary"},
    {"activation", ORR_CASE_KERNEL, "swiglu"}, {"residual", ORR_CASE_KERNEL, "residual_dropout"},
    {"softmax", ORR_CASE_KERNEL, "softmax"},   {"cross_entropy", ORR_CASE_KERNEL, "cross_entropy"},
    {"optimizer", ORR_CASE_KERNEL, "adam"},    {"cast", ORR_CASE_KERNEL, "cast"},
    {"permute", ORR_CASE_KERNEL, "permute"},   {"dropout", ORR_CASE_KERNEL, NULL},
    {"embedding", ORR_CASE_KERNEL, NULL},      {"router", ORR_CASE_KERNEL, NULL},
    {"gradient", ORR_CASE_KERNEL, NULL},
};

/* false: a kind that isn't measured. */
static bool translate(const char *kind, OrrCase *c, const char **text) {
    *text = kind;
    for (guint i = 0; i < G_N_ELEMENTS(aliases); i++)
        if (strcmp(aliases[i].simulated, kind) == 0) {
            if (!aliases[i].op)
                return false;
            c->op = orr_case_op(aliases[i].kind, aliases[i].op);
            *text = orr_case_kind_names[aliases[i].kind];
        }
    return true;
}

/* false with @error; *@is_known false where the kind isn't measured. */
static bool read_row(const OrrCsv *csv, guint row, const int *columns, OrrCase *c, bool *is_known,
                     GError **error) {
    *c = (OrrCase){.dtype = ORR_BF16};
    *is_known = true;
    for (guint i = 0; i < ORR_N_CASE_COLUMNS; i++) {
        if (columns[i] < 0)
            continue;
        const char *text = orr_csv_cell(csv, row, columns[i]);
        if (i == 0 && !translate(text, c, &text)) {
            *is_known = false;
            return true;
        }
        g_autoptr(GError) why = NULL;
        if (!orr_case_read(c, i, text, &why))
            return orr_csv_fail(csv, row, columns[i], error, "%s", why->message);
    }
    g_autofree char *flaw = orr_case_flaw(c);
    return !flaw || orr_csv_fail(csv, row, columns[0], error, "%s", flaw);
}

bool orr_grid_shapes(const char *path, const OrrGridWish *wish, GArray *cases, guint *n_ignored,
                     GError **error) {
    *n_ignored = 0;
    g_autoptr(OrrCsv) csv = orr_csv_load(path, ORR_CSV_PLAIN, error);
    static const char *const needed[] = {"kind", NULL};
    int kind_column;
    if (!csv || !orr_csv_need(csv, needed, &kind_column, error))
        return false;
    int columns[ORR_N_CASE_COLUMNS];
    for (guint i = 0; i < ORR_N_CASE_COLUMNS; i++)
        columns[i] = orr_csv_column(csv, orr_case_columns[i]);
    g_autoptr(GHashTable) keys = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < cases->len; i++)
        g_hash_table_add(keys, orr_case_key(&g_array_index(cases, OrrCase, i)));
    for (guint row = 0; row < orr_csv_n_rows(csv); row++) {
        OrrCase c;
        bool is_known;
        if (!read_row(csv, row, columns, &c, &is_known, error))
            return false;
        *n_ignored += !is_known;
        if (!is_known || !wish->kinds[c.kind])
            continue;
        if (c.kind < ORR_CASE_LAUNCH)
            c.flushes_l2 = wish->flushes_l2;
        if (g_hash_table_add(keys, orr_case_key(&c)))
            g_array_append_val(cases, c);
    }
    return true;
}
