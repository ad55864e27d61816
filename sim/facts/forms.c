/* Analytic forms of kernel time.
 *
 * Matrix product: the tile of the output that one SM works on is one of a small set, k may be
 * split; the library is taken to choose the best. Tiles run in waves over the SMs; a partial last
 * wave costs between its share and a whole one (persistent and stream-K kernels are nearer the
 * first). Source of the idea: NVIDIA, Deep Learning Performance guide, "Matrix Multiplication
 * Background", tile and wave quantisation; Williams et al. 2009, roofline; Osama et al. 2023,
 * stream-K. Attention: one SM takes a tile of 128 queries of one head through all its keys (Dao
 * 2023, FlashAttention-2, section 3.2). Left out: L2 misses, cluster sizes, choice errors of the
 * library's heuristics; the surfaces absorb what is smooth of them. */
#include "sim/facts/forms.h"

#include <math.h>

#define NS_PER_S 1e9
#define QUERY_TILE 128.0  /* Dao 2023, section 3.2; Shah et al. 2024, FlashAttention-3, table 1 */
#define MAX_SPLIT 8.0     /* split-K beyond this never won on the tables */
#define MIN_SPLIT_K 256.0 /* k of a split below which a main loop does not pay */

/* Smooth maximum: fourth-power mean. Compute and memory phases overlap, but not perfectly where
 * they are about equal; the exponent is within the 2 to 5 that free fits gave. */
static double overlap(double a, double b) {
    double a2 = a * a, b2 = b * b;
    return sqrt(sqrt(a2 * a2 + b2 * b2));
}

double orr_form_gemm_bytes(const OrrGemmShape *s) {
    double result_bytes = s->operand_bytes > 2.0 ? s->operand_bytes : 2.0;
    return s->batch * ((s->m * s->k + s->k * s->n) * s->operand_bytes + s->m * s->n * result_bytes);
}

/* Waves of @units equal pieces of work on @slots. */
static double waves(double units, double slots, double wave_frac) {
    double x = units / slots;
    if (x <= 1.0)
        return 1.0;
    return wave_frac * ceil(x) + (1.0 - wave_frac) * x;
}

typedef struct {
    double m, n;
    OrrGemmParam eff; /* relative rate; ORR_GEMM_EFF stands for 1 */
} Tile;

static const Tile tiles[] = {
    {128, 256, ORR_GEMM_EFF},   {256, 128, ORR_GEMM_EFF},   {128, 128, ORR_GEMM_EFF_128},
    {128, 64, ORR_GEMM_EFF_64}, {64, 128, ORR_GEMM_EFF_64}, {64, 64, ORR_GEMM_EFF_64_64},
};

/* Steps of k that the ends of a tile cost. They were fitted with 2 bytes written an element of the
 * result; 65 KB in 1.3 us an SM on H100 is about what L2 takes, so they are the result's traffic,
 * and a gradient added into FP32 (4 bytes read, 4 written) costs four times as many. */
static double extra_steps(const double *p, const OrrGemmShape *s) {
    double elements = s->batch * s->m * s->n;
    double operands = s->batch * (s->m + s->n) * s->k * s->operand_bytes;
    return p[ORR_GEMM_K_EXTRA] * fmax(1.0, (s->bytes - operands) / (2.0 * elements));
}

/* Best time of one tile over the splits of k; @flop_ns: ns of one FLOP on one SM. */
static double tile_ns(const double *p, const OrrGemmShape *s, const Tile *tile, double flop_ns,
                      double extra) {
    double rel = tile->eff == ORR_GEMM_EFF ? 1.0 : p[tile->eff];
    double step_ns = 2.0 * tile->m * tile->n * flop_ns / rel;
    double n_tiles = ceil(s->m / tile->m) * ceil(s->n / tile->n) * s->batch;
    double best = INFINITY;
    for (double split = 1.0; split <= MAX_SPLIT; split *= 2.0) {
        if (split > 1.0 && (s->k / split < MIN_SPLIT_K || n_tiles * split > 2.0 * p[ORR_GEMM_SMS]))
            break;
        double ns = waves(n_tiles * split, p[ORR_GEMM_SMS], p[ORR_GEMM_WAVE_FRAC]) * step_ns *
                    (s->k / split + extra);
        if (split > 1.0) /* partial sums in FP32: written and read, half of it hidden */
            ns += p[ORR_GEMM_SPLIT] +
                  4.0 * s->m * s->n * s->batch * split * 0.5 / p[ORR_GEMM_HBM] * NS_PER_S;
        best = fmin(best, ns);
    }
    return best;
}

