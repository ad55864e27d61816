/* What comes after a failure: spares, repairs, queues, notice, checkpoints on shared links; by
 * hand. */
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

static void test_a_failure_of_more_nodes_than_there_are_is_refused(void **state) {
    (void)state;
    g_autoptr(GError) error = NULL;
    OrrRunSpec *s = plain();
    s->total_steps = 10;
    OrrFailureKind *k = strike_at(s, ORR_EFFECT_STOP, 5 * S);
    k->nodes = 4;
    assert_true(orr_run_spec_check(s, NULL));
    k->nodes = 5;
    assert_false(orr_run_spec_check(s, &error));
    assert_non_null(strstr(error->message, "failure strike: nodes = 5"));
    assert_non_null(strstr(error->message, "has 4; at most that many or all would do"));
    orr_run_spec_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_failure_of_more_nodes_than_there_are_is_refused),
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
