/* Execution against closed forms and the independent longest-path evaluator. */
#include "tests/near.h"

#include "sim/exec/exec.h"
#include "sim/exec/fold.h"
#include "sim/program/check.h"
#include "sim/schedule/schedules.h"
#include "tests/exec_helpers.h"
#include "tests/longest_path.h"

#include <glib.h>
#include <string.h>

static OrrExecResult *run(const OrrOrder *o, const ExecTimes *times, bool fold) {
    GError *error = NULL;
    OrrProgram *p = exec_program(o, times);
    char *flaw = orr_program_flaw(p);
    assert_null(flaw);
    assert_true(orr_program_check(p, &error));
    OrrBound *b = exec_bound(p, times), *f = fold ? orr_fold(b) : NULL;
    assert_null(orr_bound_flaw(f ? f : b));
    OrrExecOptions options = {.self_check = true, .has_path = true};
    OrrExecResult *x = orr_exec_run(f ? f : b, &options, &error);
    if (!x)
        fail_msg("%s", error->message);
    int64_t sum = 0, path = 0;
    for (int k = 0; k < ORR_N_OWNERS; k++)
        sum += x->account_ns[k];
    for (int k = 0; k < ORR_N_PATH_OWNERS; k++)
        path += x->path_ns[k];
    assert_int_equal(sum, x->step_time_ns);
    assert_int_equal(path, x->step_time_ns);
    orr_bound_free(f);
    orr_bound_free(b);
    orr_program_free(p);
    return x;
}

/* Bubble over work of a step that ends in a barrier, ideal messages of 1 ns aside. */
static double bubble(const OrrExecResult *x) {
    return (double)x->account_ns[ORR_OWN_BUBBLE] / (double)x->account_ns[ORR_K_GEMM];
}

static void check_closed_form(const char *name, uint32_t v_max) {
    const OrrSchedule *schedule = orr_schedule_find(name, NULL);
    ExecTimes times = {
        .pass_ns = {1000000, 2000000, 1000000, 1000000}, .send_ns = 1, .has_barrier = true};
    for (uint32_t p = v_max > 1 ? 2 : 1; p <= 8; p++)
        for (uint32_t m = 1; m <= 16; m++)
            for (uint32_t v = v_max > 1 ? 2 : 1; v <= v_max; v++) {
                OrrPipeShape shape = {p, v, m};
                if (v > 1 && m % p != 0)
                    continue;
                OrrOrder *o = schedule->order(&shape, NULL);
                assert_non_null(o);
                OrrExecResult *x = run(o, &times, false);
                double expected = schedule->bubble(&shape);
                if (fabs(bubble(x) - expected) > 1e-4 * (1 + expected))
                    fail_msg("%s P%u M%u V%u: bubble %.6f, expected %.6f", name, p, m, v, bubble(x),
                             expected);
                assert_true(x->is_periodic);
                orr_exec_result_free(x);
                orr_order_free(o);
            }
}

static void test_exec_bubbles_equal_closed_forms(void **state) {
    (void)state;
    check_closed_form("naive", 1);
    check_closed_form("gpipe", 1);
    check_closed_form("1f1b", 1);
    check_closed_form("interleaved", 4);
}

static void test_exec_s03_bubbles_of_eight_stages(void **state) {
    (void)state;
    static const struct {
        const char *schedule;
        uint32_t m, v;
        double of_step;
    } rows[] = {{"1f1b", 8, 1, 0.467},
                {"1f1b", 32, 1, 0.179},
                {"1f1b", 128, 1, 0.052},
                {"interleaved", 8, 2, 0.304},
                {"interleaved", 8, 4, 0.179}};
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        OrrPipeShape shape = {8, rows[i].v, rows[i].m};
        ExecTimes times = {.pass_ns = {1000000, 2000000, 0, 0}, .send_ns = 1, .has_barrier = true};
        OrrOrder *o = orr_schedule_find(rows[i].schedule, NULL)->order(&shape, NULL);
        OrrExecResult *x = run(o, &times, true);
        double of_step = (double)x->account_ns[ORR_OWN_BUBBLE] / (double)x->step_time_ns;
        assert_true(fabs(of_step - rows[i].of_step) < 0.0006);
        orr_exec_result_free(x);
        orr_order_free(o);
    }
}

/* First step of uneven shapes with slow messages: the other evaluator knows nothing of streams. */
static void test_exec_equals_longest_path(void **state) {
    (void)state;
    static const char *const names[] = {"gpipe", "1f1b", "interleaved", "interleaved_padded"};
    for (size_t n = 0; n < G_N_ELEMENTS(names); n++)
        for (uint32_t p = 2; p <= 5; p++)
            for (uint32_t m = 1; m <= 11; m++) {
                const OrrSchedule *schedule = orr_schedule_find(names[n], NULL);
                OrrPipeShape shape = {p, schedule->needs_chunks ? 2 : 1, m};
                ExecTimes times = {
                    .pass_ns = {7001, 13007, 0, 0}, .send_ns = 403, .has_barrier = true};
                g_autoptr(GError) error = NULL;
                OrrOrder *o = schedule->order(&shape, &error);
                if (!o)
                    continue;
                OrrExecResult *x = run(o, &times, false);
                int64_t f[16], b[16];
                for (uint32_t i = 0; i < 16; i++) {
                    f[i] = times.pass_ns[ORR_F];
                    b[i] = times.pass_ns[ORR_B];
                }
                LongestPathTimes lp = {{f, b, f, b}, times.send_ns};
                int64_t expected = longest_path_ns(o, &lp);
                /* the barrier and its kernels add 3 ns */
                assert_int_equal(x->first_step_ns, expected + 3);
                orr_exec_result_free(x);
                orr_order_free(o);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exec_bubbles_equal_closed_forms),
        cmocka_unit_test(test_exec_s03_bubbles_of_eight_stages),
        cmocka_unit_test(test_exec_equals_longest_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
