/* Plots: names are quoted, pictures appear beside table and script, a missing gnuplot is told. */
#include "plots/plot.h"
#include "sim/io/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include <glib/gstdio.h>

static int setup(void **state) {
    *state = g_dir_make_tmp("orrery-plot-XXXXXX", NULL);
    return 0;
}

static int teardown(void **state) {
    g_autoptr(GDir) dir = g_dir_open(*state, 0, NULL);
    for (const char *name; (name = g_dir_read_name(dir));) {
        g_autofree char *path = g_build_filename(*state, name, NULL);
        g_unlink(path);
    }
    g_rmdir(*state);
    g_free(*state);
    return 0;
}

static void put(const char *folder, const char *name, const char *text) {
    g_autofree char *path = g_build_filename(folder, name, NULL);
    assert_true(orr_file_write(path, text, NULL));
}

static bool is_there(const char *folder, const char *name) {
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_autofree char *text = NULL;
    gsize n = 0;
    return g_file_get_contents(path, &text, &n, NULL) && n > 500;
}

static void give_tables(const char *folder) {
    static const OrrPlotName names[] = {{"job", "a \"b\" `c` \\", 0},
                                        {"step_time", "1 s", 0},
                                        {"step_ms", NULL, 1000},
                                        {"verdict", "fits", 0}};
    assert_true(orr_plot_names(folder, names, G_N_ELEMENTS(names), NULL));
    put(folder, "timeline.csv",
        "row,rank,step,pass,chunk,micro_batch,start_ns,end_ns\n"
        "0,0,0,F,0,0,0,1000000\n1,8,0,F,0,0,1000000,2000000\n1,8,0,B,0,0,2000000,4000000\n"
        "0,0,0,B,0,0,4000000,6000000\n0,0,0,step,0,0,6000000,6100000\n");
    put(folder, "time_account.csv",
        "stage,matrix products,attention,memory-bound kernels,"
        "optimizer and gradients,interference,pipeline bubble,exposed TP,exposed DP,other exposed,"
        "waiting for a later rank,host not ready,waiting for input,end of step elsewhere\n"
        "mean,500,100,100,50,0,200,50,0,0,0,0,0,0\n0,500,100,100,50,0,200,50,0,0,0,0,0,0\n");
    put(folder, "memory.csv",
        "stage,capacity,peak,weights,gradients,optimizer,activations,logits,"
        "comm buffers,allocator,context\n0,80,40,10,10,5,10,0,1,2,2\n1,80,30,10,10,5,0,0,1,2,2\n");
}

static void test_every_plot_draws_png_and_svg(void **state) {
    g_autofree char *gnuplot = g_find_program_in_path("gnuplot");
    if (!gnuplot)
        skip();
    give_tables(*state);
    for (const OrrPlot *p = orr_plots; p->name; p++) {
        GError *error = NULL;
        if (!orr_plot_draw(p, *state, &error))
            fail_msg("%s", error->message);
        g_autofree char *png = g_strdup_printf("%s.png", p->name);
        g_autofree char *svg = g_strdup_printf("%s.svg", p->name);
        g_autofree char *script = g_strdup_printf("%s.gp", p->name);
        assert_true(is_there(*state, png));
        assert_true(is_there(*state, svg));
        assert_true(is_there(*state, script));
    }
}

static void test_names_cannot_leave_their_quotes(void **state) {
    give_tables(*state);
    g_autofree char *path = g_build_filename(*state, "names.gp", NULL);
    g_autofree char *text = orr_file_read(path, 1000, NULL, NULL);
    assert_non_null(strstr(text, "job = \"a \\\"b\\\"  c  \\\\\"\n"));
    assert_non_null(strstr(text, "step_ms = 1000.000000\n"));
}

static void test_missing_gnuplot_is_told_and_script_stays(void **state) {
    g_autofree char *path = g_strdup(g_getenv("PATH"));
    give_tables(*state);
    g_setenv("PATH", "/nowhere", TRUE);
    GError *error = NULL;
    assert_false(orr_plot_draw(orr_plot_find("memory"), *state, &error));
    g_setenv("PATH", path, TRUE);
    assert_int_equal(error->code, ORR_ERROR_ENV);
    assert_non_null(strstr(error->message, "gnuplot memory.gp"));
    g_error_free(error);
    assert_true(is_there(*state, "memory.gp"));
}

static void test_broken_table_leaves_no_picture(void **state) {
    g_autofree char *gnuplot = g_find_program_in_path("gnuplot");
    if (!gnuplot)
        skip();
    give_tables(*state);
    put(*state, "memory.csv", "");
    GError *error = NULL;
    assert_false(orr_plot_draw(orr_plot_find("memory"), *state, &error));
    assert_int_equal(error->code, ORR_ERROR_ENV);
    g_error_free(error);
    assert_false(is_there(*state, "memory.png"));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_every_plot_draws_png_and_svg),
        TEST(test_names_cannot_leave_their_quotes),
        TEST(test_missing_gnuplot_is_told_and_script_stays),
        TEST(test_broken_table_leaves_no_picture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
