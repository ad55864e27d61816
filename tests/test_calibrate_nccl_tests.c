/* Logs of collectives as tables: small texts of every layout. */
#include "tests/near.h"

#include <string.h>

#include "calibrate/nccl_tests.h"

static GString *notes;

static OrrMeasuredTables *parse(const char *text, const char *op, GError **error) {
    OrrImport import = {.path = "own.log", .op = op, .notes = notes};
    return orr_nccl_tests_parse(&import, text, strlen(text), error);
}

static int set_up(void **state) {
    (void)state;
    notes = g_string_new(NULL);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    g_string_free(notes, TRUE);
    return 0;
}

#define RANKS                                                                                      \
    "#  Rank  0 Group  0 Pid 1 on a device  0 [0000:19:00] NVIDIA H100 80GB HBM3\n"                \
    "#  Rank  1 Group  0 Pid 2 on b device  0 [0000:19:00] NVIDIA H100 80GB HBM3\n"
#define HEAD                                                                                       \
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     "    \
    "time   algbw   busbw #wrong\n"
#define TAIL "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1.0\n"

static void test_row_interrupted_by_nccl_output_is_joined(void **state) {
    (void)state;
    const char *text = RANKS HEAD
        "        1024           256     float     sum      -1node7:12:34 [0] NCCL INFO ring\n"
        "node7:12:34 [0] NCCL INFO Connected all rings\n"
        "    20.00    0.05    0.05      0    19.00    0.05    0.05      0\n"
        "        2048           512     float     sum      -1    30.00    0.07    0.07      0    "
        "29.00    0.07    0.07      0\n" TAIL;
    g_autoptr(OrrMeasuredTables) tables = parse(text, NULL, NULL);
    assert_non_null(tables);
    const OrrMeasuredTable *table = tables->tables[0];
    assert_int_equal(table->n_rows, 2);
    assert_int_equal(table->rows[0].bytes, 1024);
    assert_near(orr_measured_time_ns(&table->rows[0]), 20000, 1e-12);
    assert_near(table->rows[1].in_place.time_ns, 29000, 1e-12);
    assert_int_equal(table->n_ranks, 2);
    assert_int_equal(table->n_nodes, 2);
    assert_string_equal(table->gpu, "NVIDIA H100 80GB HBM3");
    assert_false(table->is_cut);
}

static void test_wrong_values_are_never_used(void **state) {
    (void)state;
    const char *text =
        RANKS HEAD "1024 256 float sum -1 20.00 0.05 0.05 3 19.00 0.05 0.05 0\n"
                   "2048 512 float sum -1 30.00 0.07 0.07 0 29.00 0.07 0.07 N/A\n" TAIL;
    g_autoptr(OrrMeasuredTables) tables = parse(text, NULL, NULL);
    assert_non_null(tables);
    assert_int_equal(tables->tables[0]->n_flawed, 1);
    assert_true(orr_measured_time_ns(&tables->tables[0]->rows[0]) == 0);
    assert_non_null(strstr(notes->str, "own.log:4: the test found wrong values"));
    g_autofree char *csv = orr_nccl_tests_format(tables);
    assert_null(strstr(csv, ",1024,"));
    assert_non_null(strstr(csv, ",2048,30,"));
}

static void test_file_with_no_sound_row_is_refused(void **state) {
    (void)state;
    g_autoptr(GError) error = NULL;
    const char *text = RANKS HEAD "1024 256 float sum -1 20.00 0.05 0.05 3 19.00 0.05 0.05 9\n";
    assert_null(parse(text, NULL, &error));
    assert_non_null(strstr(error->message, "no row that can be used"));
}

