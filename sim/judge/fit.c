#include "sim/judge/fit.h"

#include "sim/collective/timed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PARAMETERS 96
#define N_ITERATIONS 100 /* ours: it settles in twenty or so */
#define PROBE 0.02       /* ours: relative step of the numeric derivative */
#define TELLS 2          /* ours: rows that weigh less against the prior tell nothing */
#define WIRE_MARGIN 1.02 /* ours: clocks and rounding of printed times */
/* An outlier is off by a factor and by so many standard deviations of the others; where more than a
 * share of the rows were one, it is the machine that differs, and all are kept. */
#define OUTLIER_FACTOR 2.0     /* ours: repeats scatter less, hiccups of a host more */
#define OUTLIER_DEVIATIONS 6.0 /* ours */
#define OUTLIER_SHARE 0.1      /* ours */
#define MAD_TO_SD 1.4826       /* of normal errors: 1 / the normal quantile of 3/4 */
/* Pull to the shipped value: a parameter e times off costs as much as so many rows that are off as
 * rows are on average; at most as if that were 3 %, the scatter of repeats. */
#define PRIOR_ROWS 5.0
#define PRIOR_MOST (PRIOR_ROWS * 0.03 * 0.03)

typedef struct {
    const OrrFitTable *table;
    uint32_t row; /* of the table */
    OrrNcclForce force;
    int64_t bytes;
    OrrDtype dtype;
    double ns;
} Row;

typedef struct {
    OrrFit *fit;
    GArray *rows, *held; /* Row: fitted, and of other sizes */
    double *at[MAX_PARAMETERS];
    char *name[MAX_PARAMETERS];
    double start[MAX_PARAMETERS];
    bool is_share[MAX_PARAMETERS]; /* at most 1 */
    uint32_t n;
    double prior; /* weight of a squared log off the shipped value */
} Work;

static double predict(const Work *w, const Row *row) {
    OrrNcclForce force = row->force;
    OrrCollPlan plan;
    force.constants = &w->fit->constants;
    if (!orr_collective_plan(row->table->table->kind, row->bytes, row->dtype, &row->table->place,
                             &force, &plan, NULL))
        return 0;
    /* without the rounding to whole ns, for the derivatives */
    double ns = (double)plan.latency_ns + (double)row->bytes / plan.bytes_per_s * 1e9;
    double seen_ns = orr_collective_timed_ns(&plan, row->bytes, &row->table->place,
                                             row->table->table->timed, &w->fit->constants);
    return row->table->table->timed == ORR_TIMED_RANKS ? ns : seen_ns;
}

/* One a row, and one a parameter for its distance from where it started. */
static guint n_residuals(const Work *w) {
    return w->rows->len + w->n;
}

static void residuals(const Work *w, double *r) {
    for (guint i = 0; i < w->rows->len; i++) {
        const Row *row = &g_array_index(w->rows, Row, i);
        r[i] = log(predict(w, row) / row->ns);
    }
    for (uint32_t p = 0; p < w->n; p++)
        r[w->rows->len + p] = sqrt(w->prior) * log(*w->at[p] / w->start[p]);
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
    w->is_share[w->n] = g_str_has_suffix(key, "_frac");
    w->name[w->n++] = g_strdup_printf("%s.%s", group, key);
}

static void offer_law(Work *w, const char *arch, const char *law, OrrCollLaw *at) {
    g_autofree char *group = g_strdup_printf("%s.%s", arch, law);
    offer(w, group, "launch_ns", &at->launch_ns);
    offer(w, group, "step_ns", &at->step_ns);
    offer(w, group, "eff_frac", &at->eff_frac);
    offer(w, group, "full_ratio", &at->full_frac);
    offer(w, group, "full_bytes", &at->full_bytes);
}

static void offer_pcie(Work *w) {
    for (int p = 0; p < ORR_N_PROTOS; p++)
        offer_law(w, "pcie", orr_proto_name((OrrProto)p), &w->fit->constants.pcie[p]);
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
    offer(w, name, "copy_bytes_per_s", &a->copy_bytes_per_s);
    offer(w, name, "pair_copy_bytes_per_s", &a->pair_copy_bytes_per_s);
    offer(w, name, "nvls_channels", &a->nvls_channels);
    offer(w, name, "nvls_tree_two_frac", &a->nvls_tree_frac[0]);
    offer(w, name, "nvls_tree_more_frac", &a->nvls_tree_frac[1]);
}

