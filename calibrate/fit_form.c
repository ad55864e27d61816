/* Parameters of a form, then the surface over what the form leaves. */
#include "calibrate/fit_form.h"

#include "calibrate/fit_solve.h"

#include <glib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PARAM_ROWS 4000 /* plenty for a dozen parameters; more rows are thinned evenly */

/* Weights of the penalty by axis. GEMM: of 0.1 to 40 tried on held-out pairs, flat from 0.1 to 0.4.
 * Attention: head sizes have kernels of their own, so that axis is hardly smoothed. */
static const double smooth_gemm[ORR_SURFACE_AXES] = {0.1, 0.1, 0.1};
static const double smooth_attn[ORR_SURFACE_AXES] = {0.1, 0.1, 1e-5};

/* Where the descent starts and how far it may go; per unit of OrrSurface.params. */
static void start_gemm(const FitForm *form, double *p, FitRange *r) {
    static const double first[ORR_N_GEMM_PARAMS] = {
        [ORR_GEMM_FIXED] = 2000,    [ORR_GEMM_EFF] = 0.8,       [ORR_GEMM_HBM_FRAC] = 0.8,
        [ORR_GEMM_WAVE_FRAC] = 0.5, [ORR_GEMM_K_EXTRA] = 100,   [ORR_GEMM_EFF_128] = 0.9,
        [ORR_GEMM_EFF_64] = 0.7,    [ORR_GEMM_EFF_64_64] = 0.5, [ORR_GEMM_SPLIT] = 2000};
    static const FitRange range[ORR_N_GEMM_PARAMS] = {
        [ORR_GEMM_FIXED] = {500, 20000},  [ORR_GEMM_EFF] = {0.3, 1.0},
        [ORR_GEMM_HBM_FRAC] = {0.3, 1.0}, [ORR_GEMM_WAVE_FRAC] = {0.02, 1.0},
        [ORR_GEMM_K_EXTRA] = {1, 2000},   [ORR_GEMM_EFF_128] = {0.3, 1.1},
        [ORR_GEMM_EFF_64] = {0.15, 1.1},  [ORR_GEMM_EFF_64_64] = {0.1, 1.1},
        [ORR_GEMM_SPLIT] = {100, 100000}};
    memcpy(p, first, sizeof first);
    memcpy(r, range, sizeof range);
    p[ORR_GEMM_PEAK] = form->peak_flops_per_s;
    p[ORR_GEMM_SMS] = form->n_sms;
    p[ORR_GEMM_HBM] = form->hbm_bytes_per_s;
    if (form->is_quantised) {
        p[ORR_GEMM_QUANT_BYTES] = 5.0; /* two reads of 2 bytes, a write of one */
        p[ORR_GEMM_QUANT_FIXED] = 4000;
        r[ORR_GEMM_QUANT_BYTES] = (FitRange){1.0, 16.0};
        r[ORR_GEMM_QUANT_FIXED] = (FitRange){500, 20000};
    }
}

static void start_attn(const FitForm *form, double *p, FitRange *r) {
    static const double first[ORR_N_ATTN_PARAMS] = {
        [ORR_ATTN_FIXED] = 5000,    [ORR_ATTN_EFF] = 0.6,      [ORR_ATTN_HBM_FRAC] = 0.8,
        [ORR_ATTN_WAVE_FRAC] = 0.5, [ORR_ATTN_KV_EXTRA] = 100, [ORR_ATTN_PREP_BYTES] = 4};
    static const FitRange range[ORR_N_ATTN_PARAMS] = {
        [ORR_ATTN_FIXED] = {1000, 30000}, [ORR_ATTN_EFF] = {0.1, 1.0},
        [ORR_ATTN_HBM_FRAC] = {0.3, 1.0}, [ORR_ATTN_WAVE_FRAC] = {0.02, 1.0},
        [ORR_ATTN_KV_EXTRA] = {1, 2000},  [ORR_ATTN_PREP_BYTES] = {1, 32}};
    memcpy(p, first, sizeof first);
    memcpy(r, range, sizeof range);
    p[ORR_ATTN_PEAK] = form->peak_flops_per_s;
    p[ORR_ATTN_SMS] = form->n_sms;
    p[ORR_ATTN_HBM] = form->hbm_bytes_per_s;
    if (!form->has_prep) { /* that path takes Q, K, V as they are */
        p[ORR_ATTN_PREP_BYTES] = 0.0;
        r[ORR_ATTN_PREP_BYTES] = (FitRange){0, 0};
    }
}

double fit_form_ns(const FitForm *fit, const double *p, const FitRow *row) {
    if (fit->kind == ORR_K_GEMM)
        return orr_form_gemm_ns(p, &row->gemm, 1.0) + orr_form_gemm_prep_ns(p, &row->gemm);
    return orr_form_attn_ns(p, &row->attn, 1.0) + orr_form_attn_prep_ns(p, &row->attn);
}

static void place_row(const FitForm *fit, const FitRow *row, double *x) {
    if (fit->kind == ORR_K_GEMM)
        orr_form_gemm_place(&row->gemm, x);
    else
        orr_form_attn_place(&row->attn, x);
}

static bool is_used(const FitForm *fit, const FitRow *row) {
    return !(fit->is_trial && row->is_held_out);
}

