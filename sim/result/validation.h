/* The record of a validation: published measurements against predictions, row by row and in groups.
 * What is measured and predicted is a time in ns, for memory bytes. Errors are predicted over
 * measured, less one. */
#ifndef ORR_RESULT_VALIDATION_H
#define ORR_RESULT_VALIDATION_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum {
    ORR_VALIDATED_STEP,
    ORR_VALIDATED_COLLECTIVE,
    ORR_VALIDATED_KERNEL,
    ORR_VALIDATED_MEMORY,
    ORR_N_VALIDATED
} OrrValidated;
/* "steps" "collectives" "kernels" "memory" */
extern const char *const orr_validated_names[];

typedef struct {
    OrrValidated kind;
    uint32_t file, line;       /* file: place in OrrValidation.files */
    const char *id, *gpu;      /* gpu: a file of ours, else as the row says */
    const char *group;         /* framework profile; system of a collective; kind of a kernel */
    char *cluster;             /* "h100-ib:64"; NULL: none */
    const char *source, *arch; /* of a step: publication, generation of the GPU; else NULL */
    uint32_t n_gpus, tp, pp;   /* of a step; 0: not known */
    double measured, predicted;
    int64_t bytes;      /* of a collective */
    const char *reason; /* why it was skipped; NULL: compared */
    char *detail;       /* more of the same, or NULL */
} OrrValidationRow;

typedef struct {
    const char *by;   /* "file" "gpu" "framework"; of collectives and kernels "system", "kernel" */
    const char *name; /* borrowed from the rows */
    uint32_t rows, skipped;
    double mape_frac, median_abs_frac, bias_frac, p90_abs_frac, worst_frac; /* 0 without rows */
} OrrValidationGroup;

typedef struct {
    const char *reason;
    OrrValidated kind;
    uint32_t rows;
} OrrValidationSkip;

/* Trials that did or did not fit, against the verdict. */
typedef struct {
    uint32_t ran_fits, ran_not, failed_fits, failed_not, skipped;
} OrrValidationFits;

typedef struct {
    const char *key, *rule;
    uint32_t rows; /* that used it */
} OrrValidationRule;

typedef struct {
    const char *version, *calibration;
    bool is_all_rows;
    char **files, **hashes; /* NULL-terminated */
    char **others;          /* files without anything to compare, with the reason */
    GArray *rows;           /* OrrValidationRow, in the order of the files */
    /* Filled by sim/judge from the rows: */
    GArray *groups[ORR_N_VALIDATED]; /* OrrValidationGroup */
    OrrValidationGroup all[ORR_N_VALIDATED];
    double macro_mape_frac; /* of steps: mean over the files, single errors cut at 50 % */
    double big_mape_frac;   /* of collectives above 1 MiB */
    uint32_t big_rows;
    GArray *skips; /* OrrValidationSkip, most rows first */
    GArray *rules; /* OrrValidationRule */
    OrrValidationFits fits;
    GStringChunk *texts; /* of the rows */
} OrrValidation;

OrrValidation *orr_validation_new(void);
void orr_validation_free(OrrValidation *v);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrValidation, orr_validation_free)

/* Texts of rows (id, gpu, group, reason) live as long as the validation. */
const char *orr_validation_text(OrrValidation *v, const char *text);

#endif
