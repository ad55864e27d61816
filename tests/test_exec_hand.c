/* Execution against times computed by hand: sends, batches, the host, links, interference, and
 * gradients reduced behind the last backward. Times in nanoseconds; every step ends in a barrier of
 * 1 ns and a kernel of 1 ns. */
#include "tests/near.h"

#include "sim/exec/fold.h"
#include "sim/program/check.h"
#include "tests/exec_helpers.h"

#include <glib.h>
#include <string.h>

#define TAIL_NS 2 /* barrier and last kernel */
#define HEAD_NS 1 /* first kernel, where communication must not run into the step before */

/* The length of a kernel is its m. */
static uint32_t kernel(OrrBuilder *b, OrrKernelKind kind, int64_t ns) {
    OrrKernel k = {.kind = kind, .m = ns, .n = 1, .k = 1, .batch = 1, .launches = 1};
    return orr_builder_kernel(b, ORR_STREAM_COMPUTE, &k);
}

static uint32_t coll(OrrBuilder *b, OrrStream stream, uint32_t comm, OrrCommKind purpose,
                     int64_t bytes) {
    OrrColl c = {.kind = ORR_ALL_REDUCE,
                 .group = ORR_GROUP_MODEL,
                 .comm = comm,
                 .purpose = purpose,
                 .bytes = bytes};
    return orr_builder_coll(b, stream, &c);
}

static uint32_t p2p(OrrBuilder *b, OrrStream stream, bool is_send, uint32_t peer, int64_t bytes) {
    OrrP2pPart part = {.is_send = is_send,
                       .group = ORR_GROUP_PP,
                       .purpose = ORR_COMM_PP,
                       .peer = peer,
                       .bytes = bytes};
    return orr_builder_p2p(b, stream, "message", is_send, &part, 1);
}

static void tail(OrrBuilder *b, uint32_t after) {
    uint32_t last = orr_builder_last_on(b, ORR_STREAM_COMPUTE);
    uint32_t barrier = coll(b, ORR_STREAM_COPY, 9, ORR_COMM_STEP_END, 1);
    orr_builder_wait(b, last);
    orr_builder_wait(b, after);
    kernel(b, ORR_K_OPTIMIZER, 1);
    orr_builder_wait(b, barrier);
    orr_builder_step_end(b);
}

static void role(OrrBuilder *b, uint32_t stage, const uint32_t *segments, uint32_t n) {
    orr_builder_role_begin(b, "rank", stage);
    for (uint32_t i = 0; i < n; i++)
        orr_builder_call(b, segments[i], ORR_F, 0, i);
    orr_builder_role_end(b);
}

typedef struct {
    OrrProgram *program;
    OrrBound *bound;
} Case;

static Case bind(OrrBuilder *b) {
    static const ExecTimes times = {.send_ns = 1};
    Case c = {.program = orr_builder_finish(b)};
    g_autofree char *flaw = orr_program_flaw(c.program);
    if (flaw)
        fail_msg("%s", flaw);
    c.bound = exec_bound(c.program, &times);
    for (uint32_t i = 0; i < c.program->n_kernels; i++)
        c.bound->kernel_ns[i] = c.program->kernels[i].m;
    return c;
}

static void case_clear(Case *c) {
    orr_bound_free(c->bound);
    orr_program_free(c->program);
}

static OrrExecResult *run(const Case *c) {
    g_autoptr(GError) error = NULL;
    OrrExecOptions options = {.self_check = true, .has_path = true};
    g_autofree char *flaw = orr_bound_flaw(c->bound);
    if (flaw)
        fail_msg("%s", flaw);
    OrrExecResult *x = orr_exec_run(c->bound, &options, &error);
    if (!x)
        fail_msg("%s", error->message);
    g_autoptr(OrrBound) folded = orr_fold(c->bound);
    g_autoptr(OrrExecResult) y = orr_exec_run(folded, &options, &error);
    assert_int_equal(x->step_time_ns, y->step_time_ns);
    assert_memory_equal(x->account_ns, y->account_ns, sizeof x->account_ns);
    return x;
}

static int64_t first_step(const Case *c) {
    OrrExecResult *x = run(c);
    int64_t ns = x->first_step_ns;
    orr_exec_result_free(x);
    return ns;
}

/* Sender: kernel 100, send, kernel 50 behind the send. Receiver: kernel 1000, receive, kernel 10.
 */
