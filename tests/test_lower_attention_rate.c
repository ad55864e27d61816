/* Attention libraries against published measurements (arXiv 2307.08691, section 4.1;
 * flash-attention pull requests 2688 and 1791, issue 1589: TFLOP/s at 8,192 tokens). */
#include "tests/near.h"

#include "sim/lower/lower_priv.h"

static double flash2(OrrArch arch, OrrKernelPass pass, double head_dim) {
    return orr_lower__attention_rate(ORR_ATTENTION_FLASH2, arch, pass, head_dim);
}

static void test_flash2_is_native_on_ampere_and_slow_on_later_gpus(void **state) {
    (void)state;
    assert_near(flash2(ORR_ARCH_AMPERE, ORR_PASS_DGRAD, 128), 1.0, 1e-12);
    assert_near(
        orr_lower__attention_rate(ORR_ATTENTION_NATIVE, ORR_ARCH_HOPPER, ORR_PASS_FORWARD, 128),
        1.0, 1e-12);
    /* the tables' medians, forward 398, 487, 642, backward 0.86 of them */
    assert_near(flash2(ORR_ARCH_HOPPER, ORR_PASS_FORWARD, 128) * 487, 284, 0.01);
    assert_near(flash2(ORR_ARCH_HOPPER, ORR_PASS_DGRAD, 128) * 487 * 0.86, 287, 0.01);
    assert_near(flash2(ORR_ARCH_HOPPER, ORR_PASS_DGRAD, 64) * 398 * 0.86, 299 * 0.99, 0.01);
    assert_near(flash2(ORR_ARCH_BLACKWELL, ORR_PASS_DGRAD, 64) * 642 * 0.86, 329 * 0.99, 0.01);
}

static void test_head_sizes_between_measured_ones_lie_between(void **state) {
    (void)state;
    double small = flash2(ORR_ARCH_HOPPER, ORR_PASS_FORWARD, 64);
    double large = flash2(ORR_ARCH_HOPPER, ORR_PASS_FORWARD, 128);
    double middle = flash2(ORR_ARCH_HOPPER, ORR_PASS_FORWARD, 96);
    assert_true(large < middle && middle < small);
    assert_near(flash2(ORR_ARCH_HOPPER, ORR_PASS_FORWARD, 32), small, 1e-12);
    assert_near(flash2(ORR_ARCH_HOPPER, ORR_PASS_FORWARD, 256), large, 1e-12);
}

static void test_older_libraries_are_slower_by_the_published_ratios(void **state) {
    (void)state;
    for (int arch = 0; arch < ORR_N_ARCHS; arch++) {
        double of_two = flash2(arch, ORR_PASS_DGRAD, 128);
        double triton = orr_lower__attention_rate(ORR_ATTENTION_TRITON, arch, ORR_PASS_DGRAD, 128);
        double of_one = orr_lower__attention_rate(ORR_ATTENTION_FLASH1, arch, ORR_PASS_DGRAD, 128);
        assert_near(triton * 2, of_two, 1e-12);
        assert_near(of_one * 2, of_two, 1e-12);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flash2_is_native_on_ampere_and_slow_on_later_gpus),
        cmocka_unit_test(test_head_sizes_between_measured_ones_lie_between),
        cmocka_unit_test(test_older_libraries_are_slower_by_the_published_ratios),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
