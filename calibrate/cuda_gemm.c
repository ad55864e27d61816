/* Dense products through cuBLASLt, the best algorithm by its heuristic; batched ones too, and
 * groups of unequal products through cuBLAS.
 *
 * A product is C[m, n] = A B with inner size k, all row-major as frameworks hold them; cuBLAS sees
 * the transposed, column-major. The pass says how the operands lie: forward is X W' (weights n x
 * k), the input gradient dY W, the weight gradient dY' X. FP8 has one layout only (A and B both
 * along k), for all passes: frameworks keep transposed copies, because Hopper multiplies no other.
 */
#include "calibrate/cuda_priv.h"

#include "calibrate/fill.h"
#include "calibrate/reference.h"

#include <math.h>
#include <string.h>

typedef struct {
    OrrDtype in, out;
    bool a_transposed; /* A lies k x m (the weight gradient) */
    bool b_transposed; /* B lies n x k (forward) */
} Layout;

static Layout layout_of(const OrrCase *c) {
    bool is_fp8 = c->dtype == ORR_FP8;
    return (Layout){.in = c->dtype,
                    .out = is_fp8 ? ORR_BF16 : c->dtype,
                    .a_transposed = c->pass == ORR_PASS_WGRAD && !is_fp8,
                    .b_transposed = c->pass == ORR_PASS_FORWARD || is_fp8};
}

static cudaDataType_t type_of(OrrDtype dtype) {
    switch (dtype) {
    case ORR_BF16:
        return CUDA_R_16BF;
    case ORR_FP16:
        return CUDA_R_16F;
    case ORR_FP8:
        return CUDA_R_8F_E4M3;
    case ORR_FP32:
    case ORR_TF32:
    case ORR_FP4:
    case ORR_INT8:
    case ORR_N_DTYPES:
        break;
    }
    return CUDA_R_32F;
}

typedef struct {
    Layout layout;
    void *a, *b, *c;
    int64_t batch;
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t first, second, result; /* column-major: of B, A and C */
    cublasLtMatmulAlgo_t algo;
    float one, zero;
} Gemm;

static bool run(OrrCuda *cuda, OrrWork *w, GError **error) {
    (void)cuda;
    Gemm *g = w->state;
    return orr_cuda__blas_ok(cublasLtMatmul(w->gpu->lt, g->product, &g->one, g->b, g->first, g->a,
                                            g->second, &g->zero, g->c, g->result, g->c, g->result,
                                            &g->algo, w->gpu->workspace, ORR_WORKSPACE_BYTES,
                                            w->stream),
                             "cublasLtMatmul", error);
}

/* Rounding of the result and of what is added up: half a unit of BF16 is 2^-9, of FP16 2^-12, TF32
 * rounds its inputs to 2^-11; errors are over the largest sampled value. */
static double tolerance(OrrDtype dtype) {
    return dtype == ORR_FP32 ? 1e-3 : 2e-2;
}

#define N_SAMPLES 24

/* Elements spread over the result by a hash of their number. */
static bool compare_product(const OrrWork *w, const Layout *l, void *result, int64_t batch,
                            double *error_frac, GError **error) {
    const OrrCase *c = &w->c;
    int steps = l->in == ORR_FP8 ? ORR_FILL_STEPS_FP8 : ORR_FILL_STEPS;
    double worst = 0, largest = 0;
    for (uint64_t s = 0; s < N_SAMPLES; s++) {
        int64_t i = (int64_t)(orr_fill_hash(11, s) % (uint64_t)c->m);
        int64_t j = (int64_t)(orr_fill_hash(12, s) % (uint64_t)c->n);
        int64_t part = (int64_t)(orr_fill_hash(13, s) % (uint64_t)batch);
        OrrMatrix a = {1, steps, part * c->m * c->k, l->a_transposed ? 1 : c->k,
                       l->a_transposed ? c->m : 1};
        OrrMatrix b = {2, steps, part * c->k * c->n, l->b_transposed ? 1 : c->n,
                       l->b_transposed ? c->k : 1};
        double is, expected = orr_reference_product(&a, &b, i, j, c->k);
        if (!orr_cuda__element(result, l->out, (part * c->m + i) * c->n + j, &is, error))
            return false;
        worst = fmax(worst, isfinite(is) ? fabs(is - expected) : INFINITY);
        largest = fmax(largest, fabs(expected));
    }
    *error_frac = worst / largest;
    return true;
}

static bool compare(OrrCuda *cuda, OrrWork *w, double *error_frac, double *tolerance_frac,
                    GError **error) {
    (void)cuda;
    Gemm *g = w->state;
    *tolerance_frac = tolerance(w->c.dtype);
    return compare_product(w, &g->layout, g->c, g->batch, error_frac, error);
}

