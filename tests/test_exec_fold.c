/* Folded and unfolded results are identical (DESIGN, section 5): a fixed set of random jobs. */
#include "tests/near.h"

#include "tests/fold_random.h"

static void test_fold_changes_nothing_but_what_is_executed(void **state) {
    (void)state;
    fold_compare_random(1, 300);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fold_changes_nothing_but_what_is_executed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
