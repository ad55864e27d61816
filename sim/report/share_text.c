/* A shared cluster as text for people, and what all its forms compute. */
#include "sim/report/share_report.h"

#include "sim/base/units.h"
#include "sim/report/run_priv.h"

#include <math.h>
#include <string.h>

static const char *const owner_words[] = {
    [ORR_SHARE_USEFUL] = "useful",
    [ORR_SHARE_SPREAD] = "slower, as nodes lie further apart",
    [ORR_SHARE_REWORK] = "lost: done twice",
    [ORR_SHARE_START] = "lost: starting again, reading back",
    [ORR_SHARE_SAVE] = "lost: standing for checkpoints",
    [ORR_SHARE_DETECT] = "lost: failed, and nobody knows",
    [ORR_SHARE_DOWN] = "down: nodes in repair",
    [ORR_SHARE_RECLAIMED] = "away: spot nodes taken back",
    [ORR_SHARE_EMPTY] = "idle: nothing waits",
    [ORR_SHARE_SHORT] = "idle: too few for the first in the queue",
    [ORR_SHARE_FRAGMENTED] = "idle: enough, but in the wrong places",
};

double orr_share_gpu_hours(const OrrShareSpec *spec, OrrUnitNs unit_ns) {
    return (double)unit_ns / spec->slices_per_gpu / 3600e9;
}

double orr_share_usd(const OrrShareReport *r, const OrrShareResult *job) {
    double spot = orr_share_gpu_hours(r->spec, job->spot_unit_ns);
    double all = orr_share_gpu_hours(r->spec, job->unit_ns);
    return (all - spot) * r->usd_per_gpu_h + spot * r->usd_per_spot_gpu_h;
}

const OrrRunFigure *orr_share_figure(const OrrShareReport *r, const char *name) {
    for (uint32_t i = 0; i < r->n_figures; i++)
        if (strcmp(r->figures[i].name, name) == 0)
            return &r->figures[i];
    return NULL;
}

/* How a figure is shown. */
typedef enum { SHOW_SPAN, SHOW_SHARE, SHOW_COUNT, SHOW_MONEY } Show;
static const struct {
    const char *name, *words;
    Show how;
    bool is_drawn, is_priced;
} rows[] = {
    {"makespan_ns", "all done after", SHOW_SPAN, false, false},
    {"wait_mean_ns", "mean wait of a job", SHOW_SPAN, false, false},
    {"wait_p95_ns", "95 % of jobs wait less", SHOW_SPAN, false, false},
    {"utilisation_frac", "GPUs held by jobs, %", SHOW_SHARE, false, false},
    {"goodput_frac", "GPUs at kept work, %", SHOW_SHARE, false, false},
    {"gpu_hours", "GPU-hours held", SHOW_COUNT, false, false},
    {"lost_gpu_hours", "GPU-hours lost", SHOW_COUNT, false, false},
    {"node_failures", "nodes failed", SHOW_MONEY, true, false},
    {"node_reclaims", "spot nodes taken back", SHOW_MONEY, true, false},
    {"evictions", "jobs thrown off", SHOW_MONEY, false, false},
    {"cost_usd", "cost of the jobs, USD", SHOW_COUNT, false, true},
    {"cluster_usd", "cost of all nodes, USD", SHOW_COUNT, false, true},
    {"usd_per_useful_gpu_hour", "of all per useful GPU-h", SHOW_MONEY, false, true},
};

static OrrFixed show(double x, Show how) {
    switch (how) {
    case SHOW_SPAN:
        return orr_run__span(x);
    case SHOW_SHARE:
        return orr_report__fixed(100 * x, 2);
    case SHOW_COUNT:
        return orr_report__count(x);
    case SHOW_MONEY:
        break;
    }
    return orr_report__fixed(x, x < 10 ? 2 : 1);
}

static void put_figures(const OrrShareReport *r, OrrOut *out) {
    if (r->n_seeds > 1)
        orr_out_printf(out, "  %-26s %13s %12s %13s %13s %13s\n", "", "mean", "+- (95 %)", "5 %",
                       "median", "95 %");
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        if ((rows[i].is_drawn && !r->is_drawn) || (rows[i].is_priced && !*r->prices))
            continue;
        const OrrRunFigure *f = orr_share_figure(r, rows[i].name);
        orr_out_printf(out, "  %-26s %13s", rows[i].words, show(f->mean, rows[i].how).text);
        if (r->n_seeds > 1)
            orr_out_printf(out, " %12s %13s %13s %13s", show(f->ci95, rows[i].how).text,
                           show(f->p5, rows[i].how).text, show(f->p50, rows[i].how).text,
                           show(f->p95, rows[i].how).text);
        orr_out_puts(out, "\n");
    }
}

