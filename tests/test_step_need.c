/* What is said before a step that takes much memory. */
#include "tests/near.h"

#include "sim/api/step_priv.h"
#include "sim/io/machine.h"

#include <glib.h>
#include <string.h>

#define GIB (UINT64_C(1) << 30)

static void check(uint64_t n_ranks, bool is_drawn, uint64_t available, const char *begin,
                  const char *part) {
    g_autofree char *text = orr_step__need_text(n_ranks, is_drawn, available);
    assert_non_null(text);
    assert_true(g_str_has_prefix(text, begin));
    assert_non_null(strstr(text, part));
    assert_null(strchr(text, '\n'));
}

static void test_little_memory_is_not_worth_a_word(void **state) {
    (void)state;
    assert_null(orr_step__need_text(16384, false, GIB / 1024));
    assert_null(orr_step__need_text(16384, true, 64 * GIB));
}

static void test_much_memory_is_told_and_too_much_is_warned_of(void **state) {
    (void)state;
    check(131072, false, 64 * GIB, "note: 131072 ranks", "1.1");
    check(131072, false, 0, "note: ", "about 1.1");
    check(1u << 20, false, 4 * GIB, "warning: 1048576 ranks", "but 4 GiB are available");
    check(1u << 20, true, 16 * GIB, "warning: ", "about 20 GiB");
}

static void test_available_memory_is_read_as_the_kernel_writes_it(void **state) {
    (void)state;
    assert_true(orr_machine_parse_available(
                    "MemTotal:  9 kB\nMemAvailable:    2048 kB\nX: 1 kB\n") == 2048 * 1024);
    assert_true(orr_machine_parse_available("MemTotal: 9 kB\n") == 0);
    assert_true(orr_machine_parse_available("MemAvailable: 7 MB\n") == 0);
    assert_true(orr_machine_parse_available("") == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_little_memory_is_not_worth_a_word),
        cmocka_unit_test(test_much_memory_is_told_and_too_much_is_warned_of),
        cmocka_unit_test(test_available_memory_is_read_as_the_kernel_writes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
