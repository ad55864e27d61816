/* Profiler traces as profiles: small texts. */
#include "tests/near.h"

#include <string.h>

#include "traces/kineto.h"

static OrrMeasuredProfile *parse(const char *text, GString *notes, GError **error) {
    OrrImport import = {.path = "own.json", .notes = notes};
    return orr_kineto_parse(&import, text, strlen(text), error);
}

#define GEMM                                                                                       \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"sm90_gemm\",\"tid\":7,\"ts\":100,\"dur\":10}"
#define REDUCE                                                                                     \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_AllGather_RING_LL\",\"tid\":20,"    \
    "\"ts\":105,\"dur\":15,\"args\":{\"stream\":21,\"Collective name\":\"_allgather_base\","       \
    "\"In msg nelems\":128,\"Out msg nelems\":1024,\"Group size\":8,\"dtype\":\"BFloat16\"}}"
#define COPY                                                                                       \
    "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy\",\"tid\":7,\"ts\":130,\"dur\":5}"

static void test_window_divides_into_compute_exposed_and_idle(void **state) {
    (void)state;
    g_autoptr(GString) notes = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(OrrMeasuredProfile) p =
        parse("{\"distributedInfo\":{\"rank\":3,\"world_size\":8},\"traceEvents\":[" GEMM "," REDUCE
              "," COPY "]}",
              notes, &error);
    assert_null(error);
    assert_int_equal(p->rank, 3);
    assert_int_equal(p->world_size, 8);
    assert_near(p->window_ns, 35e3, 1e-9);
    assert_near(p->compute_ns, 10e3, 1e-9);
    assert_near(p->transfer_ns, 15e3, 1e-9);
    assert_near(p->exposed_ns, 10e3, 1e-9); /* 5 us of it run under the product */
    assert_near(p->copy_ns, 5e3, 1e-9);
    assert_near(p->idle_ns, 10e3, 1e-9);
    assert_near(p->kind_ns[ORR_K_GEMM], 10e3, 1e-9);
}

static void test_gathered_bytes_are_the_whole(void **state) {
    (void)state;
    g_autoptr(GString) notes = g_string_new(NULL);
    g_autoptr(OrrMeasuredProfile) p = parse("[" REDUCE "," REDUCE "]", notes, NULL);
    assert_non_null(p);
    assert_int_equal(p->n_transfers, 1);
    assert_int_equal(p->transfers[0].kind, ORR_ALL_GATHER);
    assert_int_equal(p->transfers[0].bytes, 2048);
    assert_int_equal(p->transfers[0].group_size, 8);
    assert_int_equal(p->transfers[0].stream, 21);
    assert_int_equal(p->transfers[0].n_calls, 2);
    assert_near(p->transfers[0].total_ns, 30e3, 1e-9);
}

static void test_killed_writer_leaves_its_whole_events(void **state) {
    (void)state;
    g_autoptr(GString) notes = g_string_new(NULL);
    g_autoptr(OrrMeasuredProfile) p =
        parse("{\"traceEvents\":[" GEMM "," GEMM ",{\"ph\":\"X\",\"na", notes, NULL);
    assert_non_null(p);
    assert_int_equal(p->kernels[0].n_calls, 2);
    assert_non_null(strstr(notes->str, "used up to the last whole one, 2 of them"));
}

static void test_trace_without_device_events_is_refused(void **state) {
    (void)state;
    g_autoptr(GString) notes = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    assert_null(parse("{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"aten::mm\"}]}", notes, &error));
    assert_non_null(strstr(error->message, "1 events, but none of category kernel"));
    g_clear_error(&error);
    assert_null(parse("{\"traceEvents\": 3}", notes, &error));
    assert_non_null(strstr(error->message, "own.json:1: traceEvents"));
}

static void test_names_of_kernels_tell_their_kind(void **state) {
    (void)state;
    assert_int_equal(orr_kineto_kernel_kind("void flash_fwd_kernel<...>"), ORR_K_ATTENTION);
    assert_int_equal(orr_kineto_kernel_kind("nvjet_hsh_256x128"), ORR_K_GEMM);
    assert_int_equal(orr_kineto_kernel_kind("void layer_norm::ln_fwd_kernel"), ORR_K_NORM);
    assert_int_equal(orr_kineto_kernel_kind("cuda::swiglu_forward"), ORR_K_ACTIVATION);
    assert_int_equal(orr_kineto_kernel_kind("mystery"), ORR_N_KERNEL_KINDS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_window_divides_into_compute_exposed_and_idle),
        cmocka_unit_test(test_gathered_bytes_are_the_whole),
        cmocka_unit_test(test_killed_writer_leaves_its_whole_events),
        cmocka_unit_test(test_trace_without_device_events_is_refused),
        cmocka_unit_test(test_names_of_kernels_tell_their_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
