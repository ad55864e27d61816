/* The record as CSV, tidy: a value a row, in columns section, item, key, value, unit. `item` tells
 * rows of one section apart (a formula, a stage, an owner), "" where there is only one; `unit` is
 * "" for texts and counts. The first row behind the header is the schema. Keys are those of the
 * JSON. */
#include "sim/report/report_priv.h"

#include "sim/io/csv.h"

#include <string.h>

typedef struct {
    OrrCsvWriter w;
    const char *section, *item;
} Csv;

static void put_text(Csv *c, const char *key, const char *value, const char *unit) {
    const char *const row[] = {c->section, c->item, key, value, unit, NULL};
    orr_csv_put_row(&c->w, row);
}

static void put_int(Csv *c, const char *key, int64_t value, const char *unit) {
    orr_csv_put(&c->w, c->section);
    orr_csv_put(&c->w, c->item);
    orr_csv_put(&c->w, key);
    orr_csv_put_int(&c->w, value);
    orr_csv_put(&c->w, unit);
    orr_csv_end_row(&c->w);
}

static void put_double(Csv *c, const char *key, double value, const char *unit) {
    orr_csv_put(&c->w, c->section);
    orr_csv_put(&c->w, c->item);
    orr_csv_put(&c->w, key);
    orr_csv_put_double(&c->w, value);
    orr_csv_put(&c->w, unit);
    orr_csv_end_row(&c->w);
}

static void put_names(const OrrRecord *r, Csv *c) {
    c->section = "run", c->item = "";
    put_text(c, "schema", "orrery.step/1", "");
    put_text(c, "version", r->version, "");
    g_autofree char *seed = g_strdup_printf("%" G_GUINT64_FORMAT, r->seed);
    put_text(c, "seed", seed, "");
    put_text(c, "job", r->job, "");
    put_text(c, "model", r->model, "");
    put_text(c, "cluster", r->cluster, "");
    put_text(c, "gpu", r->gpu, "");
    put_text(c, "framework", r->framework, "");
    put_text(c, "schedule", r->schedule, "");
    put_text(c, "precision", r->precision, "");
    put_text(c, "recompute", r->recompute, "");
    put_text(c, "calibration", r->calibration, "");
    c->section = "inputs";
    for (uint32_t i = 0; i < r->n_inputs; i++) {
        c->item = r->inputs[i].name;
        put_text(c, "sha256", r->inputs[i].sha256, "");
    }
}

static void put_layout(const OrrRecord *r, Csv *c) {
    const OrrRecordLayout *l = &r->layout;
    c->section = "layout", c->item = "";
    put_int(c, "world_size", r->world_size, "");
    put_int(c, "tp", l->tp, "");
    put_int(c, "pp", l->pp, "");
    put_int(c, "vpp", l->vpp, "");
    put_int(c, "cp", l->cp, "");
    put_int(c, "dp", l->dp, "");
    put_int(c, "ep", l->ep, "");
    put_int(c, "zero_stage", l->zero_stage, "");
    put_int(c, "sequence_parallel", l->sequence_parallel, "");
    put_int(c, "micro_batch", l->micro_batch, "sequences");
    put_int(c, "global_batch", l->global_batch, "sequences");
    put_int(c, "micro_batches", l->micro_batches, "");
    put_int(c, "sequence_length", l->sequence_length, "tokens");
    put_text(c, "rank_order", l->rank_order, "");
    c->section = "parameters";
    put_int(c, "total", (int64_t)r->parameters_total, "");
    put_int(c, "active", (int64_t)r->parameters_active, "");
}

