/* Chakra traces: what is written is read, what is read runs in the recorded time. */
#include "tests/near.h"

#include <glib/gstdio.h>
#include <string.h>

#include "sim/exec/exec.h"
#include "sim/lower/replay.h"
#include "traces/chakra.h"
#include "traces/protobuf.h"

static GString *notes;

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

/* One node of a trace in the making. */
typedef struct {
    uint64_t id, type, dep, micros, tid;
} Node;

static void put_message(GByteArray *file, GByteArray *message) {
    orr_wire_put_varint(file, message->len);
    g_byte_array_append(file, message->data, message->len);
    g_byte_array_set_size(message, 0);
}

static GByteArray *trace_of(const Node *nodes, guint n) {
    GByteArray *file = g_byte_array_new(), *message = g_byte_array_new();
    orr_wire_put_text(message, 1, "0.0.4");
    put_message(file, message);
    for (guint i = 0; i < n; i++) {
        GByteArray *tid = g_byte_array_new();
        orr_wire_put_number(message, 1, nodes[i].id);
        orr_wire_put_text(message, 2, "op");
        orr_wire_put_number(message, 3, nodes[i].type);
        if (nodes[i].dep > 0)
            orr_wire_put_number(message, 5, nodes[i].dep);
        if (nodes[i].micros > 0)
            orr_wire_put_number(message, 7, nodes[i].micros);
        orr_wire_put_text(tid, 1, "tid");
        orr_wire_put_number(tid, 9, nodes[i].tid);
        orr_wire_put_bytes(message, 10, tid->data, tid->len);
        put_message(file, message);
        g_byte_array_unref(tid);
    }
    g_byte_array_unref(message);
    return file;
}

static OrrReplay *parse(const GByteArray *file, GError **error) {
    OrrImport import = {.path = "own.et", .notes = notes};
    return orr_chakra_parse(&import, (const char *)file->data, file->len, error);
}

/* -1 with @error if it can't be run. */
static int64_t replay_ns(const OrrReplay *replay, GError **error) {
    g_autoptr(OrrProgram) program = NULL;
    g_autoptr(OrrBound) bound = orr_lower_replay(replay, &program, error);
    if (!bound)
        return -1;
    assert_null(orr_bound_flaw(bound));
    OrrExecOptions options = {.self_check = true};
    g_autoptr(OrrExecResult) result = orr_exec_run(bound, &options, error);
    assert_non_null(result);
    assert_true(result->is_periodic);
    return result->step_time_ns;
}

static int64_t run_nodes(const Node *nodes, guint n, GError **error) {
    GByteArray *file = trace_of(nodes, n);
    g_autoptr(OrrReplay) replay = parse(file, error);
    g_byte_array_unref(file);
    return replay ? replay_ns(replay, error) : -1;
}

static void test_order_of_a_stream_holds_without_dependencies(void **state) {
    (void)state;
    const Node nodes[] = {{1, ORR_CHAKRA_COMP, 0, 10, 7},
                          {2, ORR_CHAKRA_COMP, 0, 20, 7},
                          {3, ORR_CHAKRA_COMP, 0, 25, 8}};
    assert_int_equal(run_nodes(nodes, G_N_ELEMENTS(nodes), NULL), 30000);
}

static void test_dependencies_across_streams_make_the_longest_path(void **state) {
    (void)state;
    const Node nodes[] = {{1, ORR_CHAKRA_COMP, 0, 10, 7},
                          {2, ORR_CHAKRA_COLL, 1, 30, 20},
                          {3, ORR_CHAKRA_COMP, 0, 15, 7},
                          {4, ORR_CHAKRA_COMP, 2, 5, 7}};
    assert_int_equal(run_nodes(nodes, G_N_ELEMENTS(nodes), NULL), 45000);
}

static void test_operations_without_time_pass_their_dependencies_on(void **state) {
    (void)state;
    const Node nodes[] = {{1, ORR_CHAKRA_COMP, 0, 10, 7},
                          {2, ORR_CHAKRA_COMP, 1, 0, 8},
                          {3, ORR_CHAKRA_COMP, 2, 5, 9}};
    assert_int_equal(run_nodes(nodes, G_N_ELEMENTS(nodes), NULL), 15000);
}

