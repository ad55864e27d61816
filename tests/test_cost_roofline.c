/* Kernel times without surfaces: closed forms and invariants. */
#include "tests/near.h"

#include "sim/cost/cost.h"

#include <string.h>

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
    OrrKernel kernel = {
        .kind = ORR_K_GEMM, .dtype = ORR_BF16, .m = m, .n = n, .k = k, .batch = 1, .launches = 1};
    kernel.flops = 2.0 * (double)m * (double)n * (double)k;
    kernel.bytes_read = 2.0 * ((double)m * (double)k + (double)n * (double)k);
    kernel.bytes_written = 2.0 * (double)m * (double)n;
    return kernel;
}

static void test_cost_streaming_kernel_is_bytes_over_bandwidth_plus_fixed(void **state) {
    (void)state;
    OrrGpu gpu = h100();
    gpu.l2_bytes = 0; /* nothing kept: the closed form */
    g_autoptr(OrrCost) cost = orr_cost_new(&gpu, NULL, true);
    OrrKernel copy = {.kind = ORR_K_COPY,
                      .dtype = ORR_BF16,
                      .bytes_read = 2e9,
                      .bytes_written = 2e9,
                      .launches = 3};
    double expected = 4e9 / (3.35e12 * 0.9) * 1e9 + 3 * 3000.0;
    assert_near((double)orr_cost_kernel_ns(cost, &copy), expected, 1e-6);
}

