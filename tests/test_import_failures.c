/* Histories of failures: the shared samples, fits of known laws, what is refused. */
#include "tests/near.h"

#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>

#include "sim/base/random.h"
#include "workloads/import_failures.h"
#include "workloads/loader_run.h"

static char *shared(const char *file) {
    const char *folder = g_getenv("ORRERY_SHARED"), *top = g_getenv("top_srcdir");
    g_autofree char *beside = g_build_filename(top ? top : ".", "..", "shared", NULL);
    return g_build_filename(folder ? folder : beside, "files", "failure-traces", file, NULL);
}

static char *import_text(const char *text, const OrrImport *from, GString *notes, GError **error) {
    OrrImport import = *from;
    import.path = "x.csv";
    import.notes = notes;
    return orr_import_failures_text(&import, text, strlen(text), error);
}

/* What comes out must load; the set is the caller's. */
static OrrFailureSet *load(const char *text) {
    g_autoptr(GError) error = NULL;
    char *path = NULL;
    int fd = g_file_open_tmp("orrery-XXXXXX.ini", &path, NULL);
    assert_true(fd >= 0 && g_close(fd, NULL) && g_file_set_contents(path, text, -1, NULL));
    OrrFailureSet *set = orr_workload_failures(path, NULL, 0, NULL, &error);
    g_unlink(path);
    g_free(path);
    if (!set)
        fail_msg("%s in:\n%s", error->message, text);
    return set;
}

static void test_published_counts_become_their_rates(void **state) {
    (void)state;
    g_autofree char *path = shared("llama3-54day-interruptions.csv");
    if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
        g_clear_pointer(&path, g_free); /* skip does not come back */
        skip();
    }
    g_autoptr(GString) notes = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    OrrImport import = {.path = path, .n_ranks = 16384, .window_ns = 54 * 86400e9, .notes = notes};
    g_autofree char *text = orr_importer_failures.run(&import, &error);
    if (!text)
        fail_msg("%s", error->message);
    g_autoptr(OrrFailureSet) set = load(text);
    assert_int_equal(set->n, 18);
    double rate = 0; /* of a job of 16,384 GPUs, an hour */
    for (uint32_t i = 0; i < set->n; i++)
        rate += (set->kinds[i].unit == ORR_UNIT_GPU ? 16384 : 1) / (set->kinds[i].mean_ns / 3600e9);
    assert_near(1 / rate, 54 * 24 / 419.0, 1e-6);
    uint32_t n_hangs = 0, n_corrupt = 0;
    for (uint32_t i = 0; i < set->n; i++) {
        n_hangs += set->kinds[i].effect == ORR_EFFECT_HANG && set->kinds[i].detect_ns > 0;
        n_corrupt += set->kinds[i].effect == ORR_EFFECT_CORRUPT && set->kinds[i].detect_ns > 0;
    }
    assert_int_equal(n_hangs, 1); /* NCCL's watchdog; silent corruption */
    assert_int_equal(n_corrupt, 1);
    import.window_ns = 0;
    assert_null(orr_importer_failures.run(&import, &error));
    assert_non_null(strstr(error->message, "--window"));
}

static void test_slurm_counts_jobs_and_not_their_steps(void **state) {
    (void)state;
    g_autofree char *path = shared("sacct-P.txt");
    if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
        g_clear_pointer(&path, g_free); /* skip does not come back */
        skip();
    }
    g_autoptr(GString) notes = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    OrrImport import = {.path = path, .notes = notes};
    g_autofree char *text = orr_importer_failures.run(&import, &error);
    if (!text)
        fail_msg("%s", error->message);
    g_autoptr(OrrFailureSet) set = load(text);
    assert_int_equal(set->n, 1); /* the FAILED line is a step */
    /* 64 nodes x (31 h 38 min 45 s + 72 h 10 s + 0 + 12 h), one NODE_FAIL */
    double node_days = 64 * (31 + 38 / 60.0 + 45 / 3600.0 + 72 + 10 / 3600.0 + 12) / 24;
    assert_near(set->kinds[0].mean_ns / 86400e9, node_days, 1e-5);
    assert_non_null(strstr(notes->str, "4 jobs, 1 ended by NODE_FAIL"));
}

