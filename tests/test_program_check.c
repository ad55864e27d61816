/* The check at zero times: what NCCL would run is passed, what would hang is refused with its
 * cycle; and memory peaks in host order. */
#include "sim/program/builder.h"
#include "sim/program/check.h"
#include "sim/schedule/schedules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

enum { COMM_FORWARD, COMM_BACKWARD };

static OrrP2pPart part(bool is_send, uint32_t peer, uint8_t comm) {
    return (OrrP2pPart){.is_send = is_send,
                        .group = ORR_GROUP_PP,
                        .comm = comm,
                        .purpose = ORR_COMM_PP,
                        .peer = peer,
                        .bytes = 1024};
}

static uint32_t add_part(OrrBuilder *b, OrrStream stream, OrrP2pPart x, bool is_eager) {
    return orr_builder_p2p(b, stream, x.is_send ? "send" : "receive", is_eager, &x, 1);
}

static uint32_t add_kernel(OrrBuilder *b) {
    OrrKernel k = {.kind = ORR_K_GEMM, .launches = 1, .label = "work"};
    return orr_builder_kernel(b, ORR_STREAM_COMPUTE, &k);
}

static uint32_t add_coll(OrrBuilder *b, OrrStream stream, OrrGroup group, int64_t bytes) {
    OrrColl c = {.kind = ORR_ALL_REDUCE,
                 .group = (uint8_t)group,
                 .purpose = ORR_COMM_STEP_END,
                 .bytes = bytes,
                 .label = "norm"};
    return orr_builder_coll(b, stream, &c);
}

static void call_end(OrrBuilder *b) {
    orr_builder_segment_begin(b, "end");
    orr_builder_host(b, 0);
    orr_builder_step_end(b);
    uint32_t segment = orr_builder_segment_end(b);
    orr_builder_call(b, segment, ORR_N_PASSES, 0, 0);
}

static void expect_sound(OrrProgram *p) {
    GError *error = NULL;
    if (!orr_program_check(p, &error))
        fail_msg("%s", error->message);
    orr_program_free(p);
}

static void expect_hang(OrrProgram *p, const char *const *texts) {
    GError *error = NULL;
    assert_false(orr_program_check(p, &error));
    assert_int_equal(error->code, ORR_ERROR_INPUT);
    for (; *texts != NULL; texts++)
        if (strstr(error->message, *texts) == NULL)
            fail_msg("\"%s\" lacks \"%s\"", error->message, *texts);
    g_error_free(error);
    orr_program_free(p);
}
#define EXPECT_HANG(program, ...) expect_hang(program, (const char *const[]){__VA_ARGS__, NULL})

/* Receive, compute, send: each pass of an order as one call, transfers on streams of their own. */
static void call_pass(OrrBuilder *b, const OrrOrder *o, uint32_t s, const OrrSlot *slot) {
    uint32_t n_stages = o->shape.n_stages, n_virtual = n_stages * o->shape.n_chunks;
    uint32_t v = o->virtual_stage[s * o->shape.n_chunks + slot->chunk];
    bool is_forward = slot->pass == ORR_F, is_weight = slot->pass == ORR_W;
    bool has_source = !is_weight && (is_forward ? v > 0 : v + 1 < n_virtual);
    bool has_sink = !is_weight && (is_forward ? v + 1 < n_virtual : v > 0);
    uint32_t before = (s + n_stages - 1) % n_stages, behind = (s + 1) % n_stages;
    uint8_t comm = is_forward ? COMM_FORWARD : COMM_BACKWARD;
    OrrStream in = is_forward ? ORR_STREAM_PP_RECV : ORR_STREAM_CP;
    OrrStream out = is_forward ? ORR_STREAM_PP_SEND : ORR_STREAM_EP;
    uint32_t received = ORR_NONE;
    orr_builder_segment_begin(b, "pass");
    if (has_source && n_stages > 1)
        received = add_part(b, in, part(false, is_forward ? before : behind, comm), false);
    uint32_t k = add_kernel(b);
    orr_builder_wait(b, received);
    if (is_forward)
        orr_builder_mem(b, ORR_MEM_ACTIVATIONS, false, 100);
    else if (slot->pass != ORR_I)
        orr_builder_mem(b, ORR_MEM_ACTIVATIONS, true, -100);
    if (has_sink && n_stages > 1) {
        add_part(b, out, part(true, is_forward ? behind : before, comm), false);
        orr_builder_wait(b, k);
    }
    uint32_t segment = orr_builder_segment_end(b);
    orr_builder_call(b, segment, slot->pass, slot->chunk, slot->micro_batch);
}

