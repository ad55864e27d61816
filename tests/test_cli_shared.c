/* orrery run --shared as it is called: bad files and tables with their place, JSON by its schema,
 * steps simulated by placement, events, traces, seeds. */
#include "tests/schema_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <cmocka.h>

#include <glib/gstdio.h>

static char *folder; /* of the files of the tests */

static int orrery(const char *line, char **out, char **err) {
    const char *build = g_getenv("top_builddir");
    g_autofree char *program = g_build_filename(build ? build : ".", "orrery", NULL);
    g_autofree char *command = g_strdup_printf("%s %s", program, line);
    g_auto(GStrv) words = NULL;
    int status;
    assert_true(g_shell_parse_argv(command, NULL, &words, NULL));
    if (!g_spawn_sync(folder, words, NULL, G_SPAWN_DEFAULT, NULL, NULL, out, err, &status, NULL))
        fail_msg("cannot run %s", program);
    if (!WIFEXITED(status))
        fail_msg("'%s' was killed: %s", line, *err);
    return WEXITSTATUS(status);
}

static char *good(const char *line) {
    char *out = NULL;
    g_autofree char *err = NULL;
    int status = orrery(line, &out, &err);
    if (status != 0)
        fail_msg("orrery %s: status %d: %s", line, status, err);
    return out;
}

static void put(const char *name, const char *text) {
    g_autofree char *path = g_build_filename(folder, name, NULL);
    assert_true(g_file_set_contents(path, text, -1, NULL));
}

static char *get(const char *name) {
    g_autofree char *path = g_build_filename(folder, name, NULL);
    char *text = NULL;
    assert_true(g_file_get_contents(path, &text, NULL, NULL));
    return text;
}

#define MACHINE "[share]\nsource = made up\nnodes = 4 nodes\njobs = jobs.csv\n"
#define STEPS                                                                                      \
    "[share]\nsource = made up\ncluster = h100-ib:%u\njobs = jobs.csv\npolicy = backfill\n"

static void test_bad_files_and_tables_are_told_with_their_place(void **state) {
    (void)state;
    static const struct {
        const char *more, *table, *said[2];
    } cases[] = {
        {"", "name,submit_h\na,0\n", {"jobs.csv:2", "one of hours, steps and tokens"}},
        {"", "name,submit_h,hours,gpus\na,0,1,8\na,1,1,8\n", {"jobs.csv:3", "that name"}},
        {"", "name,submit_h,hours,gpus\n,0,1,8\n", {"jobs.csv:2", "a name would do"}},
        {"", "name,submit_h,hours,gpus\na,0,1,2.5\n", {"jobs.csv:2: gpus = 2.5", "whole number"}},
        {"", "name,submit_h,hours,gpus\na,0,1,-8\n", {"jobs.csv:2: gpus = -8", NULL}},
        {"", "name,submit_h,hours,gpu\na,0,1,8\n", {"jobs.csv:1: column gpu", "gpus"}},
        {"", "name,submit_h,steps,gpus\na,0,9,8\n", {"jobs.csv:2", "of a job file"}},
        {"", "name,submit_h,hours,gpus,set\na,0,9,8,x.y=1\n", {"jobs.csv:2", "of a job file"}},
        {"", "name,submit_h,hours,gpus,slices\na,0,9,8,1\n", {"jobs.csv:2", "not both"}},
        {"", "name,submit_h,hours,gpus,limit_h\na,0,9,8,3\n", {"jobs.csv:2: job a", "9 h"}},
        {"", "name,submit_h,hours,gpus\na,0,9,80\n", {"jobs.csv:2: job a", "more than the empty"}},
        {"", "name,submit_h,hours,gpus,place\na,0,9,64,roof\n", {"jobs.csv:2: place", "rack"}},
        {"", "name,submit_h,hours,gpus,checkpoint_gb\na,0,9,8,7\n", {"jobs.csv:2", "[store]"}},
        {"", "name,submit_h,steps,job\na,0,9,llama3-8b-9\n", {"jobs.csv:2: job a", "llama3-8b-8"}},
        {"", "name,submit_h,steps,gpus,job\na,0,9,16,llama3-8b-8\n", {"jobs.csv:2", "8 ranks"}},
        {"", "name,hours,gpus\na,9,8\n", {"submit_h", NULL}},
        {"", "name,submit_h,hours,gpus\n", {"0 jobs", NULL}},
        {"[failures]\nnode_mtbf = 5\n", "", {"node_mtbf", "ns, us, ms"}},
        {"[failures]\nnode_mtbf = 5 d\nper_1000_node_days = 6\n", "", {"one of them", NULL}},
        {"[failures]\nrepairs = 5 d\n", "", {"repairs", "repair"}},
        {"[spot]\nclasses = cheap\n", "", {"no node is of class cheap", NULL}},
        {"classes = a:1, cheap:3\n[spot]\nclasses = cheap\n", "", {"reclaim_mtbf", NULL}},
        {"contract = reserved\n", "", {"needs prices", NULL}},
        {"prices = nobody\n", "name,submit_h,hours,gpus\na,0,1,8\n", {"nobody", NULL}},
        {"slices = 4\nslicing = mig\n", "", {"slices = 7", NULL}},
        {"cluster = h100-ib:64\n", "", {"is the cluster's", NULL}},
        {"cluster = h100-ibb:64\n", "", {"h100-ib", NULL}},
        {"policy = lottery\n", "", {"lottery", "fcfs"}},
        {"classes = a:3\n", "", {"of 3 nodes", NULL}},
        {"[store]\nbandwidth = 3 GB\n", "", {"bandwidth", "GB/s"}},
        {"jobs = none.csv\n", "", {"jobs", NULL}},
        {"slices = 7\nslicing = mig\n",
         "name,submit_h,steps,slices,job\na,0,9,1,gpt2-1\n",
         {"jobs.csv:2: job a", "of 7 slices have"}},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strconcat(MACHINE, cases[i].more, NULL);
        g_autofree char *out = NULL, *err = NULL;
        put("bad.ini", text);
        put("jobs.csv", *cases[i].table ? cases[i].table : "name,submit_h,hours,gpus\na,0,1,8\n");
        int status = orrery("run --shared ./bad.ini", &out, &err);
        if (status != 3)
            fail_msg("case %u: status %d: %s%s", (unsigned)i, status, out, err);
        for (int k = 0; k < 2 && cases[i].said[k]; k++)
            if (!strstr(err, cases[i].said[k]))
                fail_msg("case %u: '%s' is not in: %s", (unsigned)i, cases[i].said[k], err);
        assert_string_equal(out, "");
    }
}

