/* orrery-calibrate as it is run: without a GPU, interrupted and resumed, with wrong words. */
#include "tests/calibrate_helpers.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <cmocka.h>
#include <sys/wait.h>

/* An interrupt that waits before the program begins is there when it first asks. */
static void be_interrupted(gpointer data) {
    (void)data;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    raise(SIGINT);
}

static int run_program(const char *const *words, bool is_interrupted, char **says) {
    const char *folder = g_getenv("top_builddir");
    g_autofree char *program = g_build_filename(folder ? folder : ".", "orrery-calibrate", NULL);
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    g_ptr_array_add(argv, program);
    for (int i = 0; words[i]; i++)
        g_ptr_array_add(argv, (gpointer)words[i]);
    g_ptr_array_add(argv, NULL);
    int status = -1;
    if (!g_spawn_sync(NULL, (char **)argv->pdata, NULL, G_SPAWN_STDOUT_TO_DEV_NULL,
                      is_interrupted ? be_interrupted : NULL, NULL, NULL, says, &status, NULL))
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_program_without_a_gpu_says_so_and_exits_4(void **state) {
    (void)state;
    if (access("/dev/nvidiactl", F_OK) == 0)
        skip();
    const char *const words[] = {"--only", "launch", NULL};
    g_autofree char *says = NULL;
    assert_int_equal(run_program(words, false, &says), 4);
    assert_non_null(strstr(says, "no GPU"));
}

static void test_program_interrupted_exits_4_and_goes_on(void **state) {
    (void)state;
    char *path = scratch_file("records.csv");
    const char *const words[] = {"--device", "fake:16:8", "-o", path, NULL};
    g_autofree char *says = NULL, *again = NULL;
    assert_int_equal(run_program(words, true, &says), 4);
    assert_non_null(strstr(says, "goes on where it stopped"));
    assert_int_equal(run_program(words, false, &again), 0);
    assert_non_null(strstr(again, " 0 left"));
    g_autoptr(OrrCsv) csv = orr_csv_load(path, ORR_CSV_PLAIN, NULL);
    assert_true(orr_csv_n_rows(csv) > 500);
    scratch_remove(path);
}

static void test_program_refuses_wrong_words_with_2(void **state) {
    (void)state;
    const char *const bad[][3] = {{"--device", "cudda", NULL},
                                  {"--device", "fake:0", NULL},
                                  {"--device", "fake:9:8", NULL},
                                  {"--only", "gem", NULL},
                                  {"extra", NULL}};
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *says = NULL;
        assert_int_equal(run_program(bad[i], false, &says), 2);
        assert_true(g_str_has_prefix(says, "orrery-calibrate: "));
    }
}

static void test_program_lists_and_tells_its_versions(void **state) {
    (void)state;
    const char *const list[] = {"--device", "fake", "--list", "--full", NULL};
    const char *const version[] = {"--version", NULL};
    assert_int_equal(run_program(list, false, NULL), 0);
    assert_int_equal(run_program(version, false, NULL), 0);
}

static void test_program_shapes_that_are_not_there_exit_3(void **state) {
    (void)state;
    const char *const words[] = {"--device", "fake", "--shapes", "no-such-file.csv", NULL};
    g_autofree char *says = NULL;
    assert_int_equal(run_program(words, false, &says), 3);
    assert_non_null(strstr(says, "no-such-file.csv"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_program_without_a_gpu_says_so_and_exits_4),
        cmocka_unit_test(test_program_interrupted_exits_4_and_goes_on),
        cmocka_unit_test(test_program_refuses_wrong_words_with_2),
        cmocka_unit_test(test_program_lists_and_tells_its_versions),
        cmocka_unit_test(test_program_shapes_that_are_not_there_exit_3),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
