#include "config.h"

#include "sim/api/share.h"

#include "sim/api/share_price.h"
#include "sim/base/parallel.h"
#include "sim/base/stats.h"
#include "sim/job/money.h"
#include "workloads/loader_run.h"

#include <math.h>
#include <string.h>

#define NORMAL_95 1.959964 /* Abramowitz and Stegun 1964, table 26.1: quantile 0.975 */

#define MUCH_FRAC 0.05 /* ours: a share that is worth a word */

enum { N_FIGURES = 13 };
static const char *const figure_names[N_FIGURES][2] = {
    {"makespan_ns", "ns"},
    {"wait_mean_ns", "ns"},
    {"wait_p95_ns", "ns"},
    {"utilisation_frac", ""},
    {"goodput_frac", ""},
    {"gpu_hours", "h"},
    {"lost_gpu_hours", "h"},
    {"node_failures", ""},
    {"node_reclaims", ""},
    {"evictions", ""},
    {"cost_usd", "USD"},
    {"cluster_usd", "USD"},
    {"usd_per_useful_gpu_hour", "USD"},
};

struct OrrShareRun {
    const OrrShareRequest *request;
    OrrShareFile *file;
    OrrPrices *money;       /* NULL: none */
    OrrSharePrices *prices; /* of steps */
    OrrSources *sources;
    OrrShareReport report;
    double *figures;         /* N_FIGURES x n_seeds */
    double *waited, *end_ns; /* n_jobs x n_seeds */
};

/* Overrides of groups that only the job files have would reach all of them or none: the table has
 * a column for them. */
static bool check_overrides(const OrrShareRequest *q, GError **error) {
    static const char *const others[] = {"cluster", "node",   "gpu",     "prices", "rented",
                                         "owned",   "energy", "storage", NULL};
    for (uint32_t i = 0; i < q->n_overrides; i++) {
        const char *group = q->overrides[i].group;
        if (!orr_share_file_owns(group) && !g_strv_contains(others, group))
            return orr_fail_input(
                error,
                "--set %s.%s: there is no group [%s] here; share, failures, spot, "
                "store, cluster, node, gpu and those of prices would do; keys of "
                "jobs go to the column set of the table",
                group, q->overrides[i].key, group);
    }
    return true;
}

static bool load_money(OrrShareRun *run, GError **error) {
    const OrrShareRequest *q = run->request;
    OrrShareFile *f = run->file;
    OrrShareReport *r = &run->report;
    if (*f->prices_ref == '\0')
        return true;
    run->money =
        orr_workload_prices(f->prices_ref, q->overrides, q->n_overrides, run->sources, error);
    if (!run->money)
        return false;
    const OrrPrices *p = run->money;
    r->usd_per_gpu_h = orr_price_gpu_h(p, f->contract) + orr_price_power_gpu_h(p, f->contract);
    r->usd_per_spot_gpu_h = f->spec->spot_classes ? orr_price_gpu_h(p, ORR_CONTRACT_SPOT) : 0;
    if (!(r->usd_per_gpu_h >= 0) || !(r->usd_per_spot_gpu_h >= 0)) {
        g_autofree char *offers = orr_price_offers(p);
        return orr_fail_input(error,
                              "%s: prices %s have none of contract %s; they have %s; one of "
                              "these or other prices would do",
                              f->name, p->name,
                              r->usd_per_gpu_h >= 0 ? "spot" : orr_contract_names[f->contract],
                              offers);
    }
    r->prices = g_strdup(p->name);
    r->prices_date = g_strdup(p->date);
    if (f->has_reclaim || !f->spec->spot_classes)
        return true;
    f->spec->reclaim_mtbf_ns = p->reclaim_node_h * 3600e9;
    f->spec->reclaim_notice_ns = p->reclaim_notice_ns;
    f->spec->reclaim_wait_ns = p->reclaim_wait_ns;
    return true;
}

