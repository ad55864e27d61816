#include "sim/facts/residuals.h"

OrrResiduals *orr_residuals_new(void) {
    OrrResiduals *r = g_new(OrrResiduals, 1);
    r->rows = g_array_new(FALSE, TRUE, sizeof(OrrResidual));
    r->texts = g_string_chunk_new(1024);
    return r;
}

void orr_residuals_free(OrrResiduals *r) {
    if (!r)
        return;
    g_array_unref(r->rows);
    g_string_chunk_free(r->texts);
    g_free(r);
}

void orr_residuals_add(OrrResiduals *r, OrrResidual row) {
    row.source = g_string_chunk_insert_const(r->texts, row.source);
    row.regime.framework = g_string_chunk_insert_const(r->texts, row.regime.framework);
    row.regime.arch = g_string_chunk_insert_const(r->texts, row.regime.arch);
    g_array_append_val(r->rows, row);
}
