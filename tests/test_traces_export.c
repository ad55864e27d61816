/* Exported traces: valid JSON, tracks disjoint, sums as given, arrows in pairs, what was left out,
 * and the patterns by which HolisticTraceAnalysis tells ranks and communication. */
#include "sim/io/json.h"
#include "sim/program/builder.h"
#include "traces/exporters.h"
#include "traces/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include <glib/gstdio.h>

#define N_RANKS 4 /* two stages of TP 2: ranks 0, 1 and 2, 3 */

typedef struct {
    OrrProgram *program;
    OrrTraceContext context;
    char *folder;
} Fixture;

static char *rank_name(void *data, uint32_t rank) {
    (void)data;
    return g_strdup_printf("stage %u", rank / 2);
}

static uint32_t group_members(void *data, OrrGroup kind, uint32_t group, const uint32_t **members) {
    static const uint32_t all[] = {0, 1, 2, 3};
    (void)data;
    assert_int_equal(kind, ORR_GROUP_TP);
    *members = all + 2 * group;
    return 2;
}

static uint32_t peer_of(void *data, uint32_t rank, OrrGroup kind, uint32_t position) {
    (void)data, (void)kind;
    return rank % 2 + 2 * position;
}

static void plan_of(void *data, const OrrSpan *span, OrrAlgo *algo, OrrProto *proto) {
    (void)data, (void)span;
    *algo = ORR_ALGO_TREE, *proto = ORR_PROTO_SIMPLE;
}

static uint32_t stage_segment(OrrBuilder *b, const char *name, bool is_send, uint32_t peer) {
    OrrKernel k = {.kind = ORR_K_GEMM,
                   .pass = ORR_PASS_FORWARD,
                   .dtype = ORR_BF16,
                   .m = 8,
                   .n = 4,
                   .k = 2,
                   .batch = 1,
                   .flops = 1e9,
                   .launches = 1,
                   .label = "qkv"};
    OrrColl c = {.kind = ORR_ALL_REDUCE,
                 .group = ORR_GROUP_TP,
                 .purpose = ORR_COMM_TP,
                 .dtype = ORR_BF16,
                 .bytes = 4096,
                 .label = "tp"};
    OrrP2pPart part = {.is_send = is_send,
                       .group = ORR_GROUP_PP,
                       .purpose = ORR_COMM_PP,
                       .peer = peer,
                       .bytes = 1024};
    orr_builder_segment_begin(b, name);
    orr_builder_kernel(b, ORR_STREAM_COMPUTE, &k);
    orr_builder_coll(b, ORR_STREAM_TP, &c);
    orr_builder_p2p(b, is_send ? ORR_STREAM_PP_SEND : ORR_STREAM_PP_RECV, "pp", false, &part, 1);
    orr_builder_step_end(b);
    return orr_builder_segment_end(b);
}

static OrrProgram *make_program(void) {
    OrrBuilder *b = orr_builder_new();
    uint32_t first = stage_segment(b, "first", true, 1),
             second = stage_segment(b, "second", false, 0);
    orr_builder_role_begin(b, "stage 0", 0);
    orr_builder_call(b, first, ORR_F, 0, 0);
    orr_builder_role_end(b);
    orr_builder_role_begin(b, "stage 1", 1);
    orr_builder_call(b, second, ORR_F, 0, 0);
    orr_builder_role_end(b);
    return orr_builder_finish(b);
}

static int setup(void **state) {
    Fixture *f = g_new0(Fixture, 1);
    f->program = make_program();
    f->context = (OrrTraceContext){.program = f->program,
                                   .job = "fixture",
                                   .gpu = "h100",
                                   .world_size = N_RANKS,
                                   .gpus_per_node = 2,
                                   .peak_flops_per_s = 1e15,
                                   .data = f,
                                   .rank_name = rank_name,
                                   .group = group_members,
                                   .peer = peer_of,
                                   .plan = plan_of};
    f->folder = g_dir_make_tmp("orrery-trace-XXXXXX", NULL);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    Fixture *f = *state;
    g_autoptr(GDir) dir = g_dir_open(f->folder, 0, NULL);
    for (const char *name; (name = g_dir_read_name(dir));) {
        g_autofree char *path = g_build_filename(f->folder, name, NULL);
        g_unlink(path);
    }
    g_rmdir(f->folder);
    orr_program_free(f->program);
    g_free(f->folder);
    g_free(f);
    return 0;
}

