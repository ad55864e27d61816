/* Private to workloads/: opening files, reading tables of fields, refs and overrides. */
#ifndef WORKLOADS_LOADER_PRIV_H
#define WORKLOADS_LOADER_PRIV_H

#include "workloads/loader.h"

#include <stddef.h>

/* One key of a file and the member of a struct that it fills. */
typedef enum { ORR_FIELD_BOOL, ORR_FIELD_NUMBER, ORR_FIELD_COUNT, ORR_FIELD_ENUM } OrrFieldKind;
typedef struct {
    const char *group, *key;
    OrrFieldKind kind;
    OrrDim dim;               /* NUMBER */
    const char *noun;         /* COUNT: "tokens"; NULL: a bare number */
    double min, max;          /* NUMBER and COUNT */
    const char *const *names; /* ENUM, NULL-terminated */
    size_t offset;            /* bool, double, uint32_t or an enum */
    double fallback;          /* default where the key may be absent */
    OrrKeyFlags flags;
} OrrField;
void orr_workloads__read_fields(OrrKeys *keys, const OrrField *fields, size_t n_fields, void *into);

/* Path of the file that @ref means: a path if it has a slash or ends in .ini, else a name in
 * workloads/FOLDER; g_free. Errors: an unknown name, with the nearest known one. */
char *orr_workloads__path(const char *folder, const char *ref, GError **error);
/* Opens it and notes it among the inputs of @sources (may be NULL). */
OrrKeys *orr_workloads__open(const char *folder, const char *ref, OrrSources *sources,
                             GError **error);
/* The defaults that @keys used so far become assumptions "GROUP.KEY", origin @origin. */
void orr_workloads__note_defaults(OrrSources *sources, const OrrKeys *keys, const char *prefix,
                                  const char *origin);
/* Complains at [@group] @key if @ref, unless empty or a path, names no file in @folder. */
void orr_workloads__check_ref(OrrKeys *keys, const char *group, const char *key, const char *folder,
                              const char *ref);
/* Name of a file without folder and .ini; g_free. */
char *orr_workloads__stem(const char *path);
/* Complains at [GROUP] flops_formula unless @formula is one of orr_flops_formulas. */
void orr_workloads__check_formula(OrrKeys *keys, const char *group, const char *formula);

#endif
