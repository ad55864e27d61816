/* Whole runs: hand-solved cases to the nanosecond, Daly's expectation within the interval of the
 * seeds, and the account of random runs. */
#include "tests/near.h"

#include "sim/base/random.h"
#include "sim/base/stats.h"
#include "sim/job/checkpoint.h"
#include "sim/job/engine.h"
#include "sim/job/formula.h"
#include "sim/job/traffic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define S INT64_C(1000000000)

/* 100 s a step, 10 tokens a step, no end yet, checkpoints every ten steps. */
static OrrRunSpec *plain(void) {
    OrrRunSpec *s = orr_run_spec_new();
    s->name = g_strdup("plain");
    s->n_gpus = 8, s->n_nodes = 4, s->n_replicas = 4;
    s->phases = g_new0(OrrRunPhase, 1);
    s->n_phases = 1;
    s->phases[0] = (OrrRunPhase){.end_tokens = INT64_MAX, .tokens_per_step = 12, .mfu_frac = 0.4};
    for (guint i = 0; i <= ORR_MAX_LOST_REPLICAS; i++)
        s->phases[0].step_ns[i] = 100 * S;
    return s;
}

static OrrTier *tier(OrrRunSpec *s, int64_t block_ns, int64_t write_ns, int64_t load_ns) {
    s->checkpoint.interval_steps = 10;
    OrrTier *t = &s->checkpoint.tiers[s->checkpoint.n_tiers++];
    *t = (OrrTier){.name = g_strdup("disk"),
                   .every = 1,
                   .keep = 2,
                   .block_ns = block_ns,
                   .write_ns = write_ns,
                   .load_ns = load_ns,
                   .survives = ORR_SCOPE_ALL};
    return t;
}

static OrrFailureKind *strike_at(OrrRunSpec *s, OrrEffect effect, int64_t at_ns) {
    OrrFailureKind *k = orr_run_spec_add_kind(s, "strike");
    k->law = ORR_LAW_EVENTS;
    k->event_ns = g_new(int64_t, 1);
    k->event_ns[0] = at_ns;
    k->n_events = 1;
    k->effect = effect;
    return k;
}

static OrrRunSeed simulate(const OrrRunSpec *s, uint64_t seed) {
    OrrRunSeed out;
    g_autoptr(GError) error = NULL;
    if (!orr_run_spec_check(s, &error))
        fail_msg("%s", error->message);
    orr_run_seed_init(&out, seed, orr_run_n_causes(s));
    orr_run_simulate(s, seed, NULL, &out);
    g_autofree char *flaw = orr_run_seed_flaw(&out, orr_run_n_causes(s));
    if (flaw)
        fail_msg("seed %d: %s", (int)seed, flaw);
    return out;
}

static int64_t lost(const OrrRunSeed *o, uint32_t cause, OrrLoss loss) {
    return o->lost_ns[cause * ORR_N_LOSSES + loss];
}

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

static void test_no_spare_means_waiting_or_fewer_replicas(void **state) {
    (void)state;
    g_autoptr(OrrRunSpec) s = plain();
    tier(s, 0, 0, 0);
    s->total_tokens = 1200;
    s->recovery.hot_spares = 0;
    OrrFailureKind *k = strike_at(s, ORR_EFFECT_STOP, 1000 * S);
    k->nodes = 1, k->repair_ns = 10000 * S;
    OrrRunSeed waits = simulate(s, 3);
    int64_t repair_ns = lost(&waits, ORR_N_OWN_CAUSES, ORR_LOSS_REPAIR);
    assert_true(repair_ns > 0);
    assert_int_equal(waits.wall_ns, 10000 * S + repair_ns);
    s->recovery.elastic = ORR_ELASTIC_SHRINK;
    s->max_lost_replicas = 2;
    OrrRunSeed shrinks = simulate(s, 3);
    assert_int_equal(lost(&shrinks, ORR_N_OWN_CAUSES, ORR_LOSS_REPAIR), 0);
    assert_true(lost(&shrinks, ORR_N_OWN_CAUSES, ORR_LOSS_SHRUNK) > 0);
    assert_true(shrinks.wall_ns < waits.wall_ns);
    /* three of four replicas: nine tokens a step */
    assert_true(shrinks.tokens >= 1200 && shrinks.tokens < 1212);
    orr_run_seed_clear(&waits);
    orr_run_seed_clear(&shrinks);
}

/* Written for 250 s over the links of the training, whose steps are half as long again meanwhile:
 * one of 150 s, and 100 s of the next, in which two thirds of a step's 100 s are done. */
