/* The builder: interning in order of first use, segments shared, waits, text form, flaws, speed. */
#include "sim/program/builder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static OrrKernel gemm(int64_t m, const char *label) {
    OrrKernel k;
    memset(&k, 0xa5, sizeof k); /* padding and label tails are garbage, as on a caller's stack */
    k.kind = ORR_K_GEMM, k.pass = ORR_PASS_FORWARD, k.dtype = ORR_BF16, k.is_causal = 0;
    k.heads = k.kv_heads = 0;
    k.m = m, k.n = 64, k.k = 32, k.k2 = 0, k.batch = 1;
    k.flops = 2.0 * (double)m * 64 * 32;
    k.bytes_read = 2.0 * (double)(m * 32 + 64 * 32), k.bytes_written = 2.0 * (double)m * 64;
    k.launches = 1;
    g_strlcpy(k.label, label, sizeof k.label);
    return k;
}

static OrrP2pPart part(bool is_send, uint32_t peer) {
    return (OrrP2pPart){.is_send = is_send,
                        .group = ORR_GROUP_PP,
                        .purpose = ORR_COMM_PP,
                        .peer = peer,
                        .bytes = 1024};
}

static OrrColl all_reduce(int64_t bytes) {
    return (OrrColl){.kind = ORR_ALL_REDUCE,
                     .group = ORR_GROUP_TP,
                     .purpose = ORR_COMM_TP,
                     .dtype = ORR_BF16,
                     .bytes = bytes,
                     .label = "tp"};
}

static uint32_t forward_segment(OrrBuilder *b, int64_t m) {
    OrrKernel k = gemm(m, "qkv");
    OrrColl c = all_reduce(4096);
    orr_builder_segment_begin(b, "forward");
    uint32_t a = orr_builder_kernel(b, ORR_STREAM_COMPUTE, &k);
    orr_builder_mem(b, ORR_MEM_ACTIVATIONS, false, 100);
    uint32_t r = orr_builder_coll(b, ORR_STREAM_TP, &c);
    orr_builder_wait(b, a);
    orr_builder_kernel(b, ORR_STREAM_COMPUTE, &k);
    orr_builder_wait(b, r);
    return orr_builder_segment_end(b);
}

static uint32_t end_segment(OrrBuilder *b) {
    orr_builder_segment_begin(b, "step end");
    orr_builder_host(b, 1000);
    orr_builder_step_end(b);
    return orr_builder_segment_end(b);
}

static OrrProgram *two_roles(void) {
    OrrBuilder *b = orr_builder_new();
    for (uint32_t stage = 0; stage < 2; stage++) {
        uint32_t f = forward_segment(b, 8), last = end_segment(b);
        orr_builder_segment_begin(b, stage == 0 ? "send" : "receive");
        OrrP2pPart x = part(stage == 0, 1 - stage);
        orr_builder_p2p(b, stage == 0 ? ORR_STREAM_PP_SEND : ORR_STREAM_PP_RECV, "act", false, &x,
                        1);
        uint32_t p2p = orr_builder_segment_end(b);
        orr_builder_role_begin(b, stage == 0 ? "first" : "last", stage);
        orr_builder_role_static(b, ORR_MEM_WEIGHTS, 5);
        orr_builder_role_static(b, ORR_MEM_WEIGHTS, 6);
        uint32_t one = orr_builder_call(b, stage == 0 ? f : p2p, ORR_F, 0, 0);
        uint32_t two = orr_builder_call(b, stage == 0 ? p2p : f, ORR_F, 0, 0);
        uint32_t end = orr_builder_call(b, last, ORR_N_PASSES, 0, 0);
        orr_builder_call_wait(b, end, ORR_FIRST_OP, two, ORR_LAST_OP, 0);
        orr_builder_call_wait(b, two, ORR_FIRST_OP, one, ORR_LAST_OP, 0);
        orr_builder_call_wait(b, one, ORR_FIRST_OP, end, ORR_LAST_OP, 1);
        orr_builder_role_end(b);
    }
    return orr_builder_finish(b);
}