static void offer_net(Work *w, OrrNet net) {
    OrrCollNet *n = &w->fit->constants.net[net];
    const char *name = orr_net_names[net];
    for (int p = 0; p < ORR_N_PROTOS; p++) {
        g_autofree char *key = g_strdup_printf("step_ns.%s", orr_proto_name((OrrProto)p));
        offer(w, name, key, &n->step_ns[p]);
        g_autofree char *tree = g_strdup_printf("tree_step_ns.%s", orr_proto_name((OrrProto)p));
        offer(w, name, tree, &n->tree_step_ns[p]);
    }
    offer(w, name, "launch_ns", &n->launch_ns);
    offer(w, name, "message_ns", &n->message_ns);
    offer(w, name, "eff_frac", &n->eff_frac);
    offer(w, name, "ll_bytes_per_s", &n->ll_bytes_per_s);
}

static void offer_all(Work *w, const OrrFitTable *tables, uint32_t n_tables) {
    uint32_t archs = 0, nets = 0;
    unsigned lone = 0; /* bits: groups of one GPU a domain, of more */
    bool has_pcie = false, has_sends = false, has_host = false;
    for (uint32_t t = 0; t < n_tables; t++) {
        const OrrCommPlace *p = &tables[t].place;
        if (!(archs >> p->arch & 1))
            offer_arch(w, p->arch);
        archs |= 1u << p->arch;
        if (p->n_domains > 1 && !(nets >> p->net & 1))
            offer_net(w, p->net);
        nets |= p->n_domains > 1 ? 1u << p->net : 0;
        has_pcie = has_pcie || p->nvlink == ORR_NVLINK_NONE;
        has_host = has_host || tables[t].table->timed == ORR_TIMED_ONE_PROCESS;
        has_sends = has_sends || tables[t].table->kind == ORR_SEND_RECV;
        lone |= p->n_domains > 1 ? 1 << (p->max_per_domain > 1) : 0;
    }
    if (has_pcie)
        offer_pcie(w);
    if (has_sends)
        offer(w, "send", "eff_frac", &w->fit->constants.send_eff_frac);
    if (has_host) {
        offer(w, "host", "launch_ns", &w->fit->constants.host_launch_ns);
        offer(w, "host", "channel_ns", &w->fit->constants.host_channel_ns);
    }
    if (lone == 3) /* else it is not told from the network's own share */
        offer(w, "lone", "eff_frac", &w->fit->constants.lone_eff_frac);
}

