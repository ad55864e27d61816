/* Products and attention: a surface for each type, mask and pass that has rows enough. */
#include "calibrate/fit_records_priv.h"

#include "calibrate/fit_form.h"

#include <math.h>
#include <string.h>

#define LEAST_ROWS 12    /* as many as the form has parameters */
#define JUDGED_SIDE 512  /* as in the shipped fits: below, training hardly goes */
#define RARE_WEIGHT 0.2  /* the same */
#define LONG_FLOPS 1e12  /* products bound by computation everywhere: about a millisecond */
#define STRAY 3.0        /* ours: rows so many times off the first fit are left out of the second */
#define WIDEST 3.9       /* ln 49: ratios that a table may hold (tables.c) */
#define MAX_SURFACES 40u /* types x masks x passes, and products */

/* One series in the making. */
typedef struct {
    FitForm form;
    FitRows rows;
    GArray *fit_rows; /* FitRow */
    GArray *sources;  /* guint: number of the record row */
    char name[32];
    double scale; /* fitted times are those of the form times this */
} Series;

static void begin(Series *s, const OrrFitWork *w, OrrKernelKind kind, OrrDtype dtype,
                  const char *variant) {
    const OrrGpu *gpu = w->gpu;
    double peak = gpu->peak_flops_per_s[dtype];
    if (peak <= 0)
        peak = gpu->vector_flops_per_s;
    *s = (Series){.form = {.kind = kind,
                           .dtype = dtype,
                           .variant = variant,
                           .peak_flops_per_s = fmax(peak, 1e9),
                           .n_sms = gpu->n_sms,
                           .hbm_bytes_per_s = gpu->hbm_bytes_per_s},
                  .fit_rows = g_array_new(FALSE, TRUE, sizeof(FitRow)),
                  .sources = g_array_new(FALSE, FALSE, sizeof(guint)),
                  .scale = 1};
    g_snprintf(s->name, sizeof s->name, "%s.%s%s%s", orr_kernel_kind_name(kind),
               orr_dtype_name(dtype), *variant ? "." : "", variant);
}

static void end(Series *s) {
    g_array_unref(s->fit_rows);
    g_array_unref(s->sources);
}

static FitRow product_row(const OrrRecordRow *r) {
    const OrrCase *c = &r->c;
    FitRow row = {.gemm = {.m = (double)c->m,
                           .n = (double)c->n,
                           .k = (double)c->k,
                           .batch = c->batch ? (double)c->batch : 1,
                           .operand_bytes = orr_dtype_bytes(c->dtype)},
                  .ns = r->ns};
    row.gemm.bytes = orr_form_gemm_bytes(&row.gemm);
    row.is_judged = c->m >= JUDGED_SIDE && c->n >= JUDGED_SIDE && c->k >= JUDGED_SIDE;
    row.weight = row.is_judged ? 1 : RARE_WEIGHT;
    return row;
}

static FitRow attention_row(const OrrRecordRow *r, double scale) {
    const OrrCase *c = &r->c;
    double d = (double)c->head_dim, length = (double)c->sequence;
    FitRow row = {.attn = {.batch = (double)c->batch,
                           .heads = (double)c->heads,
                           .kv_heads = (double)c->kv_heads,
                           .m = length,
                           .n = length,
                           .dim_qk = d,
                           .dim_v = d,
                           .visited_frac = 1,
                           .is_causal = c->is_causal},
                  .ns = r->ns / scale,
                  .weight = 1,
                  .is_judged = true};
    row.attn.bytes = orr_form_attn_bytes(&row.attn, orr_dtype_bytes(c->dtype));
    return row;
}

static void add(Series *s, FitRow row, guint source) {
    g_array_append_val(s->fit_rows, row);
    g_array_append_val(s->sources, source);
}

static const OrrRecordRow *source_of(const OrrFitWork *w, const Series *s, guint i) {
    return &g_array_index(w->rows->rows, OrrRecordRow, g_array_index(s->sources, guint, i));
}

/* Takes out rows that are far off @surface; true if there were any and enough are left. */
static bool drop_strays(OrrFitWork *w, Series *s, const OrrSurface *surface) {
    guint n = 0, n_before = s->fit_rows->len;
    for (guint i = 0; i < n_before; i++) {
        const FitRow *row = &g_array_index(s->fit_rows, FitRow, i);
        double off = row->ns / fit_form_fitted_ns(&s->form, surface, row);
        if (off > STRAY || off < 1 / STRAY) {
            const OrrRecordRow *r = source_of(w, s, i);
            g_ptr_array_add(w->fit->notes,
                            g_strdup_printf("%s:%u: %s: %.1f times what the other rows say; an "
                                            "outlier, not used",
                                            (const char *)w->rows->files->pdata[r->file], r->line,
                                            s->name, off));
            continue;
        }
        g_array_index(s->fit_rows, FitRow, n) = *row;
        g_array_index(s->sources, guint, n++) = g_array_index(s->sources, guint, i);
    }
    g_array_set_size(s->fit_rows, n);
    g_array_set_size(s->sources, n);
    s->rows.n_rows = n;
    return n < n_before && n >= LEAST_ROWS;
}

static bool is_sane(const OrrSurface *surface) {
    for (uint32_t i = 0; i < surface->n[0] * surface->n[1] * surface->n[2]; i++)
        if (!(fabs(surface->log_ratio[i]) < WIDEST))
            return false;
    return true;
}

