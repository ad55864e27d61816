/* Fused attention: the analytic form over query tiles, times the efficiency surface.
 *
 * The tables time forward passes of a serving stack. Three things differ in training, and each is a
 * named constant here: the backward pass, the library, and the small kernels around attention,
 * which in training are kernels of their own. */
#include "sim/cost/cost_priv.h"

#include <math.h>
#include <string.h>

/* Rate of the backward pass over that of the forward one. Measured pairs, head sizes 64 and 128,
 * long sequences: H100 0.86, 0.90 (flash-attention pull request 2688), Blackwell 0.85, 0.89 (2280).
 */
#define BACKWARD_RATE_FRAC 0.86

/* Rate of the training library over that of the tables' kernel. Ampere: FlashAttention-2 reaches 50
 * to 73 % of the peak (Dao 2023, abstract), 61 % in the middle, the tables' kernel 48 % at best.
 * Hopper and Blackwell: the tables' kernels lie between FlashAttention-2 and the newest ones. */
static const double library_rate[ORR_N_ARCHS] = {[ORR_ARCH_VOLTA] = 1.0,
                                                 [ORR_ARCH_AMPERE] = 1.27,
                                                 [ORR_ARCH_HOPPER] = 1.0,
                                                 [ORR_ARCH_BLACKWELL] = 1.0,
                                                 [ORR_ARCH_BLACKWELL_ULTRA] = 1.0};

/* For a GPU or dtype without a fit: rounded from the A100's and H100's causal fits. */
static const double generic[ORR_N_ATTN_PARAMS] = {[ORR_ATTN_EFF] = 0.5,
                                                  [ORR_ATTN_HBM_FRAC] = 0.8,
                                                  [ORR_ATTN_WAVE_FRAC] = 1.0,
                                                  [ORR_ATTN_KV_EXTRA] = 100};

static const char *const mask_names[ORR_N_MASKS] = {"full", "causal"};

/* Backward passes of a machine's own records: their times over ORR_ATTN_BACKWARD_FLOPS. */
static const char *const back_names[ORR_N_MASKS] = {"full.back", "causal.back"};

static void init_model(OrrCost *cost, const OrrSurfaceSet *set, OrrDtype dtype,
                       const char *const names[ORR_N_MASKS], int mask, OrrCostModel *model) {
    const OrrGpu *gpu = cost->gpu;
    OrrDtype as = orr_cost__runs_as(gpu, dtype);
    OrrDtype measured = as == ORR_FP16 ? ORR_BF16 : as;
    model->surface = orr_surface_find(set, ORR_K_ATTENTION, measured, names[mask]);
    if (!model->surface) /* the other mask runs the same main loop over other keys */
        model->surface = orr_surface_find(set, ORR_K_ATTENTION, measured, names[!mask]);
    memcpy(model->params, model->surface ? model->surface->params : generic, sizeof generic);
    if (!model->surface)
        model->params[ORR_ATTN_FIXED] = cost->fixed_ns;
    double peak = gpu->peak_flops_per_s[as];
    model->params[ORR_ATTN_PEAK] = peak > 0.0 ? peak : fmax(gpu->vector_flops_per_s, 1e9);
    model->params[ORR_ATTN_SMS] = gpu->n_sms;
    model->params[ORR_ATTN_HBM] = gpu->hbm_bytes_per_s;
    model->operand_bytes = orr_dtype_bytes(as);
    model->origin = orr_cost__origin(gpu, set, model->surface);
}

void orr_cost__attention_init(OrrCost *cost, const OrrSurfaceSet *set) {
    for (int d = 0; d < ORR_N_DTYPES; d++)
        for (int mask = 0; mask < ORR_N_MASKS; mask++) {
            init_model(cost, set, d, mask_names, mask, &cost->attn[d][mask]);
            init_model(cost, set, d, back_names, mask, &cost->attn_back[d][mask]);
        }
}

static double surface_ratio(const OrrCostModel *model, const OrrAttnShape *shape) {
    if (!model->surface)
        return 1.0;
    double x[ORR_SURFACE_AXES];
    orr_form_attn_place(shape, x);
    return orr_surface_ratio(model->surface, x);
}

/* The serving tables' full-mask rows come from another, slower kernel (vision encoders); a training
 * library runs one main loop for both masks, so the causal fit serves both where there is one. */
