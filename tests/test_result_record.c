/* The record's invariants: a sound record passes, and each broken sum is named. */
#include "tests/record_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static void test_record_sound_has_no_flaw(void **state) {
    (void)state;
    g_autoptr(OrrRecord) r = fixture_record();
    g_autofree char *flaw = orr_record_flaw(r);
    assert_null(flaw);
}

static void expect_flaw(OrrRecord *r, const char *word) {
    g_autofree char *flaw = orr_record_flaw(r);
    assert_non_null(flaw);
    if (!strstr(flaw, word))
        fail_msg("'%s' does not name '%s'", flaw, word);
}

static void test_record_accounts_must_add_up(void **state) {
    (void)state;
    g_autoptr(OrrRecord) r = fixture_record();
    r->time_account_ns[ORR_K_GEMM]++;
    expect_flaw(r, "time_account");
    r->time_account_ns[ORR_K_GEMM]--;
    r->critical_path_ns[ORR_PATH_HOST]--;
    expect_flaw(r, "critical_path");
    r->critical_path_ns[ORR_PATH_HOST]++;
    r->stages[2].account_ns[ORR_OWN_BUBBLE]++;
    expect_flaw(r, "time account of stage 2");
    r->stages[2].account_ns[ORR_OWN_BUBBLE]--;
    r->time_account_ns[ORR_OWN_HOST] = -5, r->time_account_ns[ORR_K_GEMM] += 5;
    expect_flaw(r, "host is negative");
}

static void test_record_memory_must_add_up_and_agree_with_verdict(void **state) {
    (void)state;
    g_autoptr(OrrRecord) r = fixture_record();
    r->stages[1].mem_bytes[ORR_MEM_LOGITS]++;
    expect_flaw(r, "memory of stage 1");
    r->stages[1].mem_bytes[ORR_MEM_LOGITS]--;
    r->stages[3].verdict = ORR_TIGHT;
    expect_flaw(r, "tight");
    r->stages[3].verdict = ORR_FITS;
    r->verdict = ORR_DOES_NOT_FIT;
    expect_flaw(r, "does_not_fit");
}

static void test_record_rates_must_agree(void **state) {
    (void)state;
    g_autoptr(OrrRecord) r = fixture_record();
    r->tokens_per_s *= 1.001;
    expect_flaw(r, "tokens_per_s");
    r->tokens_per_s /= 1.001;
    r->tokens_per_step++;
    expect_flaw(r, "GBS x sequence");
    r->tokens_per_step--;
    orr_record_set(&r->flops_formula, "palm");
    expect_flaw(r, "palm");
}

static void test_verdict_is_tight_below_five_percent(void **state) {
    (void)state;
    assert_int_equal(orr_verdict(95, 100), ORR_FITS);
    assert_int_equal(orr_verdict(96, 100), ORR_TIGHT);
    assert_int_equal(orr_verdict(100, 100), ORR_TIGHT);
    assert_int_equal(orr_verdict(101, 100), ORR_DOES_NOT_FIT);
}

static void test_settle_puts_remainder_on_largest_owner(void **state) {
    (void)state;
    int64_t account[4] = {3, 7, 7, 1};
    orr_record_settle(account, 4, 20);
    int64_t expected[4] = {3, 9, 7, 1};
    assert_memory_equal(account, expected, sizeof account);
}

static void test_path_owner_names_are_distinct(void **state) {
    (void)state;
    for (uint32_t i = 0; i < ORR_N_PATH_OWNERS; i++)
        for (uint32_t j = 0; j < i; j++)
            assert_string_not_equal(orr_path_owner_name(i), orr_path_owner_name(j));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_record_sound_has_no_flaw),
        cmocka_unit_test(test_record_accounts_must_add_up),
        cmocka_unit_test(test_record_memory_must_add_up_and_agree_with_verdict),
        cmocka_unit_test(test_record_rates_must_agree),
        cmocka_unit_test(test_verdict_is_tight_below_five_percent),
        cmocka_unit_test(test_settle_puts_remainder_on_largest_owner),
        cmocka_unit_test(test_path_owner_names_are_distinct),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
