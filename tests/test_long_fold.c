/* As test_exec_fold, over many more jobs: FOLD_FIRST and FOLD_COUNT choose which. */
#include "tests/near.h"

#include "tests/fold_random.h"

#include <glib.h>

static uint64_t from_env(const char *name, uint64_t otherwise) {
    const char *text = g_getenv(name);
    return text ? g_ascii_strtoull(text, NULL, 10) : otherwise;
}

static void test_fold_changes_nothing_in_many_random_jobs(void **state) {
    (void)state;
    fold_compare_random(from_env("FOLD_FIRST", 1000), (uint32_t)from_env("FOLD_COUNT", 1200),
                        FOLD_PLAIN);
}

static void test_fold_changes_nothing_in_many_random_perturbed_jobs(void **state) {
    (void)state;
    fold_compare_random(from_env("FOLD_FIRST", 10000), (uint32_t)from_env("FOLD_COUNT", 2600),
                        FOLD_PERTURBED);
}

static void test_fold_changes_nothing_in_many_random_wide_jobs(void **state) {
    (void)state;
    fold_compare_random(from_env("FOLD_FIRST", 50000), (uint32_t)from_env("FOLD_COUNT", 1000),
                        FOLD_WIDE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fold_changes_nothing_in_many_random_jobs),
        cmocka_unit_test(test_fold_changes_nothing_in_many_random_perturbed_jobs),
        cmocka_unit_test(test_fold_changes_nothing_in_many_random_wide_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