static void test_collective_is_named_inferred_or_asked_for(void **state) {
    (void)state;
    g_autoptr(GError) error = NULL;
    const char *none =
        RANKS HEAD "1024 128 float none -1 20.00 0.05 0.03 0 19.00 0.05 0.03 0\n" TAIL;
    assert_null(parse(none, NULL, &error));
    assert_non_null(strstr(error->message, "say --op"));
    g_clear_error(&error);
    OrrMeasuredTables *tables = parse(none, "all-to-all", &error);
    assert_non_null(tables);
    assert_int_equal(tables->tables[0]->kind, ORR_ALL_TO_ALL);
    orr_measured_tables_free(tables);
    assert_null(parse(none, "allgather,alltoall", &error));
    assert_int_equal(error->code, ORR_ERROR_USAGE);
    g_clear_error(&error);
    g_autofree char *named = g_strconcat("+ mpirun ./build/all_gather_perf -b 8\n", none, NULL);
    tables = parse(named, NULL, &error);
    assert_non_null(tables);
    assert_int_equal(tables->tables[0]->kind, ORR_ALL_GATHER);
    assert_false(tables->tables[0]->is_kind_inferred);
    orr_measured_tables_free(tables);
    assert_null(parse(named, "all_reduce", &error));
    assert_non_null(strstr(error->message, "says all_gather"));
}

static void test_two_named_tables_are_told_apart(void **state) {
    (void)state;
    const char *text = "# Collective test starting: all_reduce_perf\n" RANKS HEAD
                       "1024 256 float sum -1 20.00 0.05 0.05 0 19.00 0.05 0.05 0\n" TAIL
                       "# Collective test starting: alltoall_perf\n" RANKS HEAD
                       "2048 256 float none -1 20.00 0.10 0.05 0 19.00 0.10 0.05 0\n" TAIL;
    g_autoptr(OrrMeasuredTables) tables = parse(text, NULL, NULL);
    assert_non_null(tables);
    assert_int_equal(tables->n_tables, 2);
    assert_int_equal(tables->tables[0]->kind, ORR_ALL_REDUCE);
    assert_int_equal(tables->tables[1]->kind, ORR_ALL_TO_ALL);
    assert_int_equal(tables->tables[1]->n_ranks, 2);
}

static void test_json_gives_no_setting_but_nccl_ones(void **state) {
    (void)state;
    const char *text =
        "{\"version\": 3, \"nccl_version\": 22807, \"env\": [\"TOKEN=secret\", "
        "\"NCCL_DEBUG=WARN\"],"
        "\"devices\": [{\"hostname\": \"a\", \"device_info\": \"NVIDIA H100 80GB HBM3\"},"
        "{\"hostname\": \"b\", \"device_info\": \"NVIDIA H100 80GB HBM3\"}], \"results\": ["
        "{\"size\": 1024, \"count\": 256, \"type\": \"float\", \"redop\": \"sum\", \"root\": "
        "\"-1\","
        "\"out_of_place\": {\"time\": 20, \"alg_bw\": \"nan\", \"bus_bw\": 1, \"nwrong\": null},"
        "\"experiment_name\": \"AllReduce\"}]}";
    g_autoptr(GError) error = NULL;
    g_autoptr(OrrMeasuredTables) tables = parse(text, NULL, &error);
    assert_null(error);
    assert_string_equal(tables->tables[0]->environment, "NCCL_DEBUG=WARN");
    assert_string_equal(tables->tables[0]->nccl_version, "2.28.7");
    assert_non_null(strstr(notes->str, "1 settings that are not NCCL_*"));
    assert_null(strstr(notes->str, "secret"));
    assert_int_equal(tables->tables[0]->n_nodes, 2);
    assert_int_equal(tables->tables[0]->rows[0].out_of_place.n_wrong, -1);
}

