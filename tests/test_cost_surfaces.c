/* Kernel times from the shipped surfaces: against the measured rows where they are at hand (skipped
 * otherwise), and against what must hold of any kernel time. */
#include "tests/near.h"

#include "calibrate/tables.h"
#include "sim/cost/cost.h"
#include "topologies/loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *gpu, *table;
} Part;
static const Part parts[] = {{"a100-sxm-80", "a100_sxm80"},
                             {"h100-sxm-80", "h100_sxm"},
                             {"h200-sxm", "h200_sxm"},
                             {"b200-sxm", "b200_sxm"},
                             {"b300-sxm", "b300_sxm"},
                             {"gb200", "gb200"},
                             {"gb300", "gb300"}};

typedef struct {
    OrrGpu *gpu;
    OrrSurfaceSet *set;
    OrrCost *cost;
} Bench;

static Bench bench_new(const char *gpu, const char *table, bool is_sustained) {
    Bench b = {0};
    g_autoptr(GError) error = NULL;
    b.gpu = orr_topology_gpu(gpu, NULL, &error);
    if (!b.gpu)
        fail_msg("%s", error->message);
    b.set = orr_tables_named(table, &error);
    if (!b.set)
        fail_msg("%s", error->message);
    b.cost = orr_cost_new(b.gpu, b.set, is_sustained);
    return b;
}

static void bench_clear(Bench *b) {
    orr_cost_free(b->cost);
    orr_surface_set_free(b->set);
    orr_gpu_free(b->gpu);
}

static OrrKernel gemm(OrrDtype dtype, int64_t m, int64_t n, int64_t k) {
    return (OrrKernel){.kind = ORR_K_GEMM,
                       .dtype = (uint8_t)dtype,
                       .m = m,
                       .n = n,
                       .k = k,
                       .batch = 1,
                       .launches = 1};
}

static double gemm_ns(const Bench *b, OrrDtype dtype, int64_t m, int64_t n, int64_t k) {
    OrrKernel kernel = gemm(dtype, m, n, k);
    return (double)orr_cost_kernel_ns(b->cost, &kernel);
}

static void test_surfaces_were_fitted_with_the_numbers_of_the_gpu_files(void **state) {
    (void)state;
    for (size_t i = 0; i < G_N_ELEMENTS(parts); i++) {
        Bench b = bench_new(parts[i].gpu, parts[i].table, true);
        assert_string_equal(b.set->gpu, b.gpu->name);
        assert_string_equal(b.set->name, b.gpu->surfaces);
        for (uint32_t s = 0; s < b.set->n_surfaces; s++) {
            const OrrSurface *surface = &b.set->surfaces[s];
            assert_near(surface->params[0], b.gpu->peak_flops_per_s[surface->dtype], 1e-4);
            assert_near(surface->params[1], b.gpu->n_sms, 1e-9);
            assert_near(surface->params[2], b.gpu->hbm_bytes_per_s, 1e-4);
        }
        bench_clear(&b);
    }
}

static void test_surfaces_never_beat_the_peak_and_come_near_it(void **state) {
    (void)state;
    static const OrrDtype dtypes[] = {ORR_BF16, ORR_FP16, ORR_FP8, ORR_FP4};
    for (size_t i = 0; i < G_N_ELEMENTS(parts); i++) {
        Bench b = bench_new(parts[i].gpu, parts[i].table, false);
        for (size_t d = 0; d < G_N_ELEMENTS(dtypes); d++) {
            double peak = b.gpu->peak_flops_per_s[dtypes[d]];
            for (int64_t side = 128; peak > 0 && side <= 262144; side *= 2)
                for (int64_t k = 128; k <= 262144; k *= 4) {
                    double share = 2.0 * (double)(side * side) * (double)k /
                                   gemm_ns(&b, dtypes[d], side, side, k) * 1e9 / peak;
                    assert_true(share < 1.0);
                    if (side >= 8192 && side <= 65536 && k >= 8192)
                        assert_true(share > (dtypes[d] == ORR_FP4 ? 0.2 : 0.4));
                }
        }
        bench_clear(&b);
    }
}

/* Twice the work never takes less time, but for the noise that the surfaces keep. */
static void test_surfaces_more_work_takes_longer(void **state) {
    (void)state;
    for (size_t i = 0; i < G_N_ELEMENTS(parts); i++) {
        Bench b = bench_new(parts[i].gpu, parts[i].table, true);
        for (int64_t m = 256; m <= 65536; m *= 2)
            for (int64_t n = 256; n <= 65536; n *= 2)
                for (int64_t k = 256; k <= 65536; k *= 2) {
                    double ns = gemm_ns(&b, ORR_BF16, m, n, k);
                    assert_true(gemm_ns(&b, ORR_BF16, 2 * m, n, k) > 0.97 * ns);
                    assert_true(gemm_ns(&b, ORR_BF16, m, 2 * n, k) > 0.97 * ns);
                    assert_true(gemm_ns(&b, ORR_BF16, m, n, 2 * k) > 0.97 * ns);
                }
        bench_clear(&b);
    }
}

