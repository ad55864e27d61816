/* What the model says of the records as it ships, without them: how much a calibration gains. Short
 * runs, so at boost clocks, as validate has it. */
#include "sim/cli/calibrate_parts.h"

#include "sim/api/calibration.h"
#include "sim/cost/cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static OrrKernelKind streaming_kind(int op) {
    static const OrrKernelKind kinds[ORR_N_MEM_KERNELS] = {
        [ORR_MEM_LAYER_NORM] = ORR_K_NORM, [ORR_MEM_RMS_NORM] = ORR_K_NORM,
        [ORR_MEM_ROTARY] = ORR_K_ROTARY,   [ORR_MEM_SWIGLU] = ORR_K_ACTIVATION,
        [ORR_MEM_GELU] = ORR_K_ACTIVATION, [ORR_MEM_RESIDUAL_DROPOUT] = ORR_K_RESIDUAL,
        [ORR_MEM_SOFTMAX] = ORR_K_SOFTMAX, [ORR_MEM_CROSS_ENTROPY] = ORR_K_CROSS_ENTROPY,
        [ORR_MEM_ADAM] = ORR_K_OPTIMIZER,  [ORR_MEM_CAST] = ORR_K_CAST,
        [ORR_MEM_PERMUTE] = ORR_K_PERMUTE,
    };
    return kinds[op];
}

/* The simulator's kernel that a case is; false: it has none. */
static bool kernel_of(const OrrCase *c, OrrKernel *k) {
    *k = (OrrKernel){.pass = (uint8_t)c->pass, .dtype = (uint8_t)c->dtype, .launches = 1};
    switch (c->kind) {
    case ORR_CASE_GEMM:
    case ORR_CASE_BATCHED_GEMM:
    case ORR_CASE_GROUPED_GEMM:
        k->kind = c->kind == ORR_CASE_GEMM           ? ORR_K_GEMM
                  : c->kind == ORR_CASE_BATCHED_GEMM ? ORR_K_BATCHED_GEMM
                                                     : ORR_K_GROUPED_GEMM;
        k->m = c->m, k->n = c->n, k->k = c->k, k->batch = c->batch;
        return true;
    case ORR_CASE_ATTENTION:
        k->kind = ORR_K_ATTENTION;
        k->m = k->n = c->sequence, k->k = c->head_dim, k->batch = c->batch;
        k->heads = (uint32_t)c->heads, k->kv_heads = (uint32_t)c->kv_heads;
        k->is_causal = c->is_causal != 0;
        return true;
    case ORR_CASE_KERNEL:
        k->kind = (uint8_t)streaming_kind(c->op);
        k->bytes_written = orr_case_bytes(c); /* nothing is left in L2 by a kernel before */
        return true;
    case ORR_CASE_UNFUSED_ATTENTION:
    case ORR_CASE_COPY:
    case ORR_CASE_LAUNCH:
    case ORR_CASE_COLLECTIVE:
    case ORR_N_CASE_KINDS:
        break;
    }
    return false;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double series_error(const OrrCalibrateFit *f, const OrrCost *cost, const char *series) {
    const GArray *points = f->kernels->points;
    g_autofree double *miss = g_new(double, points->len + 1);
    guint n = 0;
    for (guint i = 0; i < points->len; i++) {
        const OrrFitPoint *p = &g_array_index(points, OrrFitPoint, i);
        OrrKernel k;
        if (strcmp(p->series, series) == 0 &&
            kernel_of(&g_array_index(f->records->rows, OrrRecordRow, p->row).c, &k))
            miss[n++] = fabs((double)orr_cost_kernel_ns(cost, &k) / p->measured_ns - 1);
    }
    qsort(miss, n, sizeof *miss, by_value);
    return n ? (miss[(n - 1) / 2] + miss[n / 2]) / 2 : NAN;
}

double *orr_cli_fit_shipped(const OrrCalibrateFit *f, GError **error) {
    OrrCalibration *own;
    if (!orr_calibration_for(NULL, f->gpu, &own, error))
        return NULL;
    const GArray *residuals = f->kernels->residuals;
    double *shipped = g_new(double, residuals->len + 1);
    g_autoptr(OrrCost) cost = orr_cost_new(f->gpu, own ? own->surfaces : NULL, false);
    for (guint i = 0; i < residuals->len; i++)
        shipped[i] = series_error(f, cost, g_array_index(residuals, OrrFitResidual, i).series);
    orr_calibration_free(own);
    return shipped;
}
