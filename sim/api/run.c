#include "config.h"

#include "sim/api/run.h"

#include "sim/api/run_priv.h"
#include "sim/io/file.h"
#include "sim/job/checkpoint.h"
#include "sim/job/formula.h"
#include "sim/job/money.h"

#include <math.h>
#include <string.h>

#define SEARCH_SEEDS 48u /* ours: the optimum is flat (S33), more seeds don't move it */

static bool is_price_group(const char *group) {
    static const char *const groups[] = {"prices", "rented", "owned", "energy", "storage", NULL};
    return g_strv_contains(groups, group);
}

static bool is_failure_group(const OrrRun *run, const char *group) {
    if (!run->failures)
        return false;
    for (uint32_t i = 0; i < run->failures->n; i++)
        if (strcmp(run->failures->kinds[i].name, group) == 0)
            return true;
    return strcmp(group, "failures") == 0;
}

/* What is left for the job: the file's own, then the command line's. */
static bool share_overrides(OrrRun *run, GError **error) {
    const OrrRunRequest *q = run->request;
    if (!orr_run_parse_sets(run->file->sets, run->texts, run->job_overrides, error))
        return false;
    for (uint32_t i = 0; i < q->n_overrides; i++) {
        const char *group = q->overrides[i].group;
        bool is_mine = orr_run_file_owns(run->file, group) || is_failure_group(run, group) ||
                       (run->prices && is_price_group(group));
        if (is_mine)
            continue;
        if (*run->file->job_ref == '\0')
            return orr_fail_input(error, "--set %s.%s: the run has no group [%s]", group,
                                  q->overrides[i].key, group);
        g_array_append_val(run->job_overrides, q->overrides[i]);
    }
    return true;
}

static bool load(OrrRun *run, GError **error) {
    const OrrRunRequest *q = run->request;
    run->file = orr_workload_run(q->run, q->overrides, q->n_overrides, run->sources, error);
    if (!run->file)
        return false;
    if (*run->file->failures_ref) {
        run->failures = orr_workload_failures(run->file->failures_ref, q->overrides, q->n_overrides,
                                              run->sources, error);
        if (!run->failures)
            return false;
    }
    if (*run->file->prices_ref) {
        run->prices = orr_workload_prices(run->file->prices_ref, q->overrides, q->n_overrides,
                                          run->sources, error);
        if (!run->prices)
            return false;
        double price = orr_price_gpu_h(run->prices, run->file->contract);
        if (!(price >= 0)) {
            g_autofree char *offers = orr_price_offers(run->prices);
            return orr_fail_input(error,
                                  "%s: contract = %s is not offered by prices %s; %s would do",
                                  run->file->name, orr_contract_names[run->file->contract],
                                  run->prices->name, offers);
        }
    }
    return share_overrides(run, error);
}

/* Starting takes longer the more ranks there are: a power of their number. */
static double start_ns(const OrrRunFile *f, uint32_t ranks) {
    if (f->recovery.start_ranks == 0 || !(f->recovery.start_growth > 0))
        return f->recovery.start_ns;
    return f->recovery.start_ns *
           pow((double)ranks / f->recovery.start_ranks, f->recovery.start_growth);
}

static void set_recovery(OrrRun *run) {
    const OrrRunFile *f = run->file;
    const OrrRunShape *s = &run->shape;
    OrrRecovery *v = &run->spec->recovery;
    *v =
        (OrrRecovery){.queue_ns = (int64_t)f->queue_ns,
                      .start_ns = (int64_t)start_ns(f, s->gpus),
                      .in_place_ns = (int64_t)f->recovery.in_place_ns,
                      .hot_swap_ns = f->recovery.hot_swap_ns >= 0 ? (int64_t)f->recovery.hot_swap_ns
                                                                  : (int64_t)start_ns(f, s->gpus),
                      .swap_ns = (int64_t)f->recovery.swap_ns,
                      .cold_ns = (int64_t)f->recovery.cold_ns,
                      .hot_spares = f->recovery.hot_spares,
                      .cold_spares = f->recovery.cold_spares,
                      .elastic = f->recovery.elastic,
                      .nodes_per_replica = s->nodes_per_replica,
                      .reshard_ns = (int64_t)f->recovery.reshard_ns,
                      .requeue_ns = (int64_t)f->recovery.requeue_ns,
                      .requeue_after = f->recovery.requeue_after,
                      .repair_hands = f->recovery.repair_hands};
}

