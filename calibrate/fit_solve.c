/* Smoothed surface by penalised least absolute deviations, and parameters by coordinate descent.
 * Sources: Eilers and Marx 1996 (P-splines: a penalty on differences of coefficients); iteratively
 * reweighted least squares for absolute deviations (Schlossmacher 1973). Cost: about 100 products
 * of a sparse matrix with 8 entries a point, four times over. */
#include "calibrate/fit_solve.h"

#include <glib.h>
#include <math.h>
#include <string.h>

#define CORNERS (1u << ORR_SURFACE_AXES)
#define REWEIGHTS 4 /* residuals changed by less than 0.1 % after four rounds */
#define NOISE 0.02  /* repeats of one shape differ by about this; errors below count squared */
#define RIDGE 1e-3  /* pulls what no point and no neighbour determines to a ratio of 1 */
#define CG_STEPS 400
#define CG_TOLERANCE 1e-16 /* of the squared residual */

typedef struct {
    const OrrSurface *surface;
    uint32_t n_values, n_points;
    uint32_t stride[ORR_SURFACE_AXES];
    uint32_t *index; /* CORNERS a point */
    double *share, *weight;
    const double *smooth;
} System;

static void place_point(System *sys, uint32_t i, const double *x) {
    uint32_t cell[ORR_SURFACE_AXES];
    double frac[ORR_SURFACE_AXES];
    for (uint32_t d = 0; d < ORR_SURFACE_AXES; d++) {
        const double *axis = sys->surface->axis[d];
        uint32_t n = sys->surface->n[d], c = 0;
        while (c + 2 < n && axis[c + 1] <= x[d])
            c++;
        cell[d] = c;
        frac[d] = n < 2 ? 0.0 : CLAMP((x[d] - axis[c]) / (axis[c + 1] - axis[c]), 0.0, 1.0);
    }
    for (uint32_t corner = 0; corner < CORNERS; corner++) {
        uint32_t at = 0;
        double share = 1.0;
        for (uint32_t d = 0; d < ORR_SURFACE_AXES; d++) {
            uint32_t up = corner >> d & 1;
            share *= up ? frac[d] : 1.0 - frac[d];
            at += (cell[d] + (up && sys->surface->n[d] > 1)) * sys->stride[d];
        }
        sys->index[i * CORNERS + corner] = at;
        sys->share[i * CORNERS + corner] = share;
    }
}

static double predict(const System *sys, uint32_t i, const double *value) {
    double sum = 0.0;
    for (uint32_t c = i * CORNERS; c < (i + 1) * CORNERS; c++)
        sum += sys->share[c] * value[sys->index[c]];
    return sum;
}

/* Adds the penalty on second differences along axis @d; spacing-aware for uneven axes. */
static void apply_penalty(const System *sys, uint32_t d, const double *in, double *out) {
    uint32_t n = sys->surface->n[d], s = sys->stride[d];
    const double *axis = sys->surface->axis[d];
    for (uint32_t at = 0; at < sys->n_values; at++) {
        uint32_t pos = at / s % n;
        if (pos + 2 >= n)
            continue;
        double left = axis[pos + 1] - axis[pos], right = axis[pos + 2] - axis[pos + 1];
        double a = 1.0 / left, b = -1.0 / left - 1.0 / right, c = 1.0 / right;
        double bend = (a * in[at] + b * in[at + s] + c * in[at + 2 * s]) * sys->smooth[d];
        out[at] += a * bend;
        out[at + s] += b * bend;
        out[at + 2 * s] += c * bend;
    }
}

static void apply(const System *sys, const double *in, double *out) {
    for (uint32_t v = 0; v < sys->n_values; v++)
        out[v] = RIDGE * in[v];
    for (uint32_t i = 0; i < sys->n_points; i++) {
        double w = sys->weight[i] * predict(sys, i, in);
        for (uint32_t c = i * CORNERS; c < (i + 1) * CORNERS; c++)
            out[sys->index[c]] += w * sys->share[c];
    }
    for (uint32_t d = 0; d < ORR_SURFACE_AXES; d++)
        apply_penalty(sys, d, in, out);
}

