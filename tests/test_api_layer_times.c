/* Layer times of the 22 B GPT on 8 A100 as Korthikanti et al. 2022 (arXiv 2205.05198), table 4,
 * measured them: forward and backward of one layer, TP 8, 4 sequences of 2048. */
#include "sim/api/orrery.h"
#include "tests/near.h"

#include <glib/gstdio.h>

enum { FEWER = 12, MORE = 36 };

/* The update, which the published times leave out, in ms: the profile's 54 B a parameter of a
 * layer's 453 M over TP 8, at 85 % of 2039 GB/s and a step's 0.93. */
#define UPDATE_MS (54.0 * 453.1e6 / 8.0 / (0.85 * 2039e9) / 0.93 * 1e3)

/* The 22 B model cut to @layers; g_free. */
static char *cut_model(const char *folder, int layers) {
    g_autofree char *source =
        g_build_filename(g_getenv("top_srcdir"), "workloads", "models", "megatron-22b.ini", NULL);
    g_autofree char *text = NULL;
    assert_true(g_file_get_contents(source, &text, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autoptr(GString) out = g_string_new(NULL);
    for (int i = 0; lines[i]; i++) {
        if (g_str_has_prefix(lines[i], "layers ="))
            g_string_append_printf(out, "layers = %d\n", layers);
        else if (!g_str_has_prefix(lines[i], "expect_parameters"))
            g_string_append_printf(out, "%s\n", lines[i]);
    }
    char *path = g_strdup_printf("%s/cut-%d.ini", folder, layers);
    assert_true(g_file_set_contents(path, out->str, -1, NULL));
    return path;
}

static double step_ms(const char *model, const char *sequence_parallel, const char *policy) {
    g_autofree char *m = g_strdup_printf("job.model=%s", model);
    g_autofree char *sp = g_strdup_printf("layout.sequence_parallel=%s", sequence_parallel);
    g_autofree char *p = g_strdup_printf("recompute.policy=%s", policy);
    const char *const sets[] = {m, sp, p, NULL};
    OrreryOptions options = {.sets = sets};
    OrreryError *error = NULL;
    OrreryStep *step = orrery_step_run("megatron-22b-8", &options, &error);
    if (!step)
        fail_msg("%s", error->message);
    double ms = (double)orrery_step_time_ns(step) / 1e6;
    orrery_step_free(step);
    return ms;
}

static void check_layer(const char *sequence_parallel, const char *policy, double measured_ms) {
    g_autofree char *folder = g_dir_make_tmp("orrery-XXXXXX", NULL);
    g_autofree char *fewer = cut_model(folder, FEWER), *more = cut_model(folder, MORE);
    double layer_ms =
        (step_ms(more, sequence_parallel, policy) - step_ms(fewer, sequence_parallel, policy)) /
        (MORE - FEWER);
    assert_near(layer_ms - UPDATE_MS, measured_ms, 0.03);
    g_remove(fewer);
    g_remove(more);
    g_rmdir(folder);
}

static void test_layer_without_recompute(void **state) {
    (void)state;
    check_layer("no", "none", 19.6);
}

static void test_layer_with_sequence_parallelism(void **state) {
    (void)state;
    check_layer("yes", "none", 19.0);
}

static void test_layer_with_selective_recompute(void **state) {
    (void)state;
    check_layer("no", "selective", 20.9);
}

int main(void) {
    if (!g_getenv("top_srcdir")) /* by hand, from the build folder */
        g_setenv("top_srcdir", "..", TRUE);
    g_setenv("ORRERY_DATA", g_getenv("top_srcdir"), TRUE);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layer_without_recompute),
        cmocka_unit_test(test_layer_with_sequence_parallelism),
        cmocka_unit_test(test_layer_with_selective_recompute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