static void add_kind(OrrRun *run, const OrrFailureKind *from) {
    const OrrRunShape *s = &run->shape;
    const uint64_t counts[ORR_N_UNITS] = {s->gpus, s->nodes, s->switches, s->racks, 1};
    if (from->law != ORR_LAW_EVENTS && !(from->mean_ns > 0))
        return; /* a count of 0: it was never seen */
    OrrFailureKind *k = orr_run_spec_add_kind(run->spec, "");
    g_free(k->name);
    orr_failure_kind_copy(k, from);
    if (!k->has_units)
        k->n_units = counts[k->unit];
    k->mean_ns /= run->file->failure_scale;
    const uint32_t on[ORR_N_UNITS] = {1, 1, s->nodes_per_switch,
                                      (s->nodes + s->racks - 1) / MAX(s->racks, 1), s->nodes};
    if (k->takes_all)
        k->nodes = MIN(on[k->unit], s->nodes);
}

static void add_kinds(OrrRun *run) {
    bool has_failures = run->file->failure_scale > 0;
    for (uint32_t i = 0; has_failures && run->failures && i < run->failures->n; i++)
        add_kind(run, &run->failures->kinds[i]);
    const OrrPrices *p = run->prices;
    if (run->file->contract != ORR_CONTRACT_SPOT || !(p->reclaim_node_h > 0))
        return;
    OrrFailureKind *k = orr_run_spec_add_kind(run->spec, "spot_reclaim");
    k->component = g_strdup("provider");
    k->source = g_strdup(p->source);
    k->unit = ORR_UNIT_NODE;
    k->n_units = run->shape.nodes;
    k->mean_ns = p->reclaim_node_h * 3600e9;
    k->effect = ORR_EFFECT_RECLAIM;
    k->nodes = 1;
    k->scope = ORR_SCOPE_NODE;
    k->notice_ns = p->reclaim_notice_ns;
    k->duration_ns = p->reclaim_wait_ns;
}

static void choose_interval(OrrRun *run) {
    OrrCheckpointPlan *c = &run->spec->checkpoint;
    OrrIntervalPolicy policy = run->file->checkpoint.policy;
    if (c->n_tiers == 0 || policy == ORR_INTERVAL_FIXED)
        return;
    double mtbf = orr_run_mtbf_ns(run->spec);
    c->interval_ns =
        policy == ORR_INTERVAL_YOUNG ? orr_plan_young_ns(c, mtbf) : orr_plan_daly_ns(c, mtbf);
    if (policy != ORR_INTERVAL_SEARCH)
        return;
    int64_t step = run->spec->phases[run->spec->n_phases - 1].step_ns[0];
    OrrMonteCarlo mc = {.spec = run->spec,
                        .first_seed = run->request->seed,
                        .n_seeds = SEARCH_SEEDS,
                        .n_threads = run->request->n_threads};
    double guess = fmin((double)c->interval_ns / (double)step, 1e6);
    c->interval_steps = orr_search_interval(&mc, (uint32_t)guess);
    c->interval_ns = 0;
}

/* Everything that a seed depends on, in words, and the checksum of that. */
static void make_key(OrrRun *run) {
    g_autoptr(GString) text = g_string_new(PACKAGE_VERSION "\n");
    const OrrRunRequest *q = run->request;
    const OrrRunSpec *s = run->spec;
    for (uint32_t i = 0; i < run->head->n_inputs; i++)
        g_string_append_printf(text, "%s %s\n", run->head->inputs[i].name,
                               run->head->inputs[i].sha256);
    for (uint32_t i = 0; i < q->n_overrides; i++)
        g_string_append_printf(text, "%s.%s=%s\n", q->overrides[i].group, q->overrides[i].key,
                               q->overrides[i].value);
    for (uint32_t p = 0; p < s->n_phases; p++)
        for (uint32_t k = 0; k <= s->max_lost_replicas; k++)
            g_string_append_printf(text, "%" G_GINT64_FORMAT " ", s->phases[p].step_ns[k]);
    g_string_append_printf(text, "%" G_GINT64_FORMAT " %u %d", s->checkpoint.interval_ns,
                           s->checkpoint.interval_steps, ORR_N_LOSSES);
    run->key = orr_file_sha256(text->str, text->len);
}

