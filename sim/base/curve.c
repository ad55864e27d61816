#include "sim/base/curve.h"

#include <math.h>
#include <stdbool.h>

OrrCurve *orr_curve_new(const double *x, const double *y, guint n) {
    g_assert(n > 0);
    OrrCurve *c = g_new0(OrrCurve, 1);
    c->n = n;
    c->log_x = g_new(double, n);
    c->log_y = g_new(double, n);
    for (guint i = 0; i < n; i++) {
        g_assert(x[i] > 0 && y[i] > 0 && (i == 0 || x[i] > x[i - 1]));
        c->log_x[i] = log(x[i]);
        c->log_y[i] = log(y[i]);
    }
    return c;
}

void orr_curve_free(OrrCurve *curve) {
    if (!curve)
        return;
    g_free(curve->log_x);
    g_free(curve->log_y);
    g_free(curve);
}

double orr_curve_at(const OrrCurve *curve, double x, OrrCurveEnd end) {
    g_assert(x > 0);
    double at = log(x);
    guint last = curve->n - 1;
    bool is_outside = at <= curve->log_x[0] || at >= curve->log_x[last];
    if (curve->n == 1 || (is_outside && end == ORR_CURVE_HOLD))
        return exp(curve->log_y[at <= curve->log_x[0] ? 0 : last]);
    guint low = 0, high = last; /* the pair that holds x, or the outermost one */
    while (high - low > 1) {
        guint middle = (low + high) / 2;
        if (curve->log_x[middle] <= at)
            low = middle;
        else
            high = middle;
    }
    double frac = (at - curve->log_x[low]) / (curve->log_x[high] - curve->log_x[low]);
    return exp(curve->log_y[low] + frac * (curve->log_y[high] - curve->log_y[low]));
}