static double mean_log_error(const double *params, const void *data) {
    const FitForm *fit = data;
    double sum = 0.0, weight = 0.0;
    uint32_t stride = fit->rows->n_rows / PARAM_ROWS + 1;
    for (uint32_t i = 0; i < fit->rows->n_rows; i += stride) {
        const FitRow *row = &fit->rows->rows[i];
        if (!is_used(fit, row))
            continue;
        sum += row->weight * fabs(log(fit_form_ns(fit, params, row) / row->ns));
        weight += row->weight;
    }
    return sum / weight;
}

/* Descends from a few starts that differ in what trades off (partial waves against rate of the
 * smaller tile) and keeps the best: the loss has several valleys. */
static void fit_params_of(const FitForm *fit, OrrSurface *s) {
    static const double wave_starts[] = {0.2, 0.8}, eff_starts[] = {0.9, 0.55};
    bool is_gemm = fit->kind == ORR_K_GEMM;
    double best = INFINITY;
    for (uint32_t w = 0; w < G_N_ELEMENTS(wave_starts); w++)
        for (uint32_t e = 0; e < G_N_ELEMENTS(eff_starts); e++) {
            double params[G_N_ELEMENTS(s->params)] = {0};
            FitRange range[G_N_ELEMENTS(s->params)] = {{0, 0}};
            (is_gemm ? start_gemm : start_attn)(fit, params, range);
            params[is_gemm ? ORR_GEMM_WAVE_FRAC : ORR_ATTN_WAVE_FRAC] = wave_starts[w];
            if (is_gemm)
                params[ORR_GEMM_EFF_128] = eff_starts[e];
            else
                params[ORR_ATTN_EFF] = eff_starts[e];
            fit_params(params, range, s->n_params, mean_log_error, fit);
            double loss = mean_log_error(params, fit);
            if (loss < best) {
                best = loss;
                memcpy(s->params, params, sizeof params);
            }
        }
}

static void set_axis(OrrSurface *s, uint32_t d, double first, double last, double step) {
    s->n[d] = (uint32_t)lrint((last - first) / step) + 1;
    s->axis[d] = g_new(double, s->n[d]);
    for (uint32_t i = 0; i < s->n[d]; i++)
        s->axis[d][i] = first + step * i;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* An axis whose knots are the values that occur: head sizes are few and each has its own kernel. */
static void set_axis_to_values(OrrSurface *s, uint32_t d, const FitForm *fit) {
    g_autofree double *all = g_new(double, fit->rows->n_rows);
    for (uint32_t i = 0; i < fit->rows->n_rows; i++) {
        double x[ORR_SURFACE_AXES];
        place_row(fit, &fit->rows->rows[i], x);
        all[i] = x[d];
    }
    qsort(all, fit->rows->n_rows, sizeof *all, compare_doubles);
    s->axis[d] = g_new(double, fit->rows->n_rows);
    for (uint32_t i = 0; i < fit->rows->n_rows; i++)
        if (s->n[d] == 0 || all[i] > s->axis[d][s->n[d] - 1] + 1e-9)
            s->axis[d][s->n[d]++] = all[i];
}

void fit_form(const FitForm *fit, OrrSurface *s) {
    bool is_gemm = fit->kind == ORR_K_GEMM;
    s->kind = fit->kind;
    s->dtype = fit->dtype;
    g_strlcpy(s->variant, fit->variant, sizeof s->variant);
    s->n_params = is_gemm ? ORR_N_GEMM_PARAMS : ORR_N_ATTN_PARAMS;
    fit_params_of(fit, s);
    if (is_gemm) { /* one knot an octave from 128 to 64 Ki: finer ones gained nothing held out */
        set_axis(s, 0, 7, 15, 1);
        set_axis(s, 1, 7, 16, 1);
        set_axis(s, 2, 7, 16, 1);
    } else {
        set_axis(s, 0, 5, 16, 1);
        set_axis(s, 1, 0, 12, 2);
        set_axis_to_values(s, 2, fit);
    }
    g_autofree FitPoint *points = g_new(FitPoint, fit->rows->n_rows);
    uint32_t n = 0;
    for (uint32_t i = 0; i < fit->rows->n_rows; i++) {
        const FitRow *row = &fit->rows->rows[i];
        if (!is_used(fit, row))
            continue;
        place_row(fit, row, points[n].x);
        points[n].log_ratio = log(row->ns / fit_form_ns(fit, s->params, row));
        points[n++].weight = row->weight;
    }
    fit_surface(s, points, n, is_gemm ? smooth_gemm : smooth_attn);
}

double fit_form_flops(const FitForm *fit, const FitRow *row) {
    return fit->kind == ORR_K_GEMM ? 2.0 * row->gemm.m * row->gemm.n * row->gemm.k * row->gemm.batch
                                   : orr_form_attn_flops(&row->attn);
}

double fit_form_fitted_ns(const FitForm *fit, const OrrSurface *s, const FitRow *row) {
    double x[ORR_SURFACE_AXES];
    place_row(fit, row, x);
    return fit_form_ns(fit, s->params, row) * orr_surface_ratio(s, x);
}

void fit_rows_clear(FitRows *rows) {
    g_clear_pointer(&rows->rows, g_free);
    rows->n_rows = 0;
}