static void put_rates(const OrrRecord *r, Csv *c) {
    c->section = "step", c->item = "";
    put_int(c, "step_time_ns", r->step_time_ns, "ns");
    put_int(c, "first_step_ns", r->first_step_ns, "ns");
    if (r->interval.n_rows > 0) {
        put_int(c, "interval_low_ns", r->interval.low_ns, "ns");
        put_int(c, "interval_median_ns", r->interval.median_ns, "ns");
        put_int(c, "interval_high_ns", r->interval.high_ns, "ns");
        put_text(c, "interval_regime", r->interval.regime, "");
        put_text(c, "interval_outside", r->interval.outside, "");
    }
    put_int(c, "tokens_per_step", r->tokens_per_step, "tokens");
    put_double(c, "tokens_per_s", r->tokens_per_s, "tokens/s");
    put_double(c, "tokens_per_s_per_gpu", r->tokens_per_s_per_gpu, "tokens/s");
    put_text(c, "flops_formula", r->flops_formula, "");
    put_double(c, "model_flops_per_step", r->model_flops_per_step, "FLOP");
    put_double(c, "hardware_flops_per_step", r->hardware_flops_per_step, "FLOP");
    put_double(c, "tflops_per_gpu", r->tflops_per_gpu, "TFLOP/s");
    put_double(c, "bubble_of_step_frac", r->bubble_of_step_frac, "1");
    put_double(c, "bubble_over_ideal_frac", r->bubble_over_ideal_frac, "1");
    put_double(c, "communication_share_frac", r->communication_share_frac, "1");
    c->section = "mfu";
    for (uint32_t i = 0; i < r->n_mfu; i++) {
        c->item = r->mfu[i].formula;
        put_double(c, "peak_flops_per_s", r->mfu[i].peak_flops_per_s, "FLOP/s");
        put_double(c, "tflops_per_gpu", r->mfu[i].tflops_per_gpu, "TFLOP/s");
        put_double(c, "mfu_frac", r->mfu[i].mfu_frac, "1");
        put_double(c, "hfu_frac", r->mfu[i].hfu_frac, "1");
    }
}

static void put_communication(const OrrRecord *r, Csv *c) {
    c->section = "communication";
    for (uint32_t i = 0; i < r->n_comms; i++) {
        const OrrRecordComm *m = &r->comms[i];
        g_autofree char *item = g_strdup_printf("%u %s %s", i, orr_comm_kind_name(m->kind),
                                                orr_collective_name(m->collective));
        c->item = item;
        put_int(c, "group_size", m->group_size, "ranks");
        put_text(c, "algorithm", m->algorithm, "");
        put_text(c, "protocol", m->protocol, "");
        put_int(c, "count", m->count, "");
        put_int(c, "bytes", m->bytes, "bytes");
        put_int(c, "transfer_ns", m->transfer_ns, "ns");
        put_int(c, "wait_ns", m->wait_ns, "ns");
        put_int(c, "exposed_ns", m->exposed_ns, "ns");
    }
    c->section = "groups";
    for (uint32_t i = 0; i < r->n_groups; i++) {
        const OrrRecordGroup *g = &r->groups[i];
        c->item = orr_group_name(g->kind);
        put_int(c, "size", g->size, "ranks");
        put_int(c, "n_groups", g->n_groups, "");
        put_int(c, "nodes", g->nodes, "");
        put_text(c, "network", g->network, "");
        put_text(c, "members", g->members, "");
    }
}

static void put_stages(const OrrRecord *r, Csv *c) {
    c->section = "memory", c->item = "";
    put_int(c, "capacity_bytes", r->capacity_bytes, "bytes");
    put_text(c, "verdict", orr_verdict_name(r->verdict), "");
    for (uint32_t s = 0; s < r->n_stages; s++) {
        const OrrRecordStage *g = &r->stages[s];
        g_autofree char *item = g_strdup_printf("%u", g->stage);
        c->item = item, c->section = "memory";
        put_int(c, "peak_bytes", g->peak_bytes, "bytes");
        put_int(c, "allocated_bytes", orr_record_allocated_bytes(g), "bytes");
        put_int(c, "reserved_bytes", orr_record_reserved_bytes(g), "bytes");
        put_text(c, "verdict", orr_verdict_name(g->verdict), "");
        c->section = "memory_by_kind";
        for (int m = 0; m < ORR_N_MEM_KINDS; m++)
            put_int(c, orr_mem_kind_name((OrrMemKind)m), g->mem_bytes[m], "bytes");
        c->section = "stages";
        put_int(c, "layers", g->layers, "");
        put_int(c, "busy_ns", g->busy_ns, "ns");
        c->section = "stage_time_account";
        for (int o = 0; o < ORR_N_OWNERS; o++)
            if (g->account_ns[o] != 0)
                put_int(c, orr_owner_name((OrrOwner)o), g->account_ns[o], "ns");
    }
}

