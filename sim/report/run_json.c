/* A run as JSON, schema orrery.run/1. */
#include "sim/report/run_priv.h"

#include "sim/io/json_write.h"
#include "sim/report/json_head.h"

#include <math.h>

static void put_head(const OrrRunRecord *r, OrrJsonWriter *w) {
    const OrrRecord *h = r->head;
    orr_report__json_begin(h, "orrery.run/1", w);
    orr_report__json_inputs(h, w);
    orr_report__json_overrides(h, w);
    orr_json_put_string(w, "calibration", h->calibration);
    orr_report__json_assumptions(h, w);
    orr_report__json_warnings(h, w);
}

static void put_what(const OrrRunRecord *r, OrrJsonWriter *w) {
    const OrrRecord *h = r->head;
    orr_json_put_string(w, "run", r->run);
    orr_json_put_string(w, "job", h->job);
    orr_json_put_string(w, "model", h->model);
    orr_json_put_string(w, "cluster", h->cluster);
    orr_json_put_string(w, "gpu", h->gpu);
    orr_json_put_string(w, "framework", h->framework);
    orr_json_put_int(w, "world_size", r->n_gpus);
    orr_json_put_int(w, "nodes", r->n_nodes);
    orr_json_put_int(w, "spare_nodes", r->n_spare_nodes);
    orr_json_put_int(w, "step_time_ns", r->step_ns);
    orr_json_put_double(w, "step_time_deviation_ns", r->step_deviation_ns);
    orr_json_put_int(w, "tokens_per_step", r->tokens_per_step);
    orr_json_put_double(w, "mfu_frac", r->mfu_frac);
    orr_json_put_int(w, "seeds", r->n_seeds);
}

static double mean_of(const OrrRunRecord *r, const char *name) {
    return orr_run_record_figure(r, name)->mean;
}

static void put_means(const OrrRunRecord *r, OrrJsonWriter *w) {
    static const char *const names[] = {"goodput_frac", "ettr_frac", "mfu_run_frac"};
    orr_json_put_int(w, "wall_ns", r->wall_ns);
    orr_json_put_int(w, "useful_ns", r->useful_ns);
    for (guint i = 0; i < G_N_ELEMENTS(names); i++)
        orr_json_put_double(w, names[i], mean_of(r, names[i]));
    orr_json_put_int(w, "mtbi_ns", llround(mean_of(r, "mtbi_ns")));
}

