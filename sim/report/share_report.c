#include "sim/report/share_report.h"

#include "sim/io/csv.h"
#include "sim/io/json_write.h"
#include "sim/report/report_priv.h"
#include "sim/report/run_priv.h"

/* The parts of the account by name; they add up to units x makespan. */
#define N_PARTS 5
typedef struct {
    const char *name, *words;
    int64_t unit_ns;
} Part;

static void parts_of(const OrrShareAccount *a, Part *p) {
    const Part all[N_PARTS] = {
        {"useful", "useful", a->useful},
        {"lost", "lost: done twice, started again", a->lost},
        {"idle_empty", "idle: nothing waits", a->idle_empty},
        {"idle_short", "idle: too few for the first in the queue", a->idle_short},
        {"idle_fragmented", "idle: enough, but in the wrong places", a->idle_fragmented}};
    for (int i = 0; i < N_PARTS; i++)
        p[i] = all[i];
}

static double share_of(const OrrShareAccount *a, int64_t unit_ns) {
    double all = (double)a->units * (double)a->makespan_ns;
    return all > 0 ? (double)unit_ns / all : 0;
}

static double mean_wait_ns(const OrrShareReport *r) {
    double sum = 0;
    for (uint32_t i = 0; i < r->spec->n_jobs; i++)
        sum += (double)r->results[i].waited_ns;
    return sum / r->spec->n_jobs;
}

static void hours(OrrOut *out, int64_t ns, int width) {
    orr_out_printf(out, " %*s", width, orr_report__fixed((double)ns / 3600e9, 2).text);
}

void orr_share_text(const OrrShareReport *r, OrrOut *out) {
    const OrrShareSpec *s = r->spec;
    Part parts[N_PARTS];
    parts_of(r->account, parts);
    orr_out_printf(out, "%s: %s\n%u jobs on %u nodes of %u GPUs, policy %s; orrery %s\n\n", r->name,
                   r->summary, s->n_jobs, s->n_nodes, s->gpus_per_node,
                   orr_share_policy_names[s->policy], r->version);
    orr_out_printf(out, "  all done after %s; mean wait %s\n",
                   orr_run__span((double)r->account->makespan_ns).text,
                   orr_run__span(mean_wait_ns(r)).text);
    orr_out_puts(out, "\nWhere the time of the GPUs went\n");
    for (int i = 0; i < N_PARTS; i++)
        orr_out_printf(out, "  %-44s %8s\n", parts[i].words,
                       orr_report__percent(share_of(r->account, parts[i].unit_ns)).text);
    orr_out_printf(out, "\n  %-20s %6s %9s %9s %9s %9s %9s %6s %6s\n", "job, times in hours",
                   "GPUs", "submit", "start", "end", "waited", "lost", "racks", "preempted");
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const OrrShareResult *x = &r->results[i];
        orr_out_printf(out, "  %-20s %6s", s->jobs[i].name,
                       s->jobs[i].gpus > 0 ? orr_report__count(s->jobs[i].gpus).text : "slice");
        hours(out, s->jobs[i].submit_ns, 9);
        hours(out, x->start_ns, 9);
        hours(out, x->end_ns, 9);
        hours(out, x->waited_ns, 9);
        hours(out, x->lost_ns, 9);
        orr_out_printf(out, " %6u %6u\n", x->racks, x->preemptions);
    }
}

void orr_share_json(const OrrShareReport *r, OrrOut *out) {
    OrrJsonWriter w = {.out = out, .is_pretty = true};
    const OrrShareSpec *s = r->spec;
    Part parts[N_PARTS];
    parts_of(r->account, parts);
    orr_json_begin_object(&w, NULL);
    orr_json_put_string(&w, "schema", "orrery.share/1");
    orr_json_put_string(&w, "version", r->version);
    orr_json_put_string(&w, "share", r->name);
    orr_json_put_string(&w, "policy", orr_share_policy_names[s->policy]);
    orr_json_put_int(&w, "nodes", s->n_nodes);
    orr_json_put_int(&w, "units", (int64_t)r->account->units);
    orr_json_put_int(&w, "makespan_ns", r->account->makespan_ns);
    orr_json_put_double(&w, "mean_wait_ns", mean_wait_ns(r));
    orr_json_begin_array(&w, "account");
    for (int i = 0; i < N_PARTS; i++) {
        orr_json_begin_object_inline(&w, NULL);
        orr_json_put_string(&w, "owner", parts[i].name);
        orr_json_put_int(&w, "unit_ns", parts[i].unit_ns);
        orr_json_put_double(&w, "share_frac", share_of(r->account, parts[i].unit_ns));
        orr_json_end_object(&w);
    }
    orr_json_end_array(&w);
    orr_json_begin_array(&w, "jobs");
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const OrrShareResult *x = &r->results[i];
        orr_json_begin_object_inline(&w, NULL);
        orr_json_put_string(&w, "name", s->jobs[i].name);
        orr_json_put_int(&w, "gpus", s->jobs[i].gpus);
        orr_json_put_int(&w, "submit_ns", s->jobs[i].submit_ns);
        orr_json_put_int(&w, "start_ns", x->start_ns);
        orr_json_put_int(&w, "end_ns", x->end_ns);
        orr_json_put_int(&w, "waited_ns", x->waited_ns);
        orr_json_put_int(&w, "lost_ns", x->lost_ns);
        orr_json_put_int(&w, "racks", x->racks);
        orr_json_put_int(&w, "preemptions", x->preemptions);
        orr_json_end_object(&w);
    }
    orr_json_end_array(&w);
    orr_json_end_object(&w);
    orr_out_puts(out, "\n");
}

void orr_share_csv(const OrrShareReport *r, OrrOut *out) {
    OrrCsvWriter w = {.out = out};
    static const char *const header[] = {"name",        "gpus",      "submit_ns", "start_ns",
                                         "end_ns",      "waited_ns", "lost_ns",   "racks",
                                         "preemptions", NULL};
    orr_csv_put_row(&w, header);
    for (uint32_t i = 0; i < r->spec->n_jobs; i++) {
        const OrrShareResult *x = &r->results[i];
        orr_csv_put(&w, r->spec->jobs[i].name);
        orr_csv_put_int(&w, r->spec->jobs[i].gpus);
        orr_csv_put_int(&w, r->spec->jobs[i].submit_ns);
        orr_csv_put_int(&w, x->start_ns);
        orr_csv_put_int(&w, x->end_ns);
        orr_csv_put_int(&w, x->waited_ns);
        orr_csv_put_int(&w, x->lost_ns);
        orr_csv_put_int(&w, x->racks);
        orr_csv_put_int(&w, x->preemptions);
        orr_csv_end_row(&w);
    }
}
