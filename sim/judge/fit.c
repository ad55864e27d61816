#include "sim/judge/fit.h"

#include <math.h>
#include <string.h>

#define MAX_PARAMETERS 48
#define N_ITERATIONS 60  /* ours: it settles in about ten */
#define PROBE 0.02       /* ours: relative step of the numeric derivative */
#define TELLS_FRAC 0.002 /* ours: a parameter that moves times by less is not told */
#define WIRE_MARGIN 1.02 /* ours: clocks and rounding of printed times */

typedef struct {
    const OrrFitTable *table;
    int64_t bytes;
    OrrDtype dtype;
    double ns;
} Row;

typedef struct {
    OrrFit *fit;
    GArray *rows; /* Row */
    double *at[MAX_PARAMETERS];
    char *name[MAX_PARAMETERS];
    double start[MAX_PARAMETERS];
    bool is_share[MAX_PARAMETERS]; /* at most 1 */
    uint32_t n;
} Work;

static double predict(const Work *w, const Row *row) {
    OrrNcclForce force = row->table->force;
    OrrCollPlan plan;
    force.constants = &w->fit->constants;
    if (!orr_collective_plan(row->table->table->kind, row->bytes, row->dtype, &row->table->place,
                             &force, &plan, NULL))
        return 0;
    /* without the rounding to whole ns, for the derivatives */
    return (double)plan.latency_ns + (double)row->bytes / plan.bytes_per_s * 1e9;
}

static void residuals(const Work *w, double *r) {
    for (guint i = 0; i < w->rows->len; i++) {
        const Row *row = &g_array_index(w->rows, Row, i);
        r[i] = log(predict(w, row) / row->ns);
    }
}

static double sum_of_squares(const double *r, guint n) {
    double sum = 0;
    for (guint i = 0; i < n; i++)
        sum += r[i] * r[i];
    return sum;
}

static void offer(Work *w, const char *group, const char *key, double *at) {
    if (*at <= 0 || w->n == MAX_PARAMETERS)
        return;
    w->at[w->n] = at;
    w->start[w->n] = *at;
    w->is_share[w->n] = strcmp(key, "eff_frac") == 0;
    w->name[w->n++] = g_strdup_printf("%s.%s", group, key);
}

static void offer_law(Work *w, const char *arch, const char *law, OrrCollLaw *at) {
    g_autofree char *group = g_strdup_printf("%s.%s", arch, law);
    offer(w, group, "launch_ns", &at->launch_ns);
    offer(w, group, "step_ns", &at->step_ns);
    offer(w, group, "eff_frac", &at->eff_frac);
}

static void offer_arch(Work *w, OrrArch arch) {
    OrrCollArch *a = &w->fit->constants.arch[arch];
    const char *name = orr_arch_names[arch];
    for (int p = 0; p < ORR_N_PROTOS; p++) {
        g_autofree char *law = g_strdup_printf("ring.%s", orr_proto_name((OrrProto)p));
        offer_law(w, name, law, &a->ring[p]);
    }
    offer_law(w, name, "nvls", &a->nvls);
    offer_law(w, name, "pairs_ll", &a->pairs_ll);
    offer_law(w, name, "pairs", &a->pairs);
}

static void offer_net(Work *w, OrrNet net) {
    OrrCollNet *n = &w->fit->constants.net[net];
    const char *name = orr_net_names[net];
    for (int p = 0; p < ORR_N_PROTOS; p++) {
        g_autofree char *key = g_strdup_printf("step_ns.%s", orr_proto_name((OrrProto)p));
        offer(w, name, key, &n->step_ns[p]);
    }
    offer(w, name, "tree_step_ns", &n->tree_step_ns);
    offer(w, name, "launch_ns", &n->launch_ns);
    offer(w, name, "eff_frac", &n->eff_frac);
}

static void offer_all(Work *w, const OrrFitTable *tables, uint32_t n_tables) {
    uint32_t archs = 0, nets = 0;
    for (uint32_t t = 0; t < n_tables; t++) {
        const OrrCommPlace *p = &tables[t].place;
        if (!(archs >> p->arch & 1))
            offer_arch(w, p->arch);
        archs |= 1u << p->arch;
        if (p->n_domains > 1 && !(nets >> p->net & 1))
            offer_net(w, p->net);
        nets |= p->n_domains > 1 ? 1u << p->net : 0;
    }
}

