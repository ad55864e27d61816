/* The public library: results agree with the report, errors carry message and status, runs repeat.
 */
#include "sim/api/orrery.h"
#include "tests/schema_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void test_step_gives_numbers_and_report(void **state) {
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

static void test_sets_reach_the_job(void **state) {
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

static void test_errors_have_message_and_status(void **state) {
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

static void test_same_run_gives_same_bytes_folded_or_not(void **state) {
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

/* Real records of all sorts are as the schema says, and their accounts add up. */
static void test_reports_of_jobs_are_as_the_schema_says(void **state) {
    static const char *const jobs[] = {"tiny",         "tiny-pipeline",       "llama3-8b-8",
                                       "qwen2-1.5b-4", "megatron-22b-8-full", "gpt2-meg-v100-pp4"};
    (void)state;
    g_autoptr(JsonParser) schema = json_parser_new();
    assert_true(json_parser_load_from_file(schema, ORR_SRCDIR "/doc/schema/step-1.json", NULL));
    JsonObject *s = json_node_get_object(json_parser_get_root(schema));
    OrreryOptions options = {.sensitivity = true};
    for (guint i = 0; i < G_N_ELEMENTS(jobs); i++) {
        OrreryStep *step = orrery_step_run(jobs[i], &options, NULL);
        assert_non_null(step);
        char *json = orrery_step_report(step, "json");
        assert_non_null(strstr(json, "\"sensitivity\""));
        g_autoptr(JsonParser) parser = json_parser_new();
        assert_true(json_parser_load_from_data(parser, json, -1, NULL));
        g_autofree char *flaw = schema_flaw(s, json_parser_get_root(parser), jobs[i]);
        if (flaw)
            fail_msg("%s", flaw);
        JsonObject *o = json_node_get_object(json_parser_get_root(parser));
        static const char *const accounts[] = {"time_account", "critical_path"};
        for (int a = 0; a < 2; a++) {
            JsonArray *account = json_object_get_array_member(o, accounts[a]);
            gint64 sum = 0;
            for (guint k = 0; k < json_array_get_length(account); k++)
                sum += json_object_get_int_member(json_array_get_object_element(account, k), "ns");
            assert_int_equal(sum, json_object_get_int_member(o, "step_time_ns"));
        }
        orrery_free(json);
        orrery_step_free(step);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step_gives_numbers_and_report),
        cmocka_unit_test(test_sets_reach_the_job),
        cmocka_unit_test(test_errors_have_message_and_status),
        cmocka_unit_test(test_same_run_gives_same_bytes_folded_or_not),
        cmocka_unit_test(test_reports_of_jobs_are_as_the_schema_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