static void test_surfaces_beyond_the_grid_time_grows_with_the_work(void **state) {
    (void)state;
    Bench b = bench_new("h100-sxm-80", "h100_sxm", true);
    double ns = gemm_ns(&b, ORR_BF16, 65536, 65536, 65536);
    assert_near(gemm_ns(&b, ORR_BF16, 131072, 65536, 65536), 2 * ns, 0.02);
    assert_near(gemm_ns(&b, ORR_BF16, 65536, 65536, 131072), 2 * ns, 0.02);
    bench_clear(&b);
}

/* Long runs of 8192 cubed: 716 to 730 TFLOP/s on H100, 257 on A100, 1,112 and 1,240 of large
 * products on B200 (doc/models/kernels.md). */
static void test_surfaces_sustained_rates_are_those_of_long_matrix_runs(void **state) {
    (void)state;
    Bench h100 = bench_new("h100-sxm-80", "h100_sxm", true);
    Bench a100 = bench_new("a100-sxm-80", "a100_sxm80", true);
    double flops = 2.0 * 8192.0 * 8192.0 * 8192.0;
    assert_near(flops / gemm_ns(&h100, ORR_BF16, 8192, 8192, 8192) / 1e3, 722, 0.03);
    assert_near(flops / gemm_ns(&a100, ORR_BF16, 8192, 8192, 8192) / 1e3, 257, 0.03);
    Bench b200 = bench_new("b200-sxm", "b200_sxm", true);
    assert_near(flops / gemm_ns(&b200, ORR_BF16, 8192, 8192, 8192) / 1e3, 1176, 0.06);
    bench_clear(&h100);
    bench_clear(&a100);
    bench_clear(&b200);
}

/* The tables' own long rows are at the power limit already: from kernels of 3 ms, which end before
 * it acts, to those of 50 ms the correction goes over into none, and its sum with them hardly
 * changes. */
static void test_surfaces_sustained_rate_is_one_from_short_to_long_kernels(void **state) {
    (void)state;
    Bench b = bench_new("h200-sxm", "h200_sxm", true);
    for (int64_t n = 8192; n <= 65536; n *= 2) { /* 3 to 25 ms */
        double flops = 2.0 * 8192.0 * 16384.0 * (double)n;
        assert_near(flops / gemm_ns(&b, ORR_BF16, 8192, n, 16384) / 1e3, 668, 0.02);
    }
    bench_clear(&b);
}

/* Weight gradients added into FP32 over the product of the same shape with a 16-bit result, shapes
 * of Llama 70B and 405B on B200: 0.86 of its rate (SimuMax v1.2). */
static void test_surfaces_gradients_added_into_fp32_cost_what_was_measured(void **state) {
    (void)state;
    static const int64_t sides[][2] = {{57344, 8192}, {8192, 28672}, {106496, 16384}};
    Bench b = bench_new("b200-sxm", "b200_sxm", true);
    for (size_t s = 0; s < G_N_ELEMENTS(sides); s++) {
        OrrKernel bare = gemm(ORR_BF16, sides[s][0], sides[s][1], 4096), added = bare;
        double operands = 2.0 * 4096 * (double)(sides[s][0] + sides[s][1]);
        double result = 4.0 * (double)sides[s][0] * (double)sides[s][1];
        added.bytes_read = operands + result;
        added.bytes_written = result;
        assert_near((double)orr_cost_kernel_ns(b.cost, &bare) /
                        (double)orr_cost_kernel_ns(b.cost, &added),
                    0.86, 0.035);
    }
    bench_clear(&b);
}

static void test_surfaces_origin_names_the_table_and_the_scaling(void **state) {
    (void)state;
    Bench own = bench_new("h100-sxm-80", "h100_sxm", true);
    Bench other = bench_new("h800-sxm-80", "h100_sxm", true);
    OrrKernel k = gemm(ORR_BF16, 4096, 4096, 4096), single = k, norm = {.kind = ORR_K_NORM};
    single.dtype = ORR_TF32;
    assert_string_equal(orr_cost_origin(own.cost, &k), "surface gemm bf16 h100_sxm");
    assert_string_equal(orr_cost_origin(other.cost, &k),
                        "surface gemm bf16 h100_sxm, scaled to h800-sxm-80");
    assert_string_equal(orr_cost_origin(own.cost, &single), "roofline");
    assert_string_equal(orr_cost_origin(own.cost, &norm), "bytes over HBM bandwidth");
    assert_int_equal(orr_cost_kernel_ns(own.cost, &k), orr_cost_kernel_ns(other.cost, &k));
    bench_clear(&own);
    bench_clear(&other);
}

/* Measured rows, every SAMPLE-th. */
#define SAMPLE 11

typedef struct {
    double *miss;
    uint32_t n;
} Misses;

