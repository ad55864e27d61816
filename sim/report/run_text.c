/* A run as text for people: the answer, what was lost to what, the rates that were put in, the
 * checkpoints, the money, and what it rests on. */
#include "sim/report/run_priv.h"

#include "sim/base/units.h"
#include "sim/report/run_table.h"

#include <math.h>
#include <string.h>

/* How a figure is shown. */
typedef enum { SHOW_SPAN, SHOW_SHARE, SHOW_COUNT, SHOW_ONE } Show;

static OrrFixed show(double x, Show how) {
    switch (how) {
    case SHOW_SPAN:
        return orr_run__span(x);
    case SHOW_SHARE:
        return orr_report__fixed(100 * x, 2);
    case SHOW_COUNT:
        return orr_report__count(x);
    case SHOW_ONE:
        break;
    }
    return orr_report__fixed(x, x < 10 ? 3 : 1);
}

static void figure_row(const OrrRunRecord *r, OrrTextTable *t, const char *name, const char *label,
                       Show how) {
    const OrrRunFigure *f = orr_run_record_figure(r, name);
    g_autofree char *first = g_strconcat("  ", label, NULL);
    if (r->n_seeds == 1) {
        orr_run__table_row(t, first, show(f->mean, how).text, NULL);
        return;
    }
    orr_run__table_row(t, first, show(f->mean, how).text,
                       isfinite(f->ci95) ? show(f->ci95, how).text : "-", show(f->p5, how).text,
                       show(f->p50, how).text, show(f->p95, how).text, NULL);
}

static void figures(const OrrRunRecord *r, OrrOut *out) {
    OrrTextTable *t = orr_run__table_new("lrrrrr");
    if (r->n_seeds > 1)
        orr_run__table_row(t, "", "mean", "+- (95 %)", "5 %", "median", "95 %", NULL);
    figure_row(r, t, "wall_ns", "wall time", SHOW_SPAN);
    figure_row(r, t, "goodput_frac", "goodput, % of wall time", SHOW_SHARE);
    figure_row(r, t, "ettr_frac", "ETTR, % of it unqueued", SHOW_SHARE);
    if (r->mfu_frac > 0)
        figure_row(r, t, "mfu_run_frac", "MFU of the run, %", SHOW_SHARE);
    figure_row(r, t, "step_time_mean_ns", "a step, with all that slows it", SHOW_SPAN);
    figure_row(r, t, "step_time_deviation_ns", "its deviation", SHOW_SPAN);
    figure_row(r, t, "interruptions", "interruptions", SHOW_ONE);
    figure_row(r, t, "mtbi_ns", "mean time between them", SHOW_SPAN);
    figure_row(r, t, "tokens", "tokens", SHOW_COUNT);
    figure_row(r, t, "gpu_hours", "GPU-hours held, with spares", SHOW_COUNT);
    if (r->usd_per_gpu_h > 0) {
        figure_row(r, t, "cost_usd", "cost, USD", SHOW_COUNT);
        figure_row(r, t, "usd_per_million_tokens", "USD per million tokens", SHOW_ONE);
        figure_row(r, t, "usd_per_useful_gpu_hour", "USD per useful GPU-hour", SHOW_ONE);
    }
    if (orr_run_record_figure(r, "energy_mwh")->mean > 0) {
        figure_row(r, t, "energy_mwh", "energy, MWh", SHOW_COUNT);
        figure_row(r, t, "carbon_kg", "carbon, kg CO2", SHOW_COUNT);
    }
    orr_run__table_write(t, out);
}

static void headline(const OrrRunRecord *r, OrrOut *out) {
    const OrrRecord *h = r->head;
    orr_out_printf(out, "%s: %s\n", r->run, *r->summary ? r->summary : "a whole run");
    orr_out_printf(out, "%u GPUs on %u nodes", r->n_gpus, r->n_nodes);
    if (r->n_spare_nodes > 0)
        orr_out_printf(out, " and %u spare", r->n_spare_nodes);
    if (*h->job)
        orr_out_printf(out, "; job %s, %s, %s", h->job, h->cluster, h->gpu);
    OrrFixed step = orr_report__time((double)r->step_ns);
    OrrFixed tokens = orr_report__count((double)r->tokens_per_step);
    orr_out_printf(out, "\nstep %s for %s tokens", step.text, tokens.text);
    if (r->step_deviation_ns > 0)
        orr_out_printf(out, " (deviation of a step %s)",
                       orr_report__time(r->step_deviation_ns).text);
    if (r->mfu_frac > 0)
        orr_out_printf(out, ", MFU %s", orr_report__percent(r->mfu_frac).text);
    orr_out_printf(out, "; orrery %s, %u %s from %" G_GUINT64_FORMAT "\n\n", h->version, r->n_seeds,
                   r->n_seeds == 1 ? "seed" : "seeds", h->seed);
    figures(r, out);
}

