/* A shared cluster as JSON, schema orrery.share/1 (doc/schema/share-1.json), and as CSV. */
#include "sim/report/share_report.h"

#include "sim/io/csv.h"
#include "sim/report/json_head.h"

#include <math.h>
#include <string.h>

#define SCHEMA "orrery.share/1"

static void put_cluster(const OrrShareReport *r, OrrJsonWriter *w) {
    const OrrShareSpec *s = r->spec;
    orr_json_put_string(w, "share", r->name);
    orr_json_put_string(w, "policy", orr_share_policy_names[s->policy]);
    orr_json_put_string(w, "cluster", s->cluster_ref);
    orr_json_put_int(w, "nodes", s->n_nodes);
    orr_json_put_int(w, "gpus_per_node", s->gpus_per_node);
    orr_json_put_int(w, "nodes_per_rack", s->nodes_per_rack);
    orr_json_put_int(w, "racks_per_block", s->racks_per_block);
    orr_json_put_int(w, "slices_per_gpu", s->slices_per_gpu);
    orr_json_put_string(w, "slicing", orr_slicing_names[s->slicing]);
    orr_json_put_int(w, "units", (int64_t)r->account.units);
    orr_json_begin_object(w, "failures");
    orr_json_put_double(w, "node_mtbf_hours", s->node_mtbf_ns / 3600e9);
    orr_json_put_double(w, "per_1000_node_days",
                        s->node_mtbf_ns > 0 ? 1000 * 86400e9 / s->node_mtbf_ns : 0);
    orr_json_put_int(w, "repair_ns", s->repair_ns);
    orr_json_put_int(w, "detect_ns", s->detect_ns);
    orr_json_put_double(w, "spot_reclaim_mtbf_hours", s->reclaim_mtbf_ns / 3600e9);
    orr_json_end_object(w);
    orr_json_begin_object(w, "prices");
    orr_json_put_string(w, "name", r->prices);
    orr_json_put_string(w, "date", r->prices_date);
    orr_json_put_string(w, "contract", r->contract);
    orr_json_put_double(w, "usd_per_gpu_hour", r->usd_per_gpu_h);
    orr_json_put_double(w, "usd_per_spot_gpu_hour", r->usd_per_spot_gpu_h);
    orr_json_end_object(w);
    orr_json_put_int(w, "seeds", r->n_seeds);
}

