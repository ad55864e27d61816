/* Efficiency surfaces as plain facts: the ratio of measured time to a roofline, on a grid in log
 * shape, per GPU, kernel kind and dtype. Fitted by calibrate/, used by sim/cost. */
#ifndef ORR_FACTS_SURFACE_H
#define ORR_FACTS_SURFACE_H

#include "sim/terms/terms.h"

#include <stdbool.h>

#define ORR_SURFACE_AXES 3
typedef struct {
    OrrKernelKind kind;
    OrrDtype dtype;
    char variant[16]; /* "" or "causal", "full", ... */
    uint32_t n[ORR_SURFACE_AXES];
    double *axis[ORR_SURFACE_AXES]; /* log2 of the shape, ascending */
    double *log_ratio; /* ln of measured over analytic time; n[0]*n[1]*n[2], last fastest */
    double params[16]; /* of the analytic form that the surface corrects */
    uint32_t n_params;
} OrrSurface;

typedef struct {
    char *gpu, *source, *name;
    double clock_share; /* clock that short measured runs held, over the GPU's boost clock */
    OrrSurface *surfaces;
    uint32_t n_surfaces;
} OrrSurfaceSet;

/* Frees what @surface holds, not @surface itself. */
void orr_surface_clear(OrrSurface *surface);
void orr_surface_set_free(OrrSurfaceSet *set);

/* Measured over analytic time at @x (log2 of the shape): the log of the ratio is interpolated
 * linearly and held constant beyond the grid. */
double orr_surface_ratio(const OrrSurface *surface, const double x[ORR_SURFACE_AXES]);
/* NULL if @set is NULL or has none. */
const OrrSurface *orr_surface_find(const OrrSurfaceSet *set, OrrKernelKind kind, OrrDtype dtype,
                                   const char *variant);

#endif