/* A row of the account: @ns below 0 takes no time. */
static void loss_row(const OrrRunRecord *r, OrrTextTable *t, const char *name, const char *count,
                     int64_t ns, OrrRunSpent spent, const char *mostly) {
    g_autofree char *first = g_strconcat("  ", name, NULL);
    OrrFixed share = orr_report__percent((double)ns / (double)r->wall_ns);
    orr_run__table_row(t, first, count, ns < 0 ? "" : orr_run__span((double)ns).text,
                       ns < 0 ? "" : share.text,
                       spent.gpu_hours > 0 ? orr_report__count(spent.gpu_hours).text : "",
                       spent.usd > 0 ? orr_report__count(spent.usd).text : "", mostly, NULL);
}

static void losses(const OrrRunRecord *r, OrrOut *out) {
    g_autofree uint32_t *ids = g_new(uint32_t, r->n_causes + 1);
    uint32_t n = orr_run__by_loss(r, ids);
    OrrTextTable *t = orr_run__table_new("lrrrrrl");
    orr_out_puts(out, "\n");
    orr_run__table_row(t, "Lost to (mean of the seeds)", "count", "time", "of wall", "GPU-hours",
                       r->usd_per_gpu_h > 0 ? "USD" : "", "mostly", NULL);
    for (uint32_t i = 0; i < n; i++) {
        const OrrRunCause *c = &r->causes[ids[i]];
        int64_t ns = orr_run_record_lost(r, ids[i]);
        OrrFixed count = orr_report__fixed(c->mean_count, 1);
        loss_row(r, t, c->name, ids[i] < r->n_own ? "" : count.text, ns,
                 orr_run_spent_lost(r, r->lost_ns + ids[i] * ORR_N_LOSSES),
                 ns > 0 ? orr_loss_name(orr_run__mostly(r, ids[i])) : "");
    }
    loss_row(r, t, "useful", "", r->useful_ns, orr_run_spent_useful(r, r->useful_ns), NULL);
    OrrRunSpent spares = orr_run_spent_spares(r, r->lost_ns, r->wall_ns);
    if (spares.gpu_hours > 0)
        loss_row(r, t, "spare nodes, beside it", "", -1, spares, NULL);
    if (r->storage_usd > 0)
        loss_row(r, t, "checkpoints kept, egress", "", -1, (OrrRunSpent){0, r->storage_usd}, NULL);
    OrrRunSpent all = {orr_run_record_figure(r, "gpu_hours")->mean,
                       orr_run_record_figure(r, "cost_usd")->mean};
    loss_row(r, t, "total = wall time", "", r->wall_ns, all, NULL);
    orr_run__table_write(t, out);
}

static void went_on(const OrrRunRecord *r, OrrOut *out) {
    OrrTextTable *t = orr_run__table_new("lrr");
    for (uint32_t l = 0; l < ORR_N_LOSSES; l++) {
        int64_t ns = 0;
        for (uint32_t c = 0; c < r->n_causes; c++)
            ns += r->lost_ns[c * ORR_N_LOSSES + l];
        g_autofree char *first = g_strconcat("  ", orr_loss_name((OrrLoss)l), NULL);
        if (ns > 0)
            orr_run__table_row(t, first, orr_run__span((double)ns).text,
                               orr_report__percent((double)ns / (double)r->wall_ns).text, NULL);
    }
    orr_out_puts(out, "\nWhat the lost time went on\n");
    orr_run__table_write(t, out);
}

static void rates(const OrrRunRecord *r, OrrOut *out) {
    if (r->n_causes == r->n_own)
        return;
    OrrTextTable *t = orr_run__table_new("lllrrrr");
    orr_run__table_row(t, "Rates put in", "component", "effect", "MTBF, GPU-h", "/1000 n-days",
                       "job MTBF", "expected", NULL);
    for (uint32_t c = r->n_own; c < r->n_causes; c++) {
        const OrrRunCause *x = &r->causes[c];
        g_autofree char *first = g_strconcat("  ", x->name, NULL);
        if (x->mtbf_job_h > 0)
            orr_run__table_row(t, first, x->component, x->effect,
                               orr_report__count(x->mtbf_gpu_h).text,
                               orr_report__fixed(x->per_1000_node_days, 4).text,
                               orr_run__span(x->mtbf_job_h * 3600e9).text,
                               orr_report__fixed(x->expected, 1).text, NULL);
        else
            orr_run__table_row(t, first, x->component, x->effect, "at the times of its file", NULL);
    }
    orr_out_puts(out, "\n");
    orr_run__table_write(t, out);
}

