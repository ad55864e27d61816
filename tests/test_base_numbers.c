/* Statistics, curves, words and errors. */
#include "tests/near.h"

#include "sim/base/curve.h"
#include "sim/base/error.h"
#include "sim/base/stats.h"
#include "sim/base/words.h"

static void test_stats_of_small_samples(void **state) {
    (void)state;
    static const double x[] = {4, 1, 3, 2};
    assert_near(orr_stats_mean(x, 4), 2.5, 1e-15);
    assert_near(orr_stats_median(x, 4), 2.5, 1e-15);
    assert_near(orr_stats_median(x, 3), 3, 1e-15);
    assert_near(orr_stats_percentile(x, 4, 0), 1, 1e-15);
    assert_near(orr_stats_percentile(x, 4, 1), 4, 1e-15);
    assert_near(orr_stats_percentile(x, 4, 0.9), 3.7, 1e-15);
    assert_near(orr_stats_deviation(x, 4), sqrt(5.0 / 3), 1e-15);
    assert_near(orr_stats_geomean(x, 4), pow(24, 0.25), 1e-15);
    /* tables of Student's distribution: 12.706, 4.303, 3.182, 2.776, 2.045, 1.96 */
    static const double student[][2] = {{2, 12.7062}, {3, 4.30265},  {4, 3.18245},
                                        {5, 2.77645}, {30, 2.04523}, {1000001, 1.95996}};
    for (size_t i = 0; i < sizeof student / sizeof *student; i++)
        assert_near(orr_stats_half_width95(3, (size_t)student[i][0]),
                    student[i][1] * 3 / sqrt(student[i][0]), 0.0015);
    assert_true(isnan(orr_stats_half_width95(3, 1)));
    assert_true(isnan(orr_stats_mean(x, 0)) && isnan(orr_stats_median(x, 0)));
    assert_true(x[0] == 4);
}

static void test_stats_mean_loses_nothing(void **state) {
    (void)state;
    static const double x[] = {1e100, 1, -1e100, 1};
    assert_near(orr_stats_mean(x, 4), 0.5, 1e-15);
}

static void test_curve_meets_its_points_and_is_a_power_law_between(void **state) {
    (void)state;
    static const double x[] = {1, 100, 1e4}, y[] = {2, 20, 30};
    g_autoptr(OrrCurve) c = orr_curve_new(x, y, 3);
    for (int i = 0; i < 3; i++)
        assert_near(orr_curve_at(c, x[i], ORR_CURVE_HOLD), y[i], 1e-12);
    assert_near(orr_curve_at(c, 10, ORR_CURVE_HOLD), sqrt(2 * 20), 1e-12);
    assert_near(orr_curve_at(c, 1e6, ORR_CURVE_HOLD), 30, 1e-12);
    assert_near(orr_curve_at(c, 1e6, ORR_CURVE_SLOPE), 45, 1e-12);
    assert_near(orr_curve_at(c, 1e-2, ORR_CURVE_SLOPE), 0.2, 1e-12);
    double before = 0;
    for (double at = 0.1; at < 1e6; at *= 1.1) {
        double here = orr_curve_at(c, at, ORR_CURVE_HOLD);
        assert_true(here >= before);
        before = here;
    }
}

static void test_words_nearest_is_what_was_meant(void **state) {
    (void)state;
    static const char *const names[] = {"gpipe", "1f1b", "interleaved", "h100-sxm-80", NULL};
    assert_string_equal(orr_words_nearest("gpip", names), "gpipe");
    assert_string_equal(orr_words_nearest("1F1B", names), "1f1b");
    assert_string_equal(orr_words_nearest("interlaeved", names), "interleaved");
    assert_string_equal(orr_words_nearest("h100-sxm", names), "h100-sxm-80");
    assert_null(orr_words_nearest("dualpipe", names));
    assert_null(orr_words_nearest("", names));
    assert_int_equal(orr_words_distance("ab", "ba"), 1);
    assert_int_equal(orr_words_distance("", "abc"), 3);
    g_autofree char *list = orr_words_list(names);
    assert_string_equal(list, "gpipe, 1f1b, interleaved or h100-sxm-80");
}

static void test_error_code_is_the_exit_status(void **state) {
    (void)state;
    g_autoptr(GError) input = NULL, usage = NULL, env = NULL;
    assert_false(orr_fail_input(&input, "%s:%d: bad", "f", 3));
    assert_false(orr_fail_usage(&usage, "u"));
    assert_false(orr_fail_env(&env, "e"));
    assert_false(orr_fail_env(NULL, "nobody asks"));
    assert_string_equal(input->message, "f:3: bad");
    assert_int_equal(input->code, 3);
    assert_int_equal(usage->code, 2);
    assert_int_equal(env->code, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stats_of_small_samples),
        cmocka_unit_test(test_stats_mean_loses_nothing),
        cmocka_unit_test(test_curve_meets_its_points_and_is_a_power_law_between),
        cmocka_unit_test(test_words_nearest_is_what_was_meant),
        cmocka_unit_test(test_error_code_is_the_exit_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
