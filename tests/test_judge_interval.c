/* Intervals cover runs that were not used to set them: the shipped table, held out by rows and by
 * whole sources. */
#include "tests/near.h"

#include <math.h>
#include <string.h>

#include "sim/base/random.h"
#include "sim/judge/interval.h"
#include "workloads/residuals.h"

#define FOLDS 10
#define EACH 7 /* every seventh run is asked, for time */

static OrrResiduals *shipped(void) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path = orr_workload_residuals_shipped(&error);
    OrrResiduals *r = path ? orr_workload_residuals(path, &error) : NULL;
    if (!r)
        fail_msg("%s", error->message);
    return r;
}

static const OrrResidual *row_at(const OrrResiduals *r, guint i) {
    return &g_array_index(r->rows, OrrResidual, i);
}

static bool covers(const OrrInterval *i, double ln) {
    return i->low_ln <= ln && ln <= i->high_ln;
}

static uint64_t fold_of(uint32_t i) {
    return orr_random_below(orr_random(1, "fold"), i, 0, FOLDS);
}

static bool in_fold(const OrrResidual *row, uint32_t i, void *data) {
    (void)row;
    return fold_of(i) == *(const uint64_t *)data;
}

/* Versions of a publication are one: they share its first words. */
static bool same_source(const OrrResidual *row, uint32_t i, void *data) {
    (void)i;
    return strncmp(row->source, data, 12) == 0;
}

static void test_the_table_is_of_the_published_runs(void **state) {
    (void)state;
    g_autoptr(OrrResiduals) r = shipped();
    assert_true(r->rows->len > 1700);
}

static void test_held_out_rows_are_covered_as_said(void **state) {
    (void)state;
    g_autoptr(OrrResiduals) r = shipped();
    uint32_t n = 0, covered = 0;
    double width = 0;
    for (guint i = 0; i < r->rows->len; i += EACH) {
        uint64_t fold = fold_of(i);
        OrrInterval interval;
        assert_true(orr_judge_interval(r, &row_at(r, i)->regime, in_fold, &fold, &interval));
        covered += covers(&interval, row_at(r, i)->ln);
        width += interval.high_ln - interval.low_ln;
        n++;
        g_free(interval.words);
    }
    double frac = (double)covered / n;
    print_message("held out in ten parts: %.3f of %u covered, mean width %.3f\n", frac, n,
                  width / n);
    assert_true(frac > ORR_INTERVAL_COVERAGE_FRAC - 0.06);
    assert_true(frac < ORR_INTERVAL_COVERAGE_FRAC + 0.10);
}

/* A new source: its own regime is unknown. Sources count equal. */
static void test_held_out_sources_are_covered_nearly_as_said(void **state) {
    (void)state;
    g_autoptr(OrrResiduals) r = shipped();
    double sum = 0;
    uint32_t n_sources = 0;
    for (guint i = 0, end; i < r->rows->len; i = end) {
        uint32_t n = 0, covered = 0;
        char *source = (char *)row_at(r, i)->source;
        for (end = i; end < r->rows->len && same_source(row_at(r, end), 0, source); end++) {
            if ((end - i) % EACH != 0)
                continue;
            OrrInterval interval;
            assert_true(
                orr_judge_interval(r, &row_at(r, end)->regime, same_source, source, &interval));
            covered += covers(&interval, row_at(r, end)->ln);
            n++;
            g_free(interval.words);
        }
        print_message("%5.2f of %4u  %.40s\n", (double)covered / n, n, source);
        sum += (double)covered / n;
        n_sources++;
    }
    print_message("held out by source: %.3f of %u sources\n", sum / n_sources, n_sources);
    assert_true(sum / n_sources > ORR_INTERVAL_COVERAGE_FRAC - 0.12);
}

static void test_a_profile_not_seen_is_said_and_widens(void **state) {
    (void)state;
    g_autoptr(OrrResiduals) r = shipped();
    OrrRegime seen = {"llm-foundry", "hopper", 64, 1, 1}, unseen = seen;
    unseen.framework = "a profile of one's own";
    OrrInterval a, b;
    assert_true(orr_judge_interval(r, &seen, NULL, NULL, &a));
    assert_true(orr_judge_interval(r, &unseen, NULL, NULL, &b));
    assert_true(a.has_framework && a.has_arch && !b.has_framework && b.has_arch);
    assert_true(b.high_ln - b.low_ln > a.high_ln - a.low_ln);
    assert_non_null(strstr(a.words, "llm-foundry"));
    assert_non_null(strstr(b.words, "any framework on hopper"));
    g_free(a.words), g_free(b.words);
}

static bool all_of_them(const OrrResidual *row, uint32_t i, void *data) {
    (void)row, (void)i, (void)data;
    return true;
}

static void test_without_rows_there_is_none(void **state) {
    (void)state;
    g_autoptr(OrrResiduals) r = shipped();
    OrrRegime regime = {"llm-foundry", "hopper", 64, 1, 1};
    OrrInterval interval;
    assert_false(orr_judge_interval(r, &regime, all_of_them, NULL, &interval));
}

static void test_a_broken_table_is_told_with_its_line(void **state) {
    (void)state;
    g_autofree char *path = g_build_filename(g_get_tmp_dir(), "orrery-residuals.csv", NULL);
    assert_true(g_file_set_contents(path,
                                    "source,framework,architecture,gpus,tp,pp,"
                                    "ln_measured_over_predicted\na,b,c,8,1,1,0.1 x\n",
                                    -1, NULL));
    g_autoptr(GError) error = NULL;
    assert_null(orr_workload_residuals(path, &error));
    assert_non_null(strstr(error->message, "orrery-residuals.csv:2: ln_measured_over_predicted"));
    assert_int_equal(error->code, ORR_ERROR_INPUT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_table_is_of_the_published_runs),
        cmocka_unit_test(test_held_out_rows_are_covered_as_said),
        cmocka_unit_test(test_held_out_sources_are_covered_nearly_as_said),
        cmocka_unit_test(test_a_profile_not_seen_is_said_and_widens),
        cmocka_unit_test(test_without_rows_there_is_none),
        cmocka_unit_test(test_a_broken_table_is_told_with_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