static void make_head(OrrShareRun *run) {
    OrrRecord *h = run->report.head = orr_record_new();
    const OrrShareRequest *q = run->request;
    h->seed = q->seed;
    orr_record_set(&h->version, PACKAGE_VERSION);
    orr_record_set(&h->calibration, q->calibration ? q->calibration : "");
    for (guint i = 0; i < run->sources->inputs->len; i++) {
        const OrrInput *in = run->sources->inputs->pdata[i];
        orr_record_add_input(h, in->name, in->sha256);
    }
    for (guint i = 0; i < run->sources->assumptions->len; i++) {
        const OrrAssumption *a = run->sources->assumptions->pdata[i];
        orr_record_add_assumption(h, a->key, a->value, a->origin);
    }
    for (uint32_t i = 0; i < q->n_overrides; i++) {
        const OrrOverride *o = &q->overrides[i];
        g_autofree char *text = g_strdup_printf("%s.%s=%s", o->group, o->key, o->value);
        orr_record_add_override(h, text);
    }
}

static bool prepare(OrrShareRun *run, GError **error) {
    const OrrShareRequest *q = run->request;
    OrrShareReport *r = &run->report;
    if (!check_overrides(q, error))
        return false;
    run->file = orr_workload_share(q->share, q->overrides, q->n_overrides, run->sources, error);
    if (!run->file || !load_money(run, error))
        return false;
    OrrShareSpec *s = run->file->spec;
    g_autofree OrrOverride *machine = g_new0(OrrOverride, q->n_overrides + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < q->n_overrides; i++)
        if (g_str_equal(q->overrides[i].group, "cluster") ||
            g_str_equal(q->overrides[i].group, "node") || g_str_equal(q->overrides[i].group, "gpu"))
            machine[n++] = q->overrides[i];
    run->prices = orr_share_prices_new(s, machine, n, q->calibration, run->sources, error);
    if (!run->prices || !orr_share_check(s, error))
        return false;
    r->is_drawn = orr_share_is_drawn(s);
    if (q->n_seeds > 1 && !r->is_drawn)
        return orr_fail_usage(error,
                              "%s: nothing depends on the seed, so --seeds does not apply; "
                              "[failures] node_mtbf or [spot] would make it",
                              run->file->name);
    make_head(run);
    r->name = g_strdup(run->file->name);
    r->summary = g_strdup(run->file->summary);
    r->contract = orr_contract_names[run->file->contract];
    r->spec = s;
    r->n_seeds = q->n_seeds;
    if (!r->prices) {
        r->prices = g_strdup("");
        r->prices_date = g_strdup("");
    }
    return true;
}

OrrShareRun *orr_share_prepare(const OrrShareRequest *request, GError **error) {
    g_assert(request->n_seeds > 0);
    g_autoptr(OrrShareRun) run = g_new0(OrrShareRun, 1);
    run->request = request;
    run->sources = orr_sources_new();
    return prepare(run, error) ? g_steal_pointer(&run) : NULL;
}

void orr_share_free(OrrShareRun *run) {
    if (!run)
        return;
    OrrShareReport *r = &run->report;
    for (uint32_t i = 0; i < r->n_figures; i++)
        g_free(r->figures[i].name), g_free(r->figures[i].unit);
    g_free(r->name), g_free(r->summary), g_free(r->prices), g_free(r->prices_date);
    g_free(r->results), g_free(r->spreads), g_free(r->figures);
    orr_record_free(r->head);
    g_free(run->figures), g_free(run->waited), g_free(run->end_ns);
    orr_share_prices_free(run->prices);
    orr_prices_free(run->money);
    orr_share_file_free(run->file);
    orr_sources_free(run->sources);
    g_free(run);
}

/* GPU-hours that are paid for: all of each node, those of spot only while they are there. */
static double cluster_usd(const OrrShareReport *r, const OrrShareAccount *a) {
    const OrrShareSpec *s = r->spec;
    uint32_t spot = 0;
    for (uint32_t i = 0; i < s->n_nodes; i++)
        spot += orr_share_node_is_spot(s, i);
    double node_h = (double)a->makespan_ns / 3600e9 * s->gpus_per_node;
    double away = orr_share_gpu_hours(s, a->part[ORR_SHARE_RECLAIMED]);
    return node_h * (s->n_nodes - spot) * r->usd_per_gpu_h +
           (node_h * spot - away) * r->usd_per_spot_gpu_h;
}

static double ratio(double a, double b) {
    return b > 0 ? a / b : 0;
}