static OrrProgram *program_of(const OrrOrder *o) {
    OrrBuilder *b = orr_builder_new();
    for (uint32_t s = 0; s < o->shape.n_stages; s++) {
        orr_builder_role_begin(b, "stage", s);
        orr_builder_role_static(b, ORR_MEM_WEIGHTS, 1000);
        for (uint32_t i = o->first[s]; i < o->first[s + 1]; i++)
            call_pass(b, o, s, &o->slots[i]);
        call_end(b);
        orr_builder_role_end(b);
    }
    return orr_builder_finish(b);
}

/* Durations unknown: the host is ahead of the device as far as it can be. */
static const OrrMemoryTerms roomy = {.limit_bytes = INT64_C(1) << 40};

static void test_every_schedule_runs_to_its_end_and_holds_its_closed_form(void **state) {
    (void)state;
    for (const OrrSchedule *const *s = orr_schedules; *s != NULL; s++) {
        for (uint32_t p = 1; p <= 5; p++) {
            for (uint32_t m = 1; m <= 10; m++) {
                OrrPipeShape shape = {p, (*s)->needs_chunks ? 3 : 1, m};
                g_autoptr(OrrOrder) order = (*s)->order(&shape, NULL);
                if (order == NULL)
                    continue;
                OrrProgram *program = program_of(order);
                int64_t peak[5], by_kind[5][ORR_N_MEM_KINDS];
                orr_program_memory(program, &roomy, peak, by_kind);
                for (uint32_t r = 0; r < p; r++) {
                    uint32_t held = (*s)->in_flight(&shape, r);
                    int64_t in_use = peak[r] - by_kind[r][ORR_MEM_ALLOCATOR];
                    assert_int_equal(by_kind[r][ORR_MEM_WEIGHTS], 1000);
                    assert_int_equal(in_use, 1000 + by_kind[r][ORR_MEM_ACTIVATIONS]);
                    if (held != 0)
                        assert_int_equal(in_use, 1000 + 100 * held);
                }
                expect_sound(program);
            }
        }
    }
}

/* Two stages that both send before they receive, on one stream. */
static OrrProgram *crossed_sends(bool is_eager, bool is_batched, bool on_two_streams) {
    OrrBuilder *b = orr_builder_new();
    for (uint32_t s = 0; s < 2; s++) {
        OrrP2pPart both[] = {part(true, 1 - s, 0), part(false, 1 - s, 0)};
        orr_builder_segment_begin(b, "exchange");
        if (is_batched) {
            orr_builder_p2p(b, ORR_STREAM_PP_SEND, "both", false, both, 2);
        } else {
            add_part(b, ORR_STREAM_PP_SEND, both[0], is_eager);
            add_part(b, on_two_streams ? ORR_STREAM_PP_RECV : ORR_STREAM_PP_SEND, both[1], false);
        }
        uint32_t segment = orr_builder_segment_end(b);
        orr_builder_role_begin(b, "stage", s);
        orr_builder_call(b, segment, s == 0 ? ORR_F : ORR_B, 0, 3);
        call_end(b);
        orr_builder_role_end(b);
    }
    return orr_builder_finish(b);
}