static void test_equal_descriptors_are_stored_once_in_order_of_first_use(void **state) {
    (void)state;
    OrrBuilder *b = orr_builder_new();
    orr_builder_segment_begin(b, "s");
    for (int i = 0; i < 3000; i++) {
        OrrKernel k = gemm(1 + i % 1000, "k");
        orr_builder_kernel(b, ORR_STREAM_COMPUTE, &k);
    }
    OrrKernel other = gemm(1, "other label");
    orr_builder_kernel(b, ORR_STREAM_COMPUTE, &other);
    orr_builder_segment_end(b);
    g_autoptr(OrrProgram) p = orr_builder_finish(b);
    assert_int_equal(p->n_kernels, 1001);
    assert_int_equal(p->n_ops, 3001);
    for (uint32_t i = 0; i < 3000; i++) {
        assert_int_equal(p->ops[i].what, i % 1000);
        assert_int_equal(p->kernels[p->ops[i].what].m, 1 + i % 1000);
    }
}

static void test_identical_segments_are_shared_and_leave_nothing_behind(void **state) {
    (void)state;
    g_autoptr(OrrBuilder) b = orr_builder_new();
    uint32_t a = forward_segment(b, 8), c = forward_segment(b, 16), again = forward_segment(b, 8);
    assert_int_equal(a, again);
    assert_int_not_equal(a, c);
    uint32_t end = end_segment(b);
    orr_builder_role_begin(b, "only", 0);
    orr_builder_call(b, a, ORR_F, 0, 0);
    orr_builder_call(b, again, ORR_F, 0, 1);
    orr_builder_call(b, c, ORR_F, 0, 2);
    orr_builder_call(b, end, ORR_N_PASSES, 0, 0);
    orr_builder_role_end(b);
    OrrProgram *p = orr_builder_finish(g_steal_pointer(&b));
    assert_int_equal(p->n_segments, 3);
    assert_int_equal(p->n_ops, 7);
    assert_int_equal(p->n_mems, 2);
    assert_int_equal(p->segments[1].first_op, 3);
    assert_null(orr_program_flaw(p));
    orr_program_free(p);
}

static void test_segments_that_differ_in_memory_alone_are_not_shared(void **state) {
    (void)state;
    g_autoptr(OrrBuilder) b = orr_builder_new();
    uint32_t ids[3];
    for (int i = 0; i < 3; i++) {
        orr_builder_segment_begin(b, "s");
        orr_builder_host(b, 5);
        orr_builder_mem(b, ORR_MEM_ACTIVATIONS, true, i == 1 ? 7 : 8);
        orr_builder_mem(b, ORR_MEM_ACTIVATIONS, true, 0);
        ids[i] = orr_builder_segment_end(b);
    }
    assert_int_equal(ids[0], ids[2]);
    assert_int_not_equal(ids[0], ids[1]);
}

static void test_waits_are_sorted_and_implied_ones_dropped(void **state) {
    (void)state;
    OrrBuilder *b = orr_builder_new();
    OrrKernel k = gemm(4, "k");
    OrrColl c = all_reduce(64);
    orr_builder_segment_begin(b, "s");
    uint32_t host = orr_builder_host(b, 3);
    uint32_t k1 = orr_builder_kernel(b, ORR_STREAM_COMPUTE, &k);
    uint32_t c1 = orr_builder_coll(b, ORR_STREAM_TP, &c);
    uint32_t k2 = orr_builder_kernel(b, ORR_STREAM_COMPUTE, &k);
    orr_builder_wait(b, k1); /* same stream */
    orr_builder_coll(b, ORR_STREAM_DP, &c);
    orr_builder_wait(b, k2);
    orr_builder_wait(b, c1);
    orr_builder_wait(b, k1); /* implied by k2 */
    orr_builder_wait(b, host);
    orr_builder_wait(b, ORR_NONE);
    assert_int_equal(orr_builder_last_on(b, ORR_STREAM_COMPUTE), k2);
    assert_int_equal(orr_builder_last_on(b, ORR_STREAM_EP), ORR_NONE);
    assert_int_equal(orr_builder_n_ops(b), 5);
    orr_builder_segment_end(b);
    g_autoptr(OrrProgram) p = orr_builder_finish(b);
    assert_int_equal(p->ops[3].n_waits, 0);
    assert_int_equal(p->ops[4].n_waits, 2);
    assert_int_equal(p->ops[4].wait[0], c1);
    assert_int_equal(p->ops[4].wait[1], k2);
}