static void make_head(OrrRun *run) {
    OrrRecord *h = run->head;
    h->seed = run->request->seed;
    orr_record_set(&h->version, PACKAGE_VERSION);
    for (guint i = 0; i < run->sources->inputs->len; i++) {
        const OrrInput *in = run->sources->inputs->pdata[i];
        orr_record_add_input(h, in->name, in->sha256);
    }
    for (guint i = 0; i < run->sources->assumptions->len; i++) {
        const OrrAssumption *a = run->sources->assumptions->pdata[i];
        orr_record_add_assumption(h, a->key, a->value, a->origin);
    }
    for (uint32_t i = 0; i < run->request->n_overrides; i++) {
        const OrrOverride *o = &run->request->overrides[i];
        g_autofree char *text = g_strdup_printf("%s.%s=%s", o->group, o->key, o->value);
        orr_record_add_override(h, text);
    }
}

static bool build(OrrRun *run, GError **error) {
    const OrrRunFile *f = run->file;
    OrrRunSpec *s = run->spec;
    s->name = g_strdup(f->name);
    make_head(run);
    if (!orr_run__price(run, error))
        return false;
    s->n_gpus = run->shape.gpus;
    s->n_nodes = run->shape.nodes;
    s->n_replicas = run->shape.replicas;
    s->length_ns = (int64_t)f->length_ns;
    s->total_tokens = (int64_t)f->tokens;
    s->total_steps = (int64_t)f->steps;
    s->noise_frac = f->noise_frac;
    s->evaluate_steps = f->evaluate_steps;
    s->evaluate_ns = (int64_t)f->evaluate_ns;
    set_recovery(run);
    if (!orr_run__set_checkpoint(run, error))
        return false;
    add_kinds(run);
    choose_interval(run);
    make_key(run);
    return orr_run_spec_check(s, error);
}

OrrRun *orr_run_prepare(const OrrRunRequest *request, GError **error) {
    g_assert(request->n_seeds > 0);
    g_autoptr(OrrRun) run = g_new0(OrrRun, 1);
    run->request = request;
    run->sources = orr_sources_new();
    run->head = orr_record_new();
    run->spec = orr_run_spec_new();
    run->texts = g_ptr_array_new_with_free_func(g_free);
    run->job_overrides = g_array_new(FALSE, FALSE, sizeof(OrrOverride));
    if (!load(run, error) || !build(run, error))
        return NULL;
    g_clear_pointer(&run->step, orr_step_free);
    return g_steal_pointer(&run);
}

void orr_run_free(OrrRun *run) {
    if (!run)
        return;
    orr_step_free(run->step);
    orr_run_file_free(run->file);
    orr_failure_set_free(run->failures);
    orr_prices_free(run->prices);
    orr_run_spec_free(run->spec);
    orr_record_free(run->head);
    orr_sources_free(run->sources);
    g_ptr_array_unref(run->texts);
    g_array_unref(run->job_overrides);
    g_free(run->key);
    orr_run_record_free(run->record);
    g_free(run);
}

const char *orr_run_key(const OrrRun *run) {
    return run->key;
}

const OrrRunSpec *orr_run_spec(const OrrRun *run) {
    return run->spec;
}

const char *orr_run_cause_name(const OrrRun *run, uint32_t cause) {
    return cause < ORR_N_OWN_CAUSES ? orr_own_cause_names[cause]
                                    : run->spec->kinds[cause - ORR_N_OWN_CAUSES].name;
}