/* The figures of one seed, in the order of their names. */
static void figures_of(const OrrShareRun *run, const OrrShareResult *results,
                       const OrrShareAccount *a, const double *waited, double *x) {
    const OrrShareReport *r = &run->report;
    const OrrShareSpec *s = r->spec;
    double all = orr_share_gpu_hours(s, (OrrUnitNs)a->units * a->makespan_ns), held = 0, usd = 0;
    double useful = orr_share_gpu_hours(s, a->part[ORR_SHARE_USEFUL]);
    double spread = orr_share_gpu_hours(s, a->part[ORR_SHARE_SPREAD]), evictions = 0;
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        held += orr_share_gpu_hours(s, results[i].unit_ns);
        usd += orr_share_usd(r, &results[i]);
        evictions += results[i].preemptions + results[i].reclaims + results[i].failures;
    }
    double cluster = cluster_usd(r, a);
    const double values[N_FIGURES] = {(double)a->makespan_ns,
                                      orr_stats_mean(waited, s->n_jobs),
                                      orr_stats_percentile(waited, s->n_jobs, 0.95),
                                      ratio(held, all),
                                      ratio(useful, all),
                                      held,
                                      held - useful - spread,
                                      (double)a->node_failures,
                                      (double)a->node_reclaims,
                                      evictions,
                                      usd,
                                      cluster,
                                      ratio(cluster, useful)};
    memcpy(x, values, sizeof values);
}

/* Seeds in parallel: each is a function of the spec and its number. */
typedef struct {
    OrrShareRun *run;
    gint is_stopped; /* atomic: no further seed is begun */
    GMutex lock;
    GError *error;
} Work;

static bool simulate(OrrShareRun *run, uint32_t i, const OrrShareProbe *probe, GError **error) {
    OrrShareReport *r = &run->report;
    const OrrShareSpec *s = r->spec;
    OrrSharePricer pricer = {orr_share_prices_step_ns, run->prices};
    OrrShareOptions options = {run->request->seed + i, &pricer, probe};
    g_autofree OrrShareResult *results = g_new0(OrrShareResult, s->n_jobs + 1);
    OrrShareAccount account;
    if (!orr_share_simulate(s, &options, results, &account, error))
        return false;
    double *waited = run->waited + (gsize)i * s->n_jobs,
           *end_ns = run->end_ns + (gsize)i * s->n_jobs;
    for (uint32_t k = 0; k < s->n_jobs; k++) {
        waited[k] = (double)results[k].waited_ns;
        end_ns[k] = (double)results[k].end_ns;
    }
    figures_of(run, results, &account, waited, run->figures + (gsize)i * N_FIGURES);
    if (i > 0 || r->results)
        return true;
    r->results = g_steal_pointer(&results);
    r->account = account;
    return true;
}

static void run_piece(void *data, uint32_t i) {
    Work *w = data;
    GError *flaw = NULL;
    if (g_atomic_int_get(&w->is_stopped) || simulate(w->run, i, NULL, &flaw))
        return;
    g_mutex_lock(&w->lock);
    if (w->error)
        g_error_free(flaw);
    else
        w->error = flaw;
    g_mutex_unlock(&w->lock);
    g_atomic_int_set(&w->is_stopped, 1);
}

static void spread(const OrrShareRun *run, OrrShareReport *r) {
    uint32_t n = r->n_seeds, n_jobs = r->spec->n_jobs;
    g_autofree double *x = g_new(double, n + 1), *y = g_new(double, n + 1);
    for (uint32_t f = 0; f < N_FIGURES; f++) {
        for (uint32_t i = 0; i < n; i++)
            x[i] = run->figures[(gsize)i * N_FIGURES + f];
        r->figures[f] = (OrrRunFigure){.name = g_strdup(figure_names[f][0]),
                                       .unit = g_strdup(figure_names[f][1]),
                                       .mean = orr_stats_mean(x, n),
                                       .deviation = orr_stats_deviation(x, n),
                                       .p5 = orr_stats_percentile(x, n, 0.05),
                                       .p50 = orr_stats_percentile(x, n, 0.50),
                                       .p95 = orr_stats_percentile(x, n, 0.95)};
        r->figures[f].ci95 = NORMAL_95 * r->figures[f].deviation / sqrt(n);
    }
    for (uint32_t k = 0; k < n_jobs; k++) {
        for (uint32_t i = 0; i < n; i++) {
            x[i] = run->waited[(gsize)i * n_jobs + k];
            y[i] = run->end_ns[(gsize)i * n_jobs + k];
        }
        r->spreads[k] = (OrrShareJobSpread){
            orr_stats_mean(x, n), orr_stats_percentile(x, n, 0.5), orr_stats_percentile(x, n, 0.95),
            orr_stats_percentile(y, n, 0.5), orr_stats_percentile(y, n, 0.95)};
    }
}

