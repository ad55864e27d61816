/* Our memory-bound kernels: buffers, and their first, middle and last row against the reference. */
#include "calibrate/cuda_priv.h"

#include "calibrate/kernels.h"
#include "calibrate/reference.h"

#include <math.h>

typedef struct {
    OrrKernelArguments arguments;
    OrrDtype first_output; /* type of what is compared */
    void *compared;
} Kernel;

static bool run(OrrCuda *cuda, OrrWork *w, GError **error) {
    (void)cuda;
    Kernel *k = w->state;
    return orr_cuda__ok((cudaError_t)orr_kernels_run(&k->arguments, w->stream), "a kernel", error);
}

static bool compare_row(const OrrWork *w, const Kernel *k, int64_t row, double *worst,
                        double *largest, GError **error) {
    int64_t n = w->c.columns;
    g_autofree double *expected = g_new(double, n);
    orr_reference_kernel(&w->c, row, expected);
    /* Every element of a wide row would take long one by one; a prime step meets all lanes. */
    int64_t step = n > 4096 ? 13 : 1;
    for (int64_t j = 0; j < n; j += step) {
        double is;
        if (!orr_cuda__element(k->compared, k->first_output, row * n + j, &is, error))
            return false;
        *worst = fmax(*worst, isfinite(is) ? fabs(is - expected[j]) : INFINITY);
        *largest = fmax(*largest, fabs(expected[j]));
    }
    return true;
}

static bool compare(OrrCuda *cuda, OrrWork *w, double *error_frac, double *tolerance_frac,
                    GError **error) {
    (void)cuda;
    const Kernel *k = w->state;
    double worst = 0, largest = 0;
    const int64_t rows[] = {0, w->c.rows / 2, w->c.rows - 1};
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++)
        if (!compare_row(w, k, rows[i], &worst, &largest, error))
            return false;
    *error_frac = worst / largest;
    /* A unit of BF16 is 2^-8; in FP32 the fast exponential and angles of 4096 radians count. */
    *tolerance_frac = w->c.dtype == ORR_FP32 ? 1e-3 : 1e-2;
    return true;
}

static void release(OrrCuda *cuda, OrrWork *w) {
    (void)cuda;
    g_free(w->state);
}

static const OrrCudaOps ops = {.run = run, .compare = compare, .release = release};

/* Buffers that a kernel reads besides the first, and their type. */
static bool fill_inputs(OrrWork *w, GError **error) {
    OrrKernelArguments *a = &((Kernel *)w->state)->arguments;
    const OrrCase *c = &w->c;
    int64_t n = c->rows * c->columns;
    bool is_adam = c->op == ORR_MEM_ADAM, is_cast = c->op == ORR_MEM_CAST;
    bool is_norm = c->op == ORR_MEM_LAYER_NORM || c->op == ORR_MEM_RMS_NORM;
    bool has_second =
        is_norm || is_adam || c->op == ORR_MEM_SWIGLU || c->op == ORR_MEM_RESIDUAL_DROPOUT;
    OrrDtype first = is_adam || is_cast ? ORR_FP32 : c->dtype;
    a->in[0] = orr_cuda__random(w, first, n, 1, error);
    if (!a->in[0])
        return false;
    if (has_second)
        a->in[1] =
            orr_cuda__random(w, is_adam ? ORR_FP32 : c->dtype, is_norm ? c->columns : n, 2, error);
    if (has_second && !a->in[1])
        return false;
    bool has_third = a->is_backward || is_adam;
    if (has_third)
        a->in[2] = orr_cuda__random(w, is_adam ? ORR_FP32 : c->dtype, n, 3, error);
    if (has_third && !a->in[2])
        return false;
    if (is_adam)
        a->in[3] = orr_cuda__random(w, c->dtype, n, 4, error);
    return !is_adam || a->in[3];
}

static bool make_outputs(OrrWork *w, GError **error) {
    OrrKernelArguments *a = &((Kernel *)w->state)->arguments;
    const OrrCase *c = &w->c;
    size_t n = (size_t)(c->rows * c->columns), e = orr_cuda__size(c->dtype), second = 0;
    if (c->op == ORR_MEM_RESIDUAL_DROPOUT)
        second = n;
    else if (c->op == ORR_MEM_CROSS_ENTROPY)
        second = (size_t)c->rows * sizeof(float);
    else if (c->op == ORR_MEM_SWIGLU && a->is_backward)
        second = n * e;
    a->out[0] = orr_cuda__buffer(w, n * e, error);
    if (!a->out[0])
        return false;
    if (second && !(a->out[1] = orr_cuda__buffer(w, second, error)))
        return false;
    if (c->op != ORR_MEM_ROTARY)
        return true;
    size_t table = (size_t)ORR_ROTARY_POSITIONS * ORR_ROTARY_PAIRS * 2 * sizeof(float);
    a->table = orr_cuda__buffer(w, table, error);
    return a->table && orr_cuda__ok((cudaError_t)orr_kernels_rotary_table(a->table, w->stream),
                                    "the table of angles", error);
}

OrrWork *orr_cuda__kernel(OrrCuda *cuda, OrrGpu *gpu, const OrrCase *c, GError **error) {
    OrrWork *w = orr_cuda__work(&ops, c, gpu);
    Kernel *k = w->state = g_new0(Kernel, 1);
    k->arguments = (OrrKernelArguments){.op = c->op,
                                        .dtype = (int)c->dtype,
                                        .is_backward = c->pass != ORR_PASS_FORWARD,
                                        .rows = c->rows,
                                        .columns = c->columns};
    if (!fill_inputs(w, error) || !make_outputs(w, error)) {
        orr_cuda__release(cuda, w);
        return NULL;
    }
    bool is_adam = c->op == ORR_MEM_ADAM;
    k->first_output = is_adam ? ORR_FP32 : c->dtype;
    k->compared = is_adam ? k->arguments.in[0] : k->arguments.out[0];
    return w;
}