static void put_head(const OrrShareReport *r, OrrOut *out) {
    const OrrShareSpec *s = r->spec;
    orr_out_printf(out, "%s: %s\n%u jobs on %u nodes of %u GPUs", r->name, r->summary, s->n_jobs,
                   s->n_nodes, s->gpus_per_node);
    if (*s->cluster_ref)
        orr_out_printf(out, " (%s)", s->cluster_ref);
    if (s->slices_per_gpu > 1)
        orr_out_printf(out, ", %u slices each by %s", s->slices_per_gpu,
                       orr_slicing_names[s->slicing]);
    orr_out_printf(out, ", %u nodes a rack, %u racks a block\npolicy %s; orrery %s",
                   s->nodes_per_rack, s->racks_per_block, orr_share_policy_names[s->policy],
                   r->head->version);
    if (r->is_drawn)
        orr_out_printf(out, ", %u seed%s from %" G_GUINT64_FORMAT, r->n_seeds,
                       r->n_seeds > 1 ? "s" : "", r->head->seed);
    orr_out_puts(out, "\n");
    if (s->node_mtbf_ns > 0)
        orr_out_printf(out, "a node fails each %s (%s per 1000 node-days), one of all each %s\n",
                       orr_run__span(s->node_mtbf_ns).text,
                       orr_report__fixed(1000 * 86400e9 / s->node_mtbf_ns, 2).text,
                       orr_run__span(s->node_mtbf_ns / s->n_nodes).text);
    if (*r->prices)
        orr_out_printf(out, "prices %s of %s, %s: %s USD a GPU-hour\n", r->prices, r->prices_date,
                       r->contract, orr_report__fixed(r->usd_per_gpu_h, 3).text);
    orr_out_puts(out, "\n");
}

static void put_account(const OrrShareReport *r, OrrOut *out) {
    const OrrShareAccount *a = &r->account;
    double all = (double)a->units * (double)a->makespan_ns;
    orr_out_puts(out, r->n_seeds > 1 ? "\nWhere the time of the GPUs went, first seed\n"
                                     : "\nWhere the time of the GPUs went\n");
    for (int o = 0; o < ORR_N_SHARE_OWNERS; o++)
        if (a->part[o] > 0)
            orr_out_printf(out, "  %-44s %8s %13s GPU-h\n", owner_words[o],
                           orr_report__percent((double)a->part[o] / all).text,
                           orr_report__fixed(orr_share_gpu_hours(r->spec, a->part[o]), 1).text);
}

static void hours(OrrOut *out, double ns, int width) {
    orr_out_printf(out, " %*s", width, orr_report__fixed(ns / 3600e9, 2).text);
}

static void put_jobs(const OrrShareReport *r, OrrOut *out) {
    const OrrShareSpec *s = r->spec;
    orr_out_printf(out, "\n  %-20s %6s %9s %9s %9s %9s %9s %9s %6s %7s", "job, times in hours",
                   "GPUs", "submit", "start", "end", "waited", "ran", "lost", "racks", "evicted");
    orr_out_puts(out, *r->prices ? "         USD\n" : "\n");
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const OrrShareResult *x = &r->results[i];
        orr_out_printf(out, "  %-20s %6s", s->jobs[i].name,
                       s->jobs[i].gpus > 0 ? orr_report__count(s->jobs[i].gpus).text : "slice");
        hours(out, (double)s->jobs[i].submit_ns, 9);
        hours(out, (double)x->start_ns, 9);
        hours(out, (double)x->end_ns, 9);
        hours(out, (double)x->waited_ns, 9);
        hours(out, (double)x->ran_ns, 9);
        hours(out, (double)x->lost_ns, 9);
        orr_out_printf(out, " %6u %7u", x->racks, x->preemptions + x->reclaims + x->failures);
        if (*r->prices)
            orr_out_printf(out, " %11s", orr_report__count(orr_share_usd(r, x)).text);
        orr_out_puts(out, "\n");
    }
}

static void put_spreads(const OrrShareReport *r, OrrOut *out) {
    const OrrShareSpec *s = r->spec;
    if (r->n_seeds < 2)
        return;
    orr_out_printf(out, "\n  %-20s %13s %13s %13s %13s %13s\n", "over the seeds, hours",
                   "mean wait", "median wait", "wait, 95 %", "median end", "end, 95 %");
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const OrrShareJobSpread *x = &r->spreads[i];
        orr_out_printf(out, "  %-20s", s->jobs[i].name);
        hours(out, x->waited_mean_ns, 13);
        hours(out, x->waited_p50_ns, 13);
        hours(out, x->waited_p95_ns, 13);
        hours(out, x->end_p50_ns, 13);
        hours(out, x->end_p95_ns, 13);
        orr_out_puts(out, "\n");
    }
}

void orr_share_text(const OrrShareReport *r, OrrOut *out) {
    put_head(r, out);
    put_figures(r, out);
    put_account(r, out);
    put_jobs(r, out);
    put_spreads(r, out);
    if (r->head->n_warnings > 0)
        orr_out_puts(out, "\nWarnings\n");
    for (uint32_t i = 0; i < r->head->n_warnings; i++)
        orr_report__wrap(out, "  ", r->head->warnings[i].text);
    if (r->head->n_assumptions > 0)
        orr_out_puts(out, "\nAssumptions\n");
    for (uint32_t i = 0; i < r->head->n_assumptions; i++)
        orr_out_printf(out, "  %s = %s (%s)\n", r->head->assumptions[i].key,
                       r->head->assumptions[i].value, r->head->assumptions[i].origin);
}