static void put_accounts(const OrrRecord *r, Csv *c) {
    c->section = "time_account", c->item = "";
    for (int o = 0; o < ORR_N_OWNERS; o++)
        if (r->time_account_ns[o] != 0)
            put_int(c, orr_owner_name((OrrOwner)o), r->time_account_ns[o], "ns");
    c->section = "critical_path";
    for (uint32_t o = 0; o < ORR_N_PATH_OWNERS; o++)
        if (r->critical_path_ns[o] != 0)
            put_int(c, orr_path_owner_name(o), r->critical_path_ns[o], "ns");
}

static void put_sensitivities(const OrrRecord *r, Csv *c) {
    c->section = "sensitivity";
    for (uint32_t i = 0; i < r->n_sensitivities; i++) {
        const OrrRecordSensitivity *s = &r->sensitivities[i];
        c->item = s->name;
        put_text(c, "keys", s->keys, "");
        put_double(c, "factor", r->sensitivity_factor, "1");
        put_int(c, "step_time_ns", s->step_time_ns, "ns");
        put_int(c, "saved_ns", r->step_time_ns - s->step_time_ns, "ns");
    }
}

/* What is not as it should be, and who is waited for. */
static void put_perturbations(const OrrRecord *r, Csv *c) {
    c->section = "perturbations";
    for (uint32_t i = 0; i < r->n_perturbs; i++) {
        c->item = r->perturbs[i].what;
        put_text(c, "value", r->perturbs[i].value, "");
    }
    c->item = "";
    if (r->n_perturbs > 0)
        put_int(c, "unperturbed_step_time_ns", r->sound_step_time_ns, "ns");
    c->section = "stragglers";
    for (uint32_t i = 0; i < r->n_stragglers; i++) {
        g_autofree char *rank = g_strdup_printf("%u", r->stragglers[i].rank);
        c->item = rank;
        put_int(c, "waited_for_ns", r->stragglers[i].waited_for_ns, "ns");
        put_int(c, "cost_ns", r->stragglers[i].cost_ns, "ns");
    }
    c->section = "percentiles", c->item = "";
    if (r->percentiles.n_seeds > 0) {
        put_int(c, "n_seeds", r->percentiles.n_seeds, "");
        put_int(c, "p5_ns", r->percentiles.p5_ns, "ns");
        put_int(c, "p50_ns", r->percentiles.p50_ns, "ns");
        put_int(c, "p95_ns", r->percentiles.p95_ns, "ns");
        put_int(c, "mean_ns", r->percentiles.mean_ns, "ns");
        put_int(c, "ci95_ns", r->percentiles.ci95_ns, "ns");
    }
}

static void put_notes(const OrrRecord *r, Csv *c) {
    c->section = "warnings";
    for (uint32_t i = 0; i < r->n_warnings; i++) {
        c->item = r->warnings[i].code;
        put_text(c, "text", r->warnings[i].text, "");
    }
    c->section = "findings";
    for (uint32_t i = 0; i < r->n_findings; i++) {
        c->item = r->findings[i].code;
        put_text(c, "evidence", r->findings[i].evidence, "");
        put_text(c, "advice", r->findings[i].advice, "");
    }
    c->section = "assumptions";
    for (uint32_t i = 0; i < r->n_assumptions; i++) {
        c->item = r->assumptions[i].key;
        put_text(c, "value", r->assumptions[i].value, "");
        put_text(c, "origin", r->assumptions[i].origin, "");
    }
    c->section = "simulation", c->item = "";
    put_int(c, "ranks", (int64_t)r->simulation.ranks, "");
    put_int(c, "representatives", (int64_t)r->simulation.representatives, "");
    put_int(c, "operations", (int64_t)r->simulation.operations, "");
    put_int(c, "blocks", (int64_t)r->simulation.blocks, "");
    put_int(c, "events", (int64_t)r->simulation.events, "");
}

static void write_csv(const OrrRecord *r, OrrOut *out) {
    Csv c = {.w = {.out = out}};
    static const char *const header[] = {"section", "item", "key", "value", "unit", NULL};
    orr_csv_put_row(&c.w, header);
    put_names(r, &c);
    put_layout(r, &c);
    put_rates(r, &c);
    put_communication(r, &c);
    put_stages(r, &c);
    put_accounts(r, &c);
    put_sensitivities(r, &c);
    put_perturbations(r, &c);
    put_notes(r, &c);
}

const OrrReportFormat orr_report__csv = {
    .name = "csv",
    .summary = "A value a row: section, item, key, value, unit",
    .source = "RFC 4180; doc/formats.md",
    .write = write_csv,
};
