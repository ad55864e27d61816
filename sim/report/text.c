/* The record as text for people: the answer first, then why, then what it rests on. */
#include "sim/report/report_priv.h"

#include <math.h>

#include "sim/base/units.h"

#include <string.h>

static void line(OrrOut *out, const char *name, const char *value, const char *denominator) {
    orr_out_printf(out, "  %-14s %-18s %s\n", name, value, denominator);
}

static void headline_rates(const OrrRecord *r, OrrOut *out) {
    OrrFixed time = orr_report__time((double)r->step_time_ns);
    OrrFixed first = orr_report__time((double)r->first_step_ns);
    OrrFixed tokens = orr_report__count((double)r->tokens_per_step);
    g_autofree char *per_step =
        g_strdup_printf("for %s tokens (first step %s)%s", tokens.text, first.text,
                        r->is_periodic ? "" : "; not periodic, this is a mean");
    line(out, "step time", time.text, per_step);
    OrrFixed rate = orr_report__count(r->tokens_per_s);
    OrrFixed per_gpu = r->tokens_per_s_per_gpu < 1000
                           ? orr_report__fixed(r->tokens_per_s_per_gpu, 1)
                           : orr_report__count(r->tokens_per_s_per_gpu);
    OrrFixed gpus = orr_report__count(r->world_size);
    g_autofree char *value = g_strdup_printf("%s tokens/s", rate.text);
    g_autofree char *of = g_strdup_printf("%s tokens/s per GPU, of %s GPU%s", per_gpu.text,
                                          gpus.text, r->world_size > 1 ? "s" : "");
    line(out, "throughput", value, of);
}

static void headline_interval(const OrrRecord *r, OrrOut *out) {
    const OrrRecordInterval *i = &r->interval;
    if (i->n_rows == 0)
        return;
    OrrFixed low = orr_report__time((double)i->low_ns), high = orr_report__time((double)i->high_ns);
    char below[16], above[16];
    double step = (double)r->step_time_ns;
    g_ascii_formatd(below, sizeof below, "%+.0f",
                    round(100 * ((double)i->low_ns / step - 1)) + 0.0); /* no -0 */
    g_ascii_formatd(above, sizeof above, "%+.0f",
                    round(100 * ((double)i->high_ns / step - 1)) + 0.0);
    g_autofree char *value = g_strdup_printf("%s to %s", low.text, high.text);
    g_autofree char *of =
        g_strdup_printf("would be measured in %.0f of 100 cases (%s to %s %%), by errors on",
                        100 * i->coverage_frac, below, above);
    line(out, "likely", value, of);
    orr_out_printf(out, "  %-33s %u published runs from %u source%s: %s\n", "", i->n_rows,
                   i->n_sources, i->n_sources > 1 ? "s" : "", i->regime);
    if (i->outside[0])
        orr_out_printf(out, "  %-33s none of them had %s\n", "", i->outside);
}

static void headline_mfu(const OrrRecord *r, OrrOut *out) {
    const OrrRecordMfu *m = &r->mfu[0];
    OrrFixed tflops = orr_report__fixed(r->tflops_per_gpu, r->tflops_per_gpu < 10 ? 3 : 1);
    g_autofree char *flops = orr_units_format(r->model_flops_per_step, ORR_DIM_FLOPS);
    g_autofree char *value = g_strdup_printf("%s TFLOP/s", tflops.text);
    g_autofree char *of =
        g_strdup_printf("per GPU; %s a step by formula %s", flops, r->flops_formula);
    line(out, "model FLOPs", value, of);
    OrrFixed mfu = orr_report__percent(m->mfu_frac), hfu = orr_report__percent(m->hfu_frac);
    OrrFixed peak = orr_report__fixed(m->peak_flops_per_s * 1e-12, 1);
    g_autofree char *peak_of = g_strdup_printf("of the dense %s peak, %s TFLOP/s (HFU %s)",
                                               r->precision, peak.text, hfu.text);
    line(out, "MFU", mfu.text, peak_of);
}

