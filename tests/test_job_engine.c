/* Whole runs: hand-solved cases to the nanosecond, Daly's expectation within the interval of the
 * seeds, and the account of random runs. */
#include "tests/near.h"

#include "sim/base/random.h"
#include "sim/base/stats.h"
#include "sim/job/checkpoint.h"
#include "sim/job/engine.h"
#include "sim/job/formula.h"
#include "sim/job/traffic.h"
#include "tests/job_cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void test_run_without_failures_takes_its_steps_and_saves(void **state) {
    (void)state;
    g_autoptr(OrrRunSpec) s = plain();
    tier(s, 7 * S, 0, 0);
    s->total_steps = 25;
    s->recovery.queue_ns = 50 * S, s->recovery.start_ns = 30 * S;
    s->evaluate_steps = 5, s->evaluate_ns = 2 * S;
    OrrRunSeed o = simulate(s, 0);
    assert_int_equal(o.useful_ns, 2500 * S);
    assert_int_equal(o.tokens, 300);
    assert_int_equal(lost(&o, ORR_CAUSE_CHECKPOINT, ORR_LOSS_SAVE), 3 * 7 * S); /* one at the end */
    assert_int_equal(lost(&o, ORR_CAUSE_EVALUATION, ORR_LOSS_EVALUATE), 4 * 2 * S);
    assert_int_equal(lost(&o, ORR_CAUSE_START, ORR_LOSS_QUEUE), 50 * S);
    assert_int_equal(o.wall_ns, (2500 + 21 + 8 + 80) * S);
    assert_true(o.is_done);
    orr_run_seed_clear(&o);
}

static void test_crash_goes_back_to_the_last_whole_checkpoint(void **state) {
    (void)state;
    g_autoptr(OrrRunSpec) s = plain();
    tier(s, 10 * S, 0, 20 * S);
    s->total_steps = 20;
    s->recovery.start_ns = 0, s->recovery.in_place_ns = 60 * S;
    /* steps 0-10 until 1000 s, saved until 1010 s; 1455 s: four steps and 45 s of a fifth */
    OrrFailureKind *k = strike_at(s, ORR_EFFECT_STOP, 1455 * S);
    k->detect_ns = 5 * S, k->diagnose_ns = 3 * S;
    OrrRunSeed o = simulate(s, 0);
    uint32_t c = ORR_N_OWN_CAUSES;
    assert_int_equal(lost(&o, c, ORR_LOSS_REWORK), 445 * S);
    assert_int_equal(lost(&o, c, ORR_LOSS_DETECT), 5 * S);
    assert_int_equal(lost(&o, c, ORR_LOSS_DIAGNOSE), 3 * S);
    assert_int_equal(lost(&o, c, ORR_LOSS_START), 60 * S);
    assert_int_equal(lost(&o, c, ORR_LOSS_LOAD), 20 * S);
    assert_int_equal(o.reworked_steps, 4);
    assert_int_equal(o.wall_ns, (2000 + 20 + 445 + 88) * S);
    orr_run_seed_clear(&o);
}

static void test_crash_during_a_write_leaves_the_checkpoint_before(void **state) {
    (void)state;
    g_autoptr(OrrRunSpec) s = plain();
    tier(s, 1 * S, 500 * S, 0);
    s->total_steps = 30;
    /* second checkpoint: taken at 2001 s, whole at 2502 s; the strike at 2400 s finds the first */
    strike_at(s, ORR_EFFECT_STOP, 2400 * S);
    OrrRunSeed o = simulate(s, 0);
    assert_int_equal(o.reworked_steps, 13);
    assert_int_equal(lost(&o, ORR_N_OWN_CAUSES, ORR_LOSS_REWORK), 2400 * S - 2 * S - 1000 * S);
    orr_run_seed_clear(&o);
}

