/* Parts of the CUDA device that need no GPU: random data, references of the kernels, NVML present
 * and absent. */
#include "calibrate/fill.h"
#include "calibrate/nvml.h"
#include "calibrate/reference.h"

#include "tests/near.h"

#include <string.h>

static void test_fill_is_spread_evenly_and_exact_in_its_type(void **state) {
    (void)state;
    double sum = 0, square = 0;
    for (uint64_t i = 0; i < 100000; i++) {
        double x = orr_fill_value(3, i, ORR_FILL_STEPS);
        assert_true(x >= -1 && x < 1);
        assert_true(x * ORR_FILL_STEPS == floor(x * ORR_FILL_STEPS));
        sum += x, square += x * x;
    }
    assert_true(fabs(sum / 100000) < 0.01);
    assert_near(square / 100000, 1.0 / 3, 0.01);
    assert_true(orr_fill_value(3, 5, 128) != orr_fill_value(4, 5, 128) ||
                orr_fill_value(3, 6, 128) != orr_fill_value(4, 6, 128));
}

static void test_reference_product_follows_the_layout(void **state) {
    (void)state;
    OrrMatrix a = {1, ORR_FILL_STEPS, 0, 8, 1};      /* 4 x 8 */
    OrrMatrix across = {1, ORR_FILL_STEPS, 0, 1, 8}; /* the same buffer as 8 x 4 */
    double sum = 0;
    for (int l = 0; l < 8; l++)
        sum += orr_fill_value(1, (uint64_t)(2 * 8 + l), 128) *
               orr_fill_value(1, (uint64_t)(3 * 8 + l), 128);
    assert_near(orr_reference_product(&a, &across, 2, 3, 8), sum, 1e-12);
}

static OrrQuery small_query(bool is_causal) {
    return (OrrQuery){.query = {1, ORR_FILL_STEPS, 0, 8, 1},
                      .key = {2, ORR_FILL_STEPS, 0, 8, 1},
                      .value = {3, ORR_FILL_STEPS, 0, 8, 1},
                      .grad = {4, ORR_FILL_STEPS, 0, 8, 1},
                      .n = 16,
                      .head_dim = 8,
                      .i = 5,
                      .is_causal = is_causal,
                      .scale = 0.35};
}

static void test_reference_attention_of_the_first_query_is_the_first_value(void **state) {
    (void)state;
    OrrQuery q = small_query(true);
    q.i = 0;
    double out[8], grad[8];
    orr_reference_attention(&q, out, grad);
    for (uint64_t d = 0; d < 8; d++) {
        assert_near(out[d], orr_fill_value(3, d, ORR_FILL_STEPS), 1e-12);
        assert_true(fabs(grad[d]) < 1e-12); /* one key: its probability can't change */
    }
}

/* With scale 0 all keys count the same. */
static void test_reference_attention_without_scores_is_the_mean(void **state) {
    (void)state;
    OrrQuery q = small_query(true);
    q.scale = 0;
    double out[8], sum = 0;
    orr_reference_attention(&q, out, NULL);
    for (uint64_t j = 0; j <= 5; j++)
        sum += orr_fill_value(3, j * 8 + 2, ORR_FILL_STEPS);
    assert_near(out[2], sum / 6, 1e-12);
}

static OrrCase kernel(OrrMemKernel op, OrrKernelPass pass) {
    return (OrrCase){.kind = ORR_CASE_KERNEL,
                     .op = (int)op,
                     .dtype = ORR_FP32,
                     .pass = pass,
                     .rows = 16,
                     .columns = 64};
}

static void test_reference_softmax_sums_to_one_and_loss_gradient_to_zero(void **state) {
    (void)state;
    double row[64], sum = 0, loss = 0;
    OrrCase c = kernel(ORR_MEM_SOFTMAX, ORR_PASS_FORWARD);
    orr_reference_kernel(&c, 3, row);
    for (int j = 0; j < 64; j++)
        sum += row[j];
    assert_near(sum, 1, 1e-12);
    c = kernel(ORR_MEM_CROSS_ENTROPY, ORR_PASS_FORWARD);
    orr_reference_kernel(&c, 3, row);
    for (int j = 0; j < 64; j++)
        loss += row[j];
    assert_true(fabs(loss) < 1e-12 && row[3] < 0);
}

