/* Grids of kernels by log shape. Sides of products in powers of two from 128, sizes of copies in
 * powers of two or sixteen; other shapes lie between. */
#include "calibrate/grid.h"

#include "calibrate/grid_priv.h"
#include "sim/base/random.h"

void orr_grid__add(GArray *cases, OrrCase c) {
    g_autofree char *flaw = orr_case_flaw(&c);
    if (!flaw)
        g_array_append_val(cases, c);
}

/* Above this a product lasts a tenth of a second and more at 60 TFLOP/s, FP32 of an H100. */
#define LARGEST_PRODUCT_FLOPS 8e12

static void add_product(GArray *cases, OrrCase c) {
    if (orr_case_flops(&c) <= LARGEST_PRODUCT_FLOPS)
        orr_grid__add(cases, c);
}

/* All triples of sides, or only cubes and slabs of them where @is_coarse. */
static void add_gemms(GArray *cases, OrrDtype dtype, OrrKernelPass pass, int step, bool is_coarse) {
    for (int m = 7; m <= 14; m += step)
        for (int n = 7; n <= 14; n += step)
            for (int k = 7; k <= 14; k += step)
                if (!is_coarse || m == n || n == k)
                    add_product(cases, (OrrCase){.kind = ORR_CASE_GEMM,
                                                 .dtype = dtype,
                                                 .pass = pass,
                                                 .m = (int64_t)1 << m,
                                                 .n = (int64_t)1 << n,
                                                 .k = (int64_t)1 << k});
}

static void gemms(bool is_full, GArray *cases) {
    static const OrrDtype others[] = {ORR_FP16, ORR_FP8, ORR_TF32, ORR_FP32};
    for (int pass = ORR_PASS_FORWARD; pass < ORR_N_KERNEL_PASSES; pass++)
        add_gemms(cases, ORR_BF16, (OrrKernelPass)pass, is_full ? 1 : 2,
                  !is_full && pass != ORR_PASS_FORWARD);
    for (guint d = 0; d < G_N_ELEMENTS(others); d++)
        for (int pass = ORR_PASS_FORWARD; pass < (is_full ? ORR_N_KERNEL_PASSES : 1); pass++)
            add_gemms(cases, others[d], (OrrKernelPass)pass, is_full ? 1 : 3, true);
}

/* Products of attention heads: (s, s, d) and (s, d, s). */
static void batched(bool is_full, GArray *cases) {
    for (int64_t batch = 16; batch <= 256; batch *= is_full ? 2 : 4)
        for (int64_t s = 512; s <= 4096; s *= is_full ? 2 : 4)
            for (int64_t d = 64; d <= 128; d *= 2) {
                OrrCase c = {.kind = ORR_CASE_BATCHED_GEMM,
                             .dtype = ORR_BF16,
                             .m = s,
                             .n = s,
                             .k = d,
                             .batch = batch};
                add_product(cases, c);
                c.n = d, c.k = s;
                add_product(cases, c);
            }
}

/* Products of experts: tokens of one by hidden by width, as mixtures of experts have them (Mixtral
 * 4096 x 14336, DeepSeek-V3 7168 x 2048). */
static void grouped(bool is_full, GArray *cases) {
    static const int64_t sides[][2] = {{4096, 14336}, {7168, 2048}, {2048, 1408}};
    for (guint s = 0; s < (is_full ? 3 : 2); s++)
        for (int64_t experts = 8; experts <= 64; experts *= is_full ? 2 : 8)
            for (int64_t tokens = 128; tokens <= 8192; tokens *= is_full ? 2 : 8)
                for (int pass = 0; pass < (is_full ? ORR_N_KERNEL_PASSES : 1); pass++)
                    add_product(cases, (OrrCase){.kind = ORR_CASE_GROUPED_GEMM,
                                                 .dtype = ORR_BF16,
                                                 .pass = (OrrKernelPass)pass,
                                                 .m = tokens,
                                                 .n = sides[s][1],
                                                 .k = sides[s][0],
                                                 .batch = experts});
}

static void attention(OrrCaseKind kind, bool is_full, GArray *cases) {
    bool is_fused = kind == ORR_CASE_ATTENTION;
    int64_t longest = !is_fused ? 4096 : is_full ? 65536 : 16384;
    for (int64_t s = is_full ? 512 : 1024; s <= longest; s *= is_full ? 2 : 4)
        for (int64_t d = 64; d <= 128; d *= 2)
            for (int64_t share = 1; share <= (is_fused ? 8 : 1); share *= is_full ? 2 : 8)
                for (int variant = 0; variant < 4; variant++)
                    orr_grid__add(cases,
                                  (OrrCase){.kind = kind,
                                            .dtype = ORR_BF16,
                                            .pass = variant & 1 ? ORR_PASS_DGRAD : ORR_PASS_FORWARD,
                                            .is_causal = variant >> 1,
                                            .batch = MAX(16384 / s, 1),
                                            .sequence = s,
                                            .heads = 32,
                                            .kv_heads = 32 / share,
                                            .head_dim = d});
}