static void test_next_checkpoint_waits_for_the_write_before(void **state) {
    (void)state;
    g_autoptr(OrrRunSpec) s = plain();
    tier(s, 1 * S, 1200 * S, 0);
    s->total_steps = 21;
    OrrRunSeed o = simulate(s, 0);
    /* written from 1001 s to 2201 s; due again at 2001 s; the last at 2302 s waits until 3402 s */
    assert_int_equal(lost(&o, ORR_CAUSE_CHECKPOINT, ORR_LOSS_SAVE_WAIT), (200 + 1100) * S);
    orr_run_seed_clear(&o);
}

static void test_memory_of_a_peer_survives_a_process_but_not_a_rack(void **state) {
    (void)state;
    for (OrrScope scope = ORR_SCOPE_PROCESS; scope <= ORR_SCOPE_RACK; scope++) {
        g_autoptr(OrrRunSpec) s = plain();
        tier(s, 0, 0, 100 * S);
        s->checkpoint.tiers[0].every = 3;
        OrrTier *peer = tier(s, 0, 0, 1 * S);
        peer->survives = ORR_SCOPE_NODE;
        s->total_steps = 60;
        strike_at(s, ORR_EFFECT_STOP, 5050 * S)->scope = scope;
        OrrRunSeed o = simulate(s, 0);
        assert_int_equal(o.reworked_steps, scope == ORR_SCOPE_RACK ? 20 : 0);
        assert_int_equal(lost(&o, ORR_N_OWN_CAUSES, ORR_LOSS_LOAD),
                         scope == ORR_SCOPE_RACK ? 100 * S : 1 * S);
        orr_run_seed_clear(&o);
    }
}

static void test_silent_corruption_costs_all_since_it_began(void **state) {
    (void)state;
    g_autoptr(OrrRunSpec) s = plain();
    tier(s, 0, 0, 0)->keep = 5;
    s->total_steps = 60;
    strike_at(s, ORR_EFFECT_CORRUPT, 1500 * S)->detect_ns = 1000 * S;
    OrrRunSeed o = simulate(s, 0);
    assert_int_equal(o.reworked_steps, 15); /* from 2500 s back to the checkpoint of 1000 s */
    assert_int_equal(o.unclean_rollbacks, 0);
    orr_run_seed_clear(&o);
    s->checkpoint.tiers[0].keep = 1;
    o = simulate(s, 0);
    assert_int_equal(o.unclean_rollbacks, 1);
    orr_run_seed_clear(&o);
}

static void test_slow_part_costs_its_factor_until_it_is_replaced(void **state) {
    (void)state;
    g_autoptr(OrrRunSpec) s = plain();
    tier(s, 4 * S, 0, 0)->block_ns = 4 * S;
    s->total_steps = 100;
    s->checkpoint.interval_steps = 1000;
    OrrFailureKind *k = strike_at(s, ORR_EFFECT_SLOW, 150 * S);
    k->slow_factor = 1.5, k->nodes = 1, k->detect_ns = 300 * S;
    s->recovery.start_ns = 30 * S, s->recovery.swap_ns = 10 * S;
    s->recovery.queue_ns = 0;
    OrrRunSeed o = simulate(s, 0);
    /* up at 30 s; slow from the end of the second step, 230 s, to the first end behind 450 s: two
     */
    assert_int_equal(lost(&o, ORR_N_OWN_CAUSES, ORR_LOSS_SLOW), 2 * 50 * S);
    assert_int_equal(lost(&o, ORR_N_OWN_CAUSES, ORR_LOSS_REPLACE), 10 * S);
    assert_int_equal(lost(&o, ORR_N_OWN_CAUSES, ORR_LOSS_SAVE), 4 * S);
    assert_int_equal(o.reworked_steps, 0);
    orr_run_seed_clear(&o);
}