/* Leaves what no row tells. */
static void keep_told(Work *w) {
    guint n_rows = w->rows->len;
    g_autofree double *base = g_new(double, n_rows), *moved = g_new(double, n_rows);
    uint32_t n = 0;
    residuals(w, base);
    for (uint32_t p = 0; p < w->n; p++) {
        double sum = 0;
        *w->at[p] = w->start[p] * (1 - 5 * PROBE);
        residuals(w, moved);
        *w->at[p] = w->start[p];
        for (guint i = 0; i < n_rows; i++)
            sum += fabs(moved[i] - base[i]);
        if (sum / n_rows < TELLS_FRAC) {
            g_free(w->name[p]);
            continue;
        }
        w->at[n] = w->at[p], w->name[n] = w->name[p];
        w->start[n] = w->start[p], w->is_share[n] = w->is_share[p];
        n++;
    }
    w->n = n;
}

/* Solves a x = b in place by elimination with pivots; @n rows of MAX_PARAMETERS. */
static void solve(double a[][MAX_PARAMETERS], double *b, uint32_t n) {
    for (uint32_t c = 0; c < n; c++) {
        uint32_t pivot = c;
        for (uint32_t r = c + 1; r < n; r++)
            pivot = fabs(a[r][c]) > fabs(a[pivot][c]) ? r : pivot;
        for (uint32_t k = 0; k < n; k++) {
            double swap = a[c][k];
            a[c][k] = a[pivot][k], a[pivot][k] = swap;
        }
        double swap = b[c];
        b[c] = b[pivot], b[pivot] = swap;
        for (uint32_t r = c + 1; r < n; r++) {
            double factor = a[r][c] / a[c][c];
            for (uint32_t k = c; k < n; k++)
                a[r][k] -= factor * a[c][k];
            b[r] -= factor * b[c];
        }
    }
    for (uint32_t c = n; c-- > 0;) {
        for (uint32_t k = c + 1; k < n; k++)
            b[c] -= a[c][k] * b[k];
        b[c] /= a[c][c];
    }
}

static void set_all(Work *w, const double *log_value) {
    for (uint32_t p = 0; p < w->n; p++) {
        double value = exp(log_value[p]);
        *w->at[p] = w->is_share[p] ? fmin(value, 1.0) : value;
    }
}

/* The step of one iteration, into @step, from the normal equations damped by @lambda. */
static void newton_step(Work *w, const double *r, double lambda, double *step) {
    guint n_rows = w->rows->len;
    double(*a)[MAX_PARAMETERS] = g_malloc0(MAX_PARAMETERS * sizeof *a);
    g_autofree double *jacobian = g_new(double, (gsize)n_rows * w->n);
    g_autofree double *moved = g_new(double, n_rows);
    for (uint32_t p = 0; p < w->n; p++) {
        double now = *w->at[p];
        *w->at[p] = now * exp(-PROBE);
        residuals(w, moved);
        *w->at[p] = now;
        for (guint i = 0; i < n_rows; i++)
            jacobian[(gsize)i * w->n + p] = (r[i] - moved[i]) / PROBE;
    }
    for (uint32_t p = 0; p < w->n; p++) {
        step[p] = 0;
        for (guint i = 0; i < n_rows; i++)
            step[p] -= jacobian[(gsize)i * w->n + p] * r[i];
        for (uint32_t q = 0; q < w->n; q++)
            for (guint i = 0; i < n_rows; i++)
                a[p][q] += jacobian[(gsize)i * w->n + p] * jacobian[(gsize)i * w->n + q];
        a[p][p] *= 1 + lambda;
        a[p][p] += 1e-12; /* keeps what nothing tells where it is */
    }
    solve(a, step, w->n);
    g_free(a);
}

