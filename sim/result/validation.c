#include "sim/result/validation.h"

const char *const orr_validated_names[] = {"steps", "collectives", "kernels", "memory", NULL};

static void clear_row(void *data) {
    OrrValidationRow *r = data;
    g_free(r->cluster);
    g_free(r->detail);
}

OrrValidation *orr_validation_new(void) {
    OrrValidation *v = g_new0(OrrValidation, 1);
    v->version = v->calibration = "";
    v->files = g_new0(char *, 1);
    v->hashes = g_new0(char *, 1);
    v->others = g_new0(char *, 1);
    v->rows = g_array_new(FALSE, TRUE, sizeof(OrrValidationRow));
    g_array_set_clear_func(v->rows, clear_row);
    for (int k = 0; k < ORR_N_VALIDATED; k++)
        v->groups[k] = g_array_new(FALSE, TRUE, sizeof(OrrValidationGroup));
    v->skips = g_array_new(FALSE, TRUE, sizeof(OrrValidationSkip));
    v->rules = g_array_new(FALSE, TRUE, sizeof(OrrValidationRule));
    v->texts = g_string_chunk_new(4096); /* ours: a block of names */
    return v;
}

void orr_validation_free(OrrValidation *v) {
    if (!v)
        return;
    g_strfreev(v->files);
    g_strfreev(v->hashes);
    g_strfreev(v->others);
    g_array_unref(v->rows);
    for (int k = 0; k < ORR_N_VALIDATED; k++)
        g_array_unref(v->groups[k]);
    g_array_unref(v->skips);
    g_array_unref(v->rules);
    g_string_chunk_free(v->texts);
    g_free(v);
}

const char *orr_validation_text(OrrValidation *v, const char *text) {
    return g_string_chunk_insert_const(v->texts, text);
}
