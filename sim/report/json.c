/* The record as JSON, schema "orrery.step/1" (doc/schema/step-1.json). Keys are added, never
 * renamed or removed. Accounts, kinds and stages come in the order of their enumerations, so that
 * two records can be compared line by line; parts that are zero are left out. */
#include "sim/report/report_priv.h"

#include "sim/io/json_write.h"
#include "sim/report/json_head.h"

static void put_notes(const OrrRecord *r, OrrJsonWriter *w) {
    orr_report__json_assumptions(r, w);
    orr_report__json_warnings(r, w);
    orr_json_begin_array(w, "findings");
    for (uint32_t i = 0; i < r->n_findings; i++) {
        orr_json_begin_object(w, NULL);
        orr_json_put_string(w, "code", r->findings[i].code);
        orr_json_put_string(w, "evidence", r->findings[i].evidence);
        orr_json_put_string(w, "advice", r->findings[i].advice);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

static void put_head(const OrrRecord *r, OrrJsonWriter *w) {
    orr_report__json_begin(r, "orrery.step/1", w);
    orr_json_put_string(w, "job", r->job);
    orr_json_put_string(w, "model", r->model);
    orr_report__json_inputs(r, w);
    orr_report__json_overrides(r, w);
    orr_json_put_string(w, "cluster", r->cluster);
    orr_json_put_string(w, "gpu", r->gpu);
    orr_json_put_string(w, "framework", r->framework);
    orr_json_put_string(w, "schedule", r->schedule);
    orr_json_put_string(w, "precision", r->precision);
    orr_json_put_string(w, "recompute", r->recompute);
    orr_json_put_string(w, "calibration", r->calibration);
    put_notes(r, w);
}

static void put_layout(const OrrRecord *r, OrrJsonWriter *w) {
    const OrrRecordLayout *l = &r->layout;
    orr_json_put_int(w, "world_size", r->world_size);
    orr_json_begin_object(w, "layout");
    orr_json_put_int(w, "tp", l->tp);
    orr_json_put_int(w, "pp", l->pp);
    orr_json_put_int(w, "vpp", l->vpp);
    orr_json_put_int(w, "cp", l->cp);
    orr_json_put_int(w, "dp", l->dp);
    orr_json_put_int(w, "ep", l->ep);
    orr_json_put_int(w, "zero_stage", l->zero_stage);
    orr_json_put_bool(w, "sequence_parallel", l->sequence_parallel);
    orr_json_put_int(w, "micro_batch", l->micro_batch);
    orr_json_put_int(w, "global_batch", l->global_batch);
    orr_json_put_int(w, "micro_batches", l->micro_batches);
    orr_json_put_int(w, "sequence_length", l->sequence_length);
    orr_json_put_string(w, "rank_order", l->rank_order);
    orr_json_end_object(w);
    orr_json_begin_object(w, "parameters");
    orr_json_put_int(w, "total", (int64_t)r->parameters_total);
    orr_json_put_int(w, "active", (int64_t)r->parameters_active);
    orr_json_end_object(w);
}

static void put_interval(const OrrRecordInterval *i, OrrJsonWriter *w) {
    if (i->n_rows == 0)
        return;
    orr_json_begin_object(w, "interval");
    orr_json_put_double(w, "coverage_frac", i->coverage_frac);
    orr_json_put_int(w, "low_ns", i->low_ns);
    orr_json_put_int(w, "median_ns", i->median_ns);
    orr_json_put_int(w, "high_ns", i->high_ns);
    orr_json_put_int(w, "n_runs", i->n_rows);
    orr_json_put_int(w, "n_sources", i->n_sources);
    orr_json_put_string(w, "regime", i->regime);
    orr_json_put_string(w, "outside", i->outside);
    orr_json_end_object(w);
}

static void put_rates(const OrrRecord *r, OrrJsonWriter *w) {
    orr_json_put_int(w, "step_time_ns", r->step_time_ns);
    orr_json_put_int(w, "first_step_ns", r->first_step_ns);
    put_interval(&r->interval, w);
    orr_json_put_bool(w, "is_periodic", r->is_periodic);
    orr_json_put_int(w, "tokens_per_step", r->tokens_per_step);
    orr_json_put_double(w, "tokens_per_s", r->tokens_per_s);
    orr_json_put_double(w, "tokens_per_s_per_gpu", r->tokens_per_s_per_gpu);
    orr_json_put_string(w, "flops_formula", r->flops_formula);
    orr_json_put_double(w, "model_flops_per_step", r->model_flops_per_step);
    orr_json_put_double(w, "hardware_flops_per_step", r->hardware_flops_per_step);
    orr_json_put_double(w, "tflops_per_gpu", r->tflops_per_gpu);
    orr_json_begin_array(w, "mfu");
    for (uint32_t i = 0; i < r->n_mfu; i++) {
        orr_json_begin_object_inline(w, NULL);
        orr_json_put_string(w, "formula", r->mfu[i].formula);
        orr_json_put_double(w, "peak_flops_per_s", r->mfu[i].peak_flops_per_s);
        orr_json_put_double(w, "tflops_per_gpu", r->mfu[i].tflops_per_gpu);
        orr_json_put_double(w, "mfu_frac", r->mfu[i].mfu_frac);
        orr_json_put_double(w, "hfu_frac", r->mfu[i].hfu_frac);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    orr_json_begin_object(w, "bubble");
    orr_json_put_double(w, "of_step_frac", r->bubble_of_step_frac);
    orr_json_put_double(w, "over_ideal_frac", r->bubble_over_ideal_frac);
    orr_json_end_object(w);
    orr_json_put_double(w, "communication_share_frac", r->communication_share_frac);
}

static void put_communication(const OrrRecord *r, OrrJsonWriter *w) {
    orr_json_begin_array(w, "communication");
    for (uint32_t i = 0; i < r->n_comms; i++) {
        const OrrRecordComm *c = &r->comms[i];
        orr_json_begin_object_inline(w, NULL);
        orr_json_put_string(w, "kind", orr_comm_kind_name(c->kind));
        orr_json_put_string(w, "collective", orr_collective_name(c->collective));
        orr_json_put_int(w, "group_size", c->group_size);
        orr_json_put_string(w, "algorithm", c->algorithm);
        orr_json_put_string(w, "protocol", c->protocol);
        orr_json_put_int(w, "count", c->count);
        orr_json_put_int(w, "bytes", c->bytes);
        orr_json_put_int(w, "transfer_ns", c->transfer_ns);
        orr_json_put_int(w, "wait_ns", c->wait_ns);
        orr_json_put_int(w, "exposed_ns", c->exposed_ns);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    orr_json_begin_array(w, "groups");
    for (uint32_t i = 0; i < r->n_groups; i++) {
        const OrrRecordGroup *g = &r->groups[i];
        orr_json_begin_object_inline(w, NULL);
        orr_json_put_string(w, "kind", orr_group_name(g->kind));
        orr_json_put_int(w, "size", g->size);
        orr_json_put_int(w, "n_groups", g->n_groups);
        orr_json_put_int(w, "nodes", g->nodes);
        orr_json_put_int(w, "domains", g->domains);
        orr_json_put_bool(w, "leaves_node", g->nodes > 1);
        orr_json_put_string(w, "network", g->network);
        orr_json_put_string(w, "members", g->members);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

static void put_memory(const OrrRecord *r, OrrJsonWriter *w) {
    orr_json_begin_object(w, "memory");
    orr_json_put_int(w, "capacity_bytes", r->capacity_bytes);
    orr_json_put_string(w, "verdict", orr_verdict_name(r->verdict));
    orr_json_begin_array(w, "stages");
    for (uint32_t s = 0; s < r->n_stages; s++) {
        const OrrRecordStage *g = &r->stages[s];
        orr_json_begin_object_inline(w, NULL);
        orr_json_put_int(w, "stage", g->stage);
        orr_json_put_int(w, "peak_bytes", g->peak_bytes);
        orr_json_put_int(w, "allocated_bytes", orr_record_allocated_bytes(g));
        orr_json_put_int(w, "reserved_bytes", orr_record_reserved_bytes(g));
        orr_json_put_int(w, "headroom_bytes", r->capacity_bytes - g->peak_bytes);
        orr_json_put_string(w, "verdict", orr_verdict_name(g->verdict));
        orr_json_begin_object(w, "by_kind");
        for (int m = 0; m < ORR_N_MEM_KINDS; m++)
            orr_json_put_int(w, orr_mem_kind_name((OrrMemKind)m), g->mem_bytes[m]);
        orr_json_end_object(w);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    orr_json_end_object(w);
}

static void put_owned(OrrJsonWriter *w, const char *owner, int64_t ns) {
    if (ns == 0)
        return;
    orr_json_begin_object_inline(w, NULL);
    orr_json_put_string(w, "owner", owner);
    orr_json_put_int(w, "ns", ns);
    orr_json_end_object(w);
}

static void put_account(OrrJsonWriter *w, const char *key, const int64_t *account_ns) {
    orr_json_begin_array(w, key);
    for (int o = 0; o < ORR_N_OWNERS; o++)
        put_owned(w, orr_owner_name((OrrOwner)o), account_ns[o]);
    orr_json_end_array(w);
}

static void put_stages(const OrrRecord *r, OrrJsonWriter *w) {
    orr_json_begin_array(w, "stages");
    for (uint32_t s = 0; s < r->n_stages; s++) {
        const OrrRecordStage *g = &r->stages[s];
        orr_json_begin_object_inline(w, NULL);
        orr_json_put_int(w, "stage", g->stage);
        orr_json_put_int(w, "layers", g->layers);
        orr_json_put_bool(w, "has_embedding", g->has_embedding);
        orr_json_put_bool(w, "has_head", g->has_head);
        orr_json_put_int(w, "busy_ns", g->busy_ns);
        put_account(w, "time_account", g->account_ns);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

static void put_arrivals(const OrrRecord *r, OrrJsonWriter *w) {
    orr_json_begin_array(w, "arrivals");
    for (uint32_t i = 0; i < r->n_arrivals; i++) {
        const OrrRecordArrival *a = &r->arrivals[i];
        orr_json_begin_object_inline(w, NULL);
        orr_json_put_string(w, "what", a->what);
        orr_json_put_string(w, "group", orr_group_name(a->group));
        orr_json_put_int(w, "group_size", a->group_size);
        orr_json_put_int(w, "order", a->order);
        orr_json_put_int(w, "rank", a->rank);
        orr_json_put_int(w, "late_ns", a->late_ns);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

static void put_perturbations(const OrrRecord *r, OrrJsonWriter *w) {
    orr_json_begin_array(w, "perturbations");
    for (uint32_t i = 0; i < r->n_perturbs; i++) {
        orr_json_begin_object_inline(w, NULL);
        orr_json_put_string(w, "what", r->perturbs[i].what);
        orr_json_put_string(w, "value", r->perturbs[i].value);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    if (r->n_perturbs > 0)
        orr_json_put_int(w, "unperturbed_step_time_ns", r->sound_step_time_ns);
    orr_json_begin_array(w, "stragglers");
    for (uint32_t i = 0; i < r->n_stragglers; i++) {
        orr_json_begin_object_inline(w, NULL);
        orr_json_put_int(w, "rank", r->stragglers[i].rank);
        orr_json_put_int(w, "waited_for_ns", r->stragglers[i].waited_for_ns);
        orr_json_put_int(w, "cost_ns", r->stragglers[i].cost_ns);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    put_arrivals(r, w);
    if (r->percentiles.n_seeds > 0) {
        const OrrRecordPercentiles *p = &r->percentiles;
        orr_json_begin_object_inline(w, "percentiles");
        orr_json_put_int(w, "n_seeds", p->n_seeds);
        orr_json_put_int(w, "p5_ns", p->p5_ns);
        orr_json_put_int(w, "p50_ns", p->p50_ns);
        orr_json_put_int(w, "p95_ns", p->p95_ns);
        orr_json_put_int(w, "mean_ns", p->mean_ns);
        orr_json_put_int(w, "ci95_ns", p->ci95_ns);
        orr_json_end_object(w);
    }
    orr_json_begin_object_inline(w, "rank_waits");
    orr_json_put_int(w, "least_ns", r->waits.least_ns);
    orr_json_put_int(w, "least_rank", r->waits.least_rank);
    orr_json_put_int(w, "median_ns", r->waits.median_ns);
    orr_json_put_int(w, "most_ns", r->waits.most_ns);
    orr_json_put_int(w, "most_rank", r->waits.most_rank);
    orr_json_end_object(w);
}

static void put_sensitivities(const OrrRecord *r, OrrJsonWriter *w) {
    if (r->n_sensitivities == 0)
        return;
    orr_json_begin_object(w, "sensitivity");
    orr_json_put_double(w, "factor", r->sensitivity_factor);
    orr_json_begin_array(w, "of");
    for (uint32_t i = 0; i < r->n_sensitivities; i++) {
        const OrrRecordSensitivity *s = &r->sensitivities[i];
        orr_json_begin_object_inline(w, NULL);
        orr_json_put_string(w, "what", s->name);
        orr_json_put_string(w, "keys", s->keys);
        orr_json_put_int(w, "step_time_ns", s->step_time_ns);
        orr_json_put_int(w, "saved_ns", r->step_time_ns - s->step_time_ns);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    orr_json_end_object(w);
}

static void put_simulation(const OrrRecord *r, OrrJsonWriter *w) {
    orr_json_begin_object(w, "simulation");
    orr_json_put_int(w, "ranks", (int64_t)r->simulation.ranks);
    orr_json_put_int(w, "representatives", (int64_t)r->simulation.representatives);
    orr_json_put_int(w, "operations", (int64_t)r->simulation.operations);
    orr_json_put_int(w, "blocks", (int64_t)r->simulation.blocks);
    orr_json_put_int(w, "events", (int64_t)r->simulation.events);
    orr_json_put_int(w, "steps", r->simulated_steps);
    orr_json_end_object(w);
}

static void write_json(const OrrRecord *r, OrrOut *out) {
    OrrJsonWriter w = {.out = out, .is_pretty = true};
    orr_json_begin_object(&w, NULL);
    put_head(r, &w);
    put_layout(r, &w);
    put_rates(r, &w);
    put_communication(r, &w);
    put_memory(r, &w);
    put_stages(r, &w);
    put_account(&w, "time_account", r->time_account_ns);
    orr_json_begin_array(&w, "critical_path");
    for (uint32_t o = 0; o < ORR_N_PATH_OWNERS; o++)
        put_owned(&w, orr_path_owner_name(o), r->critical_path_ns[o]);
    orr_json_end_array(&w);
    put_sensitivities(r, &w);
    put_perturbations(r, &w);
    put_simulation(r, &w);
    orr_json_end_object(&w);
    orr_out_puts(out, "\n");
}

const OrrReportFormat orr_report__json = {
    .name = "json",
    .summary = "One object, schema orrery.step/1, stable keys",
    .source = "RFC 8259; doc/schema/step-1.json",
    .write = write_json,
};