static void headline_losses(const OrrRecord *r, OrrOut *out) {
    OrrFixed bubble = orr_report__percent(r->bubble_of_step_frac);
    OrrFixed ideal = orr_report__percent(r->bubble_over_ideal_frac);
    g_autofree char *over = g_strdup_printf("of the step; %s over the ideal time", ideal.text);
    line(out, "bubble", bubble.text, over);
    OrrFixed share = orr_report__percent(r->communication_share_frac);
    line(out, "communication", share.text, "of the step with the compute stream idle for it");
}

static const OrrRecordStage *fullest(const OrrRecord *r) {
    const OrrRecordStage *worst = &r->stages[0];
    for (uint32_t s = 1; s < r->n_stages; s++)
        if (r->stages[s].peak_bytes > worst->peak_bytes)
            worst = &r->stages[s];
    return worst;
}

static void headline_memory(const OrrRecord *r, OrrOut *out) {
    static const char *const verdicts[] = {"fits", "tight, may fail", "DOES NOT FIT"};
    const OrrRecordStage *s = fullest(r);
    double room = (double)(r->capacity_bytes - s->peak_bytes);
    OrrFixed peak = orr_report__gib((double)s->peak_bytes);
    OrrFixed capacity = orr_report__gib((double)r->capacity_bytes);
    OrrFixed room_gib = orr_report__gib(room < 0 ? -room : room);
    OrrFixed room_frac = orr_report__percent((room < 0 ? -room : room) / (double)r->capacity_bytes);
    g_autofree char *of =
        g_strdup_printf("%s of %s on stage %u; %s (%s) %s", peak.text, capacity.text, s->stage,
                        room_gib.text, room_frac.text, room < 0 ? "too much" : "free");
    line(out, "memory", verdicts[r->verdict], of);
}

static void headline(const OrrRecord *r, OrrOut *out) {
    OrrFixed params = orr_report__count((double)r->parameters_total);
    OrrFixed gpus = orr_report__count(r->world_size);
    orr_out_printf(out, "%s: one training step of %s on %s GPU%s\n", r->job, r->model, gpus.text,
                   r->world_size > 1 ? "s" : "");
    orr_out_printf(out, "%s parameters; %s, %s; orrery %s, seed %" G_GUINT64_FORMAT "\n\n",
                   params.text, r->cluster, r->gpu, r->version, r->seed);
    headline_rates(r, out);
    headline_interval(r, out);
    headline_mfu(r, out);
    headline_losses(r, out);
    headline_memory(r, out);
}

static void layout(const OrrRecord *r, OrrOut *out) {
    const OrrRecordLayout *l = &r->layout;
    OrrFixed ranks = orr_report__count(r->world_size), gbs = orr_report__count(l->global_batch);
    OrrFixed tokens = orr_report__count(l->sequence_length);
    orr_out_printf(out,
                   "\nLayout\n  TP %u%s x PP %u x CP %u x DP %u = %s ranks (%s); VPP %u, EP %u,"
                   " ZeRO %u\n",
                   l->tp, l->sequence_parallel ? " (SP)" : "", l->pp, l->cp, l->dp, ranks.text,
                   l->rank_order, l->vpp, l->ep, l->zero_stage);
    orr_out_printf(out,
                   "  MBS %u, GBS %s sequences of %s tokens: M = GBS / (MBS x DP) = %u "
                   "micro-batches a step\n",
                   l->micro_batch, gbs.text, tokens.text, l->micro_batches);
    orr_out_printf(out, "  schedule %s, precision %s, recompute %s, framework %s\n", r->schedule,
                   r->precision, r->recompute, r->framework);
}

static void findings(const OrrRecord *r, OrrOut *out) {
    if (r->n_warnings + r->n_findings == 0)
        return;
    orr_out_puts(out, "\nWhat stands out\n");
    for (uint32_t i = 0; i < r->n_warnings; i++) {
        g_autofree char *text = g_strdup_printf("%s: %s", r->warnings[i].code, r->warnings[i].text);
        orr_report__wrap(out, "  ! ", text);
    }
    for (uint32_t i = 0; i < r->n_findings; i++) {
        const OrrRecordFinding *f = &r->findings[i];
        g_autofree char *text = g_strdup_printf("%s: %s", f->code, f->evidence);
        orr_report__wrap(out, "  * ", text);
        orr_report__wrap(out, "      -> ", f->advice);
    }
}