static void test_options_are_checked(void **state) {
    (void)state;
    static const struct {
        const char *line;
        int status;
        const char *said;
    } cases[] = {
        {"run --shared two-racks-a-dya", 3, "two-racks-a-day"},
        {"run --shared two-racks-a-day --seeds 3", 2, "nothing depends on the seed"},
        {"run --shared two-racks-a-day --seeds 0", 2, "seeds"},
        {"run --shared two-racks-a-day --resume x", 2, "--resume does not apply"},
        {"run --shared two-racks-a-day --set layout.tp=3", 3, "column set"},
        {"run --shared two-racks-a-day --set share.nodes=2", 3, "more than the empty cluster"},
        {"run --shared two-racks-a-day --events /no/such/x", 4, "/no/such"},
        {"run --shared two-racks-a-day --json --csv", 2, "not both"},
        {"run --shared two-racks-a-day --set failures.node_mtbf=1min", 3, "longer times between"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *out = NULL, *err = NULL;
        int status = orrery(cases[i].line, &out, &err);
        if (status != cases[i].status || !strstr(err, cases[i].said))
            fail_msg("%s: status %d: %s", cases[i].line, status, err);
    }
}

static JsonObject *parsed(JsonParser *parser, const char *text) {
    assert_true(json_parser_load_from_data(parser, text, -1, NULL));
    return json_node_get_object(json_parser_get_root(parser));
}

static void check_schema(const char *json) {
    g_autoptr(JsonParser) record = json_parser_new(), schema = json_parser_new();
    parsed(record, json);
    assert_true(json_parser_load_from_file(schema, ORR_SRCDIR "/doc/schema/share-1.json", NULL));
    g_autofree char *flaw = schema_flaw(json_node_get_object(json_parser_get_root(schema)),
                                        json_parser_get_root(record), "$");
    if (flaw)
        fail_msg("%s", flaw);
}

static void test_shipped_clusters_are_as_the_schema_says_and_add_up(void **state) {
    (void)state;
    g_autofree char *list = good("list shares --csv");
    g_auto(GStrv) lines = g_strsplit(list, "\n", -1);
    assert_true(g_strv_length(lines) > 4);
    for (char **l = lines + 1; *l && **l; l++) {
        g_auto(GStrv) cells = g_strsplit(*l, ",", 3);
        g_autofree char *line = g_strdup_printf("run --shared %s --json", cells[1]);
        g_autofree char *json = good(line);
        check_schema(json);
        g_autoptr(JsonParser) parser = json_parser_new();
        JsonObject *root = parsed(parser, json);
        JsonArray *account = json_object_get_array_member(root, "account");
        gint64 sum = 0;
        for (guint i = 0; i < json_array_get_length(account); i++)
            sum += json_object_get_int_member(json_array_get_object_element(account, i), "unit_ns");
        assert_int_equal(sum, json_object_get_int_member(root, "units") *
                                  json_object_get_int_member(root, "makespan_ns"));
    }
}

static gint64 number_of_job(const char *json, guint job, const char *key) {
    g_autoptr(JsonParser) parser = json_parser_new();
    JsonArray *jobs = json_object_get_array_member(parsed(parser, json), "jobs");
    return json_object_get_int_member(json_array_get_object_element(jobs, job), key);
}

/* The same job on one leaf and on two of a fabric that is oversubscribed: the step of the one is
 * that of orrery step, the other is slower and says by how much. */
static void test_steps_follow_from_the_placement(void **state) {
    (void)state;
    put("two.ini",
        "[share]\nsource = made up\ncluster = clos:64 node:8 gpu:h100 leaf:16 oversub:8\n"
        "jobs = jobs.csv\n");
    put("jobs.csv", "name,submit_h,gpus,hours,job,steps,set\n"
                    "a,0,8,10,,,\nb,0,8,1,,,\nc,0,8,10,,,\nd,0,8,1,,,\ne,0,32,10,,,\n"
                    "apart,0.5,16,,llama3-8b-8,1000,layout.dp=16;batch.global=32\n"
                    "close,20,16,,llama3-8b-8,1000,layout.dp=16;batch.global=32\n");
    g_autofree char *json = good("run --shared ./two.ini --json");
    check_schema(json);
    g_autofree char *one = good("step llama3-8b-8 --set layout.dp=16 --set batch.global=32 --set "
                                "'job.cluster=clos:16 node:8 gpu:h100 leaf:16 oversub:8' --json");
    g_autoptr(JsonParser) parser = json_parser_new();
    gint64 step = json_object_get_int_member(parsed(parser, one), "step_time_ns");
    assert_int_equal(number_of_job(json, 6, "step_time_ns"), step);
    assert_int_equal(number_of_job(json, 6, "racks"), 1);
    assert_int_equal(number_of_job(json, 6, "ran_ns"), 1000 * step);
    assert_int_equal(number_of_job(json, 6, "spread_ns"), 0);
    assert_int_equal(number_of_job(json, 5, "racks"), 2);
    assert_int_equal(number_of_job(json, 5, "start_ns"), 3600000000000);
    gint64 more = number_of_job(json, 5, "spread_ns"), ran = number_of_job(json, 5, "ran_ns");
    assert_true(more > 5 * step && llabs(ran - more - 1000 * step) <= 1000);
}

static void test_seeds_do_not_depend_on_threads_and_are_replayed_alone(void **state) {
    (void)state;
#define DRAWN "run --shared two-racks-a-day --set failures.node_mtbf=5d --json "
    g_autofree char *one = good(DRAWN "--seeds 8 --threads 1");
    g_autofree char *four = good(DRAWN "--seeds 8 --threads 4");
    assert_string_equal(one, four);
    check_schema(one);
    g_autofree char *alone = good(DRAWN "--seed 0");
    assert_int_equal(number_of_job(one, 3, "end_ns"), number_of_job(alone, 3, "end_ns"));
}

static void test_a_saved_report_is_run_again_to_the_byte(void **state) {
    (void)state;
    g_free(good("run --shared two-racks-a-day --set share.policy=fcfs --set failures.node_mtbf=9d "
                "--seeds 3 --seed 2 --json -o saved.json"));
    g_autofree char *saved = get("saved.json"), *again = good("run saved.json --json");
    assert_string_equal(saved, again);
    put("own.ini", MACHINE "[failures]\nnode_mtbf = 20 d\n");
    put("jobs.csv", "name,submit_h,hours,gpus\na,0,9,8\n");
    g_free(good("run --shared ./own.ini --json -o own.json"));
    g_autofree char *own = get("own.json"), *more = good("run --shared ./own.json --json");
    assert_string_equal(own, more);
}

/* Holes of half a node, and a job that wants a whole one; a store that is too slow. */
static void test_what_looks_wrong_is_said(void **state) {
    (void)state;
    put("slow.ini", MACHINE "[store]\nbandwidth = 100 MB/s\n");
    put("jobs.csv", "name,submit_h,hours,gpus,save_every_min,checkpoint_gb\n"
                    "a,0,9,5,60,200\nb,0,9,5,0,0\nc,0,9,5,0,0\nd,0,9,5,0,0\ne,0,9,8,0,0\n");
    g_autofree char *json = good("run --shared ./slow.ini --json");
    check_schema(json);
    assert_non_null(strstr(json, "\"code\": \"fragmented\""));
    assert_non_null(strstr(json, "\"code\": \"store_slow\""));
    assert_null(strstr(json, "\"code\": \"rework\""));
    g_autofree char *text = good("run --shared ./slow.ini");
    assert_non_null(strstr(text, "wrong places"));
}

static void test_events_and_trace_tell_the_same_story(void **state) {
    (void)state;
    g_autofree char *out = good("run --shared two-racks-a-day --set share.policy=preempt --set "
                                "failures.node_mtbf=5d --events e.csv --trace t.json --csv");
    assert_true(g_str_has_prefix(out, "name,"));
    assert_non_null(strstr(out, ",cost_usd,schema\n"));
    assert_true(g_str_has_suffix(out, ",orrery.share/1\n"));
    g_autofree char *events = get("e.csv"), *trace = get("t.json");
    assert_true(g_str_has_prefix(events, "event,begin_ns,end_ns,job,does,units,node,nodes\n"));
    assert_non_null(strstr(events, "\nended,"));
    assert_non_null(strstr(events, "\nnode_failed,"));
    g_auto(GStrv) rows = g_strsplit(events, "\n", -1);
    gdouble unit_us = 0;
    for (char **r = rows + 1; *r && **r; r++) {
        g_auto(GStrv) c = g_strsplit(*r, ",", -1);
        if (strcmp(c[0], "span") == 0)
            unit_us += (g_ascii_strtod(c[2], NULL) - g_ascii_strtod(c[1], NULL)) / 1e3 *
                       g_ascii_strtod(c[5], NULL);
    }
    g_autoptr(JsonParser) parser = json_parser_new();
    JsonArray *all = json_object_get_array_member(parsed(parser, trace), "traceEvents");
    gdouble traced = 0;
    for (guint i = 0; i < json_array_get_length(all); i++) {
        JsonObject *e = json_array_get_object_element(all, i);
        if (json_object_has_member(e, "args") &&
            strcmp(json_object_get_string_member(e, "ph"), "X") == 0)
            traced += json_object_get_double_member(e, "dur") *
                      (gdouble)json_object_get_int_member(json_object_get_object_member(e, "args"),
                                                          "units here");
    }
    assert_true(unit_us > 0 && traced > unit_us * 0.999999 && traced < unit_us * 1.000001);
    assert_true(g_str_has_prefix(out, "name,gpus,slices,submit_ns"));
}

/* The plots' tables and scripts are there, and what they say is what the report says. */
static void test_plots_leave_their_tables(void **state) {
    (void)state;
    g_autofree char *path = g_strdup(g_getenv("PATH")), *out = NULL, *err = NULL;
    g_setenv("PATH", "/nonexistent", TRUE);
    int status = orrery("run --shared two-racks-a-day --plots plots", &out, &err);
    g_setenv("PATH", path, TRUE);
    assert_int_equal(status, 4);
    assert_non_null(strstr(err, "gnuplot is not installed"));
    g_autofree char *waits = get("plots/share_wait.csv"), *spans = get("plots/share_jobs.csv");
    g_autofree char *levels = get("plots/share_occupancy.csv");
    assert_true(g_str_has_prefix(waits, "row,job,waited_h,p50_h,p95_h,gpus\n0,notebook,6.88"));
    assert_non_null(strstr(spans, "notebook,2.5,9.38"));
    assert_true(g_str_has_prefix(levels, "time_h,useful,spread,rework,start,checkpoint"));
}

static int make_folder(void **state) {
    (void)state;
    folder = g_dir_make_tmp("orrery-shared-XXXXXX", NULL);
    return folder ? 0 : -1;
}

static void empty(const char *path) {
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *name;
    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *child = g_build_filename(path, name, NULL);
        if (g_file_test(child, G_FILE_TEST_IS_DIR))
            empty(child);
        else
            g_unlink(child);
    }
    g_rmdir(path);
}

static int drop_folder(void **state) {
    (void)state;
    empty(folder);
    g_clear_pointer(&folder, g_free);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_files_and_tables_are_told_with_their_place),
        cmocka_unit_test(test_options_are_checked),
        cmocka_unit_test(test_shipped_clusters_are_as_the_schema_says_and_add_up),
        cmocka_unit_test(test_steps_follow_from_the_placement),
        cmocka_unit_test(test_seeds_do_not_depend_on_threads_and_are_replayed_alone),
        cmocka_unit_test(test_a_saved_report_is_run_again_to_the_byte),
        cmocka_unit_test(test_what_looks_wrong_is_said),
        cmocka_unit_test(test_events_and_trace_tell_the_same_story),
        cmocka_unit_test(test_plots_leave_their_tables),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
