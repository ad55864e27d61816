/* A calibration file of collectives changes the step, names itself in the record, and errors have
 * their place. */
#include "tests/near.h"

#include <glib/gstdio.h>
#include <string.h>

#include "sim/api/calibration.h"
#include "sim/api/step.h"
#include "sim/io/file.h"

static char *write_file(const char *text) {
    g_autofree char *dir = g_dir_make_tmp("orrery-XXXXXX", NULL);
    char *path = g_build_filename(dir, "fit.ini", NULL);
    assert_true(orr_file_write(path, text, NULL));
    return path;
}

static void drop(char *path) {
    g_autofree char *dir = g_path_get_dirname(path);
    g_unlink(path);
    g_rmdir(dir);
    g_free(path);
}

static int64_t step_ns(const char *calibration, char **named) {
    OrrStepRequest request = {.job = "megatron-22b-8", .calibration = calibration};
    g_autoptr(GError) error = NULL;
    g_autoptr(OrrStepRun) run = orr_step_prepare(&request, &error);
    if (!run)
        fail_msg("%s", error->message);
    assert_true(orr_step_execute(run, NULL, NULL, 0, NULL));
    if (named)
        *named = g_strdup(orr_step_record(run)->calibration);
    return orr_step_record(run)->step_time_ns;
}

static void test_slower_links_make_a_slower_step_and_are_named(void **state) {
    (void)state;
    char *path = write_file("[calibration]\nsource = a test\n[collectives]\n"
                            "ampere.ring.simple.eff_frac = 0.2\n");
    g_autofree char *named = NULL;
    int64_t slow = step_ns(path, &named), shipped = step_ns(NULL, NULL);
    assert_true(slow > shipped + shipped / 20);
    assert_non_null(strstr(named, "collectives: fit"));
    drop(path);
}

static void test_unknown_names_and_missing_units_are_refused_with_their_line(void **state) {
    (void)state;
    char *path = write_file("[calibration]\nsource = a test\n[collectives]\n"
                            "ampere.rings.launch_ns = 5 ns\nampere.nvls.launch_ns = 5\n");
    g_autoptr(GError) error = NULL;
    assert_null(orr_calibration_load(path, &error));
    assert_non_null(strstr(error->message, ":4: "));
    assert_non_null(strstr(error->message, ":5: "));
    drop(path);
}

static void test_a_shipped_table_is_a_calibration_of_kernels_alone(void **state) {
    (void)state;
    g_autoptr(OrrCalibration) c = orr_calibration_load("h100_sxm", NULL);
    assert_non_null(c);
    assert_non_null(c->surfaces);
    assert_false(c->surfaces->is_training);
    assert_null(c->collectives);
    assert_false(c->has_rates);
}

static void test_a_file_without_anything_measured_is_refused(void **state) {
    (void)state;
    char *path = write_file("[calibration]\nsource = a test\n");
    g_autoptr(GError) error = NULL;
    assert_null(orr_calibration_load(path, &error));
    assert_non_null(strstr(error->message, "holds nothing"));
    drop(path);
}

/* Rates, launches and overlap alone: the GPU keeps its surfaces. */
static void test_slower_memory_launches_and_overlap_make_a_slower_step(void **state) {
    (void)state;
    static const char *const parts[] = {
        "[streaming]\nhbm_share = 20 %\n", "[streaming]\nfixed = 30 us\n",
        "[launches]\nrate = 3 ms\n", "[overlap]\nproducts_beside_collectives = 30 %\n"};
    int64_t shipped = step_ns(NULL, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++) {
        g_autofree char *text = g_strconcat("[calibration]\nsource = a test\n", parts[i], NULL);
        char *path = write_file(text);
        if (step_ns(path, NULL) <= shipped + shipped / 100)
            fail_msg("%s changes nothing", parts[i]);
        drop(path);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slower_links_make_a_slower_step_and_are_named),
        cmocka_unit_test(test_unknown_names_and_missing_units_are_refused_with_their_line),
        cmocka_unit_test(test_a_shipped_table_is_a_calibration_of_kernels_alone),
        cmocka_unit_test(test_a_file_without_anything_measured_is_refused),
        cmocka_unit_test(test_slower_memory_launches_and_overlap_make_a_slower_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
