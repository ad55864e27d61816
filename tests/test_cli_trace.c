/* S47: a folder of traces, read by the rules of HolisticTraceAnalysis (names that start with nccl
 * are communication, the rest of the streams computation), says of overlap what the report says. */
#include "sim/io/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <cmocka.h>

#include <glib/gstdio.h>

static void orrery(const char *line) {
    const char *build = g_getenv("top_builddir");
    g_autofree char *command = g_strdup_printf("%s/orrery %s", build ? build : ".", line);
    g_autofree char *err = NULL, *out = NULL;
    int status;
    assert_true(g_spawn_command_line_sync(command, &out, &err, &status, NULL));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("%s: %s", command, err);
}

typedef struct {
    int64_t begin, end;
} Interval;

static int by_begin(const void *a, const void *b) {
    const Interval *x = a, *y = b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Sorts and merges in place. */
static void merge(GArray *intervals) {
    g_array_sort(intervals, by_begin);
    guint n = 0;
    for (guint i = 0; i < intervals->len; i++) {
        Interval next = g_array_index(intervals, Interval, i);
        Interval *last = n > 0 ? &g_array_index(intervals, Interval, n - 1) : NULL;
        if (last && next.begin <= last->end)
            last->end = MAX(last->end, next.end);
        else
            g_array_index(intervals, Interval, n++) = next;
    }
    g_array_set_size(intervals, n);
}

static int64_t total(const GArray *a) {
    int64_t sum = 0;
    for (guint i = 0; i < a->len; i++)
        sum += g_array_index(a, Interval, i).end - g_array_index(a, Interval, i).begin;
    return sum;
}

static int64_t overlap(const GArray *a, const GArray *b) {
    int64_t sum = 0;
    for (guint i = 0, j = 0; i < a->len && j < b->len;) {
        const Interval *x = &g_array_index(a, Interval, i), *y = &g_array_index(b, Interval, j);
        int64_t begin = MAX(x->begin, y->begin), end = MIN(x->end, y->end);
        sum += MAX(end - begin, 0);
        if (x->end < y->end)
            i++;
        else
            j++;
    }
    return sum;
}

static int64_t ns(JsonObject *e, const char *key) {
    return (int64_t)(json_object_get_double_member(e, key) * 1000 + 0.5);
}

static void read_kernels(const char *path, GArray *communication, GArray *computation) {
    GError *error = NULL;
    g_autoptr(OrrJson) json = orr_json_load(path, ORR_JSON_STRICT, &error);
    if (!json)
        fail_msg("%s", error->message);
    JsonArray *events =
        json_object_get_array_member(json_node_get_object(orr_json_root(json)), "traceEvents");
    for (guint i = 0; i < json_array_get_length(events); i++) {
        JsonObject *e = json_array_get_object_element(events, i);
        JsonObject *args =
            json_object_has_member(e, "args") ? json_object_get_object_member(e, "args") : NULL;
        if (!json_object_has_member(e, "dur") || !args || !json_object_has_member(args, "stream"))
            continue;
        Interval interval = {ns(e, "ts"), ns(e, "ts") + ns(e, "dur")};
        bool is_nccl = g_str_has_prefix(json_object_get_string_member(e, "name"), "nccl");
        g_array_append_val(is_nccl ? communication : computation, interval);
    }
    merge(communication);
    merge(computation);
}

/* Of stage 0: idle time that communication answers for, and kernel time. */
static void read_report(const char *path, int64_t *idle_ns, int64_t *kernels_ns) {
    g_autoptr(OrrJson) json = orr_json_load(path, ORR_JSON_STRICT, NULL);
    JsonObject *root = json_node_get_object(orr_json_root(json));
    JsonArray *stages = json_object_get_array_member(root, "stages");
    JsonArray *account =
        json_object_get_array_member(json_array_get_object_element(stages, 0), "time_account");
    *idle_ns = *kernels_ns = 0;
    for (guint i = 0; i < json_array_get_length(account); i++) {
        JsonObject *part = json_array_get_object_element(account, i);
        const char *owner = json_object_get_string_member(part, "owner");
        int64_t t = json_object_get_int_member(part, "ns");
        if (g_str_has_prefix(owner, "exposed") || strcmp(owner, "bubble") == 0 ||
            strcmp(owner, "straggler") == 0)
            *idle_ns += t;
        else if (strcmp(owner, "host") != 0 && strcmp(owner, "data") != 0)
            *kernels_ns += t;
    }
}

static void compare(const char *job) {
    g_autofree char *folder = g_dir_make_tmp("orrery-hta-XXXXXX", NULL);
    g_autofree char *record = g_build_filename(folder, "record.json", NULL);
    g_autofree char *profile = g_build_filename(folder, "rank-0000000.json.gz", NULL);
    g_autofree char *trace = g_strdup_printf("trace %s --ranks 0 --per-rank %s", job, folder);
    g_autofree char *step = g_strdup_printf("step %s --json -o %s", job, record);
    orrery(trace);
    orrery(step);
    g_autoptr(GArray) communication = g_array_new(FALSE, FALSE, sizeof(Interval));
    g_autoptr(GArray) computation = g_array_new(FALSE, FALSE, sizeof(Interval));
    read_kernels(profile, communication, computation);
    int64_t idle_ns, kernels_ns;
    read_report(record, &idle_ns, &kernels_ns);
    int64_t exposed_ns = total(communication) - overlap(communication, computation);
    if (ABS(exposed_ns - idle_ns) > 1000 || ABS(total(computation) - kernels_ns) > 1000)
        fail_msg("%s: the trace says %" G_GINT64_FORMAT " ns exposed and %" G_GINT64_FORMAT
                 " ns computing, the report %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                 job, exposed_ns, total(computation), idle_ns, kernels_ns);
    g_unlink(record), g_unlink(profile);
    assert_int_equal(g_rmdir(folder), 0);
}

static void test_s47_overlap_in_trace_equals_report_with_tensor_parallelism(void **state) {
    (void)state;
    compare("megatron-22b-8");
}

static void test_s47_overlap_in_trace_equals_report_with_full_sharding(void **state) {
    (void)state;
    compare("llama3-8b-8");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_s47_overlap_in_trace_equals_report_with_tensor_parallelism),
        cmocka_unit_test(test_s47_overlap_in_trace_equals_report_with_full_sharding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