static void test_steps_are_longer_while_a_checkpoint_is_on_their_links(void **state) {
    (void)state;
    g_autoptr(OrrRunSpec) s = plain();
    OrrTier *t = tier(s, 2 * S, 260 * S, 0);
    t->traffic_ns = 250 * S, t->write_slow_frac = 0.5;
    s->total_steps = 20;
    OrrRunSeed o = simulate(s, 0);
    int64_t slow_ns = lost(&o, ORR_CAUSE_CHECKPOINT, ORR_LOSS_SAVE_SLOW);
    assert_true(llabs(slow_ns - 250 * S / 3) <= 1);
    assert_int_equal(o.wall_ns, 2000 * S + 4 * S + slow_ns);
    assert_near(orr_tier_cost_ns(t), (double)(2 * S + slow_ns), 1e-9);
    orr_run_seed_clear(&o);
    /* a crash ends the write, and what is done again is as fast as ever */
    strike_at(s, ORR_EFFECT_STOP, 1102 * S);
    o = simulate(s, 0);
    assert_int_equal(lost(&o, ORR_CAUSE_CHECKPOINT, ORR_LOSS_SAVE_SLOW), 250 * S / 3 + 1);
    assert_int_equal(o.reworked_steps, 10);
    orr_run_seed_clear(&o);
}

/* Max-min fair: a NIC of 400 for the training and one write, two writes; a narrow leaf; a front
 * end.
 */
static void test_writes_share_links_with_the_training(void **state) {
    (void)state;
    double rate[ORR_MAX_TIERS], job;
    OrrTraffic t = {.nics = 400, .has_job = true, .n = 1};
    t.flows[0].network = ORR_STORE_COMPUTE, t.flows[0].cap = 100;
    orr_traffic_share(&t, rate, &job);
    assert_true(rate[0] == 100 && job == 300);
    t.flows[0].cap = INFINITY;
    orr_traffic_share(&t, rate, &job);
    assert_true(rate[0] == 200 && job == 200);
    t.flows[1].network = ORR_STORE_PEERS, t.flows[1].cap = 50, t.n = 2;
    orr_traffic_share(&t, rate, &job);
    assert_true(rate[0] == 175 && rate[1] == 50 && job == 175);
    t.leaf = 90;
    orr_traffic_share(&t, rate, &job);
    assert_true(rate[0] == 30 && rate[1] == 30 && job == 30);
    t.flows[1].network = ORR_STORE_OWN, t.front = 20;
    orr_traffic_share(&t, rate, &job);
    assert_true(rate[0] == 45 && rate[1] == 20 && job == 45);
    t.has_job = false;
    orr_traffic_share(&t, rate, &job);
    assert_true(rate[0] == 90 && rate[1] == 20 && job == 0);
}

/* Two nodes break at once. With a hand each the job waits for the longer repair, with one for both,
 * one after the other. */
static void test_one_hand_repairs_one_node_after_the_other(void **state) {
    (void)state;
    int64_t both_ns = 0, longer_ns = 0, first_ns = 0;
    for (uint32_t hands = 0; hands < 4; hands++) {
        g_autoptr(OrrRunSpec) s = plain();
        tier(s, 0, 0, 0);
        s->total_steps = 30;
        s->recovery.hot_spares = 0, s->recovery.repair_hands = hands;
        OrrFailureKind *k = strike_at(s, ORR_EFFECT_STOP, 1000 * S);
        k->nodes = 2, k->repair_ns = 10000 * S;
        OrrRunSeed o = simulate(s, 3);
        int64_t waited_ns = lost(&o, ORR_N_OWN_CAUSES, ORR_LOSS_REPAIR);
        assert_int_equal(o.repairs, 2);
        if (hands == 0)
            longer_ns = waited_ns;
        else if (hands == 1)
            both_ns = waited_ns, first_ns = o.repair_wait_ns;
        else
            assert_int_equal(waited_ns, longer_ns);
        assert_true(hands == 1 || o.repair_wait_ns == 0);
        orr_run_seed_clear(&o);
    }
    assert_true(first_ns > 0 && first_ns < both_ns);
    assert_int_equal(MAX(first_ns, both_ns - first_ns), longer_ns);
}