static void fit_again(const Series *s, OrrSurface *surface) {
    orr_surface_clear(surface);
    *surface = (OrrSurface){.n = {0}};
    fit_form(&s->form, surface);
}

static void fit_series(OrrFitWork *w, Series *s) {
    OrrSurfaceSet *set = w->fit->set;
    guint n = s->fit_rows->len;
    if (n == 0)
        return;
    if (n < LEAST_ROWS || set->n_surfaces == MAX_SURFACES) {
        g_ptr_array_add(w->fit->notes, g_strdup_printf("%s: %u rows; not fitted, %d would do",
                                                       s->name, n, LEAST_ROWS));
        return;
    }
    s->rows = (FitRows){(FitRow *)(void *)s->fit_rows->data, n};
    s->form.rows = &s->rows;
    OrrSurface *surface = &set->surfaces[set->n_surfaces++];
    fit_form(&s->form, surface);
    if (drop_strays(w, s, surface))
        fit_again(s, surface);
    if (!is_sane(surface)) {
        g_ptr_array_add(
            w->fit->notes,
            g_strdup_printf("%s: its times vary more than a table can hold; not fitted", s->name));
        orr_surface_clear(surface);
        *surface = (OrrSurface){.n = {0}};
        set->n_surfaces--;
        return;
    }
    for (guint i = 0; i < s->fit_rows->len; i++) {
        const OrrRecordRow *row = source_of(w, s, i);
        orr_fit__point(w, s->name, orr_case_flops(&row->c), row, row->ns,
                       s->scale * fit_form_fitted_ns(&s->form, surface, &s->rows.rows[i]));
    }
}

static void fit_products_of(OrrFitWork *w, OrrDtype dtype) {
    Series s;
    begin(&s, w, ORR_K_GEMM, dtype, "");
    g_autofree double *rate = g_new(double, w->rows->rows->len + 1);
    guint n_long = 0;
    for (guint i = 0; i < w->rows->rows->len; i++) {
        const OrrRecordRow *row = &g_array_index(w->rows->rows, OrrRecordRow, i);
        if (row->c.kind != ORR_CASE_GEMM || row->c.dtype != dtype)
            continue;
        add(&s, product_row(row), i);
        if (orr_case_flops(&row->c) >= LONG_FLOPS)
            rate[n_long++] = orr_case_flops(&row->c) / row->ns * 1e9;
    }
    w->fit->best_flops_per_s[dtype] = orr_fit__median(rate, n_long);
    fit_series(w, &s);
    end(&s);
}

static void fit_attention_of(OrrFitWork *w, OrrDtype dtype, bool is_causal, bool is_back) {
    static const char *const variants[2][2] = {{"full", "full.back"}, {"causal", "causal.back"}};
    Series s;
    begin(&s, w, ORR_K_ATTENTION, dtype, variants[is_causal][is_back]);
    s.scale = is_back ? ORR_ATTN_BACKWARD_FLOPS : 1;
    for (guint i = 0; i < w->rows->rows->len; i++) {
        const OrrRecordRow *row = &g_array_index(w->rows->rows, OrrRecordRow, i);
        if (row->c.kind == ORR_CASE_ATTENTION && row->c.dtype == dtype &&
            !!row->c.is_causal == is_causal && (row->c.pass != ORR_PASS_FORWARD) == is_back)
            add(&s, attention_row(row, s.scale), i);
    }
    fit_series(w, &s);
    end(&s);
}

/* Batched and grouped products against the surface of plain ones: one factor each. */
static double fit_batches(OrrFitWork *w, OrrCaseKind kind, OrrKernelKind as) {
    GArray *rows = w->rows->rows;
    g_autofree double *frac = g_new(double, rows->len + 1);
    g_autofree double *fitted = g_new0(double, rows->len + 1);
    guint n = 0;
    for (guint i = 0; i < rows->len; i++) {
        const OrrRecordRow *row = &g_array_index(rows, OrrRecordRow, i);
        const OrrSurface *surface = orr_surface_find(w->fit->set, ORR_K_GEMM, row->c.dtype, "");
        if (row->c.kind != kind || !surface)
            continue;
        FitForm form = {.kind = ORR_K_GEMM};
        FitRow fit_row = product_row(row);
        fitted[i] = fit_form_fitted_ns(&form, surface, &fit_row);
        frac[n++] = fitted[i] / row->ns;
    }
    double median = orr_fit__median(frac, n);
    for (guint i = 0; i < rows->len; i++) {
        const OrrRecordRow *row = &g_array_index(rows, OrrRecordRow, i);
        if (fitted[i] > 0)
            orr_fit__point(w, orr_kernel_kind_name(as), orr_case_flops(&row->c), row, row->ns,
                           fitted[i] / median);
    }
    return median;
}

void orr_fit__products(OrrFitWork *w) {
    OrrSurfaceSet *set = w->fit->set;
    set->surfaces = g_new0(OrrSurface, MAX_SURFACES);
    for (int d = 0; d < ORR_N_DTYPES; d++)
        fit_products_of(w, (OrrDtype)d);
    for (int d = 0; d < ORR_N_DTYPES; d++)
        for (int variant = 0; variant < 4; variant++)
            fit_attention_of(w, (OrrDtype)d, variant >> 1, variant & 1);
    set->rates.batched_frac = fit_batches(w, ORR_CASE_BATCHED_GEMM, ORR_K_BATCHED_GEMM);
    set->rates.grouped_frac = fit_batches(w, ORR_CASE_GROUPED_GEMM, ORR_K_GROUPED_GEMM);
}
