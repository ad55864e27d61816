/* Counter-based draws: their moments, their independence of order, pinned values. */
#include "tests/near.h"

#include "sim/base/random.h"
#include "sim/base/stats.h"

#define N 200000

static void check_moments(double (*draw)(OrrRandom, uint64_t, uint64_t), double mean,
                          double deviation) {
    OrrRandom r = orr_random(1, "test");
    double *x = test_malloc(N * sizeof *x);
    for (uint64_t i = 0; i < N; i++)
        x[i] = draw(r, i, 7);
    assert_true(fabs(orr_stats_mean(x, N) - mean) < 5 * deviation / sqrt(N)); /* five sigma */
    assert_near(orr_stats_deviation(x, N), deviation, 0.02);
    test_free(x);
}

static double weibull_2(OrrRandom r, uint64_t a, uint64_t b) {
    return orr_random_weibull(r, a, b, 2);
}

static void test_random_moments_match_the_distributions(void **state) {
    (void)state;
    check_moments(orr_random_uniform, 0.5, sqrt(1.0 / 12));
    check_moments(orr_random_normal, 0, 1);
    check_moments(orr_random_exponential, 1, 1);
    check_moments(weibull_2, sqrt(M_PI) / 2, sqrt(1 - M_PI / 4)); /* gamma functions at 3/2 and 2 */
}

static void test_random_draws_do_not_change_between_versions(void **state) {
    (void)state;
    OrrRandom r = orr_random(42, "ecmp");
    assert_true(orr_random_bits(r, 0, 0) == UINT64_C(0x6b58e9d23f1c2ad7));
    assert_true(orr_random_bits(r, 1, 2) == UINT64_C(0x236faa77ac30a5b9));
}

static void test_random_neighbours_differ_in_half_their_bits(void **state) {
    (void)state;
    double flips = 0;
    for (uint64_t i = 0; i < 10000; i++) {
        OrrRandom r = orr_random(i, "x"), s = orr_random(i + 1, "x"), t = orr_random(i, "y");
        uint64_t bits = orr_random_bits(r, i, i);
        flips += __builtin_popcountll(bits ^ orr_random_bits(r, i + 1, i));
        flips += __builtin_popcountll(bits ^ orr_random_bits(r, i, i + 1));
        flips += __builtin_popcountll(bits ^ orr_random_bits(s, i, i));
        flips += __builtin_popcountll(bits ^ orr_random_bits(t, i, i));
    }
    assert_near(flips / 40000, 32, 0.005);
}

static void test_random_below_is_even(void **state) {
    (void)state;
    OrrRandom r = orr_random(3, "below");
    int seen[7] = {0};
    for (uint64_t i = 0; i < 70000; i++)
        seen[orr_random_below(r, i, 0, 7)]++;
    for (int i = 0; i < 7; i++)
        assert_near(seen[i], 10000, 0.05);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_moments_match_the_distributions),
        cmocka_unit_test(test_random_draws_do_not_change_between_versions),
        cmocka_unit_test(test_random_neighbours_differ_in_half_their_bits),
        cmocka_unit_test(test_random_below_is_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
