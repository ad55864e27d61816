/* Memory-bound kernels: bytes over the bandwidth that such a kernel reaches, and a fixed cost for
 * each device kernel. The bandwidth is the GPU's streaming share of HBM (its data file) times a
 * share by kind. What the kernel before has just written is read from L2 as far as it fits there.
 * Left out: uncoalesced access, occupancy limits of tiny kernels (the fixed cost stands for them).
 */
#include "sim/cost/cost_priv.h"

#include <math.h>

#define NS_PER_S 1e9

typedef struct {
    double forward, backward;
} Share;

/* Share of the streaming bandwidth by kind and pass. Plain streams are 1 by definition.
 * Norms: A100, 4096 x 4096 and 8192 x 4096, of 2039 GB/s: fused forward 1130 to 1410, framework's
 * own 940 to 990; backward with weight gradients 310 to 630, without 750 to 1520 (allenai/OLMo
 * issue 258): 0.55 to 0.69 forward, of which the streaming share takes 0.85; backward about 0.4.
 * Softmax and cross-entropy reduce rows as norms do, without weight gradients. Gathers by row
 * (embedding, permutation) and their scatters: between the two. */
static const Share share[ORR_N_KERNEL_KINDS] = {
    [ORR_K_SOFTMAX] = {0.8, 0.8},    [ORR_K_NORM] = {0.75, 0.5},
    [ORR_K_ROTARY] = {0.85, 0.85},   [ORR_K_ACTIVATION] = {1.0, 1.0},
    [ORR_K_RESIDUAL] = {1.0, 1.0},   [ORR_K_DROPOUT] = {1.0, 1.0},
    [ORR_K_EMBEDDING] = {0.75, 0.5}, [ORR_K_CROSS_ENTROPY] = {0.8, 0.8},
    [ORR_K_ROUTER] = {0.75, 0.75},   [ORR_K_PERMUTE] = {0.75, 0.75},
    [ORR_K_CAST] = {1.0, 1.0},       [ORR_K_COPY] = {1.0, 1.0},
    [ORR_K_GRADIENT] = {1.0, 1.0},   [ORR_K_OPTIMIZER] = {1.0, 1.0},
};

/* Half of L2 is taken to hold the previous kernel's output, the other half this one's; hits cost a
 * share of HBM time (A100: L2 reads 5120 bytes a clock, 3.5 times HBM: NVIDIA A100 whitepaper). */
#define L2_KEPT_FRAC 0.5
#define L2_TIME_FRAC (1.0 / 3.5)

/* The share by kind: as measured on this machine, else as above. */
static double share_of(const OrrCost *cost, const OrrKernel *k) {
    if (k->kind >= ORR_N_KERNEL_KINDS)
        return 1.0;
    bool is_forward = k->pass == ORR_PASS_FORWARD;
    double measured = cost->rates.share[k->kind][!is_forward];
    double shipped = is_forward ? share[k->kind].forward : share[k->kind].backward;
    return measured > 0.0 ? measured : shipped > 0.0 ? shipped : 1.0;
}

double orr_cost__streaming_ns(const OrrCost *cost, const OrrKernel *k) {
    const OrrGpu *gpu = cost->gpu;
    double by_kind = share_of(cost, k);
    double streaming = cost->rates.stream_frac > 0.0 ? cost->rates.stream_frac
                       : gpu->mem_eff_frac > 0.0     ? gpu->mem_eff_frac
                                                     : 1.0;
    double rate = gpu->hbm_bytes_per_s * streaming * by_kind;
    double hit = fmin(k->bytes_read, L2_KEPT_FRAC * gpu->l2_bytes);
    double bytes = k->bytes_read + k->bytes_written - hit * (1.0 - L2_TIME_FRAC);
    double memory_ns = bytes / rate * NS_PER_S;
    double vector_ns = 0.0;
    if (gpu->vector_flops_per_s > 0.0)
        vector_ns = k->flops / (gpu->vector_flops_per_s * cost->clock_frac) * NS_PER_S;
    double launches = k->launches > 1 ? k->launches : 1.0;
    return fmax(memory_ns, vector_ns) + cost->fixed_ns * launches;
}
