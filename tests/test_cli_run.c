/* orrery run as it is called: exit status, messages, replays. */
#include <glib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <cmocka.h>

#include <glib/gstdio.h>

static int orrery(const char *line, char **out, char **err) {
    const char *build = g_getenv("top_builddir");
    g_autofree char *program = g_build_filename(build ? build : ".", "orrery", NULL);
    g_autofree char *command = g_strdup_printf("%s %s", program, line);
    g_auto(GStrv) words = NULL;
    int status;
    assert_true(g_shell_parse_argv(command, NULL, &words, NULL));
    if (!g_spawn_sync(NULL, words, NULL, G_SPAWN_DEFAULT, NULL, NULL, out, err, &status, NULL))
        fail_msg("cannot run %s", program);
    if (!WIFEXITED(status))
        fail_msg("'%s' was killed: %s", line, *err);
    return WEXITSTATUS(status);
}

typedef struct {
    const char *line;
    int status;
    const char *said[2]; /* on stderr if the status is not 0, else on stdout */
} Case;

static void check(const Case *cases, guint n) {
    for (guint i = 0; i < n; i++) {
        g_autofree char *out = NULL, *err = NULL;
        int status = orrery(cases[i].line, &out, &err);
        if (status != cases[i].status)
            fail_msg("orrery %s: status %d, expected %d: %s", cases[i].line, status,
                     cases[i].status, err);
        for (int s = 0; s < 2 && cases[i].said[s]; s++)
            if (!strstr(status ? err : out, cases[i].said[s]))
                fail_msg("orrery %s: '%s' is not in: %s", cases[i].line, cases[i].said[s],
                         status ? err : out);
        if (status > 1 && *out)
            fail_msg("orrery %s: failed, but printed a result", cases[i].line);
    }
}

static void test_bad_lines_and_files_are_told(void **state) {
    static const Case cases[] = {
        {"run", 2, {"usage: orrery run RUN"}},
        {"run llama70b-500b-8", 1, {"see orrery step llama70b-", "--set"}},
        {"run qwen2-1.5b-2 --set run.steps=9 --set checkpoint.stores=d --set d.bandwidth=1GB/s "
         "--set d.network=peers --set checkpoint.interval_steps=3",
         3,
         {"1 nodes", "have no way there"}},
        {"run bloom-176b-saves --set gpfs.network=computer", 3, {"did you mean compute?"}},
        {"run bloom-176b-saves --set recovery.repair_hands=-1", 3, {"repair_hands"}},
        {"run bloom-176b-saves --set recovery.requeue_after=always", 3, {"replaced", "all"}},
        {"run bloom-176b-saves --set gpu_failure.detect_by=dog", 3, {"detect_by", "watchdog"}},
        {"run bloom-176b-saves --set gpfs.network=compute", 3, {"needs a job to simulate"}},
        {"run bloom-176b-saves --seeds 0", 2, {"--seeds 0", "whole number from 1"}},
        {"run bloom-176b-saves --json --csv", 2, {"not both"}},
        {"run bloom-176b-saves --resume a -o ./a", 2, {"--output and --resume are both"}},
        {"step tiny-pipeline --waits a -o ./a", 2, {"--output and --waits are both"}},
        {"step tiny-pipeline --threads 2", 2, {"--threads goes with --seeds"}},
        {"run bloom-176b-saves --events a --trace a", 2, {"another name would do"}},
        {"run two-racks-a-day", 3, {"--shared would do"}},
        {"run --shared two-racks-a-day --set spot.reclaim_mtbf=9h", 3, {"of which nodes?"}},
        {"run bloom-176b-save", 3, {"bloom-176b-save"}},
        {"run tiny", 3, {"the run has no end", "length = 54 d"}},
        {"run tiny --set run.steps=many", 3, {"many"}},
        {"run tiny --set run.steps=5 --set run.contract=spot", 3, {"needs prices"}},
        {"run bloom-176b-saves --set run.lenght=3d", 3, {"lenght", "length"}},
        {"run bloom-176b-saves --set nothing.x=3", 3, {"nothing"}},
        {"run bloom-176b-saves --set run.length=5", 3, {"length", "ns, us, ms"}},
        {"run bloom-176b-saves --set checkpoint.interval_steps=0", 3, {"interval", "young"}},
        {"run bloom-176b-saves --set checkpoint.bytes=0B", 3, {"bytes"}},
        {"run bloom-176b-saves --set gpfs.bandwidth=0GB/s", 3, {"no speed"}},
        {"run bloom-176b-saves --set gpu_failure.count=-1", 3, {"gpu_failure", "count"}},
        {"run bloom-176b-saves --set gpu_failure.effect=explode", 3, {"explode", "stop"}},
        {"run bloom-176b-saves --set failures.window=0s", 3, {"window"}},
        {"run bloom-176b-saves --set run.failures=meta-rsc3", 3, {"meta-rsc3"}},
        {"run save-64-two-failures --set node_failure.events=none.csv", 3, {"none.csv"}},
        {"run llama70b-500b-1024-owned --set owned.node=0USD", 3, {"on_premise", "not offered"}},
        {"run llama70b-500b-1024 --set rented.on_demand=3EUR", 3, {"USD/GPU-h"}},
        {"run llama70b-500b-8 --seeds 1", 1, {"the answer is no"}},
        {"run llama70b-500b-64 --seeds 2 --set run.failure_scale=1e6", 3, {"no time to train"}},
        {"run bloom-176b-saves --set run.evaluate=5min", 3, {"evaluate_every", "together would do"}},
        {"run bloom-176b-saves --set run.evaluate_every=10", 3, {"evaluate = 5 min"}},
        {"run bloom-176b-saves --set checkpoint.writers=385", 3, {"writers", "384 ranks"}},
        {"run save-70b-hourly-single --set checkpoint.writers=65", 3, {"writers", "64 ranks"}},
        {"run bloom-176b-saves --set checkpoint.stores=gpfs,gpfs", 3, {"gpfs stands there twice"}},
        {"run bloom-176b-saves --set checkpoint.stores=run", 3, {"run is a group of every"}},
        {"run bloom-176b-saves --events /no/such/folder/x", 4, {"/no/such/folder"}},
        {"import failures /dev/null", 3, {"/dev/null"}},
    };
    (void)state;
    check(cases, G_N_ELEMENTS(cases));
}