static void test_unbatched_sends_that_cross_on_one_stream_hang(void **state) {
    (void)state;
    EXPECT_HANG(crossed_sends(false, false, false),
                "stage 0 waits in call 0 (F chunk 0 micro-batch 3) for a receive of stage 1",
                "stage 1 waits in call 0 (B chunk 0 micro-batch 3) for a receive of stage 0");
}

static void test_batched_eager_or_two_stream_sends_that_cross_run(void **state) {
    (void)state;
    expect_sound(crossed_sends(false, true, false));
    expect_sound(crossed_sends(true, false, false));
    expect_sound(crossed_sends(false, false, true));
}

static void test_a_host_that_waits_before_it_issues_hangs(void **state) {
    (void)state;
    OrrBuilder *b = orr_builder_new();
    for (uint32_t s = 0; s < 2; s++) {
        orr_builder_role_begin(b, "stage", s);
        orr_builder_segment_begin(b, "receive and synchronise");
        uint32_t r = add_part(b, ORR_STREAM_PP_RECV, part(false, 1 - s, 0), false);
        orr_builder_host(b, 10);
        orr_builder_wait(b, r);
        add_part(b, ORR_STREAM_PP_SEND, part(true, 1 - s, 0), false);
        orr_builder_call(b, orr_builder_segment_end(b), ORR_N_PASSES, 0, 0);
        call_end(b);
        orr_builder_role_end(b);
    }
    EXPECT_HANG(orr_builder_finish(b),
                "stage 0 waits in call 0 (receive and synchronise) for a send of stage 1",
                "stage 1 waits in call 0 (receive and synchronise) for a send of stage 0");
}

/* Stage 0 sends; stage 1 receives only if asked to; bytes may differ. */
static OrrProgram *one_send(bool is_eager, bool has_receive, int64_t receive_bytes) {
    OrrBuilder *b = orr_builder_new();
    for (uint32_t s = 0; s < 2; s++) {
        orr_builder_role_begin(b, "stage", s);
        orr_builder_segment_begin(b, "work");
        if (s == 0) {
            add_part(b, ORR_STREAM_PP_SEND, part(true, 1, 0), is_eager);
        } else if (has_receive) {
            OrrP2pPart x = part(false, 0, 0);
            x.bytes = receive_bytes;
            add_part(b, ORR_STREAM_PP_RECV, x, false);
        }
        orr_builder_call(b, orr_builder_segment_end(b), ORR_F, 0, 0);
        call_end(b);
        orr_builder_role_end(b);
    }
    return orr_builder_finish(b);
}

static void test_a_send_that_nobody_receives_is_named(void **state) {
    (void)state;
    EXPECT_HANG(one_send(false, false, 0), "stage 0 waits in call 0", "a receive of stage 1",
                "never comes");
    EXPECT_HANG(one_send(true, false, 0), "stage 1 never receives 2 messages that stage 0 sends");
    EXPECT_HANG(one_send(false, true, 7), "stage 0 sends 1024 bytes where stage 1 receives 7");
    expect_sound(one_send(false, true, 1024));
}

/* Each stage calls the world and then the model group, in the order given. */
static OrrProgram *two_groups(bool is_crossed, bool on_two_streams, int64_t last_bytes) {
    OrrBuilder *b = orr_builder_new();
    for (uint32_t s = 0; s < 3; s++) {
        bool is_swapped = is_crossed && s == 1;
        orr_builder_role_begin(b, "stage", s);
        orr_builder_segment_begin(b, "end of step");
        add_coll(b, ORR_STREAM_DP, is_swapped ? ORR_GROUP_MODEL : ORR_GROUP_WORLD, 8);
        add_coll(b, on_two_streams ? ORR_STREAM_TP : ORR_STREAM_DP,
                 is_swapped ? ORR_GROUP_WORLD : ORR_GROUP_MODEL, 8);
        if (s != 1)
            add_coll(b, ORR_STREAM_DP, ORR_GROUP_EMBEDDING, s == 0 ? 64 : last_bytes);
        add_coll(b, ORR_STREAM_TP, ORR_GROUP_TP, 100 + s); /* members share a role */
        orr_builder_call(b, orr_builder_segment_end(b), ORR_N_PASSES, 0, 0);
        call_end(b);
        orr_builder_role_end(b);
    }
    return orr_builder_finish(b);
}

