/* orrery check and compare as they are called: exit status, words, JSON as the schema says. */
#include <glib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <cmocka.h>

#include <glib/gstdio.h>

#include "tests/schema_check.h"

typedef struct {
    int status;
    char *out, *err;
} Result;

static Result orrery(const char *line) {
    const char *build = g_getenv("top_builddir");
    g_autofree char *program = g_build_filename(build ? build : ".", "orrery", NULL);
    g_autofree char *command = g_strdup_printf("%s %s", program, line);
    g_auto(GStrv) words = NULL;
    Result r = {0};
    int status;
    assert_true(g_shell_parse_argv(command, NULL, &words, NULL));
    if (!g_spawn_sync(NULL, words, NULL, G_SPAWN_DEFAULT, NULL, NULL, &r.out, &r.err, &status,
                      NULL))
        fail_msg("cannot run %s", program);
    assert_true(WIFEXITED(status));
    r.status = WEXITSTATUS(status);
    return r;
}

static void result_clear(Result *r) {
    g_free(r->out), g_free(r->err);
}

static void expect(const char *line, int status, const char *const *said) {
    Result r = orrery(line);
    if (r.status != status)
        fail_msg("orrery %s: status %d, expected %d: %s", line, r.status, status, r.err);
    const char *text = status > 1 ? r.err : r.out;
    for (; *said; said++)
        if (!strstr(text, *said))
            fail_msg("orrery %s: '%s' is not in: %s", line, *said, text);
    result_clear(&r);
}
#define SAID(...)                                                                                  \
    (const char *const[]) {                                                                        \
        __VA_ARGS__, NULL                                                                          \
    }

static void follows_schema(const char *line, int status, const char *schema_file) {
    Result r = orrery(line);
    assert_int_equal(r.status, status);
    g_autofree char *path = g_build_filename(ORR_SRCDIR, "doc", "schema", schema_file, NULL);
    g_autoptr(JsonParser) schema = json_parser_new();
    assert_true(json_parser_load_from_file(schema, path, NULL));
    g_autoptr(JsonParser) parser = json_parser_new();
    assert_true(json_parser_load_from_data(parser, r.out, -1, NULL));
    g_autofree char *flaw = schema_flaw(json_node_get_object(json_parser_get_root(schema)),
                                        json_parser_get_root(parser), "$");
    if (flaw)
        fail_msg("orrery %s: %s", line, flaw);
    result_clear(&r);
}

static char *corpus(const char *name) {
    return g_build_filename(ORR_SRCDIR, "tests", "fuzz", "corpus", name, NULL);
}

static char *shared(const char *name) {
    const char *folder = g_getenv("ORRERY_SHARED");
    g_autofree char *beside = g_build_filename(ORR_SRCDIR, "..", "shared", NULL);
    char *path = g_build_filename(folder ? folder : beside, "files", name, NULL);
    if (!g_file_test(path, G_FILE_TEST_IS_REGULAR)) {
        g_free(path);
        skip();
    }
    return path;
}

static void test_check_names_sockets_with_the_words_of_nccl(void **state) {
    (void)state;
    g_autofree char *log = corpus("check/sockets.log");
    g_autofree char *line = g_strdup_printf("check h100-ib %s", log);
    expect(line, 1,
           SAID("16 GPUs, a group on 2 nodes, which leaves the node", "out of tolerance",
                "Likely cause", "sockets on the management network", "Using network Socket",
                "NCCL_IB_HCA"));
    g_autofree char *json = g_strconcat(line, " --json", NULL);
    follows_schema(json, 1, "check-1.json");
    g_autofree char *csv = g_strconcat(line, " --csv", NULL);
    expect(csv, 1, SAID("schema,collective,n_ranks", "orrery.check/1,all_reduce,16,2,1048576"));
    g_autofree char *both = g_strconcat(line, " ", log, NULL);
    expect(both, 1, SAID("All tables together, as of one machine"));
}

/* S49: the answer says which group was timed and whether it leaves the node; S17: and how many of
 * the node's NICs it reaches. */