static void test_call_waits_are_grouped_by_call_and_resolved(void **state) {
    (void)state;
    g_autoptr(OrrProgram) p = two_roles();
    assert_null(orr_program_flaw(p));
    assert_int_equal(p->n_roles, 2);
    assert_int_equal(p->roles[0].static_bytes[ORR_MEM_WEIGHTS], 11);
    const OrrCall *calls = p->calls + p->roles[0].first_call;
    assert_int_equal(calls[0].n_waits, 1);
    assert_int_equal(p->call_waits[calls[0].first_wait].steps_back, 1);
    assert_int_equal(p->call_waits[calls[0].first_wait].src_call, 2);
    assert_int_equal(p->call_waits[calls[1].first_wait].src_op, 2); /* last of three */
}

static void dump_to(const OrrProgram *p, char **text, size_t *size) {
    FILE *out = open_memstream(text, size);
    assert_non_null(out);
    orr_program_dump(p, out);
    fclose(out);
}

static void test_dump_of_the_same_program_is_the_same_bytes(void **state) {
    (void)state;
    g_autoptr(OrrProgram) p = two_roles();
    g_autoptr(OrrProgram) q = two_roles();
    char *a, *b;
    size_t n_a, n_b;
    dump_to(p, &a, &n_a);
    dump_to(q, &b, &n_b);
    assert_int_equal(n_a, n_b);
    assert_memory_equal(a, b, n_a);
    assert_non_null(strstr(a, "kernel 0 \"qkv\" gemm forward bf16 m=8 n=64 k=32"));
    assert_non_null(strstr(a, "  1 tp coll 0 \"tp\" waits=0\n"));
    assert_non_null(strstr(a, "send to pp 1"));
    assert_non_null(strstr(a, "before:activations+100"));
    assert_non_null(strstr(a, "step_end"));
    free(a);
    free(b);
}

static void expect_flaw(const OrrProgram *p, const char *part_of_text) {
    g_autofree char *flaw = orr_program_flaw(p);
    assert_non_null(flaw);
    if (strstr(flaw, part_of_text) == NULL)
        fail_msg("\"%s\" lacks \"%s\"", flaw, part_of_text);
}

static void test_flaws_are_found_and_named(void **state) {
    (void)state;
    OrrProgram *p = two_roles();
    p->ops[1].wait[0] = 1;
    expect_flaw(p, "operation 1: waits for an operation that is not earlier");
    p->ops[1].wait[0] = 0;
    p->ops[1].what = 99;
    expect_flaw(p, "no such collective");
    p->ops[1].what = 0;
    p->ops[0].stream = ORR_STREAM_HOST;
    expect_flaw(p, "host work belongs");
    p->ops[0].stream = ORR_STREAM_COMPUTE;
    p->parts[0].peer = 2;
    expect_flaw(p, "stage that does not exist");
    p->parts[0].peer = 1;
    p->ops[3].flags = 0;
    expect_flaw(p, "0 operations end its step, not 1");
    p->ops[3].flags = ORR_OP_STEP_END;
    p->call_waits[1].src_call = 1;
    expect_flaw(p, "waits for a call that is not earlier");
    p->call_waits[1].src_call = 0;
    p->roles[1].stage = 0;
    expect_flaw(p, "stage 0 has a role already");
    p->roles[1].stage = 1;
    assert_null(orr_program_flaw(p));
    orr_program_free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_descriptors_are_stored_once_in_order_of_first_use),
        cmocka_unit_test(test_identical_segments_are_shared_and_leave_nothing_behind),
        cmocka_unit_test(test_segments_that_differ_in_memory_alone_are_not_shared),
        cmocka_unit_test(test_waits_are_sorted_and_implied_ones_dropped),
        cmocka_unit_test(test_call_waits_are_grouped_by_call_and_resolved),
        cmocka_unit_test(test_dump_of_the_same_program_is_the_same_bytes),
        cmocka_unit_test(test_flaws_are_found_and_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