/* Acme's table of jobs: a node failed once in 3 x 10 + 1 x 20 node-hours, a job once in 30 h. */
static void test_tables_of_jobs_become_rates(void **state) {
    (void)state;
    static const char jobs[] = "job_id,node_num,state,duration\n"
                               "1,3,NODE_FAIL,36000\n2,1,FAILED,72000\n";
    g_autoptr(GString) notes = g_string_new(NULL);
    OrrImport import = {.path = "jobs.csv", .notes = notes};
    g_autofree char *text = orr_import_failures_text(&import, jobs, strlen(jobs), NULL);
    assert_non_null(text);
    g_autoptr(OrrFailureSet) set = load(text);
    assert_int_equal(set->n, 2);
    assert_near(set->kinds[0].mean_ns / 3600e9, 50, 1e-5);
    assert_near(set->kinds[1].mean_ns / 3600e9, 30, 1e-5);
    static const char none[] = "job_id,node_num,state,duration\n1,3,COMPLETED,36000\n";
    g_autoptr(GError) error = NULL;
    assert_null(orr_import_failures_text(&import, none, strlen(none), &error));
    assert_non_null(strstr(error->message, "no rate follows"));
}

static void test_fit_finds_the_shape_that_made_the_times(void **state) {
    (void)state;
    static const double shapes[] = {0.6, 1, 2.5};
    for (guint s = 0; s < G_N_ELEMENTS(shapes); s++) {
        enum { N = 4000 };
        double x[N], shape, scale;
        for (int i = 0; i < N; i++)
            x[i] = 30 * orr_random_weibull(orr_random(1, "fit"), (uint64_t)i, s, shapes[s]);
        assert_true(orr_weibull_fit(x, N, &shape, &scale));
        assert_near(shape, shapes[s], 3 * 0.78 / sqrt(N));
        assert_near(scale, 30, 0.08);
    }
    double same[] = {1, 1, 1}, shape, scale;
    assert_false(orr_weibull_fit(same, 3, &shape, &scale));
}

static void test_events_become_exponential_unless_they_say_otherwise(void **state) {
    (void)state;
    g_autoptr(GString) regular = g_string_new("time_h,component\n");
    g_autoptr(GString) notes = g_string_new(NULL);
    g_autoptr(GString) random = g_string_new("time_h,component\n");
    double at = 0;
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    for (int i = 1; i <= 200; i++) {
        g_string_append_printf(regular, "%d,fan\n", 10 * i + i % 3);
        at += 10 * orr_random_exponential(orr_random(2, "events"), (uint64_t)i, 0);
        g_string_append_printf(random, "%s,GPU fell off the bus\n",
                               g_ascii_formatd(number, sizeof number, "%.4f", at));
    }
    OrrImport none = {0};
    g_autoptr(GError) error = NULL;
    g_autofree char *a = import_text(regular->str, &none, notes, &error);
    g_autofree char *b = import_text(random->str, &none, notes, &error);
    g_autoptr(OrrFailureSet) worn = load(a);
    g_autoptr(OrrFailureSet) plain = load(b);
    assert_int_equal(worn->kinds[0].law, ORR_LAW_WEIBULL);
    assert_true(worn->kinds[0].shape > 3);
    assert_near(worn->kinds[0].mean_ns / 3600e9, 10, 0.03);
    assert_int_equal(plain->kinds[0].law, ORR_LAW_EXPONENTIAL);
    assert_string_equal(plain->kinds[0].component, "gpu");
    assert_near(plain->kinds[0].mean_ns / 3600e9, at / 200, 1e-4);
}

static void test_what_is_no_history_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"a,b\n1,2\n", "no history of failures"},
        {"component,count\nx,-1\n", "x.csv:2"},
        {"component,count\nx,0\n", "no row has a count"},
        {"component,count\nx,1\nX,2\n", "is there twice"},
        {"time_h,component\n", "no event"},
        {"time_h,component\nsoon,fan\n", "x.csv:2"},
        {"JobID|State\n1|FAILED\n", "x.csv:1"},
        {"JobID|NNodes|State|Elapsed\n1|8|COMPLETED|01:00:00\n", "no rate follows"},
    };
    OrrImport import = {.n_ranks = 8, .window_ns = 1e15};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GString) notes = g_string_new(NULL);
        g_autoptr(GError) error = NULL;
        if (import_text(cases[i].text, &import, notes, &error))
            fail_msg("taken: %s", cases[i].text);
        if (error->code != ORR_ERROR_INPUT || !strstr(error->message, cases[i].says))
            fail_msg("'%s' is not in: %s", cases[i].says, error->message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_counts_become_their_rates),
        cmocka_unit_test(test_slurm_counts_jobs_and_not_their_steps),
        cmocka_unit_test(test_tables_of_jobs_become_rates),
        cmocka_unit_test(test_fit_finds_the_shape_that_made_the_times),
        cmocka_unit_test(test_events_become_exponential_unless_they_say_otherwise),
        cmocka_unit_test(test_what_is_no_history_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