/* What was priced becomes part of what the answer rests on. */
static void note_priced(void *data, uint32_t job, uint32_t racks, uint32_t blocks,
                        int64_t step_ns) {
    OrrShareRun *run = data;
    const OrrShareJob *j = &run->report.spec->jobs[job];
    g_autofree char *key = g_strdup_printf("step of %s (%s, %u GPUs) over %u rack%s, %u block%s",
                                           j->name, j->job_ref, MAX(j->gpus, 1), racks,
                                           racks > 1 ? "s" : "", blocks, blocks > 1 ? "s" : "");
    g_autofree char *value = orr_units_time(step_ns);
    orr_record_add_assumption(run->report.head, key, value, "simulated");
}

/* What an operator would look at first. */
static void warn(OrrShareReport *r) {
    const OrrShareSpec *s = r->spec;
    const OrrShareAccount *a = &r->account;
    double all = (double)a->units * (double)a->makespan_ns, held = 0;
    uint32_t n_over = 0;
    for (int o = 0; o < ORR_SHARE_DOWN; o++)
        held += (double)a->part[o];
    for (uint32_t i = 0; i < s->n_jobs; i++)
        n_over += s->jobs[i].limit_ns > 0 && r->results[i].preemptions == 0 &&
                  r->results[i].failures == 0 && r->results[i].reclaims == 0 &&
                  r->results[i].ran_ns > s->jobs[i].limit_ns;
    if (n_over > 0)
        orr_record_add_warning(r->head, "over_limit",
                               "%u jobs ran longer than their limit: what the scheduler promised "
                               "to others did not hold; longer limits would do",
                               n_over);
    if ((double)a->part[ORR_SHARE_FRAGMENTED] > MUCH_FRAC * all)
        orr_record_add_warning(
            r->head, "fragmented",
            "%.0f %% of the cluster is idle although as many GPUs are free as the "
            "first in the queue wants: they lie in the wrong places; jobs of whole "
            "nodes, or place = any, would do",
            100 * (double)a->part[ORR_SHARE_FRAGMENTED] / all);
    if ((double)a->part[ORR_SHARE_SAVE] > MUCH_FRAC * held)
        orr_record_add_warning(
            r->head, "store_slow",
            "jobs stand for checkpoints %.0f %% of the time that they hold GPUs; "
            "asynchronous ones, longer intervals or a faster store would do",
            100 * (double)a->part[ORR_SHARE_SAVE] / held);
    if ((double)a->part[ORR_SHARE_REWORK] > MUCH_FRAC * held)
        orr_record_add_warning(
            r->head, "rework",
            "%.0f %% of the GPU-hours held are work done twice; checkpoints more "
            "often, or that fit in the notice, would do",
            100 * (double)a->part[ORR_SHARE_REWORK] / held);
}

bool orr_share_execute(OrrShareRun *run, void (*progress)(void *data, uint64_t done),
                       void *progress_data, GError **error) {
    OrrShareReport *r = &run->report;
    gsize n = r->n_seeds, n_jobs = r->spec->n_jobs;
    run->figures = g_new0(double, n *N_FIGURES);
    run->waited = g_new0(double, n *n_jobs + 1);
    run->end_ns = g_new0(double, n *n_jobs + 1);
    r->figures = g_new0(OrrRunFigure, N_FIGURES);
    r->spreads = g_new0(OrrShareJobSpread, n_jobs + 1);
    Work w = {.run = run};
    OrrParallelProgress told = {progress, progress_data};
    g_mutex_init(&w.lock);
    orr_parallel(run->request->n_seeds, run->request->n_threads, run_piece, &w, &told);
    g_mutex_clear(&w.lock);
    if (w.error) {
        g_propagate_prefixed_error(error, w.error, "%s: ", r->name);
        return false;
    }
    if (!orr_share_prices_sound(run->prices, error)) {
        g_prefix_error(error, "%s: ", r->name);
        return false;
    }
    r->n_figures = N_FIGURES;
    spread(run, r);
    orr_share_prices_each(run->prices, note_priced, run);
    warn(r);
    return true;
}

const OrrShareReport *orr_share_report(const OrrShareRun *run) {
    return &run->report;
}

bool orr_share_replay(OrrShareRun *run, const OrrShareProbe *probe, GError **error) {
    return simulate(run, 0, probe, error);
}
