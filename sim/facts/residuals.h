/* How far predictions of step times were from published runs: what an interval rests on. */
#ifndef ORR_FACTS_RESIDUALS_H
#define ORR_FACTS_RESIDUALS_H

#include <glib.h>
#include <stdint.h>

/* What tells regimes of runs apart. Texts are borrowed. */
typedef struct {
    const char *framework; /* profile */
    const char *arch;      /* of the GPU: "ampere", "hopper" */
    uint32_t n_gpus, tp, pp;
} OrrRegime;

typedef struct {
    const char *source; /* publication; owned by the table */
    OrrRegime regime;   /* its texts owned by the table */
    double ln;          /* of measured over predicted step time */
} OrrResidual;

typedef struct {
    GArray *rows;        /* OrrResidual */
    GStringChunk *texts; /* of the rows */
} OrrResiduals;

OrrResiduals *orr_residuals_new(void);
void orr_residuals_free(OrrResiduals *r);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrResiduals, orr_residuals_free)
/* Texts of @row are copied. */
void orr_residuals_add(OrrResiduals *r, OrrResidual row);

#endif
