#include "sim/result/run_record.h"

#include "sim/base/stats.h"
#include "sim/base/units.h"

#include <math.h>
#include <string.h>

const char *orr_loss_name(OrrLoss loss) {
    static const char *const names[ORR_N_LOSSES] = {
        "queue",  "requeue", "start",    "load",  "detect",    "diagnose",  "replace",
        "repair", "down",    "rework",   "save",  "save_wait", "save_slow", "slow",
        "shrunk", "stall",   "evaluate", "noise", "end"};
    return names[loss];
}

bool orr_loss_is_queued(OrrLoss loss) {
    return loss == ORR_LOSS_QUEUE || loss == ORR_LOSS_REQUEUE;
}

bool orr_loss_is_idle(OrrLoss loss) {
    const unsigned idle = 1u << ORR_LOSS_START | 1u << ORR_LOSS_LOAD | 1u << ORR_LOSS_DIAGNOSE |
                          1u << ORR_LOSS_REPLACE | 1u << ORR_LOSS_REPAIR | 1u << ORR_LOSS_DOWN |
                          1u << ORR_LOSS_SAVE | 1u << ORR_LOSS_SAVE_WAIT | 1u << ORR_LOSS_STALL;
    return idle >> loss & 1;
}

void orr_run_seed_init(OrrRunSeed *s, uint64_t seed, uint32_t n_causes) {
    *s = (OrrRunSeed){.seed = seed};
    s->lost_ns = g_new0(int64_t, (gsize)n_causes * ORR_N_LOSSES);
    s->strikes = g_new0(int64_t, n_causes);
}

void orr_run_seed_clear(OrrRunSeed *s) {
    g_free(s->lost_ns);
    g_free(s->strikes);
    *s = (OrrRunSeed){0};
}

int64_t orr_run_seed_lost(const OrrRunSeed *s, uint32_t cause) {
    int64_t sum = 0;
    for (int l = 0; l < ORR_N_LOSSES; l++)
        sum += s->lost_ns[cause * ORR_N_LOSSES + l];
    return sum;
}

char *orr_run_seed_flaw(const OrrRunSeed *s, uint32_t n_causes) {
    int64_t sum = s->useful_ns;
    for (uint32_t c = 0; c < n_causes; c++)
        for (int l = 0; l < ORR_N_LOSSES; l++) {
            int64_t ns = s->lost_ns[c * ORR_N_LOSSES + l];
            if (ns < 0)
                return g_strdup_printf("cause %u lost %" G_GINT64_FORMAT " ns by %s", c, ns,
                                       orr_loss_name((OrrLoss)l));
            if (__builtin_add_overflow(sum, ns, &sum))
                return g_strdup("useful and lost are more than a clock can hold");
        }
    if (sum != s->wall_ns || s->useful_ns < 0)
        return g_strdup_printf("useful and lost are %" G_GINT64_FORMAT
                               " ns, the wall time is %" G_GINT64_FORMAT,
                               sum, s->wall_ns);
    return NULL;
}

OrrRunRecord *orr_run_record_new(uint32_t n_causes, uint32_t n_seeds) {
    OrrRunRecord *r = g_new0(OrrRunRecord, 1);
    r->head = orr_record_new();
    r->run = g_strdup("");
    r->summary = g_strdup("");
    r->interval_policy = g_strdup("");
    r->prices = g_strdup("");
    r->prices_date = g_strdup("");
    r->n_causes = n_causes;
    r->causes = g_new0(OrrRunCause, n_causes + 1);
    for (uint32_t i = 0; i < n_causes; i++) {
        OrrRunCause *c = &r->causes[i];
        c->name = g_strdup(""), c->component = g_strdup(""), c->law = g_strdup("");
        c->effect = g_strdup(""), c->source = g_strdup("");
    }
    r->n_seeds = n_seeds;
    r->seeds = g_new0(OrrRunSeed, n_seeds + 1);
    r->lost_ns = g_new0(int64_t, (gsize)n_causes * ORR_N_LOSSES + 1);
    return r;
}

void orr_run_record_free(OrrRunRecord *r) {
    if (!r)
        return;
    for (uint32_t i = 0; i < r->n_causes; i++) {
        OrrRunCause *c = &r->causes[i];
        g_free(c->name), g_free(c->component), g_free(c->law);
        g_free(c->effect), g_free(c->source);
    }
    for (uint32_t i = 0; i < r->n_seeds; i++)
        orr_run_seed_clear(&r->seeds[i]);
    for (uint32_t i = 0; i < r->n_figures; i++)
        g_free(r->figures[i].name), g_free(r->figures[i].unit);
    for (uint32_t i = 0; i < r->n_tiers; i++)
        g_free(r->tiers[i].name);
    for (uint32_t i = 0; i < r->n_costs; i++)
        g_free(r->costs[i].name), g_free(r->costs[i].note);
    g_free(r->causes), g_free(r->seeds), g_free(r->figures), g_free(r->tiers), g_free(r->costs);
    g_free(r->run), g_free(r->summary), g_free(r->interval_policy);
    g_free(r->prices), g_free(r->prices_date), g_free(r->lost_ns);
    orr_record_free(r->head);
    g_free(r);
}