static void repairs(const OrrRunRecord *r, OrrOut *out) {
    const OrrRunFigure *n = orr_run_record_figure(r, "repairs");
    if (!(n->mean > 0))
        return;
    OrrFixed count = orr_report__fixed(n->mean, 1);
    if (r->repair_hands == 0) {
        orr_out_printf(out, "\nRepairs: %s nodes a run, each begun at once\n", count.text);
        return;
    }
    double wait = orr_run_record_figure(r, "repair_wait_ns")->mean;
    orr_out_printf(out, "\nRepairs: %s nodes a run, %u at a time; each waited %s for a hand\n",
                   count.text, r->repair_hands, orr_run__span(wait).text);
}

static void checkpoints(const OrrRunRecord *r, OrrOut *out) {
    if (r->n_tiers == 0)
        return;
    g_autofree char *bytes = orr_units_bytes_si(r->state_bytes);
    orr_out_printf(out, "\nCheckpoints: %s each %s (%u steps, policy %s)", bytes,
                   orr_run__span((double)r->interval_ns).text, r->interval_steps,
                   r->interval_policy);
    if (r->young_ns > 0)
        orr_out_printf(out, "; Young %s, Daly %s", orr_run__span((double)r->young_ns).text,
                       orr_run__span((double)r->daly_ns).text);
    orr_out_puts(out, "\n");
    for (uint32_t i = 0; i < r->n_tiers; i++) {
        const OrrRunTier *t = &r->tiers[i];
        g_autofree char *speed = orr_units_rate(t->bytes_per_s);
        g_autofree char *day = orr_units_bytes_si(t->bytes_per_day);
        g_autofree char *kept = orr_units_bytes_si(t->kept_bytes);
        orr_out_printf(out, "  %-14s every %u: blocks %s", t->name, t->every,
                       orr_report__time((double)t->block_ns).text);
        if (t->write_ns > 0)
            orr_out_printf(out, ", written in %s behind", orr_run__span((double)t->write_ns).text);
        if (t->write_slow_frac > 0)
            orr_out_printf(out, " steps that are %s longer",
                           orr_report__percent(t->write_slow_frac).text);
        orr_out_printf(out, " at %s, loads in %s; %s a day, keeps %s\n", speed,
                       orr_run__span((double)t->load_ns).text, day, kept);
    }
}

static void money(const OrrRunRecord *r, OrrOut *out) {
    if (r->n_costs == 0)
        return;
    orr_out_printf(out, "\nThe same run under other contracts (prices %s of %s)\n", r->prices,
                   r->prices_date);
    OrrTextTable *t = orr_run__table_new("lrl");
    for (uint32_t i = 0; i < r->n_costs; i++) {
        g_autofree char *first = g_strconcat("  ", r->costs[i].name, NULL);
        g_autofree char *usd = g_strconcat(orr_report__count(r->costs[i].usd).text, " USD", NULL);
        orr_run__table_row(t, first, usd, r->costs[i].note, NULL);
    }
    orr_run__table_write(t, out);
    if (r->breakeven_h > 0)
        orr_out_printf(out,
                       "  buying is cheaper than renting on demand after %s hours of use "
                       "(%s months)\n",
                       orr_report__count(r->breakeven_h).text,
                       orr_report__fixed(r->breakeven_h / (365.25 * 24 / 12), 1).text);
}

static void rests_on(const OrrRunRecord *r, OrrOut *out) {
    const OrrRecord *h = r->head;
    for (uint32_t i = 0; i < h->n_warnings; i++) {
        g_autofree char *first =
            g_strdup_printf("%s  ! %s: ", i == 0 ? "\nWarnings\n" : "", h->warnings[i].code);
        if (i == 0)
            orr_out_puts(out, "\nWarnings\n");
        orr_report__wrap(out, i == 0 ? first + strlen("\nWarnings\n") : first, h->warnings[i].text);
    }
    if (h->n_assumptions == 0)
        return;
    orr_out_puts(out, "\nAssumed\n");
    for (uint32_t i = 0; i < h->n_assumptions; i++)
        orr_out_printf(out, "  %s = %s (%s)\n", h->assumptions[i].key, h->assumptions[i].value,
                       h->assumptions[i].origin);
}

static void write_text(const OrrRunRecord *r, OrrOut *out) {
    headline(r, out);
    losses(r, out);
    went_on(r, out);
    rates(r, out);
    repairs(r, out);
    checkpoints(r, out);
    money(r, out);
    rests_on(r, out);
}

const OrrRunFormat orr_run__text = {
    .name = "text",
    .summary = "For people: figures with their range, losses by cause, rates, money",
    .source = "DESIGN.md, section 6",
    .write = write_text,
};