static Case late_receiver(int64_t bytes, uint64_t eager_bytes) {
    OrrBuilder *b = orr_builder_new();
    uint32_t segment[2];
    orr_builder_segment_begin(b, "sender");
    uint32_t made = kernel(b, ORR_K_GEMM, 100);
    uint32_t sent = p2p(b, ORR_STREAM_PP_SEND, true, 1, bytes);
    orr_builder_wait(b, made);
    kernel(b, ORR_K_GEMM, 50);
    orr_builder_wait(b, sent);
    tail(b, ORR_NONE);
    segment[0] = orr_builder_segment_end(b);
    orr_builder_segment_begin(b, "receiver");
    uint32_t busy = kernel(b, ORR_K_GEMM, 1000);
    uint32_t received = p2p(b, ORR_STREAM_PP_RECV, false, 0, bytes);
    orr_builder_wait(b, busy);
    kernel(b, ORR_K_GEMM, 10);
    orr_builder_wait(b, received);
    tail(b, ORR_NONE);
    segment[1] = orr_builder_segment_end(b);
    role(b, 0, &segment[0], 1);
    role(b, 1, &segment[1], 1);
    Case c = bind(b);
    c.bound->eager_bytes = eager_bytes;
    for (uint32_t i = 0; i < c.program->n_parts; i++)
        c.bound->groups[ORR_GROUP_PP].pair_plans[i].latency_ns = 20;
    return c;
}

static void test_exec_small_sends_do_not_wait_for_the_receiver(void **state) {
    (void)state;
    Case c = late_receiver(64, 64);
    assert_int_equal(first_step(&c), 1000 + 10 + TAIL_NS); /* it was there before 1000 */
    case_clear(&c);
}

static void test_exec_large_sends_meet_the_receiver(void **state) {
    (void)state;
    Case c = late_receiver(65, 64);
    OrrExecResult *x = run(&c);
    assert_int_equal(x->first_step_ns, 1000 + 20 + 50 + TAIL_NS);
    const int64_t *sender = x->rank_account_ns, *receiver = sender + ORR_N_OWNERS;
    assert_int_equal(sender[ORR_K_GEMM], 150);
    assert_int_equal(sender[ORR_OWN_BUBBLE], 900);
    assert_int_equal(sender[ORR_OWN_EXPOSED_FIRST + ORR_COMM_PP], 20);
    assert_int_equal(receiver[ORR_K_GEMM], 1010);
    assert_int_equal(receiver[ORR_OWN_EXPOSED_FIRST + ORR_COMM_PP], 20);
    assert_int_equal(receiver[ORR_OWN_BUBBLE], 40); /* the sender's last kernel, at the barrier */
    /* what the end hung on: no wait lies on it */
    assert_int_equal(x->path_ns[ORR_K_GEMM], 1000 + 50);
    assert_int_equal(x->path_ns[ORR_PATH_LATENCY_FIRST + ORR_COMM_PP], 20);
    assert_int_equal(x->path_ns[ORR_PATH_LATENCY_FIRST + ORR_COMM_STEP_END], 1);
    assert_int_equal(x->path_ns[ORR_K_OPTIMIZER], 1);
    orr_exec_result_free(x);
    case_clear(&c);
}

/* Both come to the meeting at 100; rank 1, which goes on longer, is the last at the barrier. */
static void test_exec_path_goes_on_with_the_smallest_of_those_who_come_last(void **state) {
    (void)state;
    OrrBuilder *b = orr_builder_new();
    uint32_t segment[2];
    for (uint32_t r = 0; r < 2; r++) {
        orr_builder_segment_begin(b, "rank");
        uint32_t made = kernel(b, r ? ORR_K_NORM : ORR_K_GEMM, 100);
        uint32_t met = coll(b, ORR_STREAM_DP, 0, ORR_COMM_DP_GRADIENT, 0);
        orr_builder_wait(b, made);
        kernel(b, ORR_K_ACTIVATION, r ? 50 : 10);
        orr_builder_wait(b, met);
        tail(b, ORR_NONE);
        segment[r] = orr_builder_segment_end(b);
    }
    role(b, 0, &segment[0], 1);
    role(b, 1, &segment[1], 1);
    Case c = bind(b);
    OrrExecResult *x = run(&c);
    assert_int_equal(x->path_ns[ORR_K_ACTIVATION], 50);
    assert_int_equal(x->path_ns[ORR_K_GEMM], 100);
    assert_int_equal(x->path_ns[ORR_K_NORM], 0);
    orr_exec_result_free(x);
    case_clear(&c);
}

