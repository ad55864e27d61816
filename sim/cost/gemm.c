/* Matrix products: the analytic form of sim/facts/forms.h with this GPU's numbers, times the
 * efficiency surface where one was fitted. The form alone serves FP32 and GPUs without tables. */
#include "sim/cost/cost_priv.h"

#include <math.h>
#include <string.h>

/* For a GPU or dtype without a fit: rounded medians of the BF16 fits of A100, H100 and B200
 * (calibrate/tables). The peak, SMs, HBM rate and fixed cost are the GPU's own. */
static const double generic[ORR_N_GEMM_PARAMS] = {
    [ORR_GEMM_EFF] = 0.81,      [ORR_GEMM_HBM_FRAC] = 0.75, [ORR_GEMM_WAVE_FRAC] = 0.2,
    [ORR_GEMM_K_EXTRA] = 120,   [ORR_GEMM_EFF_128] = 0.93,  [ORR_GEMM_EFF_64] = 0.95,
    [ORR_GEMM_EFF_64_64] = 0.7, [ORR_GEMM_SPLIT] = 3000,
};

static void init_model(OrrCost *cost, const OrrSurfaceSet *set, OrrDtype dtype, const char *variant,
                       OrrCostModel *model) {
    const OrrGpu *gpu = cost->gpu;
    OrrDtype as = orr_cost__runs_as(gpu, dtype);
    model->surface = orr_surface_find(set, ORR_K_GEMM, as, variant);
    if (!model->surface && as == ORR_FP16) /* same units, same rate */
        model->surface = orr_surface_find(set, ORR_K_GEMM, ORR_BF16, variant);
    memcpy(model->params, model->surface ? model->surface->params : generic, sizeof generic);
    if (!model->surface)
        model->params[ORR_GEMM_FIXED] = cost->fixed_ns;
    double peak = gpu->peak_flops_per_s[as];
    model->params[ORR_GEMM_PEAK] = peak > 0.0 ? peak : fmax(gpu->vector_flops_per_s, 1e9);
    model->params[ORR_GEMM_SMS] = gpu->n_sms;
    model->params[ORR_GEMM_HBM] = gpu->hbm_bytes_per_s;
    /* NVFP4: a byte of scale for 16 elements (NVIDIA, Blackwell tensor core formats) */
    model->operand_bytes = orr_dtype_bytes(as) + (as == ORR_FP4 ? 1.0 / 16.0 : 0.0);
    model->origin = orr_cost__origin(gpu, set, model->surface);
}

void orr_cost__gemm_init(OrrCost *cost, const OrrSurfaceSet *set) {
    for (int d = 0; d < ORR_N_DTYPES; d++)
        init_model(cost, set, d, "", &cost->gemm[d]);
    init_model(cost, set, ORR_FP8, "block", &cost->gemm_block);
}

/* Blackwell's fast main loop hides nothing of the read and write of an FP32 result that is added
 * to: such weight gradients run at 0.86 of the tables' rate for the shape, products with a 16-bit
 * result at theirs (0.638 and 0.743 of the unthrottled one; Transformer Engine on B200, 10 shapes
 * each of 1 ms and more: SimuMax v1.2, configs/system, matmul of layouts NT and TN). On older parts
 * the steps of k that the ends of a tile cost give it (forms.c). */
static double exposed_result_ns(const OrrCost *cost, const OrrGemmShape *s) {
    double operands = s->batch * (s->m + s->n) * s->k * s->operand_bytes;
    double beyond = s->bytes - operands - 2.0 * s->batch * s->m * s->n;
    if (cost->gpu->arch < ORR_ARCH_BLACKWELL || !(beyond > 0.0))
        return 0.0;
    return beyond / (cost->gpu->hbm_bytes_per_s * cost->gpu->mem_eff_frac) * 1e9; /* ns a second */
}

double orr_cost__gemm_ns(const OrrCost *cost, const OrrKernel *k) {
    double launches = k->launches > 1 ? k->launches : 1.0;
    if (k->m <= 0 || k->n <= 0 || k->k <= 0 || k->batch < 0)
        return cost->fixed_ns * launches;
    const OrrCostModel *model = &cost->gemm[k->dtype];
    OrrGemmShape shape = {.m = (double)k->m,
                          .n = (double)k->n,
                          .k = (double)k->k,
                          .batch = k->batch > 0 ? (double)k->batch : 1.0,
                          .operand_bytes = model->operand_bytes};
    shape.bytes = k->bytes_read + k->bytes_written;
    if (!(shape.bytes > 0.0))
        shape.bytes = orr_form_gemm_bytes(&shape);
    double ns = orr_form_gemm_ns(model->params, &shape, cost->clock_frac);
    if (model->surface) {
        double x[ORR_SURFACE_AXES];
        orr_form_gemm_place(&shape, x);
        ns = orr_cost__unthrottle(cost, ns * orr_surface_ratio(model->surface, x));
    }
    ns += exposed_result_ns(cost, &shape);
    double frac = k->kind == ORR_K_BATCHED_GEMM   ? cost->rates.batched_frac
                  : k->kind == ORR_K_GROUPED_GEMM ? cost->rates.grouped_frac
                                                  : 0.0;
    return (frac > 0.0 ? ns / frac : ns) + cost->fixed_ns * (launches - 1.0);
}

double orr_cost_linear_ns(const OrrCost *cost, OrrDtype dtype, bool is_block_scaled, bool is_alone,
                          int64_t m, int64_t n, int64_t k) {
    const OrrCostModel *model =
        is_block_scaled && dtype == ORR_FP8 ? &cost->gemm_block : &cost->gemm[dtype];
    OrrGemmShape shape = {.m = (double)m,
                          .n = (double)n,
                          .k = (double)k,
                          .batch = 1.0,
                          .operand_bytes = model->operand_bytes};
    shape.bytes = orr_form_gemm_bytes(&shape);
    double ns = orr_form_gemm_ns(model->params, &shape, cost->clock_frac) +
                (is_alone ? 0.0 : orr_form_gemm_prep_ns(model->params, &shape));
    double x[ORR_SURFACE_AXES];
    orr_form_gemm_place(&shape, x);
    return model->surface ? ns * orr_surface_ratio(model->surface, x) : ns;
}
