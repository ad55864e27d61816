/* Terms of a comparison add up to the difference. */
#include "tests/near.h"

#include <math.h>
#include <string.h>

#include "calibrate/run_log.h"
#include "sim/judge/compare.h"
#include "traces/kineto.h"

static void adds_up(const OrrCompare *c) {
    int64_t one = 0, other = 0;
    for (uint32_t i = 0; i < c->n_terms; i++) {
        one += c->terms[i].one_ns;
        other += c->terms[i].other_ns;
    }
    assert_int_equal(one, c->one_ns);
    assert_int_equal(other, c->other_ns);
}

static OrrRecord *record(int64_t gemm, int64_t bubble, int64_t tp) {
    OrrRecord *r = orr_record_new();
    r->time_account_ns[ORR_K_GEMM] = gemm;
    r->time_account_ns[ORR_OWN_BUBBLE] = bubble;
    r->time_account_ns[ORR_OWN_EXPOSED_FIRST + ORR_COMM_TP] = tp;
    r->step_time_ns = gemm + bubble + tp;
    r->layout.tp = 8;
    return r;
}

static void test_two_runs_differ_by_their_owners(void **state) {
    (void)state;
    g_autoptr(OrrRecord) one = record(100, 20, 30);
    g_autoptr(OrrRecord) other = record(100, 5, 90);
    other->layout.tp = 16;
    g_autoptr(OrrCompare) c = orr_judge_compare_records(one, other);
    adds_up(c);
    assert_string_equal(c->terms[0].name, "exposed_tp");
    assert_int_equal(c->terms[0].other_ns - c->terms[0].one_ns, 60);
    assert_int_equal(c->notes->len, 1);
    assert_string_equal(c->notes->pdata[0], "tp: 8, then 16");
}

static const OrrCompareTerm *term(const OrrCompare *c, const char *name) {
    for (uint32_t i = 0; i < c->n_terms; i++)
        if (strcmp(c->terms[i].name, name) == 0)
            return &c->terms[i];
    fail_msg("no term %s", name);
    return NULL;
}

static void test_a_log_without_timers_tells_the_whole_and_its_own_spread(void **state) {
    (void)state;
    g_autoptr(OrrRecord) one = record(100, 20, 30);
    one->tokens_per_step = 1000;
    OrrMeasuredRun log = {.step_time_ns = 180.2,
                          .step_p10_ns = 170,
                          .step_p90_ns = 190,
                          .tp = 4,
                          .global_batch = 11,
                          .sequence_tokens = 100,
                          .tflops_per_gpu = NAN,
                          .memory_bytes = NAN};
    g_autoptr(OrrCompare) c = orr_judge_compare_log(one, &log);
    adds_up(c);
    assert_int_equal(term(c, "more_tokens_a_step")->other_ns, 15);
    assert_int_equal(term(c, "slower_than_its_own_best_steps")->other_ns, 10);
    assert_int_equal(term(c, "not_told_by_the_log")->other_ns, 181 - 150 - 15 - 10);
    bool has_tp = false;
    for (guint i = 0; i < c->notes->len; i++)
        has_tp |= strcmp(c->notes->pdata[i], "tp: 8, then 4") == 0;
    assert_true(has_tp);
}

static OrrMeasuredRun *parse(const char *text) {
    g_autoptr(GString) notes = g_string_new(NULL);
    OrrImport import = {.path = "own.log", .notes = notes};
    OrrMeasuredRun *run = orr_run_log_parse(&import, text, strlen(text), NULL);
    assert_non_null(run);
    return run;
}

#define STEP(i) " iteration " #i "/ 10 | elapsed time per iteration (ms): 0.000190 |\n"

/* Megatron of 2021: sections side by side, the input within the forward. */
static void test_timers_of_old_megatron_are_terms(void **state) {
    (void)state;
    g_autoptr(OrrRecord) one = record(100, 20, 30);
    g_autoptr(OrrMeasuredRun) log =
        parse(STEP(1) "time (ms) | forward-compute: 0.5 | optimizer: 0.5\n" STEP(
            2) "time (ms) | forward-compute: 0.000060 | backward-compute: 0.000080 | forward-recv: "
               "0.000030 | batch-generator: 0.000010 | optimizer-clip-main-grad: 0.000004 | "
               "optimizer: 0.000015\n" STEP(
                   3) "time (ms) | forward-compute: 0.000060 | backward-compute: 0.000080 | "
                      "forward-recv: "
                      "0.000030 | batch-generator: 0.000010 | optimizer-clip-main-grad: 0.000004 | "
                      "optimizer: 0.000015\n");
    g_autoptr(OrrCompare) c = orr_judge_compare_log(one, log);
    adds_up(c);
    assert_int_equal(term(c, "work")->one_ns, 130); /* kernels and exposed TP */
    assert_int_equal(term(c, "work")->other_ns, 130);
    assert_int_equal(term(c, "data")->other_ns, 10);
    assert_int_equal(term(c, "pipeline")->one_ns, 20);
    assert_int_equal(term(c, "pipeline")->other_ns, 30);
    assert_int_equal(term(c, "optimizer")->other_ns, 15); /* its own sections are within */
    assert_int_equal(term(c, "not_told_by_the_log")->other_ns, 5);
}