static void test_good_lines_answer(void **state) {
    static const Case cases[] = {
        {"run bloom-176b-saves --seeds 3 --set gpu_failure.mtbf=5000h", 0, {"13.02 h"}},
        {"run save-64-two-failures --seeds 1", 0, {"1 seed from 0"}},
        {"run save-64-two-failures --seeds 1 --set checkpoint.policy=daly",
         0,
         {"policy daly", "26.33 min"}},
        {"run llama70b-500b-64 --seeds 1 --set checkpoint.interval=1h", 0, {"policy fixed"}},
        {"run bloom-176b-saves --seeds 1 --set recovery.hot_spares=1 --set failures.repair=0s",
         0,
         {"back at once"}},
        {"run bloom-176b-saves --seeds 3", 0, {"gpu_failure", "total = wall time"}},
        {"run tiny --seeds 2 --set run.steps=5 --json", 0, {"orrery.run/1", "\"seeds\": 2"}},
        {"show failure meta-rsc1", 0, {"1.803", "0.225"}},
        {"show price h100-specialty-2026-05", 0, {"18.0 months"}},
        {"list runs", 0, {"llama3-405b-54d"}},
    };
    (void)state;
    check(cases, G_N_ELEMENTS(cases));
}

static void test_report_is_there_though_the_plots_cannot_be(void **state) {
    (void)state;
    g_autofree char *out = NULL, *err = NULL;
    assert_int_equal(orrery("run bloom-176b-saves --seeds 2 --plots /dev/null/x", &out, &err), 4);
    assert_non_null(strstr(err, "/dev/null"));
    assert_non_null(strstr(out, "total = wall time"));
}

