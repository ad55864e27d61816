/* The two numerical steps of the kernel fit, free of what is fitted. */
#ifndef ORR_CALIBRATE_FIT_SOLVE_H
#define ORR_CALIBRATE_FIT_SOLVE_H

#include "sim/facts/surface.h"

#include <stdbool.h>

/* One point: surface coordinates, the log of measured over analytic time, weight. */
typedef struct {
    double x[ORR_SURFACE_AXES];
    double log_ratio, weight;
} FitPoint;

/**
 * fit_surface: fills surface->log_ratio on the axes given in @surface so that the
 * weighted absolute error of log ratios plus @smooth[axis] times squared second differences along
 * that axis is least: iteratively reweighted least squares, each by conjugate gradients. Cells
 * without points are filled by smoothness.
 */
void fit_surface(OrrSurface *surface, const FitPoint *points, uint32_t n_points,
                 const double smooth[ORR_SURFACE_AXES]);

typedef struct {
    double min, max; /* a fixed parameter has min = max */
} FitRange;
typedef double (*FitLoss)(const double *params, const void *data);

/* Coordinate descent in log space with steps that adapt; deterministic. */
void fit_params(double *params, const FitRange *ranges, uint32_t n_params, FitLoss loss,
                const void *data);

#endif