static void put_causes(const OrrRunRecord *r, OrrJsonWriter *w) {
    orr_json_begin_array(w, "interruptions");
    for (uint32_t c = 0; c < r->n_causes; c++) {
        if (!r->causes[c].is_interruption)
            continue;
        orr_json_begin_object_inline(w, NULL);
        orr_json_put_string(w, "cause", r->causes[c].name);
        orr_json_put_double(w, "count", r->causes[c].mean_count);
        orr_json_put_double(w, "ci95", r->causes[c].ci95_count);
        orr_json_put_double(w, "expected", r->causes[c].expected);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    orr_json_begin_array(w, "failure_rates");
    for (uint32_t c = r->n_own; c < r->n_causes; c++) {
        const OrrRunCause *x = &r->causes[c];
        orr_json_begin_object_inline(w, NULL);
        orr_json_put_string(w, "cause", x->name);
        orr_json_put_string(w, "component", x->component);
        orr_json_put_string(w, "law", x->law);
        orr_json_put_string(w, "effect", x->effect);
        orr_json_put_double(w, "mtbf_gpu_hours", x->mtbf_gpu_h);
        orr_json_put_double(w, "per_1000_node_days", x->per_1000_node_days);
        orr_json_put_double(w, "mtbf_job_hours", x->mtbf_job_h);
        orr_json_put_double(w, "count", x->mean_count);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

static void put_spent(OrrJsonWriter *w, const char *prefix, OrrRunSpent spent) {
    g_autofree char *hours = g_strconcat(prefix, "gpu_hours", NULL);
    g_autofree char *usd = g_strconcat(prefix, "usd", NULL);
    orr_json_put_double(w, hours, spent.gpu_hours);
    orr_json_put_double(w, usd, spent.usd);
}

/* Spare nodes cost GPU-hours and no time. */
static void put_spares(const OrrRunRecord *r, const int64_t *lost_ns, int64_t wall_ns,
                       OrrJsonWriter *w) {
    OrrRunSpent spares = orr_run_spent_spares(r, lost_ns, wall_ns);
    if (!(spares.gpu_hours > 0))
        return;
    orr_json_begin_object_inline(w, NULL);
    orr_json_put_string(w, "cause", "spare_nodes");
    orr_json_put_int(w, "ns", 0);
    put_spent(w, "", spares);
    orr_json_begin_object_inline(w, "went_on");
    orr_json_end_object(w);
    orr_json_end_object(w);
}

static void put_losses(const OrrRunRecord *r, OrrJsonWriter *w) {
    orr_json_begin_array(w, "lost");
    for (uint32_t c = 0; c < r->n_causes; c++) {
        int64_t ns = orr_run_record_lost(r, c);
        if (ns == 0)
            continue;
        orr_json_begin_object_inline(w, NULL);
        orr_json_put_string(w, "cause", r->causes[c].name);
        orr_json_put_int(w, "ns", ns);
        put_spent(w, "", orr_run_spent_lost(r, r->lost_ns + c * ORR_N_LOSSES));
        orr_json_begin_object_inline(w, "went_on");
        for (int l = 0; l < ORR_N_LOSSES; l++)
            if (r->lost_ns[c * ORR_N_LOSSES + (uint32_t)l] != 0)
                orr_json_put_int(w, orr_loss_name((OrrLoss)l),
                                 r->lost_ns[c * ORR_N_LOSSES + (uint32_t)l]);
        orr_json_end_object(w);
        orr_json_end_object(w);
    }
    put_spares(r, r->lost_ns, r->wall_ns, w);
    orr_json_end_array(w);
}

static void put_checkpoint(const OrrRunRecord *r, OrrJsonWriter *w) {
    orr_json_begin_object(w, "checkpoint");
    orr_json_put_string(w, "policy", r->interval_policy);
    orr_json_put_double(w, "bytes", r->state_bytes);
    orr_json_put_int(w, "interval_ns", r->interval_ns);
    orr_json_put_int(w, "interval_steps", r->interval_steps);
    orr_json_put_int(w, "young_ns", r->young_ns);
    orr_json_put_int(w, "daly_ns", r->daly_ns);
    orr_json_begin_array(w, "stores");
    for (uint32_t i = 0; i < r->n_tiers; i++) {
        const OrrRunTier *t = &r->tiers[i];
        orr_json_begin_object_inline(w, NULL);
        orr_json_put_string(w, "name", t->name);
        orr_json_put_int(w, "every", t->every);
        orr_json_put_int(w, "block_ns", t->block_ns);
        orr_json_put_int(w, "write_ns", t->write_ns);
        orr_json_put_int(w, "load_ns", t->load_ns);
        orr_json_put_double(w, "bytes_per_s", t->bytes_per_s);
        orr_json_put_double(w, "write_slow_frac", t->write_slow_frac);
        orr_json_put_double(w, "bytes_per_day", t->bytes_per_day);
        orr_json_put_double(w, "kept_bytes", t->kept_bytes);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    orr_json_end_object(w);
}

static void put_money(const OrrRunRecord *r, OrrJsonWriter *w) {
    orr_json_put_double(w, "cost_usd", mean_of(r, "cost_usd"));
    orr_json_put_double(w, "energy_mwh", mean_of(r, "energy_mwh"));
    orr_json_put_double(w, "carbon_kg", mean_of(r, "carbon_kg"));
    orr_json_put_double(w, "gpu_hours", mean_of(r, "gpu_hours"));
    put_spent(w, "useful_", orr_run_spent_useful(r, r->useful_ns));
    orr_json_put_double(w, "storage_usd", r->storage_usd);
    orr_json_put_double(w, "tokens", mean_of(r, "tokens"));
    orr_json_begin_object(w, "prices");
    orr_json_put_string(w, "name", r->prices);
    orr_json_put_string(w, "date", r->prices_date);
    orr_json_put_double(w, "usd_per_gpu_hour", r->usd_per_gpu_h);
    orr_json_put_double(w, "breakeven_hours", r->breakeven_h);
    orr_json_end_object(w);
    orr_json_begin_array(w, "contracts");
    for (uint32_t i = 0; i < r->n_costs; i++) {
        orr_json_begin_object_inline(w, NULL);
        orr_json_put_string(w, "contract", r->costs[i].name);
        orr_json_put_double(w, "cost_usd", r->costs[i].usd);
        orr_json_put_string(w, "note", r->costs[i].note);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

static void put_seed(const OrrRunRecord *r, const OrrRunSeed *s, OrrJsonWriter *w) {
    orr_json_begin_object_inline(w, NULL);
    orr_json_put_int(w, "seed", (int64_t)s->seed);
    orr_json_put_int(w, "wall_ns", s->wall_ns);
    orr_json_put_int(w, "useful_ns", s->useful_ns);
    orr_json_put_int(w, "steps", s->steps);
    orr_json_put_int(w, "tokens", s->tokens);
    orr_json_put_bool(w, "is_done", s->is_done);
    orr_json_put_int(w, "interruptions", s->interruptions);
    orr_json_put_int(w, "reworked_steps", s->reworked_steps);
    orr_json_put_int(w, "checkpoints", s->checkpoints);
    orr_json_put_double(w, "cost_usd", s->cost_usd);
    orr_json_put_int(w, "repairs", s->repairs);
    orr_json_put_int(w, "repair_wait_ns", s->repair_wait_ns);
    orr_json_begin_array(w, "lost");
    for (uint32_t c = 0; c < r->n_causes; c++) {
        int64_t ns = orr_run_seed_lost(s, c);
        if (ns == 0 && s->strikes[c] == 0)
            continue;
        orr_json_begin_object_inline(w, NULL);
        orr_json_put_string(w, "cause", r->causes[c].name);
        orr_json_put_int(w, "count", s->strikes[c]);
        orr_json_put_int(w, "ns", ns);
        put_spent(w, "", orr_run_spent_lost(r, s->lost_ns + c * ORR_N_LOSSES));
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    orr_json_end_object(w);
}

static void write_json(const OrrRunRecord *r, OrrOut *out) {
    OrrJsonWriter w = {.out = out, .is_pretty = true};
    orr_json_begin_object(&w, NULL);
    put_head(r, &w);
    put_what(r, &w);
    put_means(r, &w);
    put_causes(r, &w);
    put_losses(r, &w);
    put_money(r, &w);
    put_checkpoint(r, &w);
    orr_report__json_figures(r->figures, r->n_figures, &w);
    orr_json_begin_array(&w, "runs");
    for (uint32_t i = 0; i < r->n_seeds; i++)
        put_seed(r, &r->seeds[i], &w);
    orr_json_end_array(&w);
    orr_json_end_object(&w);
    orr_out_puts(out, "\n");
}

const OrrRunFormat orr_run__json = {
    .name = "json",
    .summary = "One object, schema orrery.run/1, stable keys",
    .source = "RFC 8259; doc/schema/run-1.json",
    .write = write_json,
};