static void put_account(const OrrShareReport *r, OrrJsonWriter *w) {
    const OrrShareAccount *a = &r->account;
    double all = (double)a->units * (double)a->makespan_ns, waited = 0;
    for (uint32_t i = 0; i < r->spec->n_jobs; i++)
        waited += (double)r->results[i].waited_ns;
    orr_json_put_int(w, "makespan_ns", a->makespan_ns);
    orr_json_put_double(w, "mean_wait_ns", waited / r->spec->n_jobs);
    orr_json_put_int(w, "node_failures", (int64_t)a->node_failures);
    orr_json_put_int(w, "node_reclaims", (int64_t)a->node_reclaims);
    orr_json_begin_array(w, "account");
    for (int o = 0; o < ORR_N_SHARE_OWNERS; o++) {
        orr_json_begin_object_inline(w, NULL);
        orr_json_put_string(w, "owner", orr_share_owner_names[o]);
        orr_json_put_wide(w, "unit_ns", a->part[o]); /* exact: it can pass 2^63 */
        orr_json_put_double(w, "gpu_hours", orr_share_gpu_hours(r->spec, a->part[o]));
        orr_json_put_double(w, "share_frac", all > 0 ? (double)a->part[o] / all : 0);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

static void put_spread(const OrrShareJobSpread *x, OrrJsonWriter *w) {
    orr_json_begin_object_inline(w, "over_seeds");
    orr_json_put_double(w, "waited_mean_ns", x->waited_mean_ns);
    orr_json_put_double(w, "waited_p50_ns", x->waited_p50_ns);
    orr_json_put_double(w, "waited_p95_ns", x->waited_p95_ns);
    orr_json_put_double(w, "end_p50_ns", x->end_p50_ns);
    orr_json_put_double(w, "end_p95_ns", x->end_p95_ns);
    orr_json_end_object(w);
}

/* Numbers of a job that JSON and CSV have alike. */
typedef struct {
    const char *name;
    int64_t value;
} JobNumber;
enum { N_JOB_NUMBERS = 19 };

static void numbers_of(const OrrShareJob *j, const OrrShareResult *x, JobNumber *out) {
    const JobNumber all[N_JOB_NUMBERS] = {
        {"gpus", j->gpus},
        {"slices", j->slices},
        {"submit_ns", j->submit_ns},
        {"start_ns", x->start_ns},
        {"end_ns", x->end_ns},
        {"waited_ns", x->waited_ns},
        {"ran_ns", x->ran_ns},
        {"useful_ns", x->spent_ns[ORR_SHARE_USEFUL]},
        {"spread_ns", x->spent_ns[ORR_SHARE_SPREAD]},
        {"lost_ns", x->lost_ns},
        {"rework_ns", x->spent_ns[ORR_SHARE_REWORK]},
        {"restart_ns", x->spent_ns[ORR_SHARE_START]},
        {"checkpoint_ns", x->spent_ns[ORR_SHARE_SAVE]},
        {"detect_ns", x->spent_ns[ORR_SHARE_DETECT]},
        {"racks", x->racks},
        {"preemptions", x->preemptions},
        {"reclaims", x->reclaims},
        {"failures", x->failures},
        {"checkpoints", x->saves},
    };
    memcpy(out, all, sizeof all);
}

static void put_job(const OrrShareReport *r, uint32_t i, OrrJsonWriter *w) {
    const OrrShareJob *j = &r->spec->jobs[i];
    const OrrShareResult *x = &r->results[i];
    JobNumber n[N_JOB_NUMBERS];
    numbers_of(j, x, n);
    orr_json_begin_object_inline(w, NULL);
    orr_json_put_string(w, "name", j->name);
    orr_json_put_string(w, "job", j->job_ref);
    orr_json_put_int(w, "step_time_ns", j->step_ns);
    orr_json_put_double(w, "steps", j->steps);
    for (int k = 0; k < N_JOB_NUMBERS; k++)
        orr_json_put_int(w, n[k].name, n[k].value);
    orr_json_put_int(w, "blocks", x->blocks);
    orr_json_put_double(w, "gpu_hours", orr_share_gpu_hours(r->spec, x->unit_ns));
    orr_json_put_double(w, "spot_gpu_hours", orr_share_gpu_hours(r->spec, x->spot_unit_ns));
    orr_json_put_double(w, "cost_usd", orr_share_usd(r, x));
    if (r->n_seeds > 1)
        put_spread(&r->spreads[i], w);
    orr_json_end_object(w);
}

void orr_share_json(const OrrShareReport *r, OrrOut *out) {
    OrrJsonWriter w = {.out = out, .is_pretty = true};
    orr_json_begin_object(&w, NULL);
    orr_report__json_begin(r->head, SCHEMA, &w);
    orr_report__json_inputs(r->head, &w);
    orr_report__json_overrides(r->head, &w);
    orr_json_put_string(&w, "calibration", r->head->calibration);
    orr_report__json_assumptions(r->head, &w);
    orr_report__json_warnings(r->head, &w);
    put_cluster(r, &w);
    put_account(r, &w);
    orr_report__json_figures(r->figures, r->n_figures, &w);
    orr_json_begin_array(&w, "jobs");
    for (uint32_t i = 0; i < r->spec->n_jobs; i++)
        put_job(r, i, &w);
    orr_json_end_array(&w);
    orr_json_end_object(&w);
    orr_out_puts(out, "\n");
}

void orr_share_csv(const OrrShareReport *r, OrrOut *out) {
    OrrCsvWriter w = {.out = out};
    JobNumber n[N_JOB_NUMBERS];
    numbers_of(&r->spec->jobs[0], &r->results[0], n);
    orr_csv_put(&w, "name");
    for (int k = 0; k < N_JOB_NUMBERS; k++)
        orr_csv_put(&w, n[k].name);
    orr_csv_put(&w, "blocks");
    orr_csv_put(&w, "gpu_hours");
    orr_csv_put(&w, "cost_usd");
    orr_csv_put(&w, "schema");
    orr_csv_end_row(&w);
    for (uint32_t i = 0; i < r->spec->n_jobs; i++) {
        const OrrShareResult *x = &r->results[i];
        numbers_of(&r->spec->jobs[i], x, n);
        orr_csv_put(&w, r->spec->jobs[i].name);
        for (int k = 0; k < N_JOB_NUMBERS; k++)
            orr_csv_put_int(&w, n[k].value);
        orr_csv_put_int(&w, x->blocks);
        orr_csv_put_double(&w, orr_share_gpu_hours(r->spec, x->unit_ns));
        orr_csv_put_double(&w, orr_share_usd(r, x));
        orr_csv_put(&w, SCHEMA);
        orr_csv_end_row(&w);
    }
}