/* Erlang's C: three nodes an hour, four hands, an hour each. */
static void test_nodes_wait_for_a_hand_as_long_as_erlang_says(void **state) {
    (void)state;
    g_autoptr(OrrRunSpec) s = plain();
    s->length_ns = 10000 * 3600 * S;
    s->recovery.repair_hands = 4;
    OrrFailureKind *k = orr_run_spec_add_kind(s, "node");
    k->n_units = 100, k->mean_ns = 100 * 1200e9;
    k->nodes = 1, k->repair_ns = 3600 * S;
    OrrRunSeed o = simulate(s, 1);
    double busy = 3.0, sum = 0, term = 1; /* offered load; 1 + a + a^2/2 + a^3/6 */
    for (int i = 0; i < 4; i++)
        sum += term, term *= busy / (i + 1);
    double last = term * 4 / (4 - busy), waits = last / (sum + last);
    assert_near(waits, 0.5094, 1e-4);
    assert_near((double)o.repairs, 30000, 0.02);
    assert_near((double)o.repair_wait_ns / (double)o.repairs / 3600e9, waits / (4 - busy), 0.08);
    orr_run_seed_clear(&o);
}

/* More breaks than is ever repaired: the run is given up, and no time overflows. */
static void test_hopeless_repairs_end_the_run(void **state) {
    (void)state;
    g_autoptr(OrrRunSpec) s = plain();
    s->total_steps = 1000000;
    s->recovery.repair_hands = 1, s->recovery.hot_spares = 0, s->recovery.cold_spares = 2000;
    OrrFailureKind *k = orr_run_spec_add_kind(s, "node");
    k->n_units = 100, k->mean_ns = 100 * 400e9;
    k->nodes = 2, k->repair_ns = INT64_C(300) * 86400 * S;
    OrrRunSeed o = simulate(s, 1);
    assert_true(o.has_most_strikes); /* which the Monte Carlo refuses */
    assert_true(o.repairs > 2000 && o.repair_wait_ns > 0 && o.wall_ns > 0);
    orr_run_seed_clear(&o);
}

/* The wait is exponential, and what would strike meanwhile strikes others. */
static void test_stop_goes_back_to_the_queue(void **state) {
    (void)state;
    enum { N = 500 };
    double sum = 0;
    for (int i = 0; i < N; i++) {
        g_autoptr(OrrRunSpec) s = plain();
        tier(s, 0, 0, 0);
        s->total_steps = 30;
        s->recovery.requeue_ns = 600 * S;
        s->recovery.queue_ns = 1000 * S;
        strike_at(s, ORR_EFFECT_STOP, 500 * S)->nodes = 1; /* not yet begun */
        strike_at(s, ORR_EFFECT_STOP, 2000 * S)->nodes = 1;
        strike_at(s, ORR_EFFECT_STOP, 2001 * S)->nodes = 1; /* in the queue again, or nearly so */
        strike_at(s, ORR_EFFECT_STOP, 3900 * S); /* no node to replace: started where it is */
        OrrRunSeed o = simulate(s, (uint64_t)i);
        assert_int_equal(o.strikes[ORR_N_OWN_CAUSES], 0);
        int64_t wait_ns = lost(&o, ORR_N_OWN_CAUSES + 1, ORR_LOSS_REQUEUE);
        assert_int_equal(o.strikes[ORR_N_OWN_CAUSES + 2], wait_ns < 1 * S);
        assert_int_equal(lost(&o, ORR_N_OWN_CAUSES + 3, ORR_LOSS_REQUEUE), 0);
        sum += (double)wait_ns / 1e9;
        orr_run_seed_clear(&o);
    }
    assert_true(fabs(sum / N - 600) < 3 * 600 / sqrt(N));
}

/* A hot spare joins the others, which keep their processes; a cold one, or none in time, does not.
 */
static void test_hot_spare_needs_no_start_of_all(void **state) {
    (void)state;
    for (uint32_t hot = 0; hot < 2; hot++) {
        g_autoptr(OrrRunSpec) s = plain();
        tier(s, 0, 0, 0);
        s->total_steps = 30;
        s->recovery.hot_spares = hot, s->recovery.cold_spares = 1;
        s->recovery.start_ns = 500 * S, s->recovery.hot_swap_ns = 70 * S;
        s->recovery.swap_ns = 10 * S, s->recovery.cold_ns = 900 * S;
        s->recovery.requeue_ns = 1 * S;
        strike_at(s, ORR_EFFECT_STOP, 2000 * S)->nodes = 1;
        OrrRunSeed o = simulate(s, 0);
        uint32_t c = ORR_N_OWN_CAUSES;
        assert_int_equal(lost(&o, c, ORR_LOSS_START), (hot ? 70 : 500) * S);
        assert_int_equal(lost(&o, c, ORR_LOSS_REPLACE), (hot ? 10 : 900) * S);
        assert_int_equal(lost(&o, c, ORR_LOSS_REQUEUE) > 0, !hot); /* it holds its own spares */
        orr_run_seed_clear(&o);
    }
}

