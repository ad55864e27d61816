/* Kernel times: which model serves which kernel. */
#include "sim/cost/cost.h"

#include "sim/cost/cost_priv.h"

#include <math.h>

OrrCost *orr_cost_new(const OrrGpu *gpu, const OrrSurfaceSet *surfaces, bool is_sustained) {
    g_assert(gpu && gpu->n_sms > 0 && gpu->hbm_bytes_per_s > 0.0);
    OrrCost *cost = g_new0(OrrCost, 1);
    cost->gpu = gpu;
    /* rates in the surfaces are those at the clock of the measured runs */
    cost->clock_frac = 1.0;
    if (is_sustained && gpu->sustained_hz > 0.0 && gpu->boost_hz > 0.0) {
        double measured_share = surfaces ? surfaces->clock_share : 1.0;
        cost->clock_frac = fmin(1.0, gpu->sustained_hz / gpu->boost_hz / measured_share);
    }
    cost->throttled_ns = surfaces ? surfaces->throttled_ns : 0.0;
    cost->is_training = surfaces && surfaces->is_training;
    if (surfaces)
        cost->rates = surfaces->rates;
    cost->fixed_ns = cost->rates.fixed_ns > 0.0 ? cost->rates.fixed_ns : gpu->kernel_fixed_ns;
    orr_cost__gemm_init(cost, surfaces);
    orr_cost__attention_init(cost, surfaces);
    return cost;
}

void orr_cost_free(OrrCost *cost) {
    if (!cost)
        return;
    for (int d = 0; d < ORR_N_DTYPES; d++) {
        g_free(cost->gemm[d].origin);
        for (int mask = 0; mask < ORR_N_MASKS; mask++) {
            g_free(cost->attn[d][mask].origin);
            g_free(cost->attn_back[d][mask].origin);
        }
    }
    g_free(cost->gemm_block.origin);
    g_free(cost);
}

double orr_cost_peak_flops_per_s(const OrrCost *cost, OrrDtype dtype) {
    double peak = cost->gpu->peak_flops_per_s[dtype];
    return dtype == ORR_FP32 && peak <= 0.0 ? cost->gpu->vector_flops_per_s : peak;
}

OrrDtype orr_cost__runs_as(const OrrGpu *gpu, OrrDtype dtype) {
    /* preferences after the dtype itself: the nearest wider type that keeps its values */
    static const OrrDtype wider[ORR_N_DTYPES][3] = {
        [ORR_FP32] = {ORR_FP32, ORR_FP32, ORR_FP32}, [ORR_TF32] = {ORR_FP32, ORR_FP32, ORR_FP32},
        [ORR_BF16] = {ORR_FP16, ORR_FP32, ORR_FP32}, [ORR_FP16] = {ORR_BF16, ORR_FP32, ORR_FP32},
        [ORR_FP8] = {ORR_BF16, ORR_FP16, ORR_FP32},  [ORR_FP4] = {ORR_FP8, ORR_BF16, ORR_FP16},
        [ORR_INT8] = {ORR_FP8, ORR_BF16, ORR_FP16},
    };
    if (gpu->peak_flops_per_s[dtype] > 0.0)
        return dtype;
    for (int i = 0; i < 3; i++)
        if (gpu->peak_flops_per_s[wider[dtype][i]] > 0.0)
            return wider[dtype][i];
    return ORR_FP32;
}

/* In the tables the rate of large products falls from kernels of 3 ms on, until at some length it
 * is that of long runs (doc/models/kernels.md, "Sustained clocks"). */
#define THROTTLE_BEGINS_NS 3.2e6

double orr_cost__unthrottle(const OrrCost *cost, double ns) {
    if (ns <= THROTTLE_BEGINS_NS || cost->clock_frac >= 1.0 ||
        cost->throttled_ns <= THROTTLE_BEGINS_NS)
        return ns;
    double part = log(ns / THROTTLE_BEGINS_NS) / log(cost->throttled_ns / THROTTLE_BEGINS_NS);
    return ns * (1.0 - (1.0 - cost->clock_frac) * fmin(1.0, part));
}

char *orr_cost__origin(const OrrGpu *gpu, const OrrSurfaceSet *set, const OrrSurface *surface) {
    if (!surface)
        return g_strdup("roofline");
    bool is_own = !g_strcmp0(set->gpu, gpu->name);
    return g_strdup_printf("surface %s %s %s%s%s", orr_kernel_kind_name(surface->kind),
                           orr_dtype_name(surface->dtype), set->name, is_own ? "" : ", scaled to ",
                           is_own ? "" : gpu->name);
}

static bool is_product(const OrrKernel *k) {
    return k->kind == ORR_K_GEMM || k->kind == ORR_K_GROUPED_GEMM || k->kind == ORR_K_BATCHED_GEMM;
}

int64_t orr_cost_kernel_ns(const OrrCost *cost, const OrrKernel *k) {
    double ns = is_product(k)                ? orr_cost__gemm_ns(cost, k)
                : k->kind == ORR_K_ATTENTION ? orr_cost__attention_ns(cost, k)
                                             : orr_cost__streaming_ns(cost, k);
    return (int64_t)fmax(1.0, ceil(ns));
}

/* Speed of kernels between the others of a step over their speed in a loop of their own: operands
 * come cold from HBM, kernels are chosen without tuning. Up to Ampere: layer times of Korthikanti
 * et al. 2022 (arXiv 2205.05198, table 4) less their collectives, over the sums of isolated
 * kernels: 0.94, 0.92, 0.94. From Hopper on: DeepSeek-V3's training profile over DeepGEMM's own
 * table, dense products 0.89, grouped 0.97. */
#define AMPERE_IN_STEP_RATE 0.93
#define HOPPER_IN_STEP_RATE 0.89
#define GROUPED_IN_STEP_RATE 0.97

static double in_step_rate(OrrArch arch, OrrKernelKind kind) {
    if (arch <= ORR_ARCH_AMPERE)
        return AMPERE_IN_STEP_RATE;
    return kind == ORR_K_GROUPED_GEMM ? GROUPED_IN_STEP_RATE : HOPPER_IN_STEP_RATE;
}

int64_t orr_cost_in_step_ns(const OrrCost *cost, const OrrKernel *k) {
    double rate = in_step_rate(cost->gpu->arch, (OrrKernelKind)k->kind);
    return (int64_t)ceil((double)orr_cost_kernel_ns(cost, k) / rate);
}

const char *orr_cost_origin(const OrrCost *cost, const OrrKernel *k) {
    if (is_product(k))
        return cost->gemm[k->dtype].origin;
    if (k->kind == ORR_K_ATTENTION)
        return cost->attn[k->dtype][ORR_MASK_CAUSAL].origin;
    return cost->rates.stream_frac > 0.0 ? "bytes over measured bandwidth"
                                         : "bytes over HBM bandwidth";
}
