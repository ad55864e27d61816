/* Efficiency surfaces: release and trilinear interpolation in log shape, clamped to the grid, so
 * that beyond the measured range the ratio to the analytic form stays what it was at the edge. */
#include "sim/facts/surface.h"

#include <glib.h>
#include <math.h>

void orr_surface_clear(OrrSurface *surface) {
    for (uint32_t i = 0; i < ORR_SURFACE_AXES; i++)
        g_clear_pointer(&surface->axis[i], g_free);
    g_clear_pointer(&surface->log_ratio, g_free);
}

void orr_surface_set_free(OrrSurfaceSet *set) {
    if (!set)
        return;
    for (uint32_t i = 0; i < set->n_surfaces; i++)
        orr_surface_clear(&set->surfaces[i]);
    g_free(set->surfaces);
    g_free(set->gpu);
    g_free(set->source);
    g_free(set->name);
    g_free(set);
}

/* Cell of @x on an ascending axis, and how far into it (0 to 1), clamped to the ends. */
static uint32_t locate(const double *axis, uint32_t n, double x, double *frac) {
    *frac = 0.0;
    if (n < 2 || x <= axis[0])
        return 0;
    uint32_t lo = 0, hi = n - 1;
    if (x >= axis[hi]) {
        *frac = 1.0;
        return hi - 1;
    }
    while (hi - lo > 1) {
        uint32_t mid = (lo + hi) / 2;
        if (axis[mid] <= x)
            lo = mid;
        else
            hi = mid;
    }
    *frac = (x - axis[lo]) / (axis[lo + 1] - axis[lo]);
    return lo;
}

double orr_surface_ratio(const OrrSurface *surface, const double x[ORR_SURFACE_AXES]) {
    uint32_t cell[ORR_SURFACE_AXES];
    double frac[ORR_SURFACE_AXES];
    for (uint32_t i = 0; i < ORR_SURFACE_AXES; i++)
        cell[i] = locate(surface->axis[i], surface->n[i], x[i], &frac[i]);
    double sum = 0.0;
    for (uint32_t corner = 0; corner < 1u << ORR_SURFACE_AXES; corner++) {
        double weight = 1.0;
        uint32_t index = 0;
        for (uint32_t i = 0; i < ORR_SURFACE_AXES; i++) {
            uint32_t up = corner >> i & 1;
            weight *= up ? frac[i] : 1.0 - frac[i];
            index = index * surface->n[i] + cell[i] + (up && weight > 0.0);
        }
        if (weight > 0.0)
            sum += weight * surface->log_ratio[index];
    }
    return exp(sum);
}

const OrrSurface *orr_surface_find(const OrrSurfaceSet *set, OrrKernelKind kind, OrrDtype dtype,
                                   const char *variant) {
    for (uint32_t i = 0; set && i < set->n_surfaces; i++) {
        const OrrSurface *s = &set->surfaces[i];
        if (s->kind == kind && s->dtype == dtype && !g_strcmp0(s->variant, variant))
            return s;
    }
    return NULL;
}
