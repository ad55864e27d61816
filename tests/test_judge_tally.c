/* Groups of a validation against sums by hand. */
#include "tests/near.h"

#include <string.h>

#include "sim/judge/tally.h"

static void add(OrrValidation *v, uint32_t file, const char *gpu, double predicted,
                const char *reason) {
    OrrValidationRow row = {.kind = ORR_VALIDATED_STEP,
                            .file = file,
                            .id = "",
                            .gpu = gpu,
                            .group = "p",
                            .measured = 100,
                            .predicted = predicted,
                            .reason = reason};
    g_array_append_val(v->rows, row);
}

static void test_groups_are_means_over_their_rows(void **state) {
    (void)state;
    g_autoptr(OrrValidation) v = orr_validation_new();
    g_strfreev(v->files);
    v->files = g_strsplit("a.csv,b.csv", ",", -1);
    add(v, 0, "x", 110, NULL);
    add(v, 0, "y", 70, NULL);
    add(v, 0, "y", 0, "too large");
    add(v, 1, "y", 300, NULL);
    orr_judge_tally(v);
    const OrrValidationGroup *g = &g_array_index(v->groups[0], OrrValidationGroup, 0);
    assert_string_equal(g->by, "file");
    assert_string_equal(g->name, "a.csv");
    assert_int_equal(g->rows, 2);
    assert_int_equal(g->skipped, 1);
    assert_near(g->mape_frac, 0.2, 1e-12);
    assert_near(g->bias_frac, -0.1, 1e-12);
    assert_near(g->worst_frac, -0.3, 1e-12);
    assert_near(v->all[0].mape_frac, (0.1 + 0.3 + 2.0) / 3, 1e-12);
    assert_near(v->all[0].median_abs_frac, 0.3, 1e-12);
    /* files: (0.1 + 0.3) / 2 and 2.0 cut to 0.5 */
    assert_near(v->macro_mape_frac, (0.2 + 0.5) / 2, 1e-12);
    assert_int_equal(v->skips->len, 1);
    assert_string_equal(g_array_index(v->skips, OrrValidationSkip, 0).reason, "too large");
}

static void test_nothing_compared_is_no_error(void **state) {
    (void)state;
    g_autoptr(OrrValidation) v = orr_validation_new();
    orr_judge_tally(v);
    assert_int_equal(v->all[0].rows, 0);
    assert_near(v->macro_mape_frac, 0, 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups_are_means_over_their_rows),
        cmocka_unit_test(test_nothing_compared_is_no_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
