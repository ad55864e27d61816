/* The public library: results agree with the report, errors carry message and status, runs repeat. */
#include "sim/api/orrery.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void test_step_gives_numbers_and_report(void **state)
{
    (void)state;
    OrreryError *error = NULL;
    OrreryStep *step = orrery_step_run("tiny-pipeline", NULL, &error);
    if (!step)
        fail_msg("%s", error->message);
    assert_true(orrery_step_time_ns(step) > 0);
    assert_true(orrery_step_fits(step));
    assert_true(orrery_step_peak_bytes(step, 0) > 0);
    assert_int_equal(orrery_step_peak_bytes(step, orrery_step_n_stages(step)), -1);
    char *json = orrery_step_report(step, "json");
    char key[80];
    snprintf(key, sizeof key, "\"step_time_ns\": %lld,", (long long)orrery_step_time_ns(step));
    assert_non_null(strstr(json, key));
    orrery_free(json);
    assert_null(orrery_step_report(step, "xml"));
    orrery_step_free(step);
}

static void test_sets_reach_the_job(void **state)
{
    (void)state;
    static const char *const sets[] = {"batch.sequence=64 tokens", NULL};
    OrreryOptions options = {.sets = sets};
    OrreryStep *step = orrery_step_run("tiny", &options, NULL);
    assert_non_null(step);
    char *json = orrery_step_report(step, "json");
    assert_non_null(strstr(json, "\"sequence_length\": 64,"));
    assert_non_null(strstr(json, "\"batch.sequence=64 tokens\""));
    orrery_free(json);
    orrery_step_free(step);
}

static void test_errors_have_message_and_status(void **state)
{
    (void)state;
    OrreryError *error = NULL;
    assert_null(orrery_step_run("no-such-job", NULL, &error));
    assert_int_equal(error->status, ORRERY_BAD_INPUT);
    assert_non_null(strstr(error->message, "no-such-job"));
    orrery_error_free(error);
    static const char *const sets[] = {"nonsense", NULL};
    OrreryOptions options = {.sets = sets};
    assert_null(orrery_step_run("tiny", &options, &error));
    assert_int_equal(error->status, ORRERY_USAGE);
    orrery_error_free(error);
    assert_null(orrery_step_run("no-such-job", NULL, NULL));
}

static void test_same_run_gives_same_bytes_folded_or_not(void **state)
{
    (void)state;
    OrreryOptions unfolded = {.is_unfolded = true, .self_check = true};
    OrreryStep *a = orrery_step_run("tiny-pipeline", NULL, NULL);
    OrreryStep *b = orrery_step_run("tiny-pipeline", NULL, NULL);
    OrreryStep *c = orrery_step_run("tiny-pipeline", &unfolded, NULL);
    char *first = orrery_step_report(a, "json"), *second = orrery_step_report(b, "json");
    assert_string_equal(first, second);
    assert_true(orrery_step_time_ns(a) == orrery_step_time_ns(c));
    orrery_free(first), orrery_free(second);
    orrery_step_free(a), orrery_step_free(b), orrery_step_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step_gives_numbers_and_report),
        cmocka_unit_test(test_sets_reach_the_job),
        cmocka_unit_test(test_errors_have_message_and_status),
        cmocka_unit_test(test_same_run_gives_same_bytes_folded_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
