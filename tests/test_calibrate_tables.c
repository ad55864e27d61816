/* Surfaces as files: what is written is read back; bad files are refused with their place. */
#include "tests/near.h"

#include "calibrate/tables.h"
#include "sim/facts/forms.h"

#include <string.h>

static OrrSurfaceSet *small_set(void) {
    OrrSurfaceSet *set = g_new0(OrrSurfaceSet, 1);
    set->gpu = g_strdup("h100-sxm-80");
    set->name = g_strdup("test");
    set->source = g_strdup("made up for a test");
    set->clock_share = 0.9;
    set->throttled_ns = 25.6e6;
    set->surfaces = g_new0(OrrSurface, 1);
    set->n_surfaces = 1;
    OrrSurface *s = &set->surfaces[0];
    s->kind = ORR_K_ATTENTION;
    s->dtype = ORR_BF16;
    strcpy(s->variant, "causal");
    s->n_params = ORR_N_ATTN_PARAMS;
    double params[] = {989.4e12, 132, 3350e9, 5000, 0.6, 0.8, 0.5, 100, 4};
    memcpy(s->params, params, sizeof params);
    for (int d = 0; d < ORR_SURFACE_AXES; d++) {
        s->n[d] = 2;
        s->axis[d] = g_new(double, 2);
        s->axis[d][0] = 7;
        s->axis[d][1] = 9;
    }
    s->log_ratio = g_new(double, 8);
    for (int i = 0; i < 8; i++)
        s->log_ratio[i] = log(1.0 + 0.125 * i);
    return set;
}

/* Tables of before the key was there: as H100's rows have it. */
static void test_tables_without_throttled_take_that_of_h100(void **state) {
    (void)state;
    OrrSurfaceSet *set = small_set();
    g_autofree char *text = orr_tables_format(set);
    char *key = strstr(text, "throttled = 25.6 ms\n");
    assert_non_null(key);
    memmove(key, key + strlen("throttled = 25.6 ms\n"),
            strlen(key) - strlen("throttled = 25.6 ms\n") + 1);
    g_autoptr(GError) error = NULL;
    OrrSurfaceSet *back = orr_tables_parse("test.ini", text, strlen(text), &error);
    assert_non_null(back);
    assert_near(back->throttled_ns, 12.8e6, 1e-9);
    orr_surface_set_free(back);
    set->throttled_ns = 0;
    g_autofree char *none = orr_tables_format(set);
    back = orr_tables_parse("test.ini", none, strlen(none), &error);
    assert_non_null(back);
    assert_true(back->throttled_ns == 0.0);
    orr_surface_set_free(back);
    orr_surface_set_free(set);
}

static void test_tables_a_set_written_and_read_back_is_the_same(void **state) {
    (void)state;
    OrrSurfaceSet *set = small_set();
    g_autofree char *text = orr_tables_format(set);
    g_autoptr(GError) error = NULL;
    OrrSurfaceSet *back = orr_tables_parse("test.ini", text, strlen(text), &error);
    assert_null(error);
    assert_non_null(back);
    assert_string_equal(back->gpu, set->gpu);
    assert_string_equal(back->source, set->source);
    assert_near(back->clock_share, 0.9, 1e-9);
    assert_near(back->throttled_ns, 25.6e6, 1e-9);
    assert_int_equal(back->n_surfaces, 1);
    assert_string_equal(back->surfaces[0].variant, "causal");
    for (int i = 0; i < ORR_N_ATTN_PARAMS; i++)
        assert_near(back->surfaces[0].params[i], set->surfaces[0].params[i], 1e-4);
    double middle[] = {8, 8, 8};
    assert_near(orr_surface_ratio(&back->surfaces[0], middle),
                orr_surface_ratio(&set->surfaces[0], middle), 1e-3);
    g_autofree char *again = orr_tables_format(back);
    assert_string_equal(again, text);
    orr_surface_set_free(set);
    orr_surface_set_free(back);
}

