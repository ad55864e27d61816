/* A curve through measured points, straight between them on logarithmic axes.
 *
 * Straight in logarithms means a power law between neighbours: what latency-bandwidth curves and
 * efficiencies by size look like. A monotone table gives a monotone curve. */
#ifndef ORR_BASE_CURVE_H
#define ORR_BASE_CURVE_H

#include <glib.h>

typedef struct {
    double *log_x, *log_y; /* n points, x increasing */
    guint n;
} OrrCurve;

typedef enum {
    ORR_CURVE_HOLD, /* beyond the ends: the value there */
    ORR_CURVE_SLOPE /* beyond the ends: on with the power law of the outermost pair */
} OrrCurveEnd;

/* @x increasing and above 0, @y above 0, @n at least 1: checked by the caller. */
OrrCurve *orr_curve_new(const double *x, const double *y, guint n);
void orr_curve_free(OrrCurve *curve);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrCurve, orr_curve_free)

double orr_curve_at(const OrrCurve *curve, double x, OrrCurveEnd end);

#endif