static void test_torch_bench_prints_are_read_in_three_forms(void **state) {
    (void)state;
    const char *mean =
        "[node:0]:The average bandwidth of all_reduce with a 4.0GB payload (5 trials, "
        "16 ranks):\n[node:0]: algbw: 176.590 GBps (1412.7 Gbps)\n"
        "[node:0]: busbw: 331.106 GBps (2648.8 Gbps)\n";
    g_autoptr(OrrMeasuredTables) tables = parse(mean, NULL, NULL);
    assert_non_null(tables);
    assert_int_equal(tables->tables[0]->n_ranks, 16);
    assert_int_equal(tables->tables[0]->rows[0].bytes, 4000000000);
    assert_near(orr_measured_time_ns(&tables->tables[0]->rows[0]), 4e9 / 176.59e9 * 1e9, 1e-9);
    const char *sweep =
        "The average bandwidth of all_reduce over 4 ranks (5 warmups / 20 trials):\n\n"
        "| payload |    busbw   |    algbw   |\n| ------: | ---------: | ---------: |\n"
        "|   32KiB |   1.18GBps |   0.79GBps |\n|    1GiB | 355.72GBps | 237.15GBps |\n";
    g_autoptr(OrrMeasuredTables) table = parse(sweep, NULL, NULL);
    assert_non_null(table);
    assert_int_equal(table->tables[0]->n_rows, 2);
    assert_int_equal(table->tables[0]->rows[1].bytes, 1 << 30);
    const char *trials = "0 data size: 4.0 GB\n0:\n duration: 0.0400 sec\n"
                         " algo throughput: 1600000000000.0000 bps, 1600.0000 Gbps\n"
                         " busbw: 1500.0000  Gbps\n";
    OrrImport import = {.path = "own.log", .n_ranks = 16, .notes = notes};
    g_autoptr(OrrMeasuredTables) old = orr_nccl_tests_parse(&import, trials, strlen(trials), NULL);
    assert_non_null(old);
    assert_int_equal(old->tables[0]->rows[0].bytes, 4000000000);
    assert_near(orr_measured_time_ns(&old->tables[0]->rows[0]), 4e7, 1e-9);
}

/* A line of a layout is written with a size, its count, and two times in microseconds. */
typedef struct {
    const char *name, *before, *head, *row, *after;
    const char *source; /* NULL: not told */
} Layout;

static const Layout layouts[] = {
    {"of 2018",
     "#\n# Using devices\n#   Rank  0 on     a device  0 [0x19] Tesla V100\n"
     "#   Rank  1 on     a device  1 [0x1a] Tesla V100\n\n",
     "#                                                 out-of-place                    in-place\n"
     "#      bytes             N    type      op     time  algbw  busbw      res     time  algbw  "
     "busbw      res\n",
     "%12d %12d   float     sum  %7.3f   0.00   0.00    0e+00  %7.3f   0.00   0.00    0e+00\n",
     " Out of bounds values : 0 OK\n Avg bus bandwidth    : 1.0\n", "nccl-tests"},
    {"of 2.0 to 2.12",
     "# nThread 1 nGpus 1 minBytes 1 maxBytes 1024 step: 2(factor) warmup iters: 5 iters: 20 "
     "validation: 0\n" RANKS,
     "#                                                       out-of-place                       "
     "in-place\n"
     "#       size         count      type   redop     time   algbw   busbw  error     time   "
     "algbw "
     "  busbw  error\n"
     "#        (B)    (elements)                       (us)  (GB/s)  (GB/s)            (us)  "
     "(GB/s) "
     " (GB/s)\n",
     "%12d %12d   float     sum  %7.2f    0.00    0.00    N/A  %7.2f    0.00    0.00    N/A\n",
     TAIL, "nccl-tests"},
    {"since 2.13", RANKS, HEAD,
     "%12d %12d     float     sum      -1  %7.2f    0.00    0.00      0  %7.2f    0.00    0.00     "
     " "
     "0\n",
     TAIL, "nccl-tests"},
    {"since 2.17",
     "# Collective test starting: all_reduce_perf\n# nccl-tests version 2.17.6 "
     "nccl-headers=22807 nccl-library=22807\n" RANKS,
     HEAD,
     "%12d %12d     float     sum      -1  %7.2f    0.00    0.00    N/A  %7.2f    0.00    0.00    "
     "N/A\n",
     TAIL "# Collective test concluded: all_reduce_perf\n", "nccl-tests 2.17.6"},
    {"of rccl-tests",
     "# nThread 1 nGpus 2 minBytes 8 maxBytes 1024 step: 2(factor) warmup iters: 5 iters: 20 agg "
     "iters: 1 validation: 1 graph: 0\n#\nrccl-tests: Version develop:448c4c7\n# Using devices\n"
     "#   Rank  0 Pid 71 on a device  0 [0000:0c:00.0] AMD Instinct MI300X\n"
     "#   Rank  1 Pid 71 on a device  1 [0000:22:00.0] AMD Instinct MI300X\n#\n",
     HEAD,
     "%12d %12d     float     sum      -1  %7.2f    0.00    0.00      0  %7.2f    0.00    0.00     "
     " "
     "0\n",
     "# Errors with asterisks indicate errors that have exceeded the maximum threshold.\n" TAIL,
     "rccl-tests develop:448c4c7"},
};