/* Per rank 3 micro-batches: kernel 400 us, all-reduce from 300 us on, a message behind it. */
static void play(OrrProbe probe) {
    for (uint32_t rank = 0; rank < N_RANKS; rank++)
        for (uint32_t i = 0; i < 3; i++) {
            int64_t t = i * 1000000;
            OrrSpan s = {.rank = rank,
                         .stream = ORR_STREAM_COMPUTE,
                         .op_kind = ORR_OP_KERNEL,
                         .pass = ORR_F,
                         .call = i,
                         .micro_batch = i,
                         .start_ns = t,
                         .arrived_ns = t,
                         .end_ns = t + 400001};
            probe.span(probe.data, &s);
            s.stream = ORR_STREAM_TP, s.op_kind = ORR_OP_COLL, s.group = rank / 2;
            s.start_ns = t + 300000 + 1000 * rank, s.arrived_ns = t + 303000;
            s.end_ns = t + 600000;
            probe.span(probe.data, &s);
            s.stream = rank < 2 ? ORR_STREAM_PP_SEND : ORR_STREAM_PP_RECV;
            s.op_kind = ORR_OP_P2P, s.what = rank < 2 ? 0 : 1, s.group = 0;
            s.start_ns = t + 650000, s.arrived_ns = t + 650000, s.end_ns = t + 700000;
            probe.span(probe.data, &s);
        }
}

static void export_to(Fixture *f, OrrTraceRequest request, OrrTraceCounts *counts) {
    static const uint32_t all[] = {0, 1, 2, 3};
    request.context = &f->context;
    if (!request.ranks)
        request.ranks = all, request.n_ranks = N_RANKS;
    if (request.to_ns == 0)
        request.to_ns = INT64_MAX;
    GError *error = NULL;
    g_autoptr(OrrTrace) t = orr_trace_open(&request, &error);
    if (error)
        fail_msg("%s", error->message);
    assert_non_null(t);
    play(orr_trace_probe(t));
    assert_true(orr_trace_close(t, counts, &error));
}

static JsonArray *events_of(const char *path, OrrJson **json) {
    GError *error = NULL;
    *json = orr_json_load(path, ORR_JSON_STRICT, &error);
    if (error)
        fail_msg("%s", error->message);
    return json_object_get_array_member(json_node_get_object(orr_json_root(*json)), "traceEvents");
}

static const char *text(JsonObject *e, const char *key) {
    return json_object_has_member(e, key) ? json_object_get_string_member(e, key) : "";
}

static gint64 ns_of(JsonObject *e, const char *key) {
    return (gint64)(json_object_get_double_member(e, key) * 1000 + 0.5);
}

static void test_chrome_tracks_are_disjoint_and_sums_equal(void **state) {
    Fixture *f = *state;
    g_autofree char *path = g_build_filename(f->folder, "t.json", NULL);
    export_to(f, (OrrTraceRequest){.exporter = orr_exporter_find("chrome", NULL), .path = path},
              NULL);
    g_autoptr(OrrJson) json = NULL;
    JsonArray *events = events_of(path, &json);
    gint64 end[N_RANKS][128] = {{0}}, compute = 0;
    guint n = 0;
    for (guint i = 0; i < json_array_get_length(events); i++) {
        JsonObject *e = json_array_get_object_element(events, i);
        if (strcmp(text(e, "ph"), "X") != 0)
            continue;
        gint64 pid = json_object_get_int_member(e, "pid"),
               tid = json_object_get_int_member(e, "tid");
        assert_true(ns_of(e, "ts") >= end[pid][tid]);
        end[pid][tid] = ns_of(e, "ts") + ns_of(e, "dur");
        if (tid == ORR_STREAM_COMPUTE)
            compute += ns_of(e, "dur"), n++;
    }
    assert_int_equal(n, 3 * N_RANKS);
    assert_int_equal(compute, 3 * N_RANKS * 400001);
}

static void test_chrome_names_every_process_and_stream(void **state) {
    Fixture *f = *state;
    g_autofree char *path = g_build_filename(f->folder, "t.json.gz", NULL);
    export_to(f, (OrrTraceRequest){.exporter = orr_exporter_find("chrome", NULL), .path = path},
              NULL);
    g_autofree char *text_of = orr_file_read(path, 1 << 24, NULL, NULL);
    assert_non_null(text_of); /* gzip by suffix, and back */
    g_autoptr(OrrJson) json = NULL;
    JsonArray *events = events_of(path, &json);
    guint processes = 0, threads = 0, sorts = 0;
    for (guint i = 0; i < json_array_get_length(events); i++) {
        JsonObject *e = json_array_get_object_element(events, i);
        processes += strcmp(text(e, "name"), "process_name") == 0;
        sorts += strcmp(text(e, "name"), "process_sort_index") == 0;
        threads += strcmp(text(e, "name"), "thread_name") == 0;
    }
    assert_int_equal(processes, N_RANKS);
    assert_int_equal(sorts, N_RANKS);
    assert_int_equal(threads, N_RANKS * 4); /* compute, tp, a pipeline stream, passes */
}