bool orr_run_execute(OrrRun *run, const OrrSeedStore *store,
                     void (*progress)(void *data, uint64_t done), void *progress_data,
                     GError **error) {
    const OrrRunRequest *q = run->request;
    run->record = orr_run_record_new(orr_run_n_causes(run->spec), q->n_seeds);
    OrrMonteCarlo mc = {.spec = run->spec,
                        .first_seed = q->seed,
                        .n_seeds = q->n_seeds,
                        .n_threads = q->n_threads,
                        .store = store,
                        .progress = progress,
                        .progress_data = progress_data};
    if (!orr_monte_carlo(&mc, run->record->seeds, error))
        return false;
    for (uint32_t i = 0; i < q->n_seeds; i++) {
        g_autofree char *flaw = orr_run_seed_flaw(&run->record->seeds[i], run->record->n_causes);
        if (flaw)
            g_error("the account of seed %" G_GUINT64_FORMAT " is unsound: %s", q->seed + i, flaw);
    }
    orr_run__fill(run);
    return true;
}

const OrrRunRecord *orr_run_record(const OrrRun *run) {
    return run->record;
}

/* Mean time from an unannounced strike to training again, without rework, weighted by how often
 * each comes; and the share of the time that announced stops take. */
static double restart_ns(const OrrRunSpec *s, double *planned_frac) {
    double sum = 0, rate = 0, planned = 0, load = (double)s->checkpoint.tiers[0].load_ns;
    for (uint32_t i = 0; i < s->n_kinds; i++) {
        const OrrFailureKind *k = &s->kinds[i];
        if (!orr_effect_is_interruption(k->effect))
            continue;
        double often = orr_run_kind_rate(s, k), start = (double)s->recovery.start_ns;
        if (orr_kind_is_announced(s, k)) {
            planned += often * ((double)k->duration_ns + start + load);
            continue;
        }
        bool waits = k->effect == ORR_EFFECT_RECLAIM;
        double down = waits ? (double)k->duration_ns : (double)(k->detect_ns + k->diagnose_ns);
        start = k->nodes > 0 || waits ? start + (double)s->recovery.swap_ns
                                      : (double)s->recovery.in_place_ns;
        sum += often * (down + start + load);
        rate += often;
    }
    *planned_frac = fmin(planned, 1);
    return rate > 0 ? sum / rate : 0;
}

static double blocked_ns(const OrrRunSpec *s) {
    double block = 0;
    for (uint32_t i = 0; i < s->checkpoint.n_tiers; i++)
        block =
            fmax(block, orr_tier_cost_ns(&s->checkpoint.tiers[i]) / s->checkpoint.tiers[i].every);
    return block;
}

uint32_t orr_run_intervals(const OrrRun *run, uint32_t n, int64_t *interval_ns,
                           double *goodput_frac, double *expected_frac) {
    const OrrRunSpec *s = run->spec;
    if (s->checkpoint.n_tiers == 0)
        return 0;
    int64_t step = s->phases[s->n_phases - 1].step_ns[0];
    double own = s->checkpoint.interval_steps > 0
                     ? s->checkpoint.interval_steps
                     : (double)s->checkpoint.interval_ns / (double)step;
    OrrMonteCarlo mc = {.spec = s,
                        .first_seed = run->request->seed,
                        .n_seeds = MIN(run->request->n_seeds, SEARCH_SEEDS),
                        .n_threads = run->request->n_threads};
    double planned, mtbf = orr_run_mtbf_ns(s), restart = restart_ns(s, &planned);
    double block = blocked_ns(s);
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i++) {
        double factor = pow(2, 8.0 * i / MAX(n - 1, 1) - 4);
        int64_t steps = MAX(1, llround(own * factor));
        if (found > 0 && interval_ns[found - 1] == steps * step)
            continue;
        interval_ns[found] = steps * step;
        goodput_frac[found] = orr_goodput_at(&mc, (uint32_t)steps);
        expected_frac[found] =
            (1 - planned) *
            (isfinite(mtbf) ? 1 / orr_daly_slowdown((double)(steps * step), block, restart, mtbf)
                            : 1 / (1 + block / (double)(steps * step)));
        found++;
    }
    return found;
}