static bool has_backward(OrrMemKernel op) {
    return op == ORR_MEM_RMS_NORM || op == ORR_MEM_LAYER_NORM || op == ORR_MEM_SWIGLU ||
           op == ORR_MEM_GELU;
}

static void kernels(bool is_full, GArray *cases) {
    static const int64_t widths[] = {1024, 2048, 4096, 8192, 16384};
    static const int64_t vocabularies[] = {32000, 50304, 128256};
    for (int op = 0; op < ORR_N_MEM_KERNELS; op++)
        for (int64_t rows = is_full ? 64 : 256; rows <= 65536; rows *= is_full ? 4 : 16)
            for (guint w = 0; w < (op == ORR_MEM_CROSS_ENTROPY ? 3 : 5); w += is_full ? 1 : 2)
                for (int pass = 0; pass <= has_backward((OrrMemKernel)op); pass++)
                    orr_grid__add(cases,
                                  (OrrCase){.kind = ORR_CASE_KERNEL,
                                            .op = op,
                                            .dtype = ORR_BF16,
                                            .pass = (OrrKernelPass)pass,
                                            .rows = rows,
                                            .columns = op == ORR_MEM_CROSS_ENTROPY ? vocabularies[w]
                                                                                   : widths[w]});
}

static void copies(bool is_full, int n_gpus, GArray *cases) {
    for (int op = 0; op < ORR_N_COPIES; op++)
        for (int64_t bytes = 4096; bytes <= (int64_t)1 << 30; bytes *= is_full ? 2 : 16)
            if (op != ORR_COPY_P2P || n_gpus > 1)
                orr_grid__add(cases, (OrrCase){.kind = ORR_CASE_COPY, .op = op, .bytes = bytes});
}

static void launches(GArray *cases) {
    for (int op = 0; op < ORR_N_LAUNCHES; op++)
        orr_grid__add(cases, (OrrCase){.kind = ORR_CASE_LAUNCH, .op = op});
}

static void kind_cases(OrrCaseKind kind, const OrrGridWish *wish, const OrrDeviceFacts *facts,
                       GArray *cases) {
    switch (kind) {
    case ORR_CASE_GEMM:
        gemms(wish->is_full, cases);
        break;
    case ORR_CASE_BATCHED_GEMM:
        batched(wish->is_full, cases);
        break;
    case ORR_CASE_GROUPED_GEMM:
        grouped(wish->is_full, cases);
        break;
    case ORR_CASE_ATTENTION:
    case ORR_CASE_UNFUSED_ATTENTION:
        attention(kind, wish->is_full, cases);
        break;
    case ORR_CASE_KERNEL:
        kernels(wish->is_full, cases);
        break;
    case ORR_CASE_COPY:
        copies(wish->is_full, wish->has_mpi ? 1 : facts->n_gpus, cases);
        break;
    case ORR_CASE_LAUNCH:
        launches(cases);
        break;
    case ORR_CASE_COLLECTIVE:
    case ORR_N_CASE_KINDS:
        break;
    }
}

/* Fisher and Yates' shuffle with draws that belong to the place. */
static void shuffle(GArray *cases) {
    OrrRandom draws = orr_random(1, "calibrate order");
    OrrCase *c = (OrrCase *)(void *)cases->data;
    for (guint i = cases->len; i > 1; i--) {
        guint j = (guint)orr_random_below(draws, i, 0, i);
        OrrCase other = c[j];
        c[j] = c[i - 1];
        c[i - 1] = other;
    }
}

GArray *orr_grid_cases(const OrrGridWish *wish, const OrrDeviceFacts *facts) {
    GArray *cases = g_array_new(FALSE, TRUE, sizeof(OrrCase));
    for (int kind = 0; kind < ORR_N_CASE_KINDS; kind++)
        if (wish->kinds[kind])
            kind_cases((OrrCaseKind)kind, wish, facts, cases);
    for (guint i = 0; i < cases->len; i++) {
        OrrCase *c = &g_array_index(cases, OrrCase, i);
        c->flushes_l2 = wish->flushes_l2 && c->kind != ORR_CASE_LAUNCH;
    }
    shuffle(cases);
    if (wish->kinds[ORR_CASE_COLLECTIVE] && facts->n_gpus > 1)
        orr_grid__collectives(wish, facts, cases);
    return cases;
}