static void test_chrome_arrows_come_in_pairs(void **state) {
    Fixture *f = *state;
    g_autofree char *path = g_build_filename(f->folder, "t.json", NULL);
    export_to(f, (OrrTraceRequest){.exporter = orr_exporter_find("chrome", NULL), .path = path},
              NULL);
    g_autoptr(OrrJson) json = NULL;
    JsonArray *events = events_of(path, &json);
    g_autoptr(GHashTable) starts = g_hash_table_new(g_str_hash, g_str_equal);
    guint ends = 0;
    for (int pass = 0; pass < 2; pass++)
        for (guint i = 0; i < json_array_get_length(events); i++) {
            JsonObject *e = json_array_get_object_element(events, i);
            if (pass == 0 && strcmp(text(e, "ph"), "s") == 0)
                assert_true(g_hash_table_add(starts, (char *)text(e, "id")));
            if (pass == 1 && strcmp(text(e, "ph"), "f") == 0) {
                assert_string_equal(text(e, "bp"), "e");
                assert_true(g_hash_table_remove(starts, text(e, "id")));
                ends++;
            }
        }
    assert_int_equal(g_hash_table_size(starts), 0);
    assert_int_equal(ends, 3 * (2 + 2)); /* two TP pairs, two pipelines, three micro-batches */
}

/* S47: hta/common/trace_file.py wants distributedInfo.rank in each file of a folder; a kernel is
 * communication if its name starts with "nccl" or contains "ncclKernel"; a stream is an argument.
 */
static void test_profile_folder_is_as_hta_reads_it(void **state) {
    Fixture *f = *state;
    export_to(
        f, (OrrTraceRequest){.exporter = orr_exporter_find("chrome", NULL), .directory = f->folder},
        NULL);
    bool found[N_RANKS] = {false};
    g_autoptr(GDir) dir = g_dir_open(f->folder, 0, NULL);
    for (const char *name; (name = g_dir_read_name(dir));) {
        assert_true(g_str_has_suffix(name, ".json.gz"));
        g_autofree char *path = g_build_filename(f->folder, name, NULL);
        g_autoptr(OrrJson) json = NULL;
        JsonArray *events = events_of(path, &json);
        JsonObject *info = json_object_get_object_member(json_node_get_object(orr_json_root(json)),
                                                         "distributedInfo");
        gint64 rank = json_object_get_int_member(info, "rank"), communication = 0, compute = 0;
        assert_int_equal(json_object_get_int_member(info, "world_size"), N_RANKS);
        assert_false(found[rank]);
        found[rank] = true;
        for (guint i = 0; i < json_array_get_length(events); i++) {
            JsonObject *e = json_array_get_object_element(events, i);
            if (strcmp(text(e, "cat"), "kernel") != 0)
                continue;
            JsonObject *args = json_object_get_object_member(e, "args");
            assert_true(json_object_get_int_member(args, "stream") >= 0);
            assert_true(json_object_has_member(args, "correlation"));
            if (g_str_has_prefix(text(e, "name"), "nccl"))
                communication += ns_of(e, "dur"),
                    assert_true(json_object_has_member(args, "Process Group Ranks"));
            else
                compute += ns_of(e, "dur");
        }
        assert_int_equal(compute, 3 * 400001);
        assert_int_equal(communication, 3 * (300000 - 1000 * rank + 50000));
    }
    for (int r = 0; r < N_RANKS; r++)
        assert_true(found[r]);
}

static void test_window_leaves_out_and_says_so(void **state) {
    Fixture *f = *state;
    static const uint32_t some[] = {1, 2};
    g_autofree char *path = g_build_filename(f->folder, "t.json", NULL);
    OrrTraceCounts counts;
    export_to(f,
              (OrrTraceRequest){.exporter = orr_exporter_find("chrome", NULL),
                                .path = path,
                                .ranks = some,
                                .n_ranks = 2,
                                .from_ns = 1000000,
                                .to_ns = 1650000},
              &counts);
    assert_int_equal(counts.n_spans, 2 * 2); /* kernel and all-reduce of micro-batch 1 */
    assert_int_equal(counts.n_outside, 2 * 7);
    assert_int_equal(counts.n_other_ranks, 2);
    g_autoptr(OrrJson) json = NULL;
    events_of(path, &json);
    JsonObject *left =
        json_object_get_object_member(json_node_get_object(orr_json_root(json)), "leftOut");
    assert_int_equal(json_object_get_int_member(left, "spans_outside_window"), 14);
    assert_int_equal(json_object_get_int_member(left, "ranks"), 2);
}

