/* Attention libraries against the published ratios (arXiv 2307.08691, section 4.1; PyTorch blog on
 * FlashAttention-3). */
#include "tests/near.h"

#include "sim/lower/lower_priv.h"

static void test_flash2_is_native_on_ampere_and_slow_on_later_gpus(void **state) {
    (void)state;
    assert_near(orr_lower__attention_rate(ORR_ATTENTION_FLASH2, ORR_ARCH_AMPERE, ORR_PASS_DGRAD),
                1.0, 1e-12);
    double hopper =
        orr_lower__attention_rate(ORR_ATTENTION_FLASH2, ORR_ARCH_HOPPER, ORR_PASS_FORWARD);
    assert_near(hopper * 564, 0.35 * 989, 0.01); /* TFLOP/s */
    assert_near(orr_lower__attention_rate(ORR_ATTENTION_NATIVE, ORR_ARCH_HOPPER, ORR_PASS_FORWARD),
                1.0, 1e-12);
    double later =
        orr_lower__attention_rate(ORR_ATTENTION_FLASH2, ORR_ARCH_BLACKWELL, ORR_PASS_FORWARD);
    assert_near(later * 1209, hopper * 564, 0.03);
}

static void test_older_libraries_are_slower_by_the_published_ratios(void **state) {
    (void)state;
    for (int arch = 0; arch < ORR_N_ARCHS; arch++) {
        double flash2 = orr_lower__attention_rate(ORR_ATTENTION_FLASH2, arch, ORR_PASS_DGRAD);
        assert_near(orr_lower__attention_rate(ORR_ATTENTION_TRITON, arch, ORR_PASS_DGRAD) * 2,
                    flash2, 1e-12);
        assert_near(orr_lower__attention_rate(ORR_ATTENTION_FLASH1, arch, ORR_PASS_DGRAD) * 2,
                    flash2, 1e-12);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flash2_is_native_on_ampere_and_slow_on_later_gpus),
        cmocka_unit_test(test_older_libraries_are_slower_by_the_published_ratios),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