static void test_all_scripts_are_there_without_gnuplot(void **state) {
    (void)state;
    g_autofree char *folder = g_dir_make_tmp("orrery-run-XXXXXX", NULL);
    g_autofree char *line = g_strdup_printf("run llama70b-500b-64 --seeds 2 --plots %s", folder);
    g_autofree char *out = NULL, *err = NULL, *path = g_strdup(g_getenv("PATH"));
    g_setenv("PATH", "/nonexistent", TRUE);
    int status = orrery(line, &out, &err);
    g_setenv("PATH", path, TRUE);
    assert_int_equal(status, 4);
    assert_non_null(strstr(err, "gnuplot is not installed"));
    static const char *const files[] = {"run_progress.csv", "run_losses.csv",  "run_interval.csv",
                                        "run_cost.csv",     "run_progress.gp", "run_losses.gp",
                                        "run_interval.gp",  "run_cost.gp",     "names.gp",
                                        "style.gp"};
    for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *file = g_build_filename(folder, files[i], NULL);
        assert_int_equal(g_unlink(file), 0);
    }
    assert_int_equal(g_rmdir(folder), 0);
}

/* Seed 17 of many is seed 17 alone. */
static void test_a_seed_is_replayed_alone(void **state) {
    (void)state;
    g_autofree char *many = NULL, *alone = NULL, *err = NULL, *err2 = NULL;
    assert_int_equal(orrery("run bloom-176b-saves --seeds 20 --threads 2 --csv", &many, &err), 0);
    assert_int_equal(orrery("run bloom-176b-saves --seed 17 --seeds 1 --csv", &alone, &err2), 0);
    const char *a = strstr(many, "\nseed,17,"), *b = strstr(alone, "\nseed,17,");
    assert_non_null(a);
    assert_non_null(b);
    const char *end = strstr(a, "\nseed,18,");
    assert_memory_equal(a, b, (gsize)(end - a));
}

/* mktemp makes an empty file: nothing is finished there yet. */
static void test_empty_store_is_begun(void **state) {
    (void)state;
    char *path = NULL;
    int fd = g_file_open_tmp("orrery-run-XXXXXX", &path, NULL);
    assert_true(fd >= 0 && g_close(fd, NULL));
    g_autofree char *line = g_strdup_printf("run bloom-176b-saves --seeds 4 --resume %s", path);
    for (int i = 0; i < 2; i++) {
        g_autofree char *out = NULL, *err = NULL;
        assert_int_equal(orrery(line, &out, &err), 0);
        assert_int_equal(strstr(err, "is empty") != NULL, i == 0);
    }
    g_unlink(path);
    g_free(path);
}