static void test_tables_surface_is_exact_on_knots_and_constant_beyond(void **state) {
    (void)state;
    OrrSurfaceSet *set = small_set();
    const OrrSurface *s = &set->surfaces[0];
    double knot[] = {7, 9, 7}, outside[] = {2, 30, 7}, corner[] = {99, 99, 99};
    assert_near(orr_surface_ratio(s, knot), 1.25, 1e-12);
    assert_near(orr_surface_ratio(s, outside), 1.25, 1e-12);
    assert_near(orr_surface_ratio(s, corner), 1.875, 1e-12);
    orr_surface_set_free(set);
}

/* The text of the small set with one line changed must be refused, naming the key. */
static void expect_refusal(const char *line, const char *instead, const char *named) {
    OrrSurfaceSet *set = small_set();
    g_autofree char *text = orr_tables_format(set);
    g_auto(GStrv) part = g_strsplit(text, line, 2);
    assert_int_equal(g_strv_length(part), 2);
    g_autofree char *bad = g_strconcat(part[0], instead, part[1], NULL);
    g_autoptr(GError) error = NULL;
    assert_null(orr_tables_parse("bad.ini", bad, strlen(bad), &error));
    assert_non_null(error);
    assert_int_equal(error->code, ORR_ERROR_INPUT);
    if (!strstr(error->message, named) || !strstr(error->message, "bad.ini"))
        fail_msg("'%s' does not name %s", error->message, named);
    orr_surface_set_free(set);
}

static void test_tables_bad_files_are_refused_by_key(void **state) {
    (void)state;
    expect_refusal("axis1 = 7,9", "axis1 = 9,7", "axis1");
    expect_refusal("axis1 = 7,9", "axis1 = 7,nan", "axis1");
    expect_refusal("axis1 = 7,9", "axis1 = 7,9,10", "ratio.0");
    expect_refusal("ratio.1 =", "ratio.9 =", "ratio.1");
    expect_refusal("ratio.0 = 1.000", "ratio.0 = -1", "ratio.0");
    expect_refusal("peak = 989.4 TFLOP/s", "peak = 989.4 GB/s", "peak");
    expect_refusal("surfaces = attention.bf16.causal", "surfaces = norm.bf16", "surfaces");
    expect_refusal("surfaces = attention.bf16.causal", "surfaces = attention", "surfaces");
    expect_refusal("source = ", "sauce = ", "source");
    expect_refusal("clock_share = 0.9", "clock_share = 9", "clock_share");
}

static void test_tables_shipped_files_load_and_say_where_they_come_from(void **state) {
    (void)state;
    static const char *const names[] = {"a100_sxm80", "h100_sxm", "h200_sxm", "b200_sxm",
                                        "b300_sxm",   "gb200",    "gb300"};
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(GError) error = NULL;
        OrrSurfaceSet *set = orr_tables_named(names[i], &error);
        if (!set)
            fail_msg("%s", error->message);
        assert_string_equal(set->name, names[i]);
        assert_non_null(strstr(set->source, "aiconfigurator"));
        assert_non_null(orr_surface_find(set, ORR_K_GEMM, ORR_BF16, ""));
        assert_non_null(orr_surface_find(set, ORR_K_ATTENTION, ORR_BF16, "causal"));
        orr_surface_set_free(set);
    }
    g_autoptr(GError) error = NULL;
    assert_null(orr_tables_named("h100_sx", &error));
    assert_non_null(strstr(error->message, "h100_sxm")); /* the nearest name */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables_a_set_written_and_read_back_is_the_same),
        cmocka_unit_test(test_tables_without_throttled_take_that_of_h100),
        cmocka_unit_test(test_tables_surface_is_exact_on_knots_and_constant_beyond),
        cmocka_unit_test(test_tables_bad_files_are_refused_by_key),
        cmocka_unit_test(test_tables_shipped_files_load_and_say_where_they_come_from),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