/* Many short runs: the mean slowdown is Daly's, within the interval of its own seeds. */
static void check_daly(double tau_s, double write_s, double restart_s, double mtbf_s) {
    enum { N = 400 };
    double x[N];
    for (int i = 0; i < N; i++) {
        g_autoptr(OrrRunSpec) s = plain();
        s->phases[0].step_ns[0] = 1 * S;
        tier(s, (int64_t)(write_s * 1e9), 0, (int64_t)(restart_s * 1e9));
        s->recovery.in_place_ns = 0;
        s->checkpoint.interval_steps = (uint32_t)tau_s;
        s->total_steps = 100 * (int64_t)tau_s;
        OrrFailureKind *k = orr_run_spec_add_kind(s, "any");
        k->n_units = 100;
        k->mean_ns = mtbf_s * 1e9 * 100;
        OrrRunSeed o = simulate(s, (uint64_t)i);
        x[i] = (double)o.wall_ns / (double)o.useful_ns;
        orr_run_seed_clear(&o);
    }
    /* loading is skipped before the first checkpoint: restarts from nothing cost no R */
    double mean = orr_stats_mean(x, N), half = 3 * orr_stats_deviation(x, N) / sqrt(N);
    double daly = orr_daly_slowdown(tau_s, write_s, restart_s, mtbf_s);
    if (fabs(mean - daly) > half + 0.01 * restart_s / mtbf_s)
        fail_msg("tau %g: mean %g, Daly %g, half-width %g", tau_s, mean, daly, half);
}

static void test_mean_slowdown_is_dalys(void **state) {
    (void)state;
    check_daly(600, 40, 0, 3600);
    check_daly(600, 40, 300, 3600);
    check_daly(2000, 100, 600, 11124);
    check_daly(100, 40, 60, 600);
}

/* As many strikes as the rate says, for every law, and for 8 to 131,072 GPUs at 6.5 a thousand
 * node-days. */
static void test_strikes_come_at_their_rate(void **state) {
    (void)state;
    for (uint32_t gpus = 8; gpus <= 131072; gpus *= 2) {
        g_autoptr(OrrRunSpec) s = plain();
        OrrFailureKind *k = orr_run_spec_add_kind(s, "node");
        k->unit = ORR_UNIT_NODE;
        k->n_units = gpus / 8;
        k->mean_ns = 86400e9 * 1000 / 6.5;
        assert_near(orr_run_mtbf_ns(s) / 3600e9, orr_mttf_hours(gpus / 8, 6.5), 1e-12);
        s->length_ns = (int64_t)(16 * orr_run_mtbf_ns(s)); /* seven years of one node */
        int64_t n = 0;
        for (uint64_t seed = 0; seed < 25; seed++) {
            OrrRunSeed o = simulate(s, gpus + seed);
            n += o.interruptions;
            orr_run_seed_clear(&o);
        }
        assert_near((double)n, 400, 3 / sqrt(400)); /* three deviations */
    }
    g_autoptr(OrrRunSpec) s = plain();
    OrrFailureKind *k = orr_run_spec_add_kind(s, "worn");
    k->law = ORR_LAW_WEIBULL, k->shape = 2, k->n_units = 500, k->mean_ns = 1e6 * S;
    s->length_ns = 4 * (int64_t)1e6 * S;
    OrrRunSeed o = simulate(s, 1);
    assert_near((double)o.interruptions, 500 * 3.64, 0.05); /* renewal: t/mu + (cv^2 - 1)/2 */
    orr_run_seed_clear(&o);
}

/* Twelve bad nodes that fail each day, taken out after their second time: 24 strikes, then peace.
 */
static void test_excluded_units_strike_no_more(void **state) {
    (void)state;
    g_autoptr(OrrRunSpec) s = plain();
    tier(s, 0, 0, 0);
    OrrFailureKind *k = orr_run_spec_add_kind(s, "lemon");
    k->n_units = 12, k->mean_ns = 86400.0 * S, k->nodes = 1;
    s->length_ns = 100 * INT64_C(86400) * S;
    OrrRunSeed never = simulate(s, 2);
    s->kinds[0].exclude_after = 2;
    OrrRunSeed twice = simulate(s, 2);
    assert_near((double)never.interruptions, 1200, 4 / sqrt(1200));
    assert_int_equal(twice.interruptions, 24);
    orr_run_seed_clear(&never);
    orr_run_seed_clear(&twice);
}

