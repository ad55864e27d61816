#include "sim/job/spec.h"

#include <math.h>

const char *const orr_own_cause_names[] = {"start",      "checkpoint", "evaluation",
                                           "step_noise", "end",        NULL};

OrrRunSpec *orr_run_spec_new(void) {
    OrrRunSpec *spec = g_new0(OrrRunSpec, 1);
    spec->recovery.hot_spares = ORR_SPARES_UNLIMITED;
    spec->recovery.nodes_per_replica = 1;
    spec->n_replicas = 1;
    return spec;
}

void orr_run_spec_free(OrrRunSpec *spec) {
    if (!spec)
        return;
    for (uint32_t i = 0; i < spec->n_kinds; i++)
        orr_failure_kind_clear(&spec->kinds[i]);
    for (uint32_t i = 0; i < spec->checkpoint.n_tiers; i++)
        g_free(spec->checkpoint.tiers[i].name);
    g_free(spec->kinds);
    g_free(spec->phases);
    g_free(spec->name);
    g_free(spec);
}

OrrFailureKind *orr_run_spec_add_kind(OrrRunSpec *spec, const char *name) {
    spec->kinds = g_renew(OrrFailureKind, spec->kinds, spec->n_kinds + 1);
    OrrFailureKind *kind = &spec->kinds[spec->n_kinds++];
    *kind = (OrrFailureKind){.name = g_strdup(name), .shape = 1, .slow_factor = 1, .n_units = 1};
    return kind;
}

static bool check_kind(const OrrFailureKind *k, GError **error) {
    if (k->law != ORR_LAW_EVENTS && !(k->mean_ns >= 1 && k->n_units >= 1))
        return orr_fail_input(error, "failure %s: needs a mean time above 0 and a unit to strike",
                              k->name);
    if (k->law == ORR_LAW_WEIBULL && !(k->shape > 0))
        return orr_fail_input(error, "failure %s: a Weibull shape above 0 would do", k->name);
    if (!(k->slow_factor >= 1))
        return orr_fail_input(error, "failure %s: slows steps by a factor below 1", k->name);
    if (k->detect_ns < 0 || k->diagnose_ns < 0 || k->repair_ns < 0 || k->duration_ns < 0 ||
        k->notice_ns < 0)
        return orr_fail_input(error, "failure %s: a time below 0", k->name);
    return true;
}

/* One that takes more nodes than there are was meant for another machine. */
static bool check_nodes(const OrrRunSpec *s, const OrrFailureKind *k, GError **error) {
    return k->nodes <= s->n_nodes ||
           orr_fail_input(error,
                          "failure %s: nodes = %u, but the job of run %s has %u; at most that many "
                          "or all would do",
                          k->name, k->nodes, s->name, s->n_nodes);
}

static bool check_phases(const OrrRunSpec *s, GError **error) {
    if (s->n_phases == 0)
        return orr_fail_input(error, "run %s: has no phase", s->name);
    for (uint32_t p = 0; p < s->n_phases; p++) {
        const OrrRunPhase *phase = &s->phases[p];
        int64_t before = p > 0 ? s->phases[p - 1].end_tokens : 0;
        if (phase->end_tokens <= before || phase->tokens_per_step <= 0)
            return orr_fail_input(error, "run %s: phase %u has no tokens", s->name, p);
        for (uint32_t k = 0; k <= s->max_lost_replicas; k++)
            if (phase->step_ns[k] <= 0)
                return orr_fail_input(error, "run %s: phase %u has no step time", s->name, p);
    }
    if (s->phases[s->n_phases - 1].end_tokens != INT64_MAX)
        return orr_fail_input(error, "run %s: the last phase must have no end", s->name);
    return true;
}

bool orr_run_spec_check(const OrrRunSpec *s, GError **error) {
    if (s->length_ns <= 0 && s->total_tokens <= 0 && s->total_steps <= 0)
        return orr_fail_input(error, "run %s: has no end; a length, tokens or steps would do",
                              s->name);
    if (s->max_lost_replicas > ORR_MAX_LOST_REPLICAS ||
        (s->max_lost_replicas > 0 && s->max_lost_replicas >= s->n_replicas))
        return orr_fail_input(error, "run %s: shrinks by more replicas than it can (%u of %u)",
                              s->name, s->max_lost_replicas, s->n_replicas);
    const OrrCheckpointPlan *c = &s->checkpoint;
    if (c->n_tiers > 0 && c->interval_ns <= 0 && c->interval_steps == 0)
        return orr_fail_input(error, "run %s: checkpoints have no interval", s->name);
    for (uint32_t i = 0; i < c->n_tiers; i++)
        if (c->tiers[i].keep == 0 || c->tiers[i].every == 0)
            return orr_fail_input(error, "run %s: tier %s keeps nothing or is never written",
                                  s->name, c->tiers[i].name);
    for (uint32_t i = 0; i < c->n_tiers; i++)
        if (!(c->tiers[i].write_slow_frac >= 0) || c->tiers[i].traffic_ns < 0)
            return orr_fail_input(error, "run %s: tier %s makes steps faster", s->name,
                                  c->tiers[i].name);
    if (s->recovery.requeue_ns < 0 || s->recovery.queue_ns < 0)
        return orr_fail_input(error, "run %s: a time in the queue below 0", s->name);
    if (s->recovery.nodes_per_replica == 0)
        return orr_fail_input(error, "run %s: a replica without nodes", s->name);
    for (uint32_t i = 0; i < s->n_kinds; i++)
        if (!check_kind(&s->kinds[i], error) || !check_nodes(s, &s->kinds[i], error))
            return false;
    return check_phases(s, error);
}

double orr_kind_mtbf_ns(const OrrFailureKind *kind) {
    if (kind->law == ORR_LAW_EVENTS || !(kind->mean_ns > 0) || kind->n_units == 0)
        return INFINITY;
    return kind->mean_ns / (double)kind->n_units;
}

double orr_run_kind_rate(const OrrRunSpec *spec, const OrrFailureKind *kind) {
    if (kind->law != ORR_LAW_EVENTS)
        return 1 / orr_kind_mtbf_ns(kind);
    if (kind->n_events == 0)
        return 0;
    int64_t window = spec->length_ns > 0 ? spec->length_ns : kind->event_ns[kind->n_events - 1];
    uint32_t n = 0;
    while (n < kind->n_events && kind->event_ns[n] <= window)
        n++;
    return n / (double)MAX(window, 1);
}

bool orr_kind_is_announced(const OrrRunSpec *spec, const OrrFailureKind *kind) {
    if (kind->effect != ORR_EFFECT_RECLAIM)
        return kind->effect == ORR_EFFECT_PLANNED;
    for (uint32_t i = 0; i < spec->checkpoint.n_tiers; i++) {
        const OrrTier *t = &spec->checkpoint.tiers[i];
        if (t->survives >= kind->scope && t->block_ns + t->write_ns <= kind->notice_ns)
            return true;
    }
    return false;
}

double orr_run_mtbf_ns(const OrrRunSpec *spec) {
    double rate = 0;
    for (uint32_t i = 0; i < spec->n_kinds; i++)
        if (orr_effect_is_interruption(spec->kinds[i].effect) &&
            !orr_kind_is_announced(spec, &spec->kinds[i]))
            rate += orr_run_kind_rate(spec, &spec->kinds[i]);
    return rate > 0 ? 1 / rate : INFINITY;
}