static FILE *open_shared(const char *kind, const char *table) {
    const char *shared = getenv("ORRERY_SHARED");
    g_autofree char *path = g_strdup_printf("%s/kernels/%s_%s.csv",
                                            shared ? shared : ORR_SRCDIR "/../shared", kind, table);
    return fopen(path, "r");
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void expect_misses(const char *what, Misses *m, double median, double p90) {
    if (m->n < 20)
        return;
    qsort(m->miss, m->n, sizeof *m->miss, compare_doubles);
    double half = m->miss[m->n / 2], high = m->miss[m->n * 9 / 10];
    if (half > median || high > p90)
        fail_msg("%s: median %.3f, 90th percentile %.3f over %u rows; at most %.3f and %.3f", what,
                 half, high, m->n, median, p90);
}

static bool parse_dtype(const char *name, OrrDtype *dtype, bool *is_block) {
    *is_block = !strcmp(name, "fp8_block");
    *dtype = !strcmp(name, "bf16") ? ORR_BF16 : !strcmp(name, "nvfp4") ? ORR_FP4 : ORR_FP8;
    return true;
}

static void test_surfaces_gemm_within_4_and_12_percent_of_the_tables(void **state) {
    (void)state;
    Misses all = {g_new(double, 400000), 0};
    for (size_t i = 0; i < G_N_ELEMENTS(parts); i++) {
        FILE *in = open_shared("gemm", parts[i].table);
        if (!in) {
            g_free(all.miss);
            skip();
        }
        Bench b = bench_new(parts[i].gpu, parts[i].table, false);
        char line[128], name[16];
        for (uint32_t row = 0; fgets(line, sizeof line, in); row++) {
            int m, n, k;
            double us;
            OrrDtype dtype;
            bool is_block;
            if (row % SAMPLE || sscanf(line, "%15[^,],%d,%d,%d,%lf", name, &m, &n, &k, &us) != 5 ||
                m < 512 || n < 512 || k < 512 || !parse_dtype(name, &dtype, &is_block) ||
                (is_block && m % 4))
                continue;
            double ns = orr_cost_linear_ns(b.cost, dtype, is_block, false, m, n, k);
            all.miss[all.n++] = fabs(ns / us / 1e3 - 1.0);
        }
        fclose(in);
        bench_clear(&b);
    }
    expect_misses("gemm", &all, 0.04, 0.12);
    g_free(all.miss);
}

static void test_surfaces_attention_within_5_and_15_percent_of_the_tables(void **state) {
    (void)state;
    Misses all = {g_new(double, 400000), 0};
    for (size_t i = 0; i < G_N_ELEMENTS(parts); i++) {
        FILE *in = open_shared("attention_forward", parts[i].table);
        if (!in) {
            g_free(all.miss);
            skip();
        }
        Bench b = bench_new(parts[i].gpu, parts[i].table, false);
        char line[128], mask[16], name[16];
        for (uint32_t row = 0; fgets(line, sizeof line, in); row++) {
            int batch, seq, heads, kv_heads, dim;
            double us;
            if (row % SAMPLE || sscanf(line, "%15[^,],%15[^,],%d,%d,%d,%d,%d,%lf", mask, name,
                                       &batch, &seq, &heads, &kv_heads, &dim, &us) != 8)
                continue;
            bool is_causal = !strcmp(mask, "causal");
            if (4.0 * batch * heads * dim * seq * seq / (is_causal ? 2 : 1) < 2e10)
                continue;
            double ns = orr_cost_attention_op_ns(b.cost, strcmp(name, "fp8") ? ORR_BF16 : ORR_FP8,
                                                 is_causal, batch, seq, (uint32_t)heads,
                                                 (uint32_t)kv_heads, dim);
            all.miss[all.n++] = fabs(ns / us / 1e3 - 1.0);
        }
        fclose(in);
        bench_clear(&b);
    }
    expect_misses("attention", &all, 0.05, 0.15);
    g_free(all.miss);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_surfaces_were_fitted_with_the_numbers_of_the_gpu_files),
        cmocka_unit_test(test_surfaces_never_beat_the_peak_and_come_near_it),
        cmocka_unit_test(test_surfaces_more_work_takes_longer),
        cmocka_unit_test(test_surfaces_beyond_the_grid_time_grows_with_the_work),
        cmocka_unit_test(test_surfaces_sustained_rates_are_those_of_long_matrix_runs),
        cmocka_unit_test(test_surfaces_sustained_rate_is_one_from_short_to_long_kernels),
        cmocka_unit_test(test_surfaces_gradients_added_into_fp32_cost_what_was_measured),
        cmocka_unit_test(test_surfaces_origin_names_the_table_and_the_scaling),
        cmocka_unit_test(test_surfaces_gemm_within_4_and_12_percent_of_the_tables),
        cmocka_unit_test(test_surfaces_attention_within_5_and_15_percent_of_the_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
