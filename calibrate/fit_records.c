#include "calibrate/fit_records.h"

#include "calibrate/fit_records_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FAR_FRAC 0.5    /* ours: a row half off the fit is told */
#define LONG_NS 4e5     /* runs that hold the clock under load (doc/models/kernels.md) */
#define LONG_FLOPS 1e11 /* of products bound by computation */

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double orr_fit__median(double *values, guint n) {
    if (n == 0)
        return 0;
    qsort(values, n, sizeof *values, compare_doubles);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

void orr_fit__point(OrrFitWork *w, const char *series, double work, const OrrRecordRow *row,
                    double measured_ns, double fitted_ns) {
    OrrFitPoint p = {.work = work,
                     .measured_ns = measured_ns,
                     .fitted_ns = fitted_ns,
                     .row = (guint)(row - (const OrrRecordRow *)(void *)w->rows->rows->data),
                     .file = row->file,
                     .line = row->line};
    g_strlcpy(p.series, series, sizeof p.series);
    g_array_append_val(w->fit->points, p);
}

/* Clock that measured products held over the boost clock of @gpu. Without a reading the records are
 * taken to have run as a training step does: no correction. */
static double clock_share(const OrrRecordRows *rows, const OrrGpu *gpu) {
    g_autofree double *clock = g_new(double, rows->rows->len + 1);
    guint n = 0;
    for (guint i = 0; i < rows->rows->len; i++) {
        const OrrRecordRow *row = &g_array_index(rows->rows, OrrRecordRow, i);
        if (row->c.kind == ORR_CASE_GEMM && row->sm_clock_hz > 0 && row->ns >= LONG_NS &&
            orr_case_flops(&row->c) >= LONG_FLOPS)
            clock[n++] = row->sm_clock_hz;
    }
    double held = n ? orr_fit__median(clock, n) : gpu->sustained_hz;
    return fmin(1.2, fmax(0.1, held / gpu->boost_hz));
}

static void tell_far(OrrFitWork *w) {
    for (guint i = 0; i < w->fit->points->len; i++) {
        const OrrFitPoint *p = &g_array_index(w->fit->points, OrrFitPoint, i);
        double off = p->measured_ns / p->fitted_ns - 1;
        if (fabs(off) <= FAR_FRAC)
            continue;
        g_ptr_array_add(w->fit->notes,
                        g_strdup_printf("%s:%u: %s: %+.0f %% off the fit; an outlier, or a shape "
                                        "that the form does not know",
                                        (const char *)w->rows->files->pdata[p->file], p->line,
                                        p->series, 100 * off));
    }
}

static void summarise(OrrRecordFit *fit) {
    g_autofree double *miss = g_new(double, fit->points->len + 1);
    g_autofree bool *is_done = g_new0(bool, fit->points->len + 1);
    for (guint i = 0; i < fit->points->len; i++) {
        if (is_done[i])
            continue;
        OrrFitResidual r = {.n = 0};
        double bias = 0;
        memcpy(r.series, g_array_index(fit->points, OrrFitPoint, i).series, sizeof r.series);
        for (guint j = i; j < fit->points->len; j++) {
            const OrrFitPoint *p = &g_array_index(fit->points, OrrFitPoint, j);
            if (strcmp(p->series, r.series) != 0)
                continue;
            double error = p->fitted_ns / p->measured_ns - 1;
            is_done[j] = true;
            bias += error;
            miss[r.n++] = fabs(error);
        }
        r.median_frac = orr_fit__median(miss, r.n);
        r.p90_frac = miss[MIN(r.n - 1, r.n * 9 / 10)];
        r.bias_frac = bias / r.n;
        g_array_append_val(fit->residuals, r);
    }
}

OrrRecordFit *orr_fit_records(const OrrRecordRows *rows, const OrrGpu *gpu, const char *name) {
    OrrRecordFit *fit = g_new0(OrrRecordFit, 1);
    fit->points = g_array_new(FALSE, TRUE, sizeof(OrrFitPoint));
    fit->residuals = g_array_new(FALSE, TRUE, sizeof(OrrFitResidual));
    fit->notes = g_ptr_array_new_with_free_func(g_free);
    fit->set = g_new0(OrrSurfaceSet, 1);
    fit->set->gpu = g_strdup(gpu->name);
    fit->set->name = g_strdup(name);
    fit->set->source = g_strdup("records of orrery-calibrate");
    fit->set->is_training = true;
    fit->set->clock_share = clock_share(rows, gpu);
    fit->set->throttled_ns = ORR_THROTTLED_NS;
    OrrFitWork w = {rows, gpu, fit};
    orr_fit__products(&w);
    orr_fit__streams(&w);
    tell_far(&w);
    summarise(fit);
    return fit;
}

void orr_record_fit_free(OrrRecordFit *fit) {
    if (!fit)
        return;
    orr_surface_set_free(fit->set);
    g_array_unref(fit->points);
    g_array_unref(fit->residuals);
    g_ptr_array_unref(fit->notes);
    g_free(fit);
}