static void test_check_shows_the_group(void **state) {
    (void)state;
    g_autofree char *log = corpus("check/old.log");
    g_autofree char *line = g_strdup_printf("check a100-ib %s --tolerance 99%%", log);
    Result r = orrery(line);
    assert_non_null(strstr(r.out, "a group on 1 node, which no traffic leaves"));
    result_clear(&r);
    g_autofree char *tree = shared("nccl-tests-logs/issue-tree-2node-4nic.log");
    g_autofree char *pair = g_strdup_printf("check h100-ib %s --nodes 2", tree);
    expect(pair, 0, SAID("It reaches 1 of the 8 NICs of a node", "within the tolerance"));
}

static void test_check_does_not_alarm_on_sound_machines(void **state) {
    (void)state;
    static const char *const runs[][2] = {{"aws-p5", "aws-3.log"},
                                          {"aws-p4d", "aws-1.log"},
                                          {"h100-ib", "cw-1.log"},
                                          {"gb200-nvl72-ib", "cw-3.log"},
                                          {"h100-roce", "oci-1.log"},
                                          {"h100-ib", "h100-8gpu-sweep-1.log"},
                                          {"h100-ib", "new-layout-version-lines.log"},
                                          {"a100-ib", "old-2.8-a100-allreduce.log"},
                                          {"a100-ib", "old-2.8-a100-broadcast.log"},
                                          {"a100-ib", "old-2.8-a100-reducescatter.log"}};
    for (size_t i = 0; i < G_N_ELEMENTS(runs); i++) {
        g_autofree char *name = g_build_filename("nccl-tests-logs", runs[i][1], NULL);
        g_autofree char *log = shared(name);
        g_autofree char *line = g_strdup_printf("check %s %s", runs[i][0], log);
        expect(line, 0, SAID("within the tolerance"));
    }
}

static void test_check_takes_a_listing_of_the_node(void **state) {
    (void)state;
    g_autofree char *xml = shared("nccl-topo-xml/oci-H100-topology.xml");
    g_autofree char *log = shared("nccl-tests-logs/oci-1.log");
    g_autofree char *line = g_strdup_printf("check %s %s", xml, log);
    expect(line, 0, SAID("16 GPUs, a group on 2 nodes, which leaves the node", "within the"));
    g_autofree char *table = shared("nvidia-smi-topo/8gpu-a100-10nic.txt");
    g_autofree char *unnamed = g_strdup_printf("check %s %s", table, log);
    expect(unnamed, 3, SAID("--gpu"));
    g_autofree char *named =
        g_strdup_printf("check %s %s --gpu a100-sxm-80 --nic 200G --tolerance 99%%", table, log);
    Result r = orrery(named);
    assert_true(r.status == 0 || r.status == 1);
    assert_non_null(strstr(r.out, "a group on 2 nodes"));
    result_clear(&r);
}

static void test_check_refuses_what_it_cannot_place(void **state) {
    (void)state;
    g_autofree char *log = corpus("check/sockets.log");
    g_autofree char *odd = g_strdup_printf("check h100-ib %s --nodes 3", log);
    expect(odd, 3, SAID("16 GPUs on 3 nodes do not fit", "--nodes or another cluster would do"));
    g_autofree char *tolerance = g_strdup_printf("check h100-ib %s --tolerance 2", log);
    expect(tolerance, 2, SAID("--tolerance 2"));
    g_autofree char *both = g_strdup_printf("check h100-ib %s --json --csv", log);
    expect(both, 2, SAID("not both"));
    expect("check h100-ib /nonexistent.log", 3, SAID("/nonexistent.log"));
    expect("check h100-ib", 2, SAID("usage: orrery check CLUSTER LOG..."));
}

/* The timers of a real log beside the simulated job that is meant to be it. */
static void test_compare_takes_the_timers_of_a_real_log(void **state) {
    (void)state;
    g_autofree char *log = shared("megatron-logs/megatron-v100-tp4-pp4-m4.log");
    g_autofree char *line = g_strdup_printf("compare gpt2-meg-v100-pp4 %s", log);
    expect(line, 0,
           SAID("work", "pipeline_and_embedding_reduction", "optimizer", "data",
                "not_told_by_the_log", "1380.600", "timers of the log are of the rank that logs"));
    g_autofree char *json = g_strconcat(line, " --json", NULL);
    follows_schema(json, 0, "compare-1.json");
    g_autofree char *whole = shared("megatron-logs/bloom-176b-chronicle-lines.log");
    g_autofree char *told = g_strdup_printf("compare bloom-176b-384 %s", whole);
    expect(told, 0, SAID("as_simulated", "slower_than_its_own_best_steps", "has no timers"));
}