static void add_figure(OrrRunRecord *r, const char *name, const char *unit, const double *x) {
    uint32_t n = r->n_seeds;
    r->figures = g_renew(OrrRunFigure, r->figures, r->n_figures + 1);
    OrrRunFigure *f = &r->figures[r->n_figures++];
    *f = (OrrRunFigure){.name = g_strdup(name), .unit = g_strdup(unit)};
    f->mean = orr_stats_mean(x, n);
    f->deviation = orr_stats_deviation(x, n);
    f->ci95 = orr_stats_half_width95(f->deviation, n);
    f->p5 = orr_stats_percentile(x, n, 0.05);
    f->p50 = orr_stats_percentile(x, n, 0.50);
    f->p95 = orr_stats_percentile(x, n, 0.95);
}

static int64_t queued_ns(const int64_t *lost_ns, uint32_t n_causes) {
    int64_t sum = 0;
    for (uint32_t c = 0; c < n_causes; c++)
        for (int l = 0; l < ORR_N_LOSSES; l++)
            if (orr_loss_is_queued((OrrLoss)l))
                sum += lost_ns[c * ORR_N_LOSSES + (uint32_t)l];
    return sum;
}

static double hours(int64_t ns) {
    return (double)ns / 3600e9;
}

static OrrRunSpent spent(const OrrRunRecord *r, double busy_h, double idle_h) {
    double power = r->power_usd_per_gpu_h * (busy_h + r->idle_frac * idle_h);
    return (OrrRunSpent){busy_h + idle_h, r->usd_per_gpu_h * (busy_h + idle_h) + power};
}

OrrRunSpent orr_run_spent_lost(const OrrRunRecord *r, const int64_t *lost_ns) {
    int64_t busy = 0, idle = 0;
    for (int l = 0; l < ORR_N_LOSSES; l++) {
        if (orr_loss_is_idle((OrrLoss)l))
            idle += lost_ns[l];
        else if (!orr_loss_is_queued((OrrLoss)l))
            busy += lost_ns[l];
    }
    return spent(r, hours(busy) * r->n_gpus, hours(idle) * r->n_gpus);
}

OrrRunSpent orr_run_spent_useful(const OrrRunRecord *r, int64_t useful_ns) {
    return spent(r, hours(useful_ns) * r->n_gpus, 0);
}

static double n_spare_gpus(const OrrRunRecord *r) {
    return 1.0 * r->n_spare_nodes * r->n_gpus / MAX(r->n_nodes, 1);
}

OrrRunSpent orr_run_spent_spares(const OrrRunRecord *r, const int64_t *lost_ns, int64_t wall_ns) {
    return spent(r, 0, hours(wall_ns - queued_ns(lost_ns, r->n_causes)) * n_spare_gpus(r));
}

static double ratio(double a, double b) {
    return b > 0 ? a / b : 0;
}

/* The figures of one seed, in the order of the names below. */
enum { N_FIGURES = 18 };
static const char *const figure_names[N_FIGURES][2] = {
    {"wall_ns", "ns"},
    {"useful_ns", "ns"},
    {"goodput_frac", ""},
    {"ettr_frac", ""},
    {"mfu_run_frac", ""},
    {"mtbi_ns", "ns"},
    {"interruptions", ""},
    {"tokens", "tokens"},
    {"gpu_hours", "h"},
    {"cost_usd", "USD"},
    {"usd_per_million_tokens", "USD"},
    {"energy_mwh", "MWh"},
    {"carbon_kg", "kg"},
    {"repairs", ""},
    {"repair_wait_ns", "ns"},
    {"step_time_mean_ns", "ns"},
    {"step_time_deviation_ns", "ns"},
    {"usd_per_useful_gpu_hour", "USD/h"},
};

/* Of the times of steps around their mean. The difference of two large sums: what is below a
 * millionth of the mean is rounding. */
static double step_deviation(const OrrRunSeed *s, double mean_ns) {
    double mean_s = mean_ns / 1e9;
    double variance_s2 = ratio(s->step_squares_s2, (double)s->steps_done) - mean_s * mean_s;
    return variance_s2 > 1e-12 * mean_s * mean_s ? 1e9 * sqrt(variance_s2) : 0;
}