/* The weight is known, so the norm itself can be had back. */
static void test_reference_norms_have_unit_variance(void **state) {
    (void)state;
    for (int op = ORR_MEM_LAYER_NORM; op <= ORR_MEM_RMS_NORM; op++) {
        OrrCase c = kernel((OrrMemKernel)op, ORR_PASS_FORWARD);
        double row[64], sum = 0, square = 0;
        int n = 0;
        orr_reference_kernel(&c, 2, row);
        for (uint64_t j = 0; j < 64; j++) {
            double weight = orr_fill_value(2, j, ORR_FILL_STEPS);
            if (weight == 0)
                continue;
            sum += row[j] / weight, square += pow(row[j] / weight, 2), n++;
        }
        assert_near(square / n, 1, 0.05);
        if (op == ORR_MEM_LAYER_NORM)
            assert_true(fabs(sum / n) < 0.05);
    }
}

/* What a layer norm's backward gives has no part along the ones. */
static void test_reference_layer_norm_gradient_sums_to_zero(void **state) {
    (void)state;
    OrrCase c = kernel(ORR_MEM_LAYER_NORM, ORR_PASS_DGRAD);
    double row[64], sum = 0;
    orr_reference_kernel(&c, 1, row);
    for (int j = 0; j < 64; j++)
        sum += row[j];
    assert_true(fabs(sum) < 1e-10);
}

static void test_reference_rotary_keeps_lengths(void **state) {
    (void)state;
    OrrCase c = kernel(ORR_MEM_ROTARY, ORR_PASS_FORWARD);
    double row[64];
    orr_reference_kernel(&c, 9, row);
    for (uint64_t j = 0; j < 64; j += 2) {
        double x = orr_fill_value(1, 9 * 64 + j, 128), y = orr_fill_value(1, 9 * 64 + j + 1, 128);
        assert_true(fabs(hypot(row[j], row[j + 1]) - hypot(x, y)) < 1e-12);
    }
}

static void test_reference_permutation_moves_whole_rows(void **state) {
    (void)state;
    OrrCase c = kernel(ORR_MEM_PERMUTE, ORR_PASS_FORWARD);
    bool seen[16] = {false};
    for (int64_t row = 0; row < 16; row++) {
        double out[64];
        orr_reference_kernel(&c, row, out);
        int64_t from = row * ORR_PERMUTE_STRIDE % 16;
        assert_false(seen[from]);
        seen[from] = true;
        assert_near(out[7], orr_fill_value(1, (uint64_t)(from * 64 + 7), 128), 0);
    }
}

static void test_nvml_absent_gives_no_readings(void **state) {
    (void)state;
    assert_null(orr_nvml_open("libno-such-library.so.1", "00000000:01:00.0"));
    OrrReadings r;
    orr_nvml_read(NULL, &r);
    assert_true(isnan(r.sm_clock_mhz) && isnan(r.memory_clock_mhz));
    assert_true(isnan(r.power_watts) && isnan(r.temperature_c));
    assert_string_equal(orr_nvml_driver(NULL), "");
    orr_nvml_close(NULL);
}

static char *fake_library(void) {
    const char *folder = g_getenv("top_builddir");
    return g_build_filename(folder ? folder : ".", ".libs", "fake_nvml.so", NULL);
}

static void test_nvml_present_gives_clocks_and_power(void **state) {
    (void)state;
    g_autofree char *path = fake_library();
    OrrNvml *n = orr_nvml_open(path, "00000000:01:00.0");
    assert_non_null(n);
    OrrReadings r;
    orr_nvml_read(n, &r);
    assert_near(r.sm_clock_mhz, 1980, 0);
    assert_near(r.memory_clock_mhz, 2619, 0);
    assert_near(r.power_watts, 345.6, 1e-12);
    assert_true(isnan(r.temperature_c)); /* this one can't be read */
    assert_string_equal(orr_nvml_driver(n), "580.1");
    orr_nvml_close(n);
    assert_null(orr_nvml_open(path, "00000000:02:00.0"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fill_is_spread_evenly_and_exact_in_its_type),
        cmocka_unit_test(test_reference_product_follows_the_layout),
        cmocka_unit_test(test_reference_attention_of_the_first_query_is_the_first_value),
        cmocka_unit_test(test_reference_attention_without_scores_is_the_mean),
        cmocka_unit_test(test_reference_softmax_sums_to_one_and_loss_gradient_to_zero),
        cmocka_unit_test(test_reference_norms_have_unit_variance),
        cmocka_unit_test(test_reference_layer_norm_gradient_sums_to_zero),
        cmocka_unit_test(test_reference_rotary_keeps_lengths),
        cmocka_unit_test(test_reference_permutation_moves_whole_rows),
        cmocka_unit_test(test_nvml_absent_gives_no_readings),
        cmocka_unit_test(test_nvml_present_gives_clocks_and_power),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
