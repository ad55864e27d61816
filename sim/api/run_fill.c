/* The record of a run: what was put in, restated, and what came out. */
#include "sim/api/run_priv.h"

#include "sim/job/checkpoint.h"
#include "sim/job/money.h"
#include "sim/job/renewal.h"

#include <math.h>
#include <string.h>

static void set(char **field, const char *value) {
    orr_record_set(field, value ? value : "");
}

static void fill_causes(OrrRun *run, OrrRunRecord *r) {
    const OrrRunSpec *s = run->spec;
    r->n_own = ORR_N_OWN_CAUSES;
    for (uint32_t c = 0; c < r->n_causes; c++) {
        OrrRunCause *x = &r->causes[c];
        set(&x->name, orr_run_cause_name(run, c));
        if (c < ORR_N_OWN_CAUSES)
            continue;
        const OrrFailureKind *k = &s->kinds[c - ORR_N_OWN_CAUSES];
        set(&x->component, k->component);
        set(&x->source, k->source);
        set(&x->law, orr_failure_law_names[k->law]);
        set(&x->effect, orr_effect_names[k->effect]);
        bool is_replaced = k->effect == ORR_EFFECT_SLOW && k->nodes > 0; /* stopped for that */
        x->is_interruption = orr_effect_is_interruption(k->effect) || is_replaced;
        double mtbf_ns = orr_kind_mtbf_ns(k);
        if (!isfinite(mtbf_ns))
            continue;
        x->mtbf_job_h = mtbf_ns / 3600e9;
        x->mtbf_gpu_h = x->mtbf_job_h * s->n_gpus;
        x->per_1000_node_days = 24 * 1000 / (x->mtbf_job_h * s->n_nodes);
    }
}

/* A job that is down anyway neither stops for maintenance, nor stalls, nor computes nonsense. */
static bool is_met_running(const OrrFailureKind *k) {
    return k->only_running || k->effect == ORR_EFFECT_PLANNED || k->effect == ORR_EFFECT_STALL ||
           k->effect == ORR_EFFECT_CORRUPT;
}

/* How often each cause should have come, from its rate alone: in the time that the job had its
 * nodes, or that it trained. Parts are new when the run begins. */
static void fill_expected(const OrrRun *run, OrrRunRecord *r) {
    double wall = (double)r->wall_ns;
    double held = 1 - (double)orr_run_record_queued(r) / wall;
    double up = 1 - (double)orr_run_record_down(r) / wall;
    for (uint32_t c = ORR_N_OWN_CAUSES; c < r->n_causes; c++) {
        const OrrFailureKind *k = &run->spec->kinds[c - ORR_N_OWN_CAUSES];
        if (k->law == ORR_LAW_EVENTS)
            continue;
        if (k->law == ORR_LAW_PERIODIC) {
            r->causes[c].expected = floor(wall / orr_kind_mtbf_ns(k));
            continue;
        }
        double shape = k->law == ORR_LAW_WEIBULL ? k->shape : 1;
        r->causes[c].expected = (double)k->n_units * (is_met_running(k) ? up : held) *
                                orr_renewal_count(wall / k->mean_ns, shape, k->exclude_after);
    }
}

static void fill_checkpoint(OrrRun *run, OrrRunRecord *r) {
    const OrrCheckpointPlan *c = &run->spec->checkpoint;
    const OrrRunPhase *last = &run->spec->phases[run->spec->n_phases - 1];
    if (c->n_tiers == 0)
        return;
    double mtbf = orr_run_mtbf_ns(run->spec);
    set(&r->interval_policy, orr_interval_policy_names[run->file->checkpoint.policy]);
    int64_t step = last->step_ns[0];
    r->interval_steps = c->interval_steps > 0
                            ? c->interval_steps
                            : (uint32_t)MIN(MAX(1, (c->interval_ns + step / 2) / step), UINT32_MAX);
    r->interval_ns = (int64_t)r->interval_steps * step;
    if (isfinite(mtbf)) {
        r->young_ns = orr_plan_young_ns(c, mtbf);
        r->daly_ns = orr_plan_daly_ns(c, mtbf);
    }
    r->state_bytes = c->bytes;
    r->tiers = g_new0(OrrRunTier, c->n_tiers);
    r->n_tiers = c->n_tiers;
    const OrrRunFigure *useful = orr_run_record_figure(r, "goodput_frac");
    for (uint32_t i = 0; i < c->n_tiers; i++) {
        const OrrTier *t = &c->tiers[i];
        OrrRunTier *x = &r->tiers[i];
        *x = (OrrRunTier){.name = g_strdup(t->name),
                          .block_ns = t->block_ns,
                          .write_ns = t->write_ns,
                          .load_ns = t->load_ns,
                          .every = t->every,
                          .bytes = t->bytes,
                          .bytes_per_s = t->bytes_per_s,
                          .write_slow_frac = t->write_slow_frac,
                          .kept_bytes = t->bytes * t->keep};
        double per_day = 86400e9 / ((double)r->interval_ns * t->every) * useful->mean;
        x->bytes_per_day = per_day * t->bytes;
    }
}

static double kept_bytes(const OrrRun *run) {
    double sum = 0;
    for (uint32_t i = 0; i < run->spec->checkpoint.n_tiers; i++) {
        const OrrTier *t = &run->spec->checkpoint.tiers[i];
        sum += t->survives == ORR_SCOPE_ALL ? t->bytes * t->keep : 0;
    }
    return sum;
}