static double dot(const double *a, const double *b, uint32_t n) {
    double sum = 0.0;
    for (uint32_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Conjugate gradients from @value on. */
static void solve(const System *sys, const FitPoint *points, double *value) {
    uint32_t n = sys->n_values;
    g_autofree double *rest = g_new0(double, n);
    g_autofree double *dir = g_new(double, n);
    g_autofree double *image = g_new(double, n);
    for (uint32_t i = 0; i < sys->n_points; i++)
        for (uint32_t c = i * CORNERS; c < (i + 1) * CORNERS; c++)
            rest[sys->index[c]] += sys->weight[i] * points[i].log_ratio * sys->share[c];
    apply(sys, value, image);
    for (uint32_t v = 0; v < n; v++)
        dir[v] = rest[v] = rest[v] - image[v];
    double now = dot(rest, rest, n), first = now;
    for (int step = 0; step < CG_STEPS && now > CG_TOLERANCE * first && now > 0.0; step++) {
        apply(sys, dir, image);
        double length = now / dot(dir, image, n);
        for (uint32_t v = 0; v < n; v++) {
            value[v] += length * dir[v];
            rest[v] -= length * image[v];
        }
        double next = dot(rest, rest, n);
        for (uint32_t v = 0; v < n; v++)
            dir[v] = rest[v] + next / now * dir[v];
        now = next;
    }
}

void fit_surface(OrrSurface *surface, const FitPoint *points, uint32_t n_points,
                 const double smooth[ORR_SURFACE_AXES]) {
    System sys = {.surface = surface, .n_points = n_points, .smooth = smooth};
    sys.n_values = 1;
    for (uint32_t d = ORR_SURFACE_AXES; d-- > 0;) {
        sys.stride[d] = sys.n_values;
        sys.n_values *= surface->n[d];
    }
    sys.index = g_new(uint32_t, (gsize)n_points * CORNERS);
    sys.share = g_new(double, (gsize)n_points *CORNERS);
    sys.weight = g_new(double, n_points);
    for (uint32_t i = 0; i < n_points; i++) {
        place_point(&sys, i, points[i].x);
        sys.weight[i] = points[i].weight;
    }
    g_free(surface->log_ratio);
    surface->log_ratio = g_new0(double, sys.n_values);
    for (int round = 0; round < REWEIGHTS; round++) {
        solve(&sys, points, surface->log_ratio);
        for (uint32_t i = 0; i < n_points; i++) {
            double miss = fabs(points[i].log_ratio - predict(&sys, i, surface->log_ratio));
            sys.weight[i] = points[i].weight * NOISE / fmax(miss, NOISE);
        }
    }
    g_free(sys.index);
    g_free(sys.share);
    g_free(sys.weight);
}

#define ROUNDS 30
#define FIRST_STEP 0.3 /* in log */
#define SHRINK 0.6
#define GROW 1.2

void fit_params(double *params, const FitRange *ranges, uint32_t n_params, FitLoss loss,
                const void *data) {
    g_autofree double *step = g_new(double, n_params);
    for (uint32_t i = 0; i < n_params; i++)
        step[i] = FIRST_STEP;
    double best = loss(params, data);
    for (int round = 0; round < ROUNDS; round++)
        for (uint32_t i = 0; i < n_params; i++) {
            if (ranges[i].min >= ranges[i].max)
                continue;
            bool is_better = false;
            for (int sign = -1; sign <= 1; sign += 2) {
                double old = params[i];
                params[i] = CLAMP(old * exp(sign * step[i]), ranges[i].min, ranges[i].max);
                double now = loss(params, data);
                if (now < best) {
                    best = now;
                    is_better = true;
                } else {
                    params[i] = old;
                }
            }
            step[i] *= is_better ? GROW : SHRINK;
        }
}