static void release(OrrCuda *cuda, OrrWork *w) {
    (void)cuda;
    Gemm *g = w->state;
    if (g->first)
        cublasLtMatrixLayoutDestroy(g->first);
    if (g->second)
        cublasLtMatrixLayoutDestroy(g->second);
    if (g->result)
        cublasLtMatrixLayoutDestroy(g->result);
    if (g->product)
        cublasLtMatmulDescDestroy(g->product);
    g_free(g);
}

static const OrrCudaOps gemm_ops = {.run = run, .compare = compare, .release = release};

static bool describe_matrix(cublasLtMatrixLayout_t *m, OrrDtype dtype, int64_t rows,
                            int64_t columns, int64_t batch, GError **error) {
    int32_t count = (int32_t)batch;
    int64_t stride = rows * columns;
    return orr_cuda__blas_ok(cublasLtMatrixLayoutCreate(m, type_of(dtype), (uint64_t)rows,
                                                        (uint64_t)columns, rows),
                             "cublasLtMatrixLayoutCreate", error) &&
           orr_cuda__blas_ok(cublasLtMatrixLayoutSetAttribute(
                                 *m, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
                             "batch count", error) &&
           orr_cuda__blas_ok(
               cublasLtMatrixLayoutSetAttribute(*m, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                &stride, sizeof stride),
               "batch stride", error);
}

static bool set(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t name, int32_t value,
                size_t size, GError **error) {
    int8_t small = (int8_t)value;
    return orr_cuda__blas_ok(cublasLtMatmulDescSetAttribute(
                                 product, name, size == 1 ? (void *)&small : (void *)&value, size),
                             "cublasLtMatmulDescSetAttribute", error);
}

static bool describe_product(OrrWork *w, GError **error) {
    Gemm *g = w->state;
    const OrrCase *c = &w->c;
    const Layout *l = &g->layout;
    cublasComputeType_t compute =
        c->dtype == ORR_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    if (!orr_cuda__blas_ok(cublasLtMatmulDescCreate(&g->product, compute, CUDA_R_32F),
                           "cublasLtMatmulDescCreate", error) ||
        !set(g->product, CUBLASLT_MATMUL_DESC_TRANSA, l->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
             sizeof(int32_t), error) ||
        !set(g->product, CUBLASLT_MATMUL_DESC_TRANSB, l->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
             sizeof(int32_t), error))
        return false;
    /* As Transformer Engine has it: less exact sums forward, exact ones for the gradients. */
    if (c->dtype == ORR_FP8 && c->pass == ORR_PASS_FORWARD &&
        !set(g->product, CUBLASLT_MATMUL_DESC_FAST_ACCUM, 1, 1, error))
        return false;
    return describe_matrix(&g->first, l->in, l->b_transposed ? c->k : c->n,
                           l->b_transposed ? c->n : c->k, g->batch, error) &&
           describe_matrix(&g->second, l->in, l->a_transposed ? c->m : c->k,
                           l->a_transposed ? c->k : c->m, g->batch, error) &&
           describe_matrix(&g->result, l->out, c->n, c->m, g->batch, error);
}

static bool choose(OrrWork *w, GError **error) {
    Gemm *g = w->state;
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t best;
    int n = 0;
    size_t workspace = ORR_WORKSPACE_BYTES;
    bool is_good =
        orr_cuda__blas_ok(cublasLtMatmulPreferenceCreate(&preference), "preference", error) &&
        orr_cuda__blas_ok(
            cublasLtMatmulPreferenceSetAttribute(
                preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace),
            "preference", error) &&
        orr_cuda__blas_ok(cublasLtMatmulAlgoGetHeuristic(w->gpu->lt, g->product, g->first,
                                                         g->second, g->result, g->result,
                                                         preference, 1, &best, &n),
                          "cuBLASLt has no algorithm", error);
    if (preference)
        cublasLtMatmulPreferenceDestroy(preference);
    if (is_good && n == 0)
        return orr_cuda__refuse(error, "cuBLASLt has no algorithm");
    if (is_good)
        g->algo = best.algo;
    return is_good;
}

OrrWork *orr_cuda__gemm(OrrCuda *cuda, OrrGpu *gpu, const OrrCase *c, GError **error) {
    OrrWork *w = orr_cuda__work(&gemm_ops, c, gpu);
    Gemm *g = w->state = g_new0(Gemm, 1);
    g->layout = layout_of(c);
    g->batch = MAX(c->batch, 1);
    g->one = 1;
    g->a = orr_cuda__random(w, g->layout.in, g->batch * c->m * c->k, 1, error);
    g->b = g->a ? orr_cuda__random(w, g->layout.in, g->batch * c->k * c->n, 2, error) : NULL;
    g->c = g->b ? orr_cuda__buffer(
                      w, (size_t)(g->batch * c->m * c->n) * orr_cuda__size(g->layout.out), error)
                : NULL;
    if (g->c && describe_product(w, error) && choose(w, error))
        return w;
    orr_cuda__release(cuda, w);
    return NULL;
}

/* Groups: one product an expert, through arrays of addresses on the device. */
typedef struct {
    Layout layout;
    void *c;
    int n;
    cublasOperation_t *op_first, *op_second;
    int *m, *n_columns, *k, *lda, *ldb, *ldc, *size;
    float *one, *zero;
    void *first, *second, *result; /* device arrays of addresses */
} Grouped;

static bool run_grouped(OrrCuda *cuda, OrrWork *w, GError **error) {
    (void)cuda;
    Grouped *g = w->state;
    cublasComputeType_t compute =
        w->c.dtype == ORR_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    cudaDataType_t in = type_of(g->layout.in), out = type_of(g->layout.out);
    return orr_cuda__blas_ok(
        cublasGemmGroupedBatchedEx(w->gpu->blas, g->op_first, g->op_second, g->n_columns, g->m,
                                   g->k, g->one, (const void *const *)g->first, in, g->lda,
                                   (const void *const *)g->second, in, g->ldb, g->zero,
                                   (void *const *)g->result, out, g->ldc, g->n, g->size, compute),
        "cublasGemmGroupedBatchedEx", error);
}

static bool compare_grouped(OrrCuda *cuda, OrrWork *w, double *error_frac, double *tolerance_frac,
                            GError **error) {
    (void)cuda;
    Grouped *g = w->state;
    *tolerance_frac = tolerance(w->c.dtype);
    return compare_product(w, &g->layout, g->c, g->n, error_frac, error);
}

static void release_grouped(OrrCuda *cuda, OrrWork *w) {
    (void)cuda;
    Grouped *g = w->state;
    void *arrays[] = {g->op_first, g->op_second, g->m,    g->n_columns, g->k,   g->lda,
                      g->ldb,      g->ldc,       g->size, g->one,       g->zero};
    for (guint i = 0; i < G_N_ELEMENTS(arrays); i++)
        g_free(arrays[i]);
    g_free(g);
}

static const OrrCudaOps grouped_ops = {
    .run = run_grouped, .compare = compare_grouped, .release = release_grouped};

static int *same(int n, int64_t value) {
    int *array = g_new(int, n);
    for (int i = 0; i < n; i++)
        array[i] = (int)value;
    return array;
}

/* Addresses of the parts of @data on the device. */
static void *addresses(OrrWork *w, void *data, size_t part_bytes, int n, GError **error) {
    g_autofree char **host = g_new(char *, n);
    for (int i = 0; i < n; i++)
        host[i] = (char *)data + (size_t)i * part_bytes;
    void *device = orr_cuda__buffer(w, sizeof(void *) * (size_t)n, error);
    if (!device ||
        !orr_cuda__ok(cudaMemcpy(device, host, sizeof(void *) * (size_t)n, cudaMemcpyHostToDevice),
                      "cudaMemcpy", error))
        return NULL;
    return device;
}

static bool fill_grouped(OrrWork *w, GError **error) {
    Grouped *g = w->state;
    const OrrCase *c = &w->c;
    const Layout *l = &g->layout;
    size_t in = orr_cuda__size(l->in), out = orr_cuda__size(l->out);
    void *a = orr_cuda__random(w, l->in, c->batch * c->m * c->k, 1, error);
    void *b = a ? orr_cuda__random(w, l->in, c->batch * c->k * c->n, 2, error) : NULL;
    g->c = b ? orr_cuda__buffer(w, (size_t)(c->batch * c->m * c->n) * out, error) : NULL;
    if (!g->c)
        return false;
    g->first = addresses(w, b, (size_t)(c->k * c->n) * in, g->n, error);
    g->second = g->first ? addresses(w, a, (size_t)(c->m * c->k) * in, g->n, error) : NULL;
    g->result = g->second ? addresses(w, g->c, (size_t)(c->m * c->n) * out, g->n, error) : NULL;
    return g->result != NULL;
}

OrrWork *orr_cuda__grouped(OrrCuda *cuda, OrrGpu *gpu, const OrrCase *c, GError **error) {
    OrrWork *w = orr_cuda__work(&grouped_ops, c, gpu);
    Grouped *g = w->state = g_new0(Grouped, 1);
    Layout l = g->layout = layout_of(c);
    int n = g->n = (int)c->batch;
    g->op_first = g_new(cublasOperation_t, n);
    g->op_second = g_new(cublasOperation_t, n);
    g->one = g_new(float, n);
    g->zero = g_new0(float, n);
    for (int i = 0; i < n; i++) {
        g->op_first[i] = l.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
        g->op_second[i] = l.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
        g->one[i] = 1;
    }
    g->m = same(n, c->m), g->n_columns = same(n, c->n), g->k = same(n, c->k);
    g->lda = same(n, l.b_transposed ? c->k : c->n);
    g->ldb = same(n, l.a_transposed ? c->m : c->k);
    g->ldc = same(n, c->n), g->size = same(n, 1);
    if (fill_grouped(w, error))
        return w;
    orr_cuda__release(cuda, w);
    return NULL;
}