static OrrRunSpec *random_spec(uint64_t n) {
    OrrRandom r = orr_random(n, "random spec");
    OrrRunSpec *s = plain();
    for (int64_t i = 0; i < (int64_t)G_N_ELEMENTS(s->phases[0].step_ns); i++)
        s->phases[0].step_ns[i] = 7777777777 + i * 333333333;
    s->noise_frac = 0.03 * (double)(n % 3);
    s->length_ns = n % 2 ? 500000 * S + 12345 : 0;
    s->total_tokens = n % 2 ? 0 : 300000;
    s->evaluate_steps = n % 5 == 0 ? 37 : 0, s->evaluate_ns = 11 * S;
    tier(s, 3 * S, n % 3 ? 50 * S : 0, 20 * S)->every = 1 + n % 3;
    tier(s, 1 * S, 10 * S, 5 * S)->survives = (OrrScope)(n % 3);
    s->checkpoint.interval_steps = 0, s->checkpoint.interval_ns = 400 * S;
    s->recovery = (OrrRecovery){.queue_ns = 100 * S,
                                .start_ns = 60 * S,
                                .in_place_ns = 9 * S,
                                .swap_ns = 5 * S,
                                .cold_ns = 70 * S,
                                .hot_spares = n % 4,
                                .cold_spares = n % 2,
                                .elastic = (OrrElastic)(n % 3),
                                .nodes_per_replica = 1,
                                .reshard_ns = 17 * S,
                                .hot_swap_ns = 8 * S,
                                .requeue_ns = (int64_t)(n % 3) * 333 * S,
                                .requeue_after = (OrrRequeue)(n % 2),
                                .repair_hands = n % 4};
    s->checkpoint.tiers[0].traffic_ns = n % 3 ? 47 * S : 0;
    s->checkpoint.tiers[0].write_slow_frac = 0.37;
    s->checkpoint.tiers[1].traffic_ns = 9 * S;
    s->checkpoint.tiers[1].write_slow_frac = 0.11 * (double)(n % 2);
    s->max_lost_replicas = n % 3 ? 2 : 0;
    for (uint32_t e = 0; e < ORR_N_EFFECTS; e++) {
        OrrFailureKind *k = orr_run_spec_add_kind(s, orr_effect_names[e]);
        k->effect = (OrrEffect)e;
        k->law = (n + e) % 4 == 0   ? ORR_LAW_WEIBULL
                 : (n + e) % 9 == 0 ? ORR_LAW_PERIODIC
                                    : ORR_LAW_EXPONENTIAL;
        k->by_hand = orr_random_below(r, e, 12, 2);
        k->shape = 0.7;
        k->n_units = 1 + orr_random_below(r, e, 1, 50);
        k->mean_ns = 1e9 * (20000 + 1e5 * orr_random_uniform(r, e, 2)) * (double)k->n_units;
        k->nodes = (uint32_t)orr_random_below(r, e, 3, 3);
        k->exclude_after = (uint32_t)orr_random_below(r, e, 11, 3);
        k->scope = (OrrScope)orr_random_below(r, e, 4, ORR_N_SCOPES);
        k->only_running = orr_random_below(r, e, 5, 2);
        k->detect_ns = (int64_t)orr_random_below(r, e, 6, 900) * S;
        k->diagnose_ns = 13 * S;
        k->repair_ns = (int64_t)orr_random_below(r, e, 7, 20000) * S;
        k->duration_ns = (int64_t)orr_random_below(r, e, 8, 2000) * S;
        k->slow_factor = 1 + orr_random_uniform(r, e, 9);
        k->n_classes = (uint32_t)orr_random_below(r, e, 13, 3);
        k->class_factor = g_new(double, 3), k->class_share = g_new(double, 3);
        for (uint32_t c = 0; c < k->n_classes; c++)
            k->class_factor[c] = 1 + c, k->class_share[c] = 1.0 / k->n_classes;
        k->notice_ns = (int64_t)orr_random_below(r, e, 10, 120) * S;
    }
    return s;
}