/* A batch both ways ends when both messages have: 50 after the later arrival. */
static void test_exec_batch_ends_with_its_last_part(void **state) {
    (void)state;
    OrrBuilder *b = orr_builder_new();
    uint32_t segment[2];
    for (uint32_t r = 0; r < 2; r++) {
        OrrP2pPart parts[2] = {{.is_send = true,
                                .group = ORR_GROUP_PP,
                                .peer = 1 - r,
                                .bytes = r ? 500 : 200,
                                .purpose = ORR_COMM_PP},
                               {.is_send = false,
                                .group = ORR_GROUP_PP,
                                .peer = 1 - r,
                                .bytes = r ? 200 : 500,
                                .purpose = ORR_COMM_PP}};
        orr_builder_segment_begin(b, r ? "right" : "left");
        uint32_t before = kernel(b, ORR_K_GEMM, r ? 300 : 100);
        uint32_t batch = orr_builder_p2p(b, ORR_STREAM_PP_SEND, "both ways", false, parts, 2);
        orr_builder_wait(b, before);
        kernel(b, ORR_K_GEMM, 7);
        orr_builder_wait(b, batch);
        tail(b, ORR_NONE);
        segment[r] = orr_builder_segment_end(b);
    }
    role(b, 0, &segment[0], 1);
    role(b, 1, &segment[1], 1);
    Case c = bind(b);
    for (uint32_t i = 0; i < c.program->n_parts; i++)
        c.bound->groups[ORR_GROUP_PP].pair_plans[i].latency_ns =
            c.program->parts[i].bytes / 10; /* 20 and 50 */
    assert_int_equal(first_step(&c), 300 + 50 + 7 + TAIL_NS);
    case_clear(&c);
}

/* Launches cost 5: a synchronisation lets the host issue the next kernel only at 1005 + 5. */
static void test_exec_host_synchronisation_delays_what_is_issued_behind_it(void **state) {
    (void)state;
    for (int has_sync = 0; has_sync < 2; has_sync++) {
        OrrBuilder *b = orr_builder_new();
        orr_builder_segment_begin(b, "step");
        uint32_t first = kernel(b, ORR_K_GEMM, 1000);
        if (has_sync) {
            orr_builder_host(b, 0);
            orr_builder_wait(b, first);
        }
        kernel(b, ORR_K_GEMM, 10);
        orr_builder_step_end(b);
        uint32_t segment = orr_builder_segment_end(b);
        role(b, 0, &segment, 1);
        Case c = bind(b);
        c.bound->host_launch_ns = 5;
        OrrExecResult *x = run(&c);
        assert_int_equal(x->first_step_ns, has_sync ? 1020 : 1015);
        /* without it the host is ahead for ever; with it the gap comes back each step */
        assert_int_equal(x->step_time_ns, has_sync ? 1015 : 1010);
        orr_exec_result_free(x);
        case_clear(&c);
    }
}

/* Two collectives of a million bytes on two communicators, the second issued @delay_ns later, on a
 * link that carries a byte a nanosecond; behind the first a kernel of @after_ns. */
static int64_t side_by_side(int64_t delay_ns, uint32_t weight, int64_t after_ns) {
    OrrBuilder *b = orr_builder_new();
    orr_builder_segment_begin(b, "step");
    uint32_t head = kernel(b, ORR_K_NORM, HEAD_NS);
    uint32_t first = coll(b, ORR_STREAM_TP, 0, ORR_COMM_TP, 1000000);
    orr_builder_wait(b, head);
    uint32_t busy = kernel(b, ORR_K_GEMM, delay_ns);
    uint32_t second = coll(b, ORR_STREAM_DP, 1, ORR_COMM_DP_GRADIENT, 1000000);
    orr_builder_wait(b, busy);
    kernel(b, ORR_K_GEMM, after_ns);
    orr_builder_wait(b, first);
    tail(b, second);
    uint32_t segment = orr_builder_segment_end(b);
    role(b, 0, &segment, 1);
    role(b, 1, &segment, 1);
    Case c = bind(b);
    OrrBoundGroup *g = &c.bound->groups[ORR_GROUP_MODEL];
    for (uint32_t i = 0; i < c.program->n_colls; i++)
        if (c.program->colls[i].bytes > 1)
            g->plans[i] = (OrrPlan){.work_bytes = 1000000,
                                    .cap_bytes_per_s = 1000000000,
                                    .weight = c.program->colls[i].comm == 0 ? weight : 1};
    static const OrrUse use = {0, ORR_COEF_ONE, 1};
    g->loads.n_loads = 1;
    g->loads.first = g_new0(uint32_t, 2);
    g->loads.first[1] = 1;
    g->loads.uses = g_memdup2(&use, sizeof use);
    c.bound->n_links = 1;
    c.bound->capacity = g_new(uint64_t, 1);
    c.bound->capacity[0] = 1000000000;
    int64_t ns = first_step(&c);
    case_clear(&c);
    return ns - HEAD_NS - TAIL_NS;
}