static void figures_of(const OrrRunRecord *r, const OrrRunSeed *s, double *x) {
    double wall = (double)s->wall_ns, own = wall - (double)queued_ns(s->lost_ns, r->n_causes);
    double gpu_hours = own / 3600e9 * (r->n_gpus + n_spare_gpus(r));
    double step = ratio((double)s->stepping_ns, (double)s->steps_done);
    const double all[N_FIGURES] = {
        wall,
        (double)s->useful_ns,
        ratio((double)s->useful_ns, wall),
        ratio((double)s->productive_ns, own),
        ratio(s->mfu_ns, wall),
        s->interruptions > 0 ? wall / (double)s->interruptions : wall,
        (double)s->interruptions,
        (double)s->tokens,
        gpu_hours,
        s->cost_usd,
        ratio(s->cost_usd * 1e6, (double)s->tokens),
        s->energy_mwh,
        s->carbon_kg,
        (double)s->repairs,
        ratio((double)s->repair_wait_ns, (double)s->repairs),
        step,
        step_deviation(s, step),
        ratio(s->cost_usd, hours(s->useful_ns) * r->n_gpus),
    };
    memcpy(x, all, sizeof all);
}

static void settle_losses(OrrRunRecord *r) {
    __int128 wall = 0, useful = 0;
    uint32_t n = r->n_causes * ORR_N_LOSSES;
    g_autofree __int128 *sum = g_new0(__int128, n + 1);
    for (uint32_t i = 0; i < r->n_seeds; i++) {
        wall += r->seeds[i].wall_ns;
        useful += r->seeds[i].useful_ns;
        for (uint32_t k = 0; k < n; k++)
            sum[k] += r->seeds[i].lost_ns[k];
    }
    r->wall_ns = (int64_t)(wall / r->n_seeds);
    r->useful_ns = (int64_t)(useful / r->n_seeds);
    for (uint32_t k = 0; k < n; k++)
        r->lost_ns[k] = (int64_t)(sum[k] / r->n_seeds);
    orr_record_settle(r->lost_ns, n, r->wall_ns - r->useful_ns);
}

static void settle_counts(OrrRunRecord *r) {
    g_autofree double *x = g_new(double, r->n_seeds + 1);
    for (uint32_t c = 0; c < r->n_causes; c++) {
        for (uint32_t i = 0; i < r->n_seeds; i++)
            x[i] = (double)r->seeds[i].strikes[c];
        r->causes[c].mean_count = orr_stats_mean(x, r->n_seeds);
        r->causes[c].ci95_count =
            orr_stats_half_width95(orr_stats_deviation(x, r->n_seeds), r->n_seeds);
    }
}

/* All the time over all the interruptions: the mean of the seeds' quotients would be too long. Its
 * deviation is that of a ratio estimator (Cochran 1977, section 2.11). */
static void settle_mtbi(OrrRunRecord *r) {
    double wall = 0, stops = 0, n = r->n_seeds;
    for (uint32_t i = 0; i < r->n_seeds; i++) {
        wall += (double)r->seeds[i].wall_ns;
        stops += (double)r->seeds[i].interruptions;
    }
    uint32_t at = 0;
    while (strcmp(r->figures[at].name, "mtbi_ns") != 0)
        at++;
    OrrRunFigure *f = &r->figures[at];
    f->mean = stops > 0 ? wall / stops : wall / n;
    g_autofree double *rest = g_new(double, r->n_seeds);
    for (uint32_t i = 0; i < r->n_seeds; i++)
        rest[i] = (double)r->seeds[i].wall_ns - f->mean * (double)r->seeds[i].interruptions;
    f->deviation = stops > 0 ? orr_stats_deviation(rest, r->n_seeds) * n / stops : NAN;
    f->ci95 = orr_stats_half_width95(f->deviation, r->n_seeds);
}

void orr_run_record_settle(OrrRunRecord *r) {
    g_assert(r->n_seeds > 0 && r->n_figures == 0);
    g_autofree double *one = g_new(double, N_FIGURES);
    g_autofree double *all = g_new(double, (gsize)N_FIGURES * r->n_seeds);
    for (uint32_t i = 0; i < r->n_seeds; i++) {
        figures_of(r, &r->seeds[i], one);
        for (uint32_t f = 0; f < N_FIGURES; f++)
            all[(gsize)f * r->n_seeds + i] = one[f];
    }
    for (uint32_t f = 0; f < N_FIGURES; f++)
        add_figure(r, figure_names[f][0], figure_names[f][1], all + (gsize)f * r->n_seeds);
    settle_losses(r);
    settle_counts(r);
    settle_mtbi(r);
}