static void test_csv_and_passes_hold_the_same_spans(void **state) {
    Fixture *f = *state;
    g_autofree char *path = g_build_filename(f->folder, "t.csv", NULL);
    export_to(f, (OrrTraceRequest){.exporter = orr_exporter_find("csv", NULL), .path = path}, NULL);
    g_autofree char *csv = orr_file_read(path, 1 << 20, NULL, NULL);
    assert_non_null(strstr(csv, "\n1,0,compute,gemm,gemm qkv,F,0,2,0,0,2000000,2000000,2400001\n"));
    assert_non_null(strstr(csv, ",ncclDevKernel_AllReduce_Sum_bf16_TREE_LL("));
    g_autofree char *passes = g_build_filename(f->folder, "p.csv", NULL);
    export_to(f, (OrrTraceRequest){.exporter = orr_exporter_find("passes", NULL), .path = passes},
              NULL);
    g_autofree char *rows = orr_file_read(passes, 1 << 20, NULL, NULL);
    assert_non_null(strstr(rows, "\n3,3,0,F,0,2,2000000,2400001\n"));
    g_auto(GStrv) lines = g_strsplit(rows, "\n", -1);
    assert_int_equal(g_strv_length(lines), 1 + 3 * N_RANKS + 1);
}

static void test_names_are_those_of_the_profiler(void **state) {
    Fixture *f = *state;
    g_autofree char *path = g_build_filename(f->folder, "t.json", NULL);
    export_to(f, (OrrTraceRequest){.exporter = orr_exporter_find("chrome", NULL), .path = path},
              NULL);
    g_autofree char *all = orr_file_read(path, 1 << 24, NULL, NULL);
    static const char *const needed[] = {"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
                                         "\"Collective name\": \"allreduce\"",
                                         "\"In msg nelems\": 2048",
                                         "\"dtype\": \"BFloat16\"",
                                         "\"Process Group Ranks\": \"[2, 3]\"",
                                         "\"protocol\": \"simple\"",
                                         "\"Group size\": 2",
                                         NULL};
    for (int i = 0; needed[i]; i++)
        if (!strstr(all, needed[i]))
            fail_msg("the trace lacks %s", needed[i]);
}

static void test_rank_lists(void **state) {
    (void)state;
    g_autofree uint32_t *ranks = NULL;
    uint32_t n;
    assert_true(orr_trace_ranks("4-6,1,5", 8, &ranks, &n, NULL));
    assert_int_equal(n, 4);
    assert_int_equal(ranks[0], 1);
    assert_int_equal(ranks[3], 6);
    static const char *const wrong[] = {
        "", "8", "3-1", "1,", "a", "1-", "-1", "1;2", "99999999999999999999", NULL};
    for (int i = 0; wrong[i]; i++) {
        g_autofree uint32_t *none = NULL;
        GError *error = NULL;
        assert_false(orr_trace_ranks(wrong[i], 8, &none, &n, &error));
        assert_int_equal(error->code, ORR_ERROR_USAGE);
        g_clear_error(&error);
    }
}

static void test_same_spans_give_same_bytes(void **state) {
    Fixture *f = *state;
    g_autofree char *a = g_build_filename(f->folder, "a.json.gz", NULL);
    g_autofree char *b = g_build_filename(f->folder, "b.json.gz", NULL);
    export_to(f, (OrrTraceRequest){.exporter = orr_exporter_find("chrome", NULL), .path = a}, NULL);
    export_to(f, (OrrTraceRequest){.exporter = orr_exporter_find("chrome", NULL), .path = b}, NULL);
    g_autofree char *first = NULL, *second = NULL;
    gsize n, m;
    assert_true(g_file_get_contents(a, &first, &n, NULL));
    assert_true(g_file_get_contents(b, &second, &m, NULL));
    assert_int_equal(n, m);
    assert_memory_equal(first, second, n);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_chrome_tracks_are_disjoint_and_sums_equal),
        TEST(test_chrome_names_every_process_and_stream),
        TEST(test_chrome_arrows_come_in_pairs),
        TEST(test_profile_folder_is_as_hta_reads_it),
        TEST(test_window_leaves_out_and_says_so),
        TEST(test_csv_and_passes_hold_the_same_spans),
        TEST(test_names_are_those_of_the_profiler),
        TEST(test_rank_lists),
        TEST(test_same_spans_give_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