/* A component that nobody knows, prices of no day. */
static void test_words_of_files_are_checked(void **state) {
    (void)state;
    static const struct {
        const char *text, *set, *said;
    } cases[] = {
        {"[failures]\nsource = x\ncauses = a\n[a]\ncomponent = gpus\nunit = node\n"
         "mtbf = 9 h\neffect = stop\n",
         "run.failures", "did you mean gpu?"},
        {"[failures]\nsource = x\ncauses = a\n[a]\ncomponent = gpu\nunit = node\n"
         "mtbf = 9 h\nper_1000_node_days = 3\n",
         "run.failures", "one of mtbf, count"},
        {"[failures]\nsource = x\ncauses = a\n[a]\ncomponent = gpu\nunit = node\n"
         "mtbf = 9 h\nlaw = events\n",
         "run.failures", "needs the times"},
        {"[failures]\nsource = x\ncauses = a, a\n[a]\ncomponent = gpu\nunit = node\n"
         "mtbf = 9 h\neffect = stop\n",
         "run.failures", "a stands there twice"},
        {"[failures]\nsource = x\ncauses = a\n[a]\ncomponent = gpu\nunit = node\n"
         "mtbf = 9 h\neffect = stop\nslow = 9 %\n",
         "run.failures", "slow = 9 %: is of effect = slow"},
        {"[prices]\nsource = x\ndate = spring 2026\n", "run.prices", "2026-05-31 would do"},
        {"[prices]\nsource = x\ndate = 2026-02-30\n", "run.prices", "is no date"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        char *path = NULL;
        int fd = g_file_open_tmp("orrery-run-XXXXXX.ini", &path, NULL);
        assert_true(fd >= 0 && g_close(fd, NULL));
        assert_true(g_file_set_contents(path, cases[i].text, -1, NULL));
        g_autofree char *line =
            g_strdup_printf("run bloom-176b-saves --set %s=%s", cases[i].set, path);
        g_autofree char *out = NULL, *err = NULL;
        assert_int_equal(orrery(line, &out, &err), 3);
        if (!strstr(err, cases[i].said))
            fail_msg("'%s' is not in: %s", cases[i].said, err);
        g_unlink(path);
        g_free(path);
    }
}

/* A file at fault is told as such, whatever it was meant to be; a job file is run. */
static void test_files_of_runs_and_jobs_are_told_apart(void **state) {
    (void)state;
    static const struct {
        const char *text, *sets;
        int status;
        const char *said;
    } cases[] = {
        {"[run]\nsummary = Gr\xff\n", "", 3, ":2: bytes that are not UTF-8"},
        {"", "", 3, "[run] source: is missing"},
        {"[run]\nsource = x\nlength = 9 h\n[checkpoint]\npolicy = young\ninterval = 9 s\n", "", 3,
         ":5: [checkpoint] policy = young: an interval is given too"},
        {"[job]\nmodel = nobody\n", "", 3, "the run has no end"},
        {"[job]\nmodel = nobody\n", " --set run.steps=9", 3, "nobody"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        char *path = NULL;
        int fd = g_file_open_tmp("orrery-run-XXXXXX.ini", &path, NULL);
        assert_true(fd >= 0 && g_close(fd, NULL));
        assert_true(g_file_set_contents(path, cases[i].text, -1, NULL));
        g_autofree char *line = g_strdup_printf("run %s%s", path, cases[i].sets);
        g_autofree char *out = NULL, *err = NULL;
        assert_int_equal(orrery(line, &out, &err), cases[i].status);
        if (!strstr(err, cases[i].said))
            fail_msg("'%s' is not in: %s", cases[i].said, err);
        g_unlink(path);
        g_free(path);
    }
    g_autofree char *out = NULL, *err = NULL;
    g_autofree char *line = g_strdup_printf(
        "run %s/workloads/jobs/tiny.ini --seeds 1 --set run.steps=5", g_getenv("top_srcdir"));
    assert_int_equal(orrery(line, &out, &err), 0);
    assert_non_null(strstr(out, "tiny: "));
}

static void test_a_saved_report_is_run_again_to_the_byte(void **state) {
    (void)state;
    char *path = NULL;
    int fd = g_file_open_tmp("orrery-run-XXXXXX.json", &path, NULL);
    assert_true(fd >= 0 && g_close(fd, NULL));
    g_autofree char *first = g_strdup_printf(
        "run bloom-176b-saves --seeds 4 --seed 3 --set run.length=20d --json -o %s", path);
    g_autofree char *again = g_strdup_printf("run %s --json", path);
    g_autofree char *out = NULL, *err = NULL, *out2 = NULL, *err2 = NULL, *saved = NULL;
    assert_int_equal(orrery(first, &out, &err), 0);
    assert_true(g_file_get_contents(path, &saved, NULL, NULL));
    assert_int_equal(orrery(again, &out2, &err2), 0);
    assert_string_equal(saved, out2);
    assert_true(g_file_set_contents(path, "{\"schema\": \"orrery.step/1\"}", -1, NULL));
    g_autofree char *out3 = NULL, *err3 = NULL;
    assert_int_equal(orrery(again, &out3, &err3), 3);
    assert_non_null(strstr(err3, "orrery.run/1"));
    g_unlink(path);
    g_free(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_lines_and_files_are_told),
        cmocka_unit_test(test_good_lines_answer),
        cmocka_unit_test(test_report_is_there_though_the_plots_cannot_be),
        cmocka_unit_test(test_all_scripts_are_there_without_gnuplot),
        cmocka_unit_test(test_empty_store_is_begun),
        cmocka_unit_test(test_words_of_files_are_checked),
        cmocka_unit_test(test_files_of_runs_and_jobs_are_told_apart),
        cmocka_unit_test(test_a_saved_report_is_run_again_to_the_byte),
        cmocka_unit_test(test_a_seed_is_replayed_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