static void test_collectives_that_span_roles_meet_in_order(void **state) {
    (void)state;
    expect_sound(two_groups(false, false, 64));
    expect_sound(two_groups(true, true, 64));
    EXPECT_HANG(two_groups(true, false, 64), "to join all_reduce \"norm\" of group world",
                "to join all_reduce \"norm\" of group model");
    EXPECT_HANG(two_groups(false, false, 65), "of 65 bytes", "of 64 bytes",
                "communicator 0 of group embedding");
}

static void test_waits_reach_one_step_back(void **state) {
    (void)state;
    OrrBuilder *b = orr_builder_new();
    orr_builder_role_begin(b, "only", 0);
    orr_builder_segment_begin(b, "a");
    add_kernel(b);
    uint32_t call = orr_builder_call(b, orr_builder_segment_end(b), ORR_N_PASSES, 0, 0);
    orr_builder_segment_begin(b, "b");
    add_coll(b, ORR_STREAM_DP, ORR_GROUP_DP, 8);
    uint32_t last = orr_builder_call(b, orr_builder_segment_end(b), ORR_N_PASSES, 0, 0);
    orr_builder_call_wait(b, call, ORR_FIRST_OP, last, ORR_LAST_OP, 1);
    orr_builder_call_wait(b, last, ORR_FIRST_OP, call, ORR_LAST_OP, 0);
    call_end(b);
    orr_builder_role_end(b);
    expect_sound(orr_builder_finish(b));
}

static void test_memory_peaks_in_host_order_before_and_after(void **state) {
    (void)state;
    OrrBuilder *b = orr_builder_new();
    orr_builder_role_begin(b, "only", 0);
    orr_builder_role_static(b, ORR_MEM_WEIGHTS, 10);
    orr_builder_segment_begin(b, "a");
    add_kernel(b);
    orr_builder_mem(b, ORR_MEM_ACTIVATIONS, true, -5); /* freed after, allocated before: */
    orr_builder_mem(b, ORR_MEM_ACTIVATIONS, false, 5); /* the order of the calls is no matter */
    orr_builder_mem(b, ORR_MEM_LOGITS, false, 3);
    add_kernel(b);
    orr_builder_mem(b, ORR_MEM_LOGITS, true, -2); /* 1 byte a step is left */
    orr_builder_call(b, orr_builder_segment_end(b), ORR_F, 0, 0);
    call_end(b);
    orr_builder_role_end(b);
    g_autoptr(OrrProgram) p = orr_builder_finish(b);
    int64_t peak, by_kind[1][ORR_N_MEM_KINDS];
    orr_program_memory(p, &roomy, &peak, by_kind);
    assert_int_equal(peak - by_kind[0][ORR_MEM_ALLOCATOR], 10 + 5 + 3 + 1);
    assert_int_equal(by_kind[0][ORR_MEM_ACTIVATIONS], 5);
    assert_int_equal(by_kind[0][ORR_MEM_LOGITS], 4);
    assert_int_equal(by_kind[0][ORR_MEM_WEIGHTS], 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_schedule_runs_to_its_end_and_holds_its_closed_form),
        cmocka_unit_test(test_unbatched_sends_that_cross_on_one_stream_hang),
        cmocka_unit_test(test_batched_eager_or_two_stream_sends_that_cross_run),
        cmocka_unit_test(test_a_host_that_waits_before_it_issues_hangs),
        cmocka_unit_test(test_a_send_that_nobody_receives_is_named),
        cmocka_unit_test(test_collectives_that_span_roles_meet_in_order),
        cmocka_unit_test(test_waits_reach_one_step_back),
        cmocka_unit_test(test_memory_peaks_in_host_order_before_and_after),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