static void mfu_table(const OrrRecord *r, OrrOut *out) {
    orr_out_puts(out, "\nUtilisation by formula (HFU: recomputed FLOPs count too)\n");
    orr_out_printf(out, "  %-16s %16s %15s %9s %9s\n", "formula", "TFLOP/s per GPU", "peak TFLOP/s",
                   "MFU", "HFU");
    for (uint32_t i = 0; i < r->n_mfu; i++) {
        const OrrRecordMfu *m = &r->mfu[i];
        OrrFixed tflops = orr_report__fixed(m->tflops_per_gpu, 1);
        OrrFixed peak = orr_report__fixed(m->peak_flops_per_s * 1e-12, 1);
        OrrFixed mfu = orr_report__percent(m->mfu_frac), hfu = orr_report__percent(m->hfu_frac);
        orr_out_printf(out, "  %-16s %16s %15s %9s %9s\n", m->formula, tflops.text, peak.text,
                       mfu.text, hfu.text);
    }
    orr_out_puts(out,
                 "  Peaks are dense; a data sheet's figure \"with sparsity\" is twice that and "
                 "halves the MFU.\n");
}

static void stages(const OrrRecord *r, OrrOut *out) {
    if (r->n_stages < 2)
        return;
    orr_out_puts(out, "\nStages: busy time of the compute stream, mean of its ranks\n");
    orr_out_printf(out, "  %5s %6s  %-18s %12s %9s\n", "stage", "layers", "ends", "busy ms",
                   "of step");
    for (uint32_t i = 0; i < r->n_stages; i++) {
        const OrrRecordStage *s = &r->stages[i];
        OrrFixed ms = orr_report__fixed((double)s->busy_ns * 1e-6, 2);
        OrrFixed share = orr_report__percent((double)s->busy_ns / (double)r->step_time_ns);
        const char *ends = s->has_embedding ? (s->has_head ? "embedding, head" : "embedding")
                           : s->has_head    ? "head"
                                            : "";
        orr_out_printf(out, "  %5u %6u  %-18s %12s %9s\n", s->stage, s->layers, ends, ms.text,
                       share.text);
    }
}

static void assumptions(const OrrRecord *r, OrrOut *out) {
    if (r->n_assumptions > 0)
        orr_out_puts(out, "\nAssumed, because no file said otherwise\n");
    for (uint32_t i = 0; i < r->n_assumptions; i++) {
        const OrrRecordAssumption *a = &r->assumptions[i];
        g_autofree char *first = g_strdup_printf("  %s = %s  (", a->key, a->value);
        orr_out_printf(out, "%s%s)\n", first, a->origin);
    }
}

static void inputs(const OrrRecord *r, OrrOut *out) {
    orr_out_printf(out, "\nRead (calibration: %s)\n", r->calibration);
    for (uint32_t i = 0; i < r->n_inputs; i++)
        orr_out_printf(out, "  %.12s  %s\n", r->inputs[i].sha256, r->inputs[i].name);
    for (uint32_t i = 0; i < r->n_overrides; i++)
        orr_out_printf(out, "  --set %s\n", r->overrides[i]);
    OrrFixed ranks = orr_report__count((double)r->simulation.ranks);
    OrrFixed reps = orr_report__count((double)r->simulation.representatives);
    OrrFixed ops = orr_report__count((double)r->simulation.operations);
    OrrFixed events = orr_report__count((double)r->simulation.events);
    orr_out_printf(out,
                   "\nSimulated %u steps of %s ranks by %s that stand for all: %s operations, %s "
                   "events a step.\n",
                   r->simulated_steps, ranks.text, reps.text, ops.text, events.text);
}

static void write_text(const OrrRecord *r, OrrOut *out) {
    headline(r, out);
    findings(r, out);
    layout(r, out);
    orr_report__time_account(r, out);
    orr_report__critical_path(r, out);
    orr_report__sensitivities(r, out);
    orr_report__perturbs(r, out);
    orr_report__communication(r, out);
    orr_report__groups(r, out);
    orr_report__memory(r, out);
    stages(r, out);
    mfu_table(r, out);
    assumptions(r, out);
    inputs(r, out);
}

const OrrReportFormat orr_report__text = {
    .name = "text",
    .summary = "Tables and sentences for people, the answer first",
    .source = "DESIGN.md, section 6",
    .write = write_text,
};
