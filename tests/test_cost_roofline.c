/* Kernel times without surfaces: closed forms and invariants. */
#include "tests/near.h"

#include "sim/cost/cost.h"

static OrrGpu h100(void) {
    OrrGpu gpu = {.name = (char *)"h100-sxm-80",
                  .arch = ORR_ARCH_HOPPER,
                  .n_sms = 132,
                  .boost_hz = 1.83e9,
                  .sustained_hz = 1.4e9,
                  .vector_flops_per_s = 66.9e12,
                  .hbm_bytes_per_s = 3.35e12,
                  .l2_bytes = 50e6,
                  .kernel_fixed_ns = 3000,
                  .mem_eff_frac = 0.9};
    gpu.peak_flops_per_s[ORR_BF16] = gpu.peak_flops_per_s[ORR_FP16] = 989.4e12;
    gpu.peak_flops_per_s[ORR_FP8] = 1978.9e12;
    return gpu;
}

static OrrKernel gemm(int64_t m, int64_t n, int64_t k) {
    OrrKernel kernel = {.kind = ORR_K_GEMM, .dtype = ORR_BF16, .m = m, .n = n, .k = k, .batch = 1,
                        .launches = 1};
    kernel.flops = 2.0 * (double)m * (double)n * (double)k;
    kernel.bytes_read = 2.0 * ((double)m * (double)k + (double)n * (double)k);
    kernel.bytes_written = 2.0 * (double)m * (double)n;
    return kernel;
}

static void test_cost_streaming_kernel_is_bytes_over_bandwidth_plus_fixed(void **state) {
    (void)state;
    OrrGpu gpu = h100();
    g_autoptr(OrrCost) cost = orr_cost_new(&gpu, NULL, true);
    OrrKernel copy = {.kind = ORR_K_COPY, .dtype = ORR_BF16, .bytes_read = 2e9, .bytes_written = 2e9,
                      .launches = 3};
    double expected = 4e9 / (3.35e12 * 0.9) * 1e9 + 3 * 3000.0;
    assert_near((double)orr_cost_kernel_ns(cost, &copy), expected, 1e-3);
}

static void test_cost_gemm_never_beats_the_dense_peak(void **state) {
    (void)state;
    OrrGpu gpu = h100();
    g_autoptr(OrrCost) cost = orr_cost_new(&gpu, NULL, false);
    for (int64_t m = 64; m <= 65536; m *= 2)
        for (int64_t n = 64; n <= 65536; n *= 4)
            for (int64_t k = 64; k <= 65536; k *= 4) {
                OrrKernel g = gemm(m, n, k);
                assert_true((double)orr_cost_kernel_ns(cost, &g) > g.flops / 989.4e12 * 1e9);
            }
}

static void test_cost_empty_kernels_take_a_positive_finite_time(void **state) {
    (void)state;
    OrrGpu gpu = h100();
    g_autoptr(OrrCost) cost = orr_cost_new(&gpu, NULL, true);
    for (int kind = 0; kind < ORR_N_KERNEL_KINDS; kind++) {
        OrrKernel k = {.kind = (uint8_t)kind, .dtype = ORR_BF16};
        int64_t ns = orr_cost_kernel_ns(cost, &k);
        assert_true(ns >= 1 && ns < 1000000);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cost_streaming_kernel_is_bytes_over_bandwidth_plus_fixed),
        cmocka_unit_test(test_cost_gemm_never_beats_the_dense_peak),
        cmocka_unit_test(test_cost_empty_kernels_take_a_positive_finite_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