static void test_bad_traces_are_refused_with_their_place(void **state) {
    (void)state;
    g_autoptr(GError) error = NULL;
    const Node cycle[] = {{1, ORR_CHAKRA_COMP, 2, 10, 7}, {2, ORR_CHAKRA_COMP, 1, 10, 7}};
    assert_int_equal(run_nodes(cycle, 2, &error), -1);
    assert_non_null(strstr(error->message, "waits for itself"));
    g_clear_error(&error);
    const Node twice[] = {{1, ORR_CHAKRA_COMP, 0, 10, 7}, {1, ORR_CHAKRA_COMP, 0, 10, 7}};
    assert_int_equal(run_nodes(twice, 2, &error), -1);
    assert_non_null(strstr(error->message, "two nodes have the id 1"));
    g_clear_error(&error);
    const Node untimed[] = {{1, ORR_CHAKRA_COMP, 0, 10, 7}, {2, ORR_CHAKRA_COLL, 1, 0, 7}};
    assert_int_equal(run_nodes(untimed, 2, &error), -1);
    assert_non_null(strstr(error->message, "1 of 2 operations have no duration"));
    g_clear_error(&error);
    GByteArray *file = trace_of(untimed, 2);
    g_byte_array_set_size(file, file->len - 3);
    assert_null(parse(file, &error));
    assert_non_null(strstr(error->message, "ends within a message, after 1 whole nodes"));
    g_byte_array_unref(file);
}

static void run_orrery(const char *arguments, char **text) {
    const char *top = g_getenv("top_builddir");
    g_autofree char *command = g_strdup_printf("%s/orrery %s", top ? top : ".", arguments);
    int status;
    assert_true(g_spawn_command_line_sync(command, text, NULL, &status, NULL));
    assert_int_equal(status, 0);
}

static int64_t step_time_of(const char *job) {
    g_autofree char *arguments = g_strdup_printf("step %s --json", job), *text = NULL;
    run_orrery(arguments, &text);
    const char *at = strstr(text, "\"step_time_ns\": ");
    assert_non_null(at);
    return g_ascii_strtoll(at + strlen("\"step_time_ns\": "), NULL, 10);
}

static void check_replay(const char *job, guint rank) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_build_filename(g_get_tmp_dir(), "orrery-replay-XXXXXX", NULL);
    g_autofree char *nothing = NULL;
    int file = g_mkstemp(path);
    assert_true(file >= 0 && g_close(file, NULL));
    g_autofree char *arguments =
        g_strdup_printf("trace %s -f chakra --ranks %u -o %s", job, rank, path);
    run_orrery(arguments, &nothing);
    OrrImport import = {.path = path, .notes = notes};
    g_autoptr(OrrReplay) replay = orr_chakra_read(&import, &error);
    g_remove(path);
    assert_null(error);
    assert_int_equal(replay->rank, rank);
    int64_t replayed = replay_ns(replay, &error), simulated = step_time_of(job);
    if (replayed != simulated)
        fail_msg("%s, rank %u: %" G_GINT64_FORMAT " ns, its replay %" G_GINT64_FORMAT, job, rank,
                 simulated, replayed);
    /* all but the first of each stream wait for another: nothing can start too early */
    uint32_t n_free = 0;
    for (uint32_t k = 0; k < replay->n_nodes; k++)
        n_free += replay->nodes[k].n_deps == 0;
    assert_true(n_free <= ORR_N_STREAMS);
}

/* S48 of the scenarios: pipelines of every schedule, shards, tensor parallelism, recomputation,
 * streams by the dozen. tests/chakra-jobs.sh does the shipped jobs. */