static void test_cost_l2_helps_small_kernels_and_hardly_large_ones(void **state) {
    (void)state;
    OrrGpu gpu = h100(), bare = h100();
    bare.l2_bytes = 0;
    g_autoptr(OrrCost) with = orr_cost_new(&gpu, NULL, true);
    g_autoptr(OrrCost) without = orr_cost_new(&bare, NULL, true);
    OrrKernel small = {.kind = ORR_K_ACTIVATION, .bytes_read = 20e6, .bytes_written = 20e6};
    OrrKernel large = {.kind = ORR_K_ACTIVATION, .bytes_read = 2e9, .bytes_written = 2e9};
    assert_true(orr_cost_kernel_ns(with, &small) < orr_cost_kernel_ns(without, &small) * 0.8);
    assert_near((double)orr_cost_kernel_ns(with, &large),
                (double)orr_cost_kernel_ns(without, &large), 0.01);
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

/* 132 SMs and 128 x 256 tiles: 132 tiles are one wave, 133 cost more, 264 about twice. */
static void test_cost_gemm_without_surface_is_tiles_in_waves(void **state) {
    (void)state;
    OrrGpu gpu = h100();
    gpu.hbm_bytes_per_s = 1e18; /* compute only */
    gpu.kernel_fixed_ns = 0;
    g_autoptr(OrrCost) cost = orr_cost_new(&gpu, NULL, false);
    OrrKernel one = gemm(128 * 132, 256, 8192), more = gemm(128 * 133, 256, 8192),
              two = gemm(128 * 264, 256, 8192);
    double one_ns = (double)orr_cost_kernel_ns(cost, &one);
    double tile_ns = 2.0 * 128 * 256 * (8192 + 120) / (989.4e12 / 132 * 0.81) * 1e9;
    assert_near(one_ns, tile_ns, 1e-3);
    assert_true((double)orr_cost_kernel_ns(cost, &more) > one_ns * 1.05);
    assert_near((double)orr_cost_kernel_ns(cost, &two), 2.0 * one_ns, 1e-3);
}

static void test_cost_accumulating_result_costs_its_bytes(void **state) {
    (void)state;
    OrrGpu gpu = h100();
    g_autoptr(OrrCost) cost = orr_cost_new(&gpu, NULL, true);
    OrrKernel plain = gemm(8192, 8192, 128), accumulate = plain;
    accumulate.bytes_read += 4.0 * 8192 * 8192; /* FP32 gradient read and written, not 2 bytes */
    accumulate.bytes_written += 2.0 * 8192 * 8192;
    assert_true(orr_cost_kernel_ns(cost, &accumulate) > 2 * orr_cost_kernel_ns(cost, &plain));
    /* where computation binds, the ends of the tiles take four times 120 steps of k, not 120 */
    gpu.hbm_bytes_per_s = 1e18;
    g_autoptr(OrrCost) compute = orr_cost_new(&gpu, NULL, true);
    plain = accumulate = gemm(16384, 16384, 8192);
    accumulate.bytes_read += 4.0 * 16384 * 16384;
    accumulate.bytes_written += 2.0 * 16384 * 16384;
    assert_near((double)orr_cost_kernel_ns(compute, &accumulate),
                (double)orr_cost_kernel_ns(compute, &plain) * (8192 + 480) / (8192 + 120), 1e-3);
}

static void test_cost_launches_multiply_the_fixed_cost(void **state) {
    (void)state;
    OrrGpu gpu = h100();
    g_autoptr(OrrCost) cost = orr_cost_new(&gpu, NULL, true);
    for (int kind = 0; kind < ORR_N_KERNEL_KINDS; kind++) {
        OrrKernel k = gemm(512, 512, 512);
        k.kind = (uint8_t)kind;
        k.heads = k.kv_heads = 4;
        int64_t once = orr_cost_kernel_ns(cost, &k);
        k.launches = 5;
        assert_int_equal(orr_cost_kernel_ns(cost, &k) - once, 4 * 3000);
    }
}

static void test_cost_sustained_clock_slows_compute_and_not_memory(void **state) {
    (void)state;
    OrrGpu gpu = h100();
    g_autoptr(OrrCost) boost = orr_cost_new(&gpu, NULL, false);
    g_autoptr(OrrCost) sustained = orr_cost_new(&gpu, NULL, true);
    OrrKernel big = gemm(16384, 16384, 16384);
    assert_near((double)orr_cost_kernel_ns(sustained, &big),
                (double)orr_cost_kernel_ns(boost, &big) * 1.83 / 1.4, 0.01);
    OrrKernel copy = {.kind = ORR_K_COPY, .bytes_read = 1e9, .bytes_written = 1e9};
    assert_int_equal(orr_cost_kernel_ns(sustained, &copy), orr_cost_kernel_ns(boost, &copy));
}

static void test_cost_attention_backward_takes_its_flops_at_its_rate(void **state) {
    (void)state;
    OrrGpu gpu = h100();
    gpu.kernel_fixed_ns = 0;
    g_autoptr(OrrCost) cost = orr_cost_new(&gpu, NULL, true);
    OrrKernel k = {.kind = ORR_K_ATTENTION,
                   .dtype = ORR_BF16,
                   .is_causal = 1,
                   .heads = 32,
                   .kv_heads = 8,
                   .m = 8192,
                   .n = 8192,
                   .k = 128,
                   .batch = 2};
    double forward = (double)orr_cost_kernel_ns(cost, &k);
    k.pass = ORR_PASS_DGRAD;
    assert_near((double)orr_cost_kernel_ns(cost, &k), forward * 2.5 / 0.86, 1e-6);
    k.is_causal = 0;
    k.pass = ORR_PASS_FORWARD; /* twice the keys, but for the diagonal and the fixed parts */
    assert_near((double)orr_cost_kernel_ns(cost, &k), 2.0 * forward, 0.06);
}

static void test_cost_windowed_attention_takes_its_share_of_the_mask(void **state) {
    (void)state;
    OrrGpu gpu = h100();
    gpu.kernel_fixed_ns = 0;
    g_autoptr(OrrCost) cost = orr_cost_new(&gpu, NULL, true);
    OrrKernel k = {.kind = ORR_K_ATTENTION,
                   .dtype = ORR_BF16,
                   .is_causal = 1,
                   .heads = 32,
                   .kv_heads = 8,
                   .m = 32768,
                   .n = 32768,
                   .k = 128,
                   .batch = 1};
    double whole = (double)orr_cost_kernel_ns(cost, &k);
    k.flops = 0.25 * 2.0 * 32.0 * 32768.0 * 32768.0 * 128.0; /* a quarter of the triangle */
    assert_near((double)orr_cost_kernel_ns(cost, &k), 0.25 * whole, 0.05);
    k.flops *= 2.5;
    k.pass = ORR_PASS_DGRAD;
    assert_near((double)orr_cost_kernel_ns(cost, &k), 0.25 * whole * 2.5 / 0.86, 0.05);
}

static void test_cost_dtype_without_tensor_cores_runs_as_the_next_wider(void **state) {
    (void)state;
    OrrGpu v100 = h100();
    memset(v100.peak_flops_per_s, 0, sizeof v100.peak_flops_per_s);
    v100.peak_flops_per_s[ORR_FP16] = 125e12;
    v100.peak_flops_per_s[ORR_FP32] = 15.7e12;
    g_autoptr(OrrCost) cost = orr_cost_new(&v100, NULL, true);
    OrrKernel half = gemm(4096, 4096, 4096), bf16 = half, single = half;
    half.dtype = ORR_FP16;
    single.dtype = ORR_TF32;
    assert_int_equal(orr_cost_kernel_ns(cost, &bf16), orr_cost_kernel_ns(cost, &half));
    assert_true(orr_cost_kernel_ns(cost, &single) > 6 * orr_cost_kernel_ns(cost, &half));
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
        cmocka_unit_test(test_cost_l2_helps_small_kernels_and_hardly_large_ones),
        cmocka_unit_test(test_cost_gemm_never_beats_the_dense_peak),
        cmocka_unit_test(test_cost_gemm_without_surface_is_tiles_in_waves),
        cmocka_unit_test(test_cost_accumulating_result_costs_its_bytes),
        cmocka_unit_test(test_cost_launches_multiply_the_fixed_cost),
        cmocka_unit_test(test_cost_sustained_clock_slows_compute_and_not_memory),
        cmocka_unit_test(test_cost_attention_backward_takes_its_flops_at_its_rate),
        cmocka_unit_test(test_cost_windowed_attention_takes_its_share_of_the_mask),
        cmocka_unit_test(test_cost_dtype_without_tensor_cores_runs_as_the_next_wider),
        cmocka_unit_test(test_cost_empty_kernels_take_a_positive_finite_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
