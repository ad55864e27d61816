/* Efficiency surfaces as plain facts: the ratio of measured time to a roofline, on a grid in log
 * shape, per GPU, kernel kind and dtype. Fitted by calibrate/, used by sim/cost. */
#ifndef ORR_FACTS_SURFACE_H
#define ORR_FACTS_SURFACE_H

#include "sim/terms/terms.h"

#include <stdbool.h>

#define ORR_SURFACE_AXES 3
/* OrrSurfaceSet.throttled_ns where nothing is said of it: what the rows of H100 show
 * (doc/models/kernels.md, "Sustained clocks"). */
#define ORR_THROTTLED_NS 12.8e6
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

/* What records of a machine say of the kernels that have no surface. 0: not measured, then what
 * sim/cost ships serves. */
typedef struct {
    double fixed_ns;                     /* start and drain of a kernel */
    double stream_frac;                  /* of the HBM rate that plain streams reach */
    double share[ORR_N_KERNEL_KINDS][2]; /* of that by kind: forward, backward */
    double batched_frac, grouped_frac;   /* rate of such products over what the surface says */
} OrrKernelRates;

typedef struct {
    char *gpu, *source, *name;
    double clock_share;  /* clock that short measured runs held, over the GPU's boost clock */
    double throttled_ns; /* kernels of this length and more were measured at the power limit; 0:
                            none */
    bool is_training;    /* attention as training libraries have it: backward measured too, nothing
                            around it; false: tables of a serving stack */
    OrrKernelRates rates;
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