static void test_replay_of_our_own_export_gives_our_step_time(void **state) {
    (void)state;
#define PIPELINE "tiny-pipeline --set "
    static const struct {
        const char *job;
        guint rank;
    } runs[] = {
        {"tiny", 1},
        {"tiny-pipeline", 0},
        {"tiny-pipeline", 5},
        {"gpt2-meg-v100-pp4", 13},
        {"mpt-125m-8", 3},
        {"gpt2-1", 0},
        {PIPELINE "schedule.name=gpipe --set layout.vpp=1", 7},
        {PIPELINE "schedule.name=zb_h1 --set layout.vpp=1", 2},
        {PIPELINE "layout.zero_stage=1", 1},
        {PIPELINE "layout.zero_stage=2", 6},
        {PIPELINE "recompute.policy=full", 4},
    };
    for (guint i = 0; i < G_N_ELEMENTS(runs); i++)
        check_replay(runs[i].job, runs[i].rank);
}

static void test_several_ranks_are_a_file_each(void **state) {
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_dir_make_tmp("orrery-ranks-XXXXXX", NULL), *nothing = NULL;
    g_autofree char *arguments =
        g_strdup_printf("trace tiny -f chakra --ranks 0-1 --per-rank %s", folder);
    run_orrery(arguments, &nothing);
    for (guint rank = 0; rank < 2; rank++) {
        g_autofree char *name = g_strdup_printf("trace.%u.et", rank);
        g_autofree char *path = g_build_filename(folder, name, NULL);
        OrrImport import = {.path = path, .notes = notes};
        g_autoptr(OrrReplay) replay = orr_chakra_read(&import, &error);
        assert_null(error);
        assert_int_equal(replay->rank, rank);
        assert_int_equal(g_unlink(path), 0);
    }
    assert_int_equal(g_rmdir(folder), 0);
}

/* Times of calls without those inside; kernels behind their call and in order on their stream. */
static void test_traces_linked_with_a_profile_run_in_its_times(void **state) {
    (void)state;
    static const char text[] =
        "{\"schema\": \"1.0.3-chakra.0.0.4\", \"nodes\": [\n"
        "{\"id\": 2, \"name\": \"aten::linear\", \"ctrl_deps\": 1, \"exclusive_dur\": 4,\n"
        " \"attrs\": [{\"name\": \"tid\", \"type\": \"uint64\", \"value\": 3}]},\n"
        "{\"id\": 3, \"name\": \"gemm_a\", \"ctrl_deps\": 2, \"cat\": \"kernel\", "
        "\"stream\": 7,\n \"exclusive_dur\": 20.5, \"inter_thread_dep\": null},\n"
        "{\"id\": 4, \"name\": \"ncclDevKernel_AllReduce_Sum_f32_RING_LL\", \"ctrl_deps\": 2,\n"
        " \"cat\": \"kernel\", \"stream\": 20, \"exclusive_dur\": 50, \"sync_dep\": [3]},\n"
        "{\"id\": 5, \"name\": \"gemm_b\", \"ctrl_deps\": 2, \"cat\": \"kernel\", "
        "\"stream\": 7,\n \"exclusive_dur\": 10}]}";
    g_autoptr(GError) error = NULL;
    OrrImport import = {.path = "own.json", .notes = notes};
    g_autoptr(OrrReplay) replay = orr_chakra_parse(&import, text, strlen(text), &error);
    assert_null(error);
    assert_int_equal(replay->nodes[0].stream, 3);
    assert_int_equal(replay->nodes[2].kind, ORR_REPLAY_COLLECTIVE);
    assert_int_equal(replay->nodes[2].collective, ORR_ALL_REDUCE);
    assert_int_equal(replay_ns(replay, &error), 4000 + 20500 + 50000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(test_order_of_a_stream_holds_without_dependencies),
        T(test_dependencies_across_streams_make_the_longest_path),
        T(test_operations_without_time_pass_their_dependencies_on),
        T(test_bad_traces_are_refused_with_their_place),
        T(test_replay_of_our_own_export_gives_our_step_time),
        T(test_several_ranks_are_a_file_each),
        T(test_traces_linked_with_a_profile_run_in_its_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
