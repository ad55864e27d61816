/* Closed forms against the numbers that people published or worked out by hand. */
#include "tests/near.h"

#include "sim/base/random.h"
#include "sim/job/formula.h"
#include "sim/job/renewal.h"

/* BLOOM on 384 A100: a failure a week, 40 s to write 2.3 TB, steps of 105.22 s (S33). */
static void test_interval_of_bloom_is_66_iterations_and_flat(void **state) {
    (void)state;
    double step = 105.22, week = 604800, tau = orr_young_interval(40, week);
    assert_near(tau, 6956, 1e-4);
    assert_int_equal((int)(tau / step + 0.5), 66);
    assert_near(orr_young_loss_frac(tau, 40, week), 0.0115, 1e-3);
    assert_near(orr_young_loss_frac(100 * step, 40, week), 0.0125, 2e-3);
    assert_near(orr_young_loss_frac(250 * step, 40, week), 0.0233, 5e-3);
    assert_near(250 * step / 3600, 7.3, 2e-3);
}

static void test_daly_is_near_young_where_writes_are_short(void **state) {
    (void)state;
    double young = orr_young_interval(40, 604800), daly = orr_daly_interval(40, 604800);
    assert_near(daly, young - 40 + 40.0 / 3, 1e-3); /* the series: - delta + delta / 3 */
    assert_near(orr_daly_interval(30, 10), 10, 0);  /* write above 2 M */
    /* Daly's interval is where his expected time is least */
    for (double f = 0.5; f < 2; f *= 1.1) {
        double best = orr_daly_slowdown(orr_daly_interval(300, 11124), 300, 600, 11124);
        double other = orr_daly_slowdown(orr_daly_interval(300, 11124) * f, 300, 600, 11124);
        assert_true(best <= other * (1 + 1e-4));
    }
}

/* 6.5 failures per thousand node-days, 8 GPUs a node (S35). */
static void test_fleet_mttf_follows_the_node_day_rate(void **state) {
    (void)state;
    assert_near(orr_mttf_hours(16384 / 8, 6.5), 1.80, 2e-3);
    assert_near(orr_mttf_hours(131072 / 8, 6.5), 0.225, 2e-3);
    assert_near(orr_mttf_hours(1024 / 8, 6.5), 28.8, 2e-3);
    assert_near(orr_mttf_hours(1, 6.5) / 24, 153.8, 1e-3);
}

/* 10,000 h a GPU at 16,384 GPUs is a failure each 37 minutes; measured it was 50,677 h. */
static void test_mtbf_of_a_gpu_becomes_that_of_the_job(void **state) {
    (void)state;
    assert_near(10000.0 / 16384 * 60, 36.6, 1e-3);
    assert_near(54 * 24 * 16384.0 / 419, 50677, 1e-4);
}

static void test_expected_ettr_follows_the_published_formula(void **state) {
    (void)state;
    /* 2,048 GPUs at 6.5 per 1,000 node-days, hourly checkpoints, 10 min restart: above 0.9 */
    double rate = 256 * 6.5e-3 / 24;
    assert_true(orr_kokolis_ettr_frac(1, 0, 1.0 / 6, rate) > 0.9);
    assert_near(orr_kokolis_ettr_frac(1, 0.01, 0, 0), 1 / 1.01, 1e-12);
}

/* Against sums of draws, and where it is known: exponential, one strike only, many lives. */
static void test_renewals_of_new_parts_are_counted(void **state) {
    (void)state;
    assert_near(orr_renewal_count(3, 1, 0), 3, 1e-15);
    assert_near(orr_renewal_count(3, 1, 1), 1 - exp(-3), 1e-3);
    assert_near(orr_renewal_count(2, 1, 2), 2 - 4 * exp(-2), 3e-3); /* E min(N, 2), N Poisson */
    assert_near(orr_renewal_count(500, 3, 0) / 500, 1, 2e-3);
    assert_near(orr_renewal_count(1000, 1, 3), 3, 1e-9);
    assert_true(orr_renewal_count(0, 2, 0) == 0);
    static const double cases[][2] = {{0.1, 0.5}, {0.1, 3}, {1, 0.7}, {2.5, 2}, {60, 0.5}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double t = cases[i][0], shape = cases[i][1], scale = 1 / tgamma(1 + 1 / shape);
        enum { UNITS = 20000 };
        uint64_t n = 0;
        for (uint64_t u = 0; u < UNITS; u++) {
            double at = 0;
            for (uint64_t k = 0; at < t; k++, n += at < t)
                at += scale * orr_random_weibull(orr_random(7, "renewal"), u, k, shape);
        }
        double mean = (double)n / UNITS, sigma = sqrt(mean / UNITS) * (shape < 1 ? 2 : 1);
        if (fabs(orr_renewal_count(t, shape, 0) - mean) > 4 * sigma + 0.005 * mean)
            fail_msg("%g lives of shape %g: %g, drawn %g", t, shape, orr_renewal_count(t, shape, 0),
                     mean);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interval_of_bloom_is_66_iterations_and_flat),
        cmocka_unit_test(test_daly_is_near_young_where_writes_are_short),
        cmocka_unit_test(test_fleet_mttf_follows_the_node_day_rate),
        cmocka_unit_test(test_mtbf_of_a_gpu_becomes_that_of_the_job),
        cmocka_unit_test(test_renewals_of_new_parts_are_counted),
        cmocka_unit_test(test_expected_ettr_follows_the_published_formula),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