static void test_compare_takes_real_traces(void **state) {
    (void)state;
    static const struct {
        const char *file, *said[3];
    } traces[] = {
        {"nccl-metadata.json.gz", {"exposed_all_reduce", "idle_though_launched", "A100"}},
        {"deepseek-train-overlap.json", {"exposed_all_to_all", "grouped_gemm", "H800"}},
        {"alexnet-critical-path.json.gz", {"host", "copies", "marks no steps"}},
        {"mi250-toy.json.gz", {"elementwise_and_not_known", "optimizer", "gemm"}},
        {"tiny-base.json.gz", {"copies", "idle", "host"}},
        {"sampled-128gpu-rank0.json.gz", {"gpus: 2, then 128", "gemm", "exposed"}},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(traces); i++) {
        g_autofree char *name = g_build_filename("kineto-traces", traces[i].file, NULL);
        g_autofree char *trace = shared(name);
        g_autofree char *line = g_strdup_printf("compare tiny %s", trace);
        expect(line, 0, SAID(traces[i].said[0], traces[i].said[1], traces[i].said[2]));
    }
}

/* A run against its own exported trace: nothing differs. */
static void test_compare_finds_no_difference_to_its_own_trace(void **state) {
    (void)state;
    g_autofree char *folder = g_dir_make_tmp("orrery-judge-XXXXXX", NULL);
    g_autofree char *export = g_strdup_printf("trace megatron-22b-8 --per-rank %s", folder);
    expect(export, 0, SAID(""));
    g_autofree char *file = g_build_filename(folder, "rank-0000000.json.gz", NULL);
    g_autofree char *line = g_strdup_printf("compare megatron-22b-8 %s --csv", file);
    Result r = orrery(line);
    assert_int_equal(r.status, 0);
    g_auto(GStrv) lines = g_strsplit(r.out, "\n", -1);
    double step_ns = 1.15e9, largest = 0;
    for (guint i = 1; lines[i] && *lines[i]; i++) {
        g_auto(GStrv) cells = g_strsplit(lines[i], ",", -1);
        bool is_interference = strcmp(cells[1], "interference") == 0 ||
                               strcmp(cells[1], "gemm") == 0; /* a trace cannot tell it apart */
        double difference = g_ascii_strtod(cells[4], NULL);
        if (!is_interference)
            largest = MAX(largest, difference < 0 ? -difference : difference);
    }
    if (largest > step_ns * 1e-5)
        fail_msg("%s", r.out);
    result_clear(&r);
    g_remove(file);
    g_rmdir(folder);
}

static void test_compare_refuses_what_tells_no_step(void **state) {
    (void)state;
    g_autofree char *log = corpus("check/sockets.log");
    g_autofree char *line = g_strdup_printf("compare tiny %s", log);
    expect(line, 3, SAID("none reports a step"));
    expect("compare tiny", 2, SAID("usage: orrery compare RUN RUN|LOG|TRACE"));
    expect("compare tiny nothing-like-it", 3, SAID("nothing-like-it"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check_names_sockets_with_the_words_of_nccl),
        cmocka_unit_test(test_check_shows_the_group),
        cmocka_unit_test(test_check_does_not_alarm_on_sound_machines),
        cmocka_unit_test(test_check_takes_a_listing_of_the_node),
        cmocka_unit_test(test_check_refuses_what_it_cannot_place),
        cmocka_unit_test(test_compare_takes_the_timers_of_a_real_log),
        cmocka_unit_test(test_compare_takes_real_traces),
        cmocka_unit_test(test_compare_finds_no_difference_to_its_own_trace),
        cmocka_unit_test(test_compare_refuses_what_tells_no_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