/* Maintenance every 1,000 s; what somebody has to see is seen after an exponential time. */
static void test_periodic_stops_and_hangs_seen_by_hand(void **state) {
    (void)state;
    g_autoptr(OrrRunSpec) s = plain();
    s->length_ns = 10500 * S;
    OrrFailureKind *k = orr_run_spec_add_kind(s, "window");
    k->law = ORR_LAW_PERIODIC, k->mean_ns = 1000e9, k->effect = ORR_EFFECT_STALL;
    k->duration_ns = 7 * S;
    OrrRunSeed o = simulate(s, 0);
    assert_int_equal(o.strikes[ORR_N_OWN_CAUSES], 10);
    orr_run_seed_clear(&o);
    double sum = 0;
    enum { N = 500 };
    for (int i = 0; i < N; i++) {
        g_autoptr(OrrRunSpec) one = plain();
        one->total_steps = 20;
        OrrFailureKind *hang = strike_at(one, ORR_EFFECT_HANG, 500 * S);
        hang->detect_ns = 1000 * S, hang->by_hand = true;
        o = simulate(one, (uint64_t)i);
        sum += (double)lost(&o, ORR_N_OWN_CAUSES, ORR_LOSS_DETECT) / 1e9;
        orr_run_seed_clear(&o);
    }
    assert_true(fabs(sum / N - 1000) < 3 * 1000 / sqrt(N));
}

/* Steps of 100 s with an exponential excess of 5 s. */
static void test_steps_vary_as_their_noise(void **state) {
    (void)state;
    g_autoptr(OrrRunSpec) s = plain();
    tier(s, 0, 0, 0)->keep = 1;
    s->noise_frac = 0.05;
    s->total_steps = 20000;
    OrrRunSeed o = simulate(s, 0);
    double n = (double)o.steps_done, mean = (double)o.stepping_ns / 1e9 / n;
    assert_int_equal(o.steps_done, 20000);
    assert_near(mean, 105, 0.001);
    assert_near(sqrt(o.step_squares_s2 / n - mean * mean), 5, 0.05);
    orr_run_seed_clear(&o);
}

static void test_notice_saves_what_it_has_time_for(void **state) {
    (void)state;
    for (int enough = 0; enough < 2; enough++) {
        g_autoptr(OrrRunSpec) s = plain();
        tier(s, 5 * S, 35 * S, 0);
        s->total_steps = 30;
        OrrFailureKind *k = strike_at(s, ORR_EFFECT_RECLAIM, 850 * S);
        k->notice_ns = enough ? 40 * S : 39 * S;
        k->duration_ns = 600 * S;
        OrrRunSeed o = simulate(s, 0);
        assert_int_equal(o.reworked_steps, enough ? 0 : 8);
        assert_int_equal(lost(&o, ORR_N_OWN_CAUSES, ORR_LOSS_QUEUE), 600 * S);
        orr_run_seed_clear(&o);
    }
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
        cmocka_unit_test(test_no_spare_means_waiting_or_fewer_replicas),
        cmocka_unit_test(test_steps_are_longer_while_a_checkpoint_is_on_their_links),
        cmocka_unit_test(test_writes_share_links_with_the_training),
        cmocka_unit_test(test_one_hand_repairs_one_node_after_the_other),
        cmocka_unit_test(test_nodes_wait_for_a_hand_as_long_as_erlang_says),
        cmocka_unit_test(test_hopeless_repairs_end_the_run),
        cmocka_unit_test(test_stop_goes_back_to_the_queue),
        cmocka_unit_test(test_hot_spare_needs_no_start_of_all),
        cmocka_unit_test(test_periodic_stops_and_hangs_seen_by_hand),
        cmocka_unit_test(test_steps_vary_as_their_noise),
        cmocka_unit_test(test_notice_saves_what_it_has_time_for),
        cmocka_unit_test(test_mean_slowdown_is_dalys),
        cmocka_unit_test(test_strikes_come_at_their_rate),
        cmocka_unit_test(test_excluded_units_strike_no_more),
        cmocka_unit_test(test_accounts_of_random_runs_add_up_and_repeat),
        cmocka_unit_test(test_events_cover_the_run_without_a_gap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