/* Megatron since 2023: one section of all passes, a pair for all ranks. */
static void test_timers_of_new_megatron_are_terms(void **state) {
    (void)state;
    g_autoptr(OrrRecord) one = record(100, 20, 30);
    one->time_account_ns[ORR_OWN_EXPOSED_FIRST + ORR_COMM_DP_GRADIENT] = 7;
    one->step_time_ns += 7;
    g_autoptr(OrrMeasuredRun) log =
        parse(STEP(2) STEP(3) "(min, max) time across ranks (ms):\n"
                              "    forward-backward ..............: (0.000140, 0.000150)\n"
                              "    all-grads-sync ................: (0.000004, 0.000006)\n"
                              "    optimizer .....................: (0.000020, 0.000020)\n"
                              "another line: 5\n");
    assert_int_equal(log->n_timers, 3);
    assert_string_equal(log->timers[0].name, "forward-backward");
    g_autoptr(OrrCompare) c = orr_judge_compare_log(one, log);
    adds_up(c);
    assert_int_equal(term(c, "forward_backward")->one_ns, 150);
    assert_int_equal(term(c, "forward_backward")->other_ns, 140);
    assert_int_equal(term(c, "gradient_reduction")->one_ns, 7);
    assert_int_equal(term(c, "gradient_reduction")->other_ns, 5);
}

static void test_a_profile_is_compared_kind_by_kind(void **state) {
    (void)state;
    g_autoptr(OrrRecord) one = record(100, 20, 30);
    OrrMeasuredProfile p = {
        .n_steps = 2, .window_ns = 400, .exposed_ns = 80, .idle_ns = 60, .host_idle_ns = NAN};
    p.kind_ns[ORR_K_GEMM] = 240;
    g_autoptr(OrrCompare) c = orr_judge_compare_profile(one, &p);
    adds_up(c);
    assert_int_equal(c->other_ns, 200);
    assert_int_equal(term(c, "gemm")->other_ns, 120);
    assert_int_equal(term(c, "exposed_not_known_by_name")->other_ns, 40);
}

static void test_idle_time_is_the_hosts_where_the_launch_came_late(void **state) {
    (void)state;
    /* a gap of 90 us: the launch came 60 us into it; then one of 20 us, launched long before */
    static const char text[] =
        "{\"traceEvents\": [{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\","
        "\"ts\":5,\"dur\":3,\"args\":{\"correlation\":1}},"
        "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"ts\":70,\"dur\":3,"
        "\"args\":{\"correlation\":2}},"
        "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"ts\":74,\"dur\":3,"
        "\"args\":{\"correlation\":3}},"
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"ts\":0,\"dur\":10,\"args\":{"
        "\"correlation\":1}},"
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"ts\":100,\"dur\":10,\"args\":{"
        "\"correlation\":2}},"
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"ts\":130,\"dur\":10,\"args\":{"
        "\"correlation\":3}}]}";
    g_autoptr(GString) notes = g_string_new(NULL);
    OrrImport import = {.path = "own.json", .notes = notes};
    g_autoptr(OrrMeasuredProfile) p = orr_kineto_parse(&import, text, strlen(text), NULL);
    assert_non_null(p);
    assert_near(p->idle_ns, 110e3, 1e-9);
    assert_near(p->host_idle_ns, 60e3, 1e-9);
    g_autoptr(OrrRecord) one = record(100, 20, 30);
    g_autoptr(OrrCompare) c = orr_judge_compare_profile(one, p);
    adds_up(c);
    assert_int_equal(term(c, "host")->other_ns, 60000);
    assert_int_equal(term(c, "idle_though_launched")->other_ns, 50000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_runs_differ_by_their_owners),
        cmocka_unit_test(test_a_log_without_timers_tells_the_whole_and_its_own_spread),
        cmocka_unit_test(test_timers_of_old_megatron_are_terms),
        cmocka_unit_test(test_timers_of_new_megatron_are_terms),
        cmocka_unit_test(test_idle_time_is_the_hosts_where_the_launch_came_late),
        cmocka_unit_test(test_a_profile_is_compared_kind_by_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