static void test_exec_two_communicators_share_a_nic(void **state) {
    (void)state;
    /* together: half of the link each, both end at 2 ms */
    assert_true(llabs(side_by_side(1, 1, 1) - 2000000) <= 2);
    /* half a millisecond apart: the first ends at 1.5 ms, the second at 2 ms */
    assert_true(llabs(side_by_side(500000, 1, 1) - 2000000) <= 2);
    /* one after the other: no sharing */
    assert_true(llabs(side_by_side(1500000, 1, 1) - 2500000) <= 2);
    /* three connections against one: all the same bytes, all the same link */
    assert_true(llabs(side_by_side(1, 3, 1) - 2000000) <= 2);
}

/* A kernel that takes longer can make the step shorter: who comes later to a shared link leaves it
 * to the other meanwhile, and the other was what counts. */
static void test_exec_what_comes_later_to_a_link_leaves_it_to_others(void **state) {
    (void)state;
    /* both end at 2 ms, then the kernel of 1 ms */
    assert_true(llabs(side_by_side(1, 1, 1000000) - 3000000) <= 2);
    /* the first has the link to itself until 1 ms, and the second while the kernel runs */
    assert_true(llabs(side_by_side(1000000, 1, 1000000) - 2000000) <= 2);
}

/* A collective of 400 beside a kernel of 1000 that then runs at half speed: 1200 in all. */
static void interference(OrrKernelKind kind, bool on_copy_engine, int64_t expected_ns) {
    OrrBuilder *b = orr_builder_new();
    orr_builder_segment_begin(b, "step");
    OrrColl beside = {.kind = ORR_ALL_REDUCE,
                      .group = ORR_GROUP_MODEL,
                      .purpose = ORR_COMM_TP,
                      .bytes = 8,
                      .on_copy_engine = on_copy_engine};
    uint32_t head = kernel(b, ORR_K_COPY, HEAD_NS);
    orr_builder_coll(b, ORR_STREAM_TP, &beside);
    orr_builder_wait(b, head);
    kernel(b, kind, 1000);
    orr_builder_wait(b, head);
    tail(b, ORR_NONE);
    uint32_t segment = orr_builder_segment_end(b);
    role(b, 0, &segment, 1);
    role(b, 1, &segment, 1);
    Case c = bind(b);
    for (uint32_t i = 0; i < c.program->n_colls; i++)
        if (c.program->colls[i].bytes == 8)
            c.bound->groups[ORR_GROUP_MODEL].plans[i].latency_ns = 400;
    c.bound->rate[0][ORR_COMM_TP] = ORR_RATE_ONE / 2;
    c.bound->rate[1][ORR_COMM_TP] = ORR_RATE_ONE / 4;
    OrrExecResult *x = run(&c);
    assert_int_equal(x->first_step_ns, HEAD_NS + expected_ns + TAIL_NS);
    assert_int_equal(x->account_ns[ORR_OWN_INTERFERENCE], expected_ns - 1000);
    orr_exec_result_free(x);
    case_clear(&c);
}

static void test_exec_kernels_slow_down_beside_communication(void **state) {
    (void)state;
    interference(ORR_K_GEMM, false, 1200); /* 400 at half speed, 800 at full */
    interference(ORR_K_NORM, false, 1300); /* 400 at a quarter, 900 at full */
    interference(ORR_K_GEMM, true, 1000);
}

/* A model of two layers, M micro-batches: forward 100, backward 200 a layer; a layer's gradients
 * take
 * @reduce_ns, and are final in the last micro-batch only. */