/* Leaves what no row tells. */
static void keep_told(Work *w) {
    guint n_rows = w->rows->len;
    g_autofree double *base = g_new(double, n_residuals(w));
    g_autofree double *moved = g_new(double, n_residuals(w));
    uint32_t n = 0;
    residuals(w, base);
    for (uint32_t p = 0; p < w->n; p++) {
        double sum = 0;
        *w->at[p] = w->start[p] * exp(-PROBE);
        residuals(w, moved);
        *w->at[p] = w->start[p];
        for (guint i = 0; i < n_rows; i++)
            sum += (moved[i] - base[i]) * (moved[i] - base[i]) / PROBE / PROBE;
        if (sum < TELLS * PRIOR_MOST) {
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
    guint n_rows = n_residuals(w);
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
    guint n_rows = n_residuals(w);
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

/* What the wires carry at most, as bus bandwidth; 0: the bound depends on the algorithm. NVLS may
 * be above one link's rate, because the switch reduces; rings and pairs may not. */
static double wire_bytes_per_s(const OrrFitTable *t) {
    const OrrCommPlace *p = &t->place;
    if (t->table->kind == ORR_ALL_REDUCE && p->has_nvls)
        return 2 * p->nvlink_bytes_per_s;
    if (p->n_domains > 1 && p->max_per_domain > 1)
        return 0; /* hierarchical */
    return p->n_domains > 1 ? p->nic_bytes_per_s * p->nics_per_domain
                            : fmax(p->nvlink_bytes_per_s, p->pcie_bytes_per_s);
}

static bool is_impossible(Work *w, const OrrFitTable *t, const OrrMeasuredCollective *row,
                          double ns) {
    double wire = wire_bytes_per_s(t);
    double busbw =
        (double)row->bytes / ns * 1e9 * orr_measured_bus_factor(t->table->kind, t->place.n_ranks);
    if (wire <= 0 || busbw <= WIRE_MARGIN * wire)
        return false;
    w->fit->n_refused++;
    g_ptr_array_add(w->fit->notes,
                    g_strdup_printf("%s:%u: %s of %" G_GINT64_FORMAT " bytes: %.0f GB/s on the "
                                    "bus, faster than the link (%.0f GB/s%s); not used",
                                    t->table->name, row->line, orr_collective_name(t->table->kind),
                                    row->bytes, busbw / 1e9, wire / 1e9,
                                    t->table->kind == ORR_ALL_REDUCE && t->place.has_nvls
                                        ? ", twice a wire with NVLS"
                                        : ""));
    return true;
}

/* NCCL's choice does not depend on what is fitted: it is taken once. */
static bool choose(Row *row) {
    OrrCollPlan plan;
    if (!orr_collective_plan(row->table->table->kind, row->bytes, row->dtype, &row->table->place,
                             &row->table->force, &plan, NULL))
        return false;
    row->force = row->table->force;
    row->force.algo = plan.algo;
    row->force.proto = plan.proto;
    return true;
}

static void take_rows(Work *w, const OrrFitTable *t, const OrrFitSizes *sizes) {
    for (uint32_t i = 0; i < t->table->n_rows; i++) {
        const OrrMeasuredCollective *row = &t->table->rows[i];
        Row use = {.table = t,
                   .row = i,
                   .bytes = row->bytes,
                   .dtype = row->dtype < ORR_N_DTYPES ? row->dtype : ORR_FP32,
                   .ns = orr_measured_time_ns(row)};
        if (use.ns <= 0 || row->bytes <= 0 || is_impossible(w, t, row, use.ns) || !choose(&use) ||
            predict(w, &use) <= 0)
            continue;
        bool is_held = sizes && sizes->max_bytes > 0 &&
                       (row->bytes < sizes->min_bytes || row->bytes > sizes->max_bytes);
        g_array_append_val(is_held ? w->held : w->rows, use);
    }
}

static double mean_error(const Work *w, const GArray *rows) {
    double sum = 0;
    for (guint i = 0; i < rows->len; i++) {
        const Row *row = &g_array_index(rows, Row, i);
        sum += fabs(predict(w, row) / row->ns - 1);
    }
    return rows->len ? sum / rows->len : 0;
}

/* Before and after the fit, row by row: fitted ones, then those held out. */
static void note_calls(Work *w, bool is_after) {
    OrrFit *fit = w->fit;
    uint32_t n = 0;
    for (int held = 0; held < 2; held++) {
        const GArray *rows = held ? w->held : w->rows;
        for (guint i = 0; i < rows->len; i++, n++) {
            const Row *row = &g_array_index(rows, Row, i);
            OrrFitCall *call = &fit->calls[n];
            double ns = predict(w, row);
            if (is_after)
                call->after_ns = ns;
            else
                *call = (OrrFitCall){
                    row->table, row->row, row->force.algo, row->force.proto, held, row->ns, ns, ns};
        }
    }
}

static void sum_laws(OrrFit *fit) {
    OrrFitLaw all[ORR_N_ALGOS][ORR_N_PROTOS] = {0};
    for (uint32_t i = 0; i < fit->n_rows; i++) {
        const OrrFitCall *call = &fit->calls[i];
        OrrFitLaw *law = &all[call->algo][call->proto];
        law->n_rows++;
        law->before_frac += fabs(call->before_ns / call->measured_ns - 1);
        law->after_frac += fabs(call->after_ns / call->measured_ns - 1);
    }
    fit->laws = g_new0(OrrFitLaw, ORR_N_ALGOS * ORR_N_PROTOS);
    for (int a = 0; a < ORR_N_ALGOS; a++)
        for (int p = 0; p < ORR_N_PROTOS; p++) {
            OrrFitLaw law = all[a][p];
            if (!law.n_rows)
                continue;
            law.algo = (OrrAlgo)a, law.proto = (OrrProto)p;
            law.before_frac /= law.n_rows, law.after_frac /= law.n_rows;
            fit->laws[fit->n_laws++] = law;
        }
}

/* Rows that are met better than repeats scatter hold the prior less. */
static void loosen(Work *w) {
    g_autofree double *r = g_new(double, n_residuals(w));
    residuals(w, r);
    double mean = sum_of_squares(r, w->rows->len) / w->rows->len;
    w->prior = fmin(PRIOR_MOST, PRIOR_ROWS * mean);
}

static void note_outlier(Work *w, const Row *row, double off) {
    const OrrMeasuredTable *t = row->table->table;
    char times[32];
    g_ascii_formatd(times, sizeof times, "%.1f", exp(fabs(off)));
    g_ptr_array_add(w->fit->notes,
                    g_strdup_printf("%s:%u: %s of %" G_GINT64_FORMAT " bytes: %s times as %s as "
                                    "the others let expect, an outlier; not used",
                                    t->name, t->rows[row->row].line, orr_collective_name(t->kind),
                                    row->bytes, times, off < 0 ? "long" : "short"));
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Takes out rows that a hiccup of the machine made, as the fit with them shows. True: some. */
static bool drop_outliers(Work *w) {
    guint n = w->rows->len, n_out = 0;
    g_autofree double *r = g_new(double, n_residuals(w)), *sizes = g_new(double, n);
    residuals(w, r);
    for (guint i = 0; i < n; i++)
        sizes[i] = fabs(r[i]);
    qsort(sizes, n, sizeof *sizes, by_value);
    double limit = fmax(log(OUTLIER_FACTOR), OUTLIER_DEVIATIONS * MAD_TO_SD * sizes[n / 2]);
    for (guint i = 0; i < n; i++)
        n_out += sizes[i] > limit;
    if (n_out == 0 || w->fit->n_outliers + n_out > OUTLIER_SHARE * (w->fit->n_outliers + n))
        return false;
    for (guint i = 0, to = 0; i < n; i++) {
        Row *row = &g_array_index(w->rows, Row, i);
        if (fabs(r[i]) > limit)
            note_outlier(w, row, r[i]);
        else
            g_array_index(w->rows, Row, to++) = *row;
    }
    g_array_set_size(w->rows, n - n_out);
    w->fit->n_outliers += n_out;
    return true;
}

/* From the shipped constants on, with the rows that are left. */
static void fit_once(Work *w, const OrrFitTable *tables, uint32_t n_tables) {
    OrrFit *fit = w->fit;
    while (w->n > 0)
        g_free(w->name[--w->n]);
    fit->constants = *orr_coll_constants_default();
    w->prior = PRIOR_MOST;
    fit->n_rows = w->rows->len;
    note_calls(w, false);
    fit->before_frac = mean_error(w, w->rows);
    fit->held_before_frac = mean_error(w, w->held);
    offer_all(w, tables, n_tables);
    keep_told(w);
    descend(w);
    loosen(w);
    descend(w);
}

static void fit_rows(Work *w, const OrrFitTable *tables, uint32_t n_tables) {
    OrrFit *fit = w->fit;
    fit->calls = g_new0(OrrFitCall, w->rows->len + w->held->len);
    do
        fit_once(w, tables, n_tables);
    while (drop_outliers(w));
    note_calls(w, true);
    fit->after_frac = mean_error(w, w->rows);
    fit->held_after_frac = mean_error(w, w->held);
    fit->parameters = g_new0(OrrFitParameter, w->n + 1);
    fit->n_parameters = w->n;
    for (uint32_t p = 0; p < w->n; p++)
        fit->parameters[p] = (OrrFitParameter){w->name[p], w->start[p], *w->at[p]};
    sum_laws(fit);
}

OrrFit *orr_judge_fit(const OrrFitTable *tables, uint32_t n_tables, const OrrFitSizes *sizes,
                      GError **error) {
    g_autoptr(OrrFit) fit = g_new0(OrrFit, 1);
    Work w = {.fit = fit,
              .rows = g_array_new(FALSE, FALSE, sizeof(Row)),
              .held = g_array_new(FALSE, FALSE, sizeof(Row))};
    fit->constants = *orr_coll_constants_default();
    fit->notes = g_ptr_array_new_with_free_func(g_free);
    for (uint32_t t = 0; t < n_tables; t++)
        take_rows(&w, &tables[t], sizes);
    fit->n_rows = w.rows->len;
    fit->n_held = w.held->len;
    if (fit->n_rows > 0)
        fit_rows(&w, tables, n_tables);
    else
        orr_fail_input(error, "no row of a collective that a fit could use%s",
                       fit->n_held ? " within the sizes" : "");
    bool is_done = fit->n_rows > 0;
    g_array_unref(w.rows);
    g_array_unref(w.held);
    return is_done ? g_steal_pointer(&fit) : NULL;
}

void orr_fit_free(OrrFit *fit) {
    if (!fit)
        return;
    for (uint32_t i = 0; i < fit->n_parameters; i++)
        g_free(fit->parameters[i].name);
    g_free(fit->parameters);
    g_free(fit->calls);
    g_free(fit->laws);
    g_ptr_array_unref(fit->notes);
    g_free(fit);
}