static void descend(Work *w) {
    guint n_rows = w->rows->len;
    g_autofree double *r = g_new(double, n_rows), *tried = g_new(double, n_rows);
    double x[MAX_PARAMETERS], step[MAX_PARAMETERS], next[MAX_PARAMETERS], lambda = 1e-3;
    for (uint32_t p = 0; p < w->n; p++)
        x[p] = log(*w->at[p]);
    residuals(w, r);
    for (int i = 0; i < N_ITERATIONS && w->n > 0; i++) {
        newton_step(w, r, lambda, step);
        for (uint32_t p = 0; p < w->n; p++)
            next[p] = x[p] + fmax(-1, fmin(1, step[p]));
        set_all(w, next);
        residuals(w, tried);
        bool is_better = sum_of_squares(tried, n_rows) < sum_of_squares(r, n_rows);
        lambda = is_better ? fmax(lambda / 4, 1e-9) : lambda * 6; /* Marquardt's rule */
        if (!is_better) {
            set_all(w, x);
            continue;
        }
        memcpy(x, next, sizeof x);
        memcpy(r, tried, n_rows * sizeof *r);
    }
}

/* Above what the links carry: NVLS may (the switch reduces), rings and pairs may not. */
static bool is_impossible(const OrrFitTable *t, const OrrMeasuredCollective *row, double ns) {
    const OrrCommPlace *p = &t->place;
    double busbw =
        (double)row->bytes / ns * 1e9 * orr_measured_bus_factor(t->table->kind, p->n_ranks);
    if (t->table->kind == ORR_ALL_REDUCE && p->has_nvls)
        return busbw > 2 * WIRE_MARGIN * p->nvlink_bytes_per_s;
    if (p->n_domains > 1 && p->max_per_domain > 1)
        return false; /* hierarchical: the bound depends on the algorithm */
    double wire = p->n_domains > 1 ? p->nic_bytes_per_s * p->nics_per_domain
                                   : fmax(p->nvlink_bytes_per_s, p->pcie_bytes_per_s);
    return busbw > WIRE_MARGIN * wire;
}

static void take_rows(Work *w, const OrrFitTable *t) {
    for (uint32_t i = 0; i < t->table->n_rows; i++) {
        const OrrMeasuredCollective *row = &t->table->rows[i];
        Row use = {t, row->bytes, row->dtype < ORR_N_DTYPES ? row->dtype : ORR_FP32,
                   orr_measured_time_ns(row)};
        if (use.ns <= 0 || row->bytes <= 0)
            continue;
        if (is_impossible(t, row, use.ns)) {
            w->fit->n_refused++;
            g_ptr_array_add(w->fit->notes,
                            g_strdup_printf("%s:%u: %" G_GINT64_FORMAT " bytes: faster than the "
                                            "link; not used",
                                            t->table->name, row->line, row->bytes));
            continue;
        }
        if (predict(w, &use) > 0)
            g_array_append_val(w->rows, use);
    }
}

static double mean_error(const Work *w) {
    double sum = 0;
    for (guint i = 0; i < w->rows->len; i++) {
        const Row *row = &g_array_index(w->rows, Row, i);
        sum += fabs(predict(w, row) / row->ns - 1);
    }
    return sum / w->rows->len;
}

OrrFit *orr_judge_fit(const OrrFitTable *tables, uint32_t n_tables, GError **error) {
    g_autoptr(OrrFit) fit = g_new0(OrrFit, 1);
    Work w = {.fit = fit, .rows = g_array_new(FALSE, FALSE, sizeof(Row))};
    fit->constants = *orr_coll_constants_default();
    fit->notes = g_ptr_array_new_with_free_func(g_free);
    for (uint32_t t = 0; t < n_tables; t++)
        take_rows(&w, &tables[t]);
    fit->n_rows = w.rows->len;
    if (fit->n_rows == 0) {
        g_array_unref(w.rows);
        orr_fail_input(error, "no row that a fit could use");
        return NULL;
    }
    fit->before_frac = mean_error(&w);
    offer_all(&w, tables, n_tables);
    keep_told(&w);
    descend(&w);
    fit->after_frac = mean_error(&w);
    fit->parameters = g_new0(OrrFitParameter, w.n + 1);
    fit->n_parameters = w.n;
    for (uint32_t p = 0; p < w.n; p++)
        fit->parameters[p] = (OrrFitParameter){w.name[p], w.start[p], *w.at[p]};
    g_array_unref(w.rows);
    return g_steal_pointer(&fit);
}

void orr_fit_free(OrrFit *fit) {
    if (!fit)
        return;
    for (uint32_t i = 0; i < fit->n_parameters; i++)
        g_free(fit->parameters[i].name);
    g_free(fit->parameters);
    g_ptr_array_unref(fit->notes);
    g_free(fit);
}