const OrrRunFigure *orr_run_record_figure(const OrrRunRecord *r, const char *name) {
    for (uint32_t i = 0; i < r->n_figures; i++)
        if (strcmp(r->figures[i].name, name) == 0)
            return &r->figures[i];
    return NULL;
}

void orr_run_record_add_cost(OrrRunRecord *r, const char *name, double usd, const char *note) {
    r->costs = g_renew(OrrRunCost, r->costs, r->n_costs + 1);
    r->costs[r->n_costs++] = (OrrRunCost){g_strdup(name), g_strdup(note), usd};
}

int64_t orr_run_record_queued(const OrrRunRecord *r) {
    return queued_ns(r->lost_ns, r->n_causes);
}

int64_t orr_run_record_down(const OrrRunRecord *r) {
    int64_t sum = 0;
    for (uint32_t c = 0; c < r->n_causes; c++)
        for (int l = ORR_LOSS_QUEUE; l <= ORR_LOSS_DOWN; l++)
            sum += r->lost_ns[c * ORR_N_LOSSES + (uint32_t)l];
    return sum;
}

int64_t orr_run_record_lost(const OrrRunRecord *r, uint32_t cause) {
    int64_t sum = 0;
    for (int l = 0; l < ORR_N_LOSSES; l++)
        sum += r->lost_ns[cause * ORR_N_LOSSES + l];
    return sum;
}

/* The whole numbers of a seed in the order of its line. */
#define N_WHOLE 15
static void whole_fields(OrrRunSeed *s, int64_t **f) {
    int64_t *all[N_WHOLE] = {&s->wall_ns,
                             &s->useful_ns,
                             &s->steps,
                             &s->tokens,
                             &s->reworked_steps,
                             &s->productive_ns,
                             &s->checkpoints,
                             &s->most_lost_ns,
                             &s->interruptions,
                             &s->unclean_rollbacks,
                             &s->short_of_nodes_ns,
                             &s->steps_done,
                             &s->stepping_ns,
                             &s->repairs,
                             &s->repair_wait_ns};
    memcpy(f, all, sizeof all);
}

char *orr_run_seed_line(const OrrRunSeed *s, uint32_t n_causes) {
    int64_t *fields[N_WHOLE];
    OrrRunSeed copy = *s;
    whole_fields(&copy, fields);
    g_autofree char *mfu = orr_units_double(s->mfu_ns);
    GString *line = g_string_new(NULL);
    g_autofree char *squares = orr_units_double(s->step_squares_s2);
    g_string_printf(line, "%" G_GUINT64_FORMAT " %d %s %s", s->seed, s->is_done, mfu, squares);
    for (guint i = 0; i < G_N_ELEMENTS(fields); i++)
        g_string_append_printf(line, " %" G_GINT64_FORMAT, *fields[i]);
    for (uint32_t c = 0; c < n_causes; c++)
        g_string_append_printf(line, " %" G_GINT64_FORMAT, s->strikes[c]);
    for (uint32_t k = 0; k < n_causes * ORR_N_LOSSES; k++)
        g_string_append_printf(line, " %" G_GINT64_FORMAT, s->lost_ns[k]);
    return g_string_free(line, FALSE);
}

static bool parse_whole(const char *word, int64_t *value) {
    return g_ascii_string_to_signed(word, 10, 0, INT64_MAX, value, NULL);
}

bool orr_run_seed_parse(OrrRunSeed *s, uint32_t n_causes, const char *line) {
    int64_t *fields[N_WHOLE], done;
    whole_fields(s, fields);
    g_auto(GStrv) words = g_strsplit(line, " ", -1);
    guint n = g_strv_length(words), at = 4, n_fields = G_N_ELEMENTS(fields);
    if (n != at + n_fields + n_causes * (1 + ORR_N_LOSSES))
        return false;
    const char *rest;
    if (!g_ascii_string_to_unsigned(words[0], 10, 0, UINT64_MAX, &s->seed, NULL) ||
        !parse_whole(words[1], &done) || !orr_units_split(words[2], &s->mfu_ns, &rest, NULL) ||
        !orr_units_split(words[3], &s->step_squares_s2, &rest, NULL))
        return false;
    s->is_done = done != 0;
    for (guint i = 0; i < n_fields; i++)
        if (!parse_whole(words[at++], fields[i]))
            return false;
    for (uint32_t c = 0; c < n_causes; c++)
        if (!parse_whole(words[at++], &s->strikes[c]))
            return false;
    for (uint32_t k = 0; k < n_causes * ORR_N_LOSSES; k++)
        if (!parse_whole(words[at++], &s->lost_ns[k]))
            return false;
    g_autofree char *flaw = orr_run_seed_flaw(s, n_causes);
    return flaw == NULL;
}