static uint32_t n_spares(const OrrRun *run) {
    uint32_t hot = run->spec->recovery.hot_spares;
    return hot == ORR_SPARES_UNLIMITED ? 0 : hot;
}

/* The same seeds paid for under another contract. */
static double mean_cost(const OrrRun *run, OrrContract contract, const OrrRunSize *size) {
    double sum = 0;
    for (uint32_t i = 0; i < run->record->n_seeds; i++) {
        OrrRunSeed copy = run->record->seeds[i];
        orr_money_seed(run->prices, contract, size, &copy);
        sum += copy.cost_usd;
    }
    return sum / run->record->n_seeds;
}

static void fill_money(OrrRun *run, OrrRunRecord *r) {
    const OrrPrices *p = run->prices;
    if (!p)
        return;
    OrrContract own = run->file->contract;
    OrrRunSize size = {.n_gpus = r->n_gpus,
                       .n_nodes = r->n_nodes,
                       .n_spare_nodes = r->n_spare_nodes,
                       .kept_bytes = kept_bytes(run),
                       .final_bytes = run->spec->checkpoint.bytes,
                       .n_causes = r->n_causes};
    set(&r->prices, p->name);
    set(&r->prices_date, p->date);
    r->usd_per_gpu_h = orr_price_gpu_h(p, own);
    r->power_usd_per_gpu_h = orr_price_power_gpu_h(p, own);
    r->idle_frac = p->idle_frac;
    for (uint32_t i = 0; i < r->n_seeds; i++) {
        orr_money_seed(p, own, &size, &r->seeds[i]);
        r->storage_usd += orr_money_storage(p, own, &size, r->seeds[i].wall_ns) / r->n_seeds;
    }
    for (int c = ORR_CONTRACT_ON_DEMAND; c < ORR_N_CONTRACTS; c++) {
        if (!(orr_price_gpu_h(p, (OrrContract)c) >= 0))
            continue;
        bool is_other = (c == ORR_CONTRACT_SPOT) != (own == ORR_CONTRACT_SPOT);
        const char *note = c == (int)own ? "this run's contract"
                           : is_other    ? (c == ORR_CONTRACT_SPOT
                                                ? "without the provider's reclaims; set run.contract "
                                                  "= spot for those"
                                                : "with the reclaims of spot")
                                         : "";
        orr_run_record_add_cost(r, orr_contract_names[c], mean_cost(run, (OrrContract)c, &size),
                                note);
    }
    double breakeven = p->node_usd > 0 && p->usd_per_gpu_h[ORR_CONTRACT_ON_DEMAND] > 0
                           ? orr_money_breakeven_h(p, ORR_CONTRACT_ON_DEMAND)
                           : 0;
    r->breakeven_h = isfinite(breakeven) ? breakeven : 0;
}

static void move_head(OrrRun *run, OrrRunRecord *r) {
    orr_record_free(r->head);
    r->head = g_steal_pointer(&run->head);
    run->head = orr_record_new();
    int64_t unclean = 0, unfinished = 0;
    for (uint32_t i = 0; i < r->n_seeds; i++) {
        unclean += r->seeds[i].unclean_rollbacks;
        unfinished += !r->seeds[i].is_done && run->spec->length_ns == 0;
    }
    if (unclean > 0)
        orr_record_add_warning(r->head, "unclean_rollback",
                               "%" G_GINT64_FORMAT " times silent corruption was found when no "
                               "checkpoint from before it was kept; keep more of them",
                               unclean);
    if (unfinished > 0)
        orr_record_add_warning(r->head, "unfinished",
                               "%" G_GINT64_FORMAT " seeds did not reach "
                               "the end",
                               unfinished);
}

/* With spares that are counted, a repair in no time makes them endless. */
static void warn_of_repairs(const OrrRun *run, OrrRunRecord *r) {
    const OrrRunSpec *s = run->spec;
    for (uint32_t i = 0; i < s->n_kinds && s->recovery.hot_spares < UINT32_MAX; i++) {
        const OrrFailureKind *k = &s->kinds[i];
        bool breaks = k->nodes > 0 && k->effect != ORR_EFFECT_RECLAIM;
        if (breaks && k->repair_ns == 0)
            orr_record_add_warning(r->head, "no_repair_time",
                                   "nodes that %s breaks are back at once, so that spares never "
                                   "run out; repair = 1 d in its failure file would tell",
                                   k->name);
    }
}

void orr_run__fill(OrrRun *run) {
    OrrRunRecord *r = run->record;
    const OrrRunSpec *s = run->spec;
    const OrrRunPhase *last = &s->phases[s->n_phases - 1];
    set(&r->run, run->file->name);
    set(&r->summary, run->file->summary);
    r->n_gpus = s->n_gpus;
    r->n_nodes = s->n_nodes;
    r->n_spare_nodes = n_spares(run);
    r->repair_hands = s->recovery.repair_hands;
    r->step_ns = last->step_ns[0];
    r->tokens_per_step = last->tokens_per_step;
    r->mfu_frac = last->mfu_frac;
    r->step_deviation_ns = s->noise_frac * (double)r->step_ns; /* of an exponential excess */
    move_head(run, r);
    warn_of_repairs(run, r);
    fill_causes(run, r);
    fill_money(run, r);
    orr_run_record_settle(r);
    fill_expected(run, r);
    fill_checkpoint(run, r);
}