double orr_form_gemm_ns(const double *p, const OrrGemmShape *s, double clock_frac) {
    double flop_ns = NS_PER_S * p[ORR_GEMM_SMS] / (p[ORR_GEMM_PEAK] * p[ORR_GEMM_EFF] * clock_frac);
    double compute_ns = INFINITY, extra = extra_steps(p, s);
    for (unsigned i = 0; i < sizeof tiles / sizeof tiles[0]; i++)
        compute_ns = fmin(compute_ns, tile_ns(p, s, &tiles[i], flop_ns, extra));
    double memory_ns = s->bytes / (p[ORR_GEMM_HBM] * p[ORR_GEMM_HBM_FRAC]) * NS_PER_S;
    return overlap(compute_ns, memory_ns) + p[ORR_GEMM_FIXED];
}

double orr_form_gemm_prep_ns(const double *p, const OrrGemmShape *s) {
    return s->batch * s->m * s->k * p[ORR_GEMM_QUANT_BYTES] / p[ORR_GEMM_HBM] * NS_PER_S +
           p[ORR_GEMM_QUANT_FIXED];
}

void orr_form_gemm_place(const OrrGemmShape *s, double x[ORR_SURFACE_AXES]) {
    x[0] = log2(s->m * s->batch);
    x[1] = log2(s->n);
    x[2] = log2(s->k);
}

double orr_form_attn_bytes(const OrrAttnShape *s, double operand_bytes) {
    double q = s->m * s->heads * s->dim_qk, o = s->m * s->heads * s->dim_v;
    double kv = s->n * s->kv_heads * (s->dim_qk + s->dim_v);
    return s->batch * ((q + kv) * operand_bytes + o * 2.0);
}

/* Keys that an average query attends to. */
static double mean_keys(const OrrAttnShape *s) {
    double keys = s->n;
    if (s->is_causal)
        keys = s->n >= s->m ? s->n - s->m / 2.0 : s->n * s->n / (2.0 * s->m);
    return keys * s->visited_frac;
}

double orr_form_attn_flops(const OrrAttnShape *s) {
    return 2.0 * s->batch * s->heads * s->m * mean_keys(s) * (s->dim_qk + s->dim_v);
}

double orr_form_attn_ns(const double *p, const OrrAttnShape *s, double clock_frac) {
    double flop_ns = NS_PER_S * p[ORR_ATTN_SMS] / (p[ORR_ATTN_PEAK] * p[ORR_ATTN_EFF] * clock_frac);
    double units = ceil(s->m / QUERY_TILE) * s->batch * s->heads;
    double key_ns = 2.0 * QUERY_TILE * (s->dim_qk + s->dim_v) * flop_ns;
    /* a causal tile masks half of its diagonal block but computes it whole */
    double keys = mean_keys(s) + (s->is_causal ? QUERY_TILE / 2.0 : 0.0) + p[ORR_ATTN_KV_EXTRA];
    double mean_ns = waves(units, p[ORR_ATTN_SMS], p[ORR_ATTN_WAVE_FRAC]) * keys * key_ns;
    double longest = fmin(s->n, 2.0 * mean_keys(s)); /* the last tile of a causal mask or window */
    double longest_ns = (longest + p[ORR_ATTN_KV_EXTRA]) * key_ns;
    double memory_ns = s->bytes / (p[ORR_ATTN_HBM] * p[ORR_ATTN_HBM_FRAC]) * NS_PER_S;
    return overlap(fmax(mean_ns, longest_ns), memory_ns) + p[ORR_ATTN_FIXED];
}

double orr_form_attn_prep_ns(const double *p, const OrrAttnShape *s) {
    double elements =
        s->batch * (s->m * s->heads * s->dim_qk + s->n * s->kv_heads * (s->dim_qk + s->dim_v));
    return elements * p[ORR_ATTN_PREP_BYTES] / p[ORR_ATTN_HBM] * NS_PER_S;
}

void orr_form_attn_place(const OrrAttnShape *s, double x[ORR_SURFACE_AXES]) {
    x[0] = log2(s->n);
    x[1] = log2(s->batch * s->heads);
    x[2] = log2(s->dim_qk);
}