static const OrrCostModel *training_model(const OrrCost *cost, uint8_t dtype, bool is_causal) {
    if (cost->is_training)
        return &cost->attn[dtype][is_causal];
    const OrrCostModel *causal = &cost->attn[dtype][ORR_MASK_CAUSAL];
    return is_causal || causal->surface ? causal : &cost->attn[dtype][ORR_MASK_FULL];
}

/* From tables of a serving stack: without what is around attention, for another library. */
static double serving_ns(const OrrCost *cost, const OrrKernel *k, const OrrCostModel *model,
                         const OrrAttnShape *shape) {
    /* the fixed cost of the tables is that of a serving stack with several kernels: not ours */
    double ns =
        (orr_form_attn_ns(model->params, shape, cost->clock_frac) - model->params[ORR_ATTN_FIXED]) *
        surface_ratio(model, shape);
    if (model->surface)
        ns = orr_cost__unthrottle(cost, ns);
    ns /= library_rate[cost->gpu->arch];
    if (k->pass != ORR_PASS_FORWARD)
        ns *= ORR_ATTN_BACKWARD_FLOPS / BACKWARD_RATE_FRAC;
    return ns + cost->fixed_ns * (k->launches > 1 ? k->launches : 1.0);
}

/* From records of this library: the pass that was measured as it is. */
static double training_ns(const OrrCost *cost, const OrrKernel *k, const OrrCostModel *forward,
                          const OrrAttnShape *shape) {
    const OrrCostModel *back = &cost->attn_back[k->dtype][k->is_causal];
    bool is_back = k->pass != ORR_PASS_FORWARD, is_measured = is_back && back->surface;
    const OrrCostModel *model = is_measured ? back : forward;
    double ns =
        orr_form_attn_ns(model->params, shape, cost->clock_frac) * surface_ratio(model, shape);
    ns = orr_cost__unthrottle(cost, ns);
    if (is_back)
        ns *= ORR_ATTN_BACKWARD_FLOPS / (is_measured ? 1.0 : BACKWARD_RATE_FRAC);
    return ns + cost->fixed_ns * (k->launches > 1 ? k->launches - 1.0 : 0.0);
}

double orr_cost__attention_ns(const OrrCost *cost, const OrrKernel *k) {
    if (k->m <= 0 || k->n <= 0 || k->k <= 0 || k->heads == 0 || k->batch < 0)
        return cost->fixed_ns * (k->launches > 1 ? k->launches : 1.0);
    const OrrCostModel *model = training_model(cost, k->dtype, k->is_causal);
    OrrAttnShape shape = {.batch = k->batch > 0 ? (double)k->batch : 1.0,
                          .heads = k->heads,
                          .kv_heads = k->kv_heads > 0 ? k->kv_heads : k->heads,
                          .m = (double)k->m,
                          .n = (double)k->n,
                          .dim_qk = (double)k->k,
                          .dim_v = k->k2 > 0 ? (double)k->k2 : (double)k->k,
                          .visited_frac = 1.0,
                          .is_causal = k->is_causal};
    /* a window shows in the FLOPs only: those of the whole mask are an upper bound */
    double whole =
        orr_form_attn_flops(&shape) * (k->pass == ORR_PASS_FORWARD ? 1 : ORR_ATTN_BACKWARD_FLOPS);
    if (k->flops > 0.0 && k->flops < whole)
        shape.visited_frac = k->flops / whole;
    shape.bytes = orr_form_attn_bytes(&shape, model->operand_bytes);
    bool is_own = cost->is_training && model->surface;
    return (is_own ? training_ns : serving_ns)(cost, k, model, &shape);
}

double orr_cost_attention_op_ns(const OrrCost *cost, OrrDtype dtype, bool is_causal, int64_t batch,
                                int64_t seq_len, uint32_t heads, uint32_t kv_heads,
                                int64_t head_dim) {
    const OrrCostModel *model = &cost->attn[dtype][is_causal ? ORR_MASK_CAUSAL : ORR_MASK_FULL];
    OrrAttnShape shape = {.batch = (double)batch,
                          .heads = heads,
                          .kv_heads = kv_heads,
                          .m = (double)seq_len,
                          .n = (double)seq_len,
                          .dim_qk = (double)head_dim,
                          .dim_v = (double)head_dim,
                          .visited_frac = 1.0,
                          .is_causal = is_causal};
    shape.bytes = orr_form_attn_bytes(&shape, model->operand_bytes);
    double ns = orr_form_attn_ns(model->params, &shape, cost->clock_frac) +
                orr_form_attn_prep_ns(model->params, &shape);
    return ns * surface_ratio(model, &shape);
}
