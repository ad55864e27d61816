/* Validation as a whole: runs in memory agree with job files, threads change nothing, the JSON is
 * as its schema says. */
#include "tests/near.h"

#include <math.h>
#include <string.h>

#include "sim/api/step.h"
#include "sim/api/validate.h"
#include "sim/io/file.h"
#include "sim/report/validation.h"
#include "tests/schema_check.h"
#include "workloads/published.h"

static OrrPublished *shipped(const char *file) {
    g_autofree char *folder = orr_workload_published_shipped(NULL);
    g_autofree char *path = g_build_filename(folder, file, NULL);
    OrrPublished *p = orr_published_new();
    assert_true(orr_workload_published(path, p, NULL));
    return p;
}

static OrrValidation *validate(const OrrPublished *facts, uint32_t n_threads) {
    OrrValidateRequest request = {.facts = facts, .n_threads = n_threads};
    g_autoptr(GError) error = NULL;
    OrrValidation *v = orr_validate(&request, &error);
    assert_non_null(v);
    return v;
}

static char *render(const OrrValidation *v, void (*write)(const OrrValidation *, OrrOut *)) {
    GString *text = g_string_new(NULL);
    g_autoptr(OrrOut) out = orr_out_to_string(text);
    write(v, out);
    return g_string_free(text, FALSE);
}

/* Table 5 of the activation recomputation paper, whose layers calibrate nothing here. */
static void test_recompute_paper_is_met_within_5_percent(void **state) {
    (void)state;
    g_autoptr(OrrPublished) facts = shipped("megatron-recompute.csv");
    g_autoptr(OrrValidation) v = validate(facts, 2);
    assert_int_equal(v->all[ORR_VALIDATED_STEP].rows, 4);
    assert_int_equal(v->all[ORR_VALIDATED_STEP].skipped, 0);
    if (v->all[ORR_VALIDATED_STEP].mape_frac > 0.05)
        fail_msg("mean error %.3f", v->all[ORR_VALIDATED_STEP].mape_frac);
}

static void test_a_row_in_memory_takes_what_its_job_file_takes(void **state) {
    (void)state;
    g_autoptr(OrrPublished) facts = shipped("megatron-recompute.csv");
    g_autoptr(OrrValidation) v = validate(facts, 1);
    OrrStepRequest request = {.job = "megatron-22b-8-full"};
    g_autoptr(OrrStepRun) run = orr_step_prepare(&request, NULL);
    assert_non_null(run);
    assert_true(orr_step_execute(run, NULL, NULL, 0, NULL));
    const OrrValidationRow *row = &g_array_index(v->rows, OrrValidationRow, 0);
    assert_string_equal(row->id, "B001");
    assert_near(row->predicted, (double)orr_step_record(run)->step_time_ns, 0.01);
}

static void test_threads_change_nothing(void **state) {
    (void)state;
    g_autoptr(OrrPublished) facts = shipped("zero-bubble.csv");
    g_autoptr(OrrValidation) one = validate(facts, 1);
    g_autoptr(OrrValidation) many = validate(facts, 7);
    g_autofree char *a = render(one, orr_report_validation_csv);
    g_autofree char *b = render(many, orr_report_validation_csv);
    assert_string_equal(a, b);
}

static void test_json_is_as_the_schema_says(void **state) {
    (void)state;
    g_autofree char *path = g_build_filename(ORR_SRCDIR, "doc", "schema", "validate-1.json", NULL);
    g_autoptr(JsonParser) schema = json_parser_new();
    assert_true(json_parser_load_from_file(schema, path, NULL));
    g_autoptr(OrrPublished) facts = shipped("llama3.csv");
    g_autoptr(OrrValidation) v = validate(facts, 1);
    g_autofree char *text = render(v, orr_report_validation_json);
    g_autoptr(JsonParser) parser = json_parser_new();
    assert_true(json_parser_load_from_data(parser, text, -1, NULL));
    g_autofree char *flaw = schema_flaw(json_node_get_object(json_parser_get_root(schema)),
                                        json_parser_get_root(parser), "$");
    if (flaw)
        fail_msg("%s", flaw);
}

/* A system's larger sizes, after a fit to its smaller ones. */
static void test_held_out_sizes_of_published_systems_are_met_within_5_percent(void **state) {
    (void)state;
    const char *env = g_getenv("ORRERY_SHARED");
    g_autofree char *shared =
        env ? g_strdup(env) : g_build_filename(ORR_SRCDIR, "..", "shared", NULL);
    g_autofree char *path = g_build_filename(shared, "published", "H_collectives.csv", NULL);
    if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
        g_clear_pointer(&path, g_free);
        g_clear_pointer(&shared, g_free);
        skip();
    }
    g_autoptr(OrrPublished) facts = orr_published_new();
    assert_true(orr_workload_published(path, facts, NULL));
    OrrValidateRequest request = {.facts = facts, .n_threads = 1, .hold_out_frac = 0.4};
    g_autoptr(OrrValidation) v = orr_validate(&request, NULL);
    assert_non_null(v);
    guint n_systems = 0;
    for (guint i = 0; i < v->rows->len; i++) {
        const char *group = g_array_index(v->rows, OrrValidationRow, i).group;
        double sum = 0;
        guint n = 0, n_fitted = 0;
        for (guint j = 0; j < v->rows->len; j++) {
            const OrrValidationRow *row = &g_array_index(v->rows, OrrValidationRow, j);
            if (row->group != group)
                continue;
            if (j < i)
                break; /* seen */
            n_fitted += row->reason && strstr(row->reason, "fitted, not held out") != NULL;
            if (!row->reason) {
                sum += fabs(row->predicted / row->measured - 1);
                n++;
            }
        }
        if (n + n_fitted < 10)
            continue;
        n_systems++;
        print_message("%-40s %4.1f %% of %u held out\n", group, 100 * sum / n, n);
        if (sum / n > 0.05)
            fail_msg("%s: %.3f", group, sum / n);
    }
    assert_true(n_systems >= 15);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recompute_paper_is_met_within_5_percent),
        cmocka_unit_test(test_a_row_in_memory_takes_what_its_job_file_takes),
        cmocka_unit_test(test_threads_change_nothing),
        cmocka_unit_test(test_json_is_as_the_schema_says),
        cmocka_unit_test(test_held_out_sizes_of_published_systems_are_met_within_5_percent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
