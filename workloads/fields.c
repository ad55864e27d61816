/* A table of keys read into a struct: one row a key, so that the file formats are data. */
#include "workloads/loader_priv.h"

static void read_field(OrrKeys *keys, const OrrField *f, void *into) {
    char *at = (char *)into + f->offset;
    switch (f->kind) {
    case ORR_FIELD_BOOL:
        *(bool *)(void *)at = orr_keys_bool(keys, f->group, f->key, f->fallback > 0, f->flags);
        return;
    case ORR_FIELD_NUMBER:
        *(double *)(void *)at =
            orr_keys_number(keys, f->group, f->key, f->dim, f->min, f->max, f->fallback, f->flags);
        return;
    case ORR_FIELD_COUNT:
        *(uint32_t *)(void *)at =
            (uint32_t)orr_keys_int(keys, f->group, f->key, f->noun, (int64_t)f->min,
                                   (int64_t)f->max, (int64_t)f->fallback, f->flags);
        return;
    case ORR_FIELD_ENUM:
        *(int *)(void *)at =
            orr_keys_enum(keys, f->group, f->key, f->names, (int)f->fallback, f->flags);
        return;
    }
}

void orr_workloads__read_fields(OrrKeys *keys, const OrrField *fields, size_t n_fields,
                                void *into) {
    for (size_t i = 0; i < n_fields; i++)
        read_field(keys, &fields[i], into);
}
