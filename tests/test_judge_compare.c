/* Terms of a comparison add up to the difference. */
#include "tests/near.h"

#include <string.h>

#include "sim/judge/compare.h"

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

static void test_a_log_leaves_one_term_that_it_does_not_tell(void **state) {
    (void)state;
    g_autoptr(OrrRecord) one = record(100, 20, 30);
    OrrMeasuredRun log = {.step_time_ns = 180.2, .step_p10_ns = 170, .step_p90_ns = 190, .tp = 4};
    g_autoptr(OrrCompare) c = orr_judge_compare_log(one, &log);
    adds_up(c);
    assert_string_equal(c->terms[0].name, "not_told_by_the_log");
    assert_int_equal(c->terms[0].other_ns, 31);
    assert_string_equal(c->notes->pdata[0], "tp: 8, then 4");
}

static void test_a_profile_is_compared_kind_by_kind(void **state) {
    (void)state;
    g_autoptr(OrrRecord) one = record(100, 20, 30);
    OrrMeasuredProfile p = {.n_steps = 2, .window_ns = 400, .exposed_ns = 80, .idle_ns = 60};
    p.kind_ns[ORR_K_GEMM] = 240;
    g_autoptr(OrrCompare) c = orr_judge_compare_profile(one, &p);
    adds_up(c);
    assert_int_equal(c->other_ns, 200);
    for (uint32_t i = 0; i < c->n_terms; i++)
        if (strcmp(c->terms[i].name, "gemm") == 0)
            assert_int_equal(c->terms[i].other_ns, 120);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_runs_differ_by_their_owners),
        cmocka_unit_test(test_a_log_leaves_one_term_that_it_does_not_tell),
        cmocka_unit_test(test_a_profile_is_compared_kind_by_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