static const char *const prefixes[] = {"",
                                       "0: ",
                                       "[1,0]<stdout>:",
                                       "[1,0]<stdout>: ",
                                       "12: [1,0]<stdout>:",
                                       "[prterun-a-77@1,0]<stdout>: ",
                                       "[default0]:"};

static char *write_log(const Layout *l, const char *prefix, guint n_tables) {
    GString *text = g_string_new("");
    for (guint t = 0; t < n_tables; t++) {
        g_string_append_printf(text, "%s%s", l->before, l->head);
        for (int size = 4; size <= 64 << 20; size *= 4) {
            g_string_append_printf(text, l->row, size, size / 4, 10.0 + size / 1e5,
                                   9.0 + size / 1e5);
            if (size == 1024)
                g_string_append(text, "a:12:34 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1]\n");
        }
        g_string_append(text, l->after);
    }
    g_auto(GStrv) lines = g_strsplit(text->str, "\n", -1);
    g_string_truncate(text, 0);
    for (guint i = 0; lines[i] && lines[i + 1]; i++)
        g_string_append_printf(text, "%s%s\n", prefix, lines[i]);
    return g_string_free(text, FALSE);
}

static void test_every_layout_under_every_launcher(void **state) {
    (void)state;
    for (guint l = 0; l < G_N_ELEMENTS(layouts); l++)
        for (guint p = 0; p < G_N_ELEMENTS(prefixes); p++)
            for (guint n = 1; n <= 2; n++) {
                g_autoptr(GError) error = NULL;
                g_autofree char *text = write_log(&layouts[l], prefixes[p], n);
                g_autoptr(OrrMeasuredTables) tables = parse(text, "all_reduce", &error);
                if (!tables)
                    fail_msg("layout %s behind \"%s\": %s", layouts[l].name, prefixes[p],
                             error->message);
                assert_int_equal(tables->n_tables, n);
                const OrrMeasuredTable *table = tables->tables[n - 1];
                if (table->n_rows != 13 || table->is_cut || table->n_ranks != 2)
                    fail_msg("layout %s behind \"%s\": %u rows of %u ranks", layouts[l].name,
                             prefixes[p], table->n_rows, table->n_ranks);
                assert_string_equal(table->source, layouts[l].source);
                assert_int_equal(table->rows[5].bytes, 4096);
                assert_near(table->rows[5].out_of_place.time_ns, 10040, 1e-3);
                assert_near(table->rows[5].in_place.time_ns, 9040, 1e-3);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(test_row_interrupted_by_nccl_output_is_joined),
        T(test_every_layout_under_every_launcher),
        T(test_wrong_values_are_never_used),
        T(test_file_with_no_sound_row_is_refused),
        T(test_collective_is_named_inferred_or_asked_for),
        T(test_two_named_tables_are_told_apart),
        T(test_json_gives_no_setting_but_nccl_ones),
        T(test_torch_bench_prints_are_read_in_three_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