static OrrExecResult *two_layers(uint32_t m, int64_t reduce_ns) {
    OrrBuilder *b = orr_builder_new();
    uint32_t segments[65];
    for (uint32_t i = 0; i < m; i++) {
        bool is_last = i == m - 1;
        orr_builder_segment_begin(b, is_last ? "last" : "pass");
        kernel(b, ORR_K_GEMM, 100);
        kernel(b, ORR_K_GEMM, 100);
        for (int layer = 0; layer < 2; layer++) {
            uint32_t back = kernel(b, ORR_K_GEMM, 200);
            if (!is_last)
                continue;
            coll(b, ORR_STREAM_DP, 0, ORR_COMM_DP_GRADIENT, 64);
            orr_builder_wait(b, back);
        }
        if (is_last)
            tail(b, orr_builder_last_on(b, ORR_STREAM_DP));
        segments[i] = orr_builder_segment_end(b);
    }
    for (uint32_t r = 0; r < 2; r++)
        role(b, r, segments, m);
    Case c = bind(b);
    for (uint32_t i = 0; i < c.program->n_colls; i++)
        if (c.program->colls[i].bytes == 64)
            c.bound->groups[ORR_GROUP_MODEL].plans[i].latency_ns = reduce_ns;
    OrrExecResult *x = run(&c);
    case_clear(&c);
    return x;
}

/* The first reduction hides under the backward of the other layer, the second under nothing. */
static void test_exec_reduction_hides_under_the_last_backward_only(void **state) {
    (void)state;
    for (uint32_t m = 1; m <= 8; m++)
        for (int64_t reduce_ns = 50; reduce_ns <= 400; reduce_ns += 50) {
            OrrExecResult *x = two_layers(m, reduce_ns);
            int64_t exposed = reduce_ns <= 200 ? reduce_ns : 2 * reduce_ns - 200;
            assert_int_equal(x->step_time_ns, m * 600 + exposed + TAIL_NS);
            assert_int_equal(x->account_ns[ORR_OWN_EXPOSED_FIRST + ORR_COMM_STEP_END] +
                                 x->account_ns[ORR_OWN_EXPOSED_FIRST + ORR_COMM_DP_GRADIENT],
                             exposed + 1);
            assert_true(x->is_periodic);
            orr_exec_result_free(x);
        }
}

static void test_exec_refuses_different_collectives_on_one_communicator(void **state) {
    (void)state;
    OrrBuilder *b = orr_builder_new();
    uint32_t segment[2];
    for (uint32_t r = 0; r < 2; r++) {
        orr_builder_segment_begin(b, r ? "right" : "left");
        OrrColl c = {.kind = r ? ORR_ALL_REDUCE : ORR_REDUCE_SCATTER,
                     .group = ORR_GROUP_MODEL,
                     .purpose = ORR_COMM_TP,
                     .bytes = 8};
        g_strlcpy(c.label, r ? "norm" : "grads", sizeof c.label);
        orr_builder_coll(b, ORR_STREAM_TP, &c);
        kernel(b, ORR_K_GEMM, 1);
        orr_builder_step_end(b);
        segment[r] = orr_builder_segment_end(b);
    }
    role(b, 0, &segment[0], 1);
    role(b, 1, &segment[1], 1);
    Case c = bind(b);
    g_autoptr(GError) error = NULL, checked = NULL;
    OrrExecOptions options = {.self_check = true};
    assert_null(orr_exec_run(c.bound, &options, &error));
    assert_true(g_error_matches(error, ORR_ERROR, ORR_ERROR_INPUT));
    assert_non_null(strstr(error->message, "norm (all_reduce)"));
    assert_non_null(strstr(error->message, "grads (reduce_scatter)"));
    assert_false(orr_program_check(c.program, &checked));
    case_clear(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exec_small_sends_do_not_wait_for_the_receiver),
        cmocka_unit_test(test_exec_large_sends_meet_the_receiver),
        cmocka_unit_test(test_exec_path_goes_on_with_the_smallest_of_those_who_come_last),
        cmocka_unit_test(test_exec_batch_ends_with_its_last_part),
        cmocka_unit_test(test_exec_host_synchronisation_delays_what_is_issued_behind_it),
        cmocka_unit_test(test_exec_two_communicators_share_a_nic),
        cmocka_unit_test(test_exec_what_comes_later_to_a_link_leaves_it_to_others),
        cmocka_unit_test(test_exec_kernels_slow_down_beside_communication),
        cmocka_unit_test(test_exec_reduction_hides_under_the_last_backward_only),
        cmocka_unit_test(test_exec_refuses_different_collectives_on_one_communicator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