static void test_accounts_of_random_runs_add_up_and_repeat(void **state) {
    (void)state;
    for (uint64_t n = 0; n < 300; n++) {
        g_autoptr(OrrRunSpec) s = random_spec(n);
        uint32_t causes = orr_run_n_causes(s);
        OrrRunSeed a = simulate(s, n), b = simulate(s, n); /* simulate checks the account */
        g_autofree char *line = orr_run_seed_line(&a, causes);
        g_autofree char *again = orr_run_seed_line(&b, causes);
        assert_string_equal(line, again);
        OrrRunSeed read;
        orr_run_seed_init(&read, 0, causes);
        assert_true(orr_run_seed_parse(&read, causes, line));
        g_autofree char *written = orr_run_seed_line(&read, causes);
        assert_string_equal(line, written);
        assert_false(orr_run_seed_parse(&read, causes + 1, line));
        if (s->length_ns > 0)
            assert_int_equal(a.wall_ns, s->length_ns);
        else
            assert_true(a.is_done && a.tokens >= s->total_tokens);
        orr_run_seed_clear(&a), orr_run_seed_clear(&b), orr_run_seed_clear(&read);
    }
}

/* What the probe sees covers the time from 0 to the end without a gap. */
typedef struct {
    int64_t at_ns, trained_steps, rolled_back;
} Seen;
static void watch(void *data, const OrrRunEvent *e) {
    Seen *seen = data;
    if (e->kind == ORR_RUN_TRAIN || e->kind == ORR_RUN_LOST) {
        assert_int_equal(e->begin_ns, seen->at_ns);
        assert_true(e->end_ns > e->begin_ns);
        seen->at_ns = e->end_ns;
    }
    if (e->kind == ORR_RUN_TRAIN)
        seen->trained_steps += e->steps;
    if (e->kind == ORR_RUN_ROLLBACK)
        seen->rolled_back += e->steps;
}

static void test_events_cover_the_run_without_a_gap(void **state) {
    (void)state;
    for (uint64_t n = 0; n < 20; n++) {
        g_autoptr(OrrRunSpec) s = random_spec(n);
        Seen seen = {0};
        OrrRunProbe probe = {watch, &seen};
        OrrRunSeed o;
        orr_run_seed_init(&o, n, orr_run_n_causes(s));
        orr_run_simulate(s, n, &probe, &o);
        assert_int_equal(seen.at_ns, o.wall_ns);
        assert_int_equal(seen.trained_steps - seen.rolled_back, o.steps);
        orr_run_seed_clear(&o);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_without_failures_takes_its_steps_and_saves),
        cmocka_unit_test(test_crash_goes_back_to_the_last_whole_checkpoint),
        cmocka_unit_test(test_crash_during_a_write_leaves_the_checkpoint_before),
        cmocka_unit_test(test_next_checkpoint_waits_for_the_write_before),
        cmocka_unit_test(test_memory_of_a_peer_survives_a_process_but_not_a_rack),
        cmocka_unit_test(test_silent_corruption_costs_all_since_it_began),
        cmocka_unit_test(test_slow_part_costs_its_factor_until_it_is_replaced),
        cmocka_unit_test(test_mean_slowdown_is_dalys),
        cmocka_unit_test(test_strikes_come_at_their_rate),
        cmocka_unit_test(test_excluded_units_strike_no_more),
        cmocka_unit_test(test_accounts_of_random_runs_add_up_and_repeat),
        cmocka_unit_test(test_events_cover_the_run_without_a_gap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
