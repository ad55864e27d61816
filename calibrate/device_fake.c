/* The fake device. Parameters in round numbers near the data sheet of an H100 SXM (NVIDIA 2023);
 * they claim nothing. */
#include "calibrate/device_fake.h"

#include "sim/base/random.h"
#include "sim/facts/forms.h"

#include <math.h>

#define FAKE_SMS 132
#define FAKE_ATTENTION_FRAC 0.7 /* of the products' rate */

const OrrFakeMachine orr_fake_default = {
    .n_gpus = 8,
    .n_per_node = 8,
    .memory_bytes = (int64_t)80 << 30,
    .bf16_flops_per_s = 700e12,
    .hbm_bytes_per_s = 3e12,
    .host_bytes_per_s = 50e9,
    .kernel_ns = 2000,
    .launch_ns = 4000,
    .graph_launch_ns = 1000,
    .link_bytes_per_s = 400e9,
    .link_step_ns = 1500,
    .nic_bytes_per_s = 48e9,
    .nic_step_ns = 5000,
    .compute_slowdown_frac = 0.1,
    .noise_frac = 0.01,
    .seed = 1,
};

typedef struct {
    OrrDevice base;
    OrrFakeMachine machine;
    OrrRanks *ranks;
    double spent_ns;
    int64_t n_timed, n_checked;
} Fake;

struct OrrWork {
    OrrCase c;
    double ns;
};

static double dtype_flops_per_s(const OrrFakeMachine *m, OrrDtype dtype) {
    switch (dtype) {
    case ORR_FP8:
        return 2 * m->bf16_flops_per_s;
    case ORR_TF32:
        return m->bf16_flops_per_s / 2;
    case ORR_FP32:
        return m->bf16_flops_per_s / 16;
    case ORR_BF16:
    case ORR_FP16:
    case ORR_FP4:
    case ORR_INT8:
    case ORR_N_DTYPES:
        break;
    }
    return m->bf16_flops_per_s;
}

/* Products and attention as sim/facts/forms.h has them, with parameters of its own: what a fit of
 * the same form finds can be held against them. */
static double product_ns(const OrrFakeMachine *m, const OrrCase *c) {
    const double p[ORR_N_GEMM_PARAMS] = {[ORR_GEMM_PEAK] = dtype_flops_per_s(m, c->dtype),
                                         [ORR_GEMM_SMS] = FAKE_SMS,
                                         [ORR_GEMM_HBM] = m->hbm_bytes_per_s,
                                         [ORR_GEMM_FIXED] = m->kernel_ns,
                                         [ORR_GEMM_EFF] = 1,
                                         [ORR_GEMM_HBM_FRAC] = 1,
                                         [ORR_GEMM_WAVE_FRAC] = 0.2,
                                         [ORR_GEMM_K_EXTRA] = 50,
                                         [ORR_GEMM_EFF_128] = 0.95,
                                         [ORR_GEMM_EFF_64] = 0.9,
                                         [ORR_GEMM_EFF_64_64] = 0.6,
                                         [ORR_GEMM_SPLIT] = 2000};
    OrrGemmShape shape = {.m = (double)c->m,
                          .n = (double)c->n,
                          .k = (double)c->k,
                          .batch = c->batch ? (double)c->batch : 1,
                          .operand_bytes = orr_dtype_bytes(c->dtype)};
    shape.bytes = orr_form_gemm_bytes(&shape);
    return orr_form_gemm_ns(p, &shape, 1);
}

static double attention_ns(const OrrFakeMachine *m, const OrrCase *c) {
    const double p[ORR_N_ATTN_PARAMS] = {[ORR_ATTN_PEAK] = dtype_flops_per_s(m, c->dtype),
                                         [ORR_ATTN_SMS] = FAKE_SMS,
                                         [ORR_ATTN_HBM] = m->hbm_bytes_per_s,
                                         [ORR_ATTN_FIXED] = m->kernel_ns,
                                         [ORR_ATTN_EFF] = FAKE_ATTENTION_FRAC,
                                         [ORR_ATTN_HBM_FRAC] = 1,
                                         [ORR_ATTN_WAVE_FRAC] = 0.5,
                                         [ORR_ATTN_KV_EXTRA] = 50};
    double d = (double)c->head_dim, length = (double)c->sequence;
    OrrAttnShape shape = {.batch = (double)c->batch,
                          .heads = (double)c->heads,
                          .kv_heads = (double)c->kv_heads,
                          .m = length,
                          .n = length,
                          .dim_qk = d,
                          .dim_v = d,
                          .visited_frac = 1,
                          .is_causal = c->is_causal};
    shape.bytes = orr_form_attn_bytes(&shape, orr_dtype_bytes(c->dtype));
    double forward = orr_form_attn_ns(p, &shape, 1);
    return c->pass == ORR_PASS_FORWARD ? forward : ORR_ATTN_BACKWARD_FLOPS * forward;
}

static double kernel_ns(const OrrFakeMachine *m, const OrrCase *c) {
    double work = orr_case_flops(c) / dtype_flops_per_s(m, c->dtype) * 1e9;
    double moved = orr_case_bytes(c) / m->hbm_bytes_per_s * 1e9;
    return m->kernel_ns + fmax(work, moved);
}

static double copy_ns(const OrrFakeMachine *m, const OrrCase *c) {
    double rate = c->op == ORR_COPY_D2D   ? m->hbm_bytes_per_s
                  : c->op == ORR_COPY_P2P ? m->link_bytes_per_s
                                          : m->host_bytes_per_s;
    return m->kernel_ns + orr_case_bytes(c) / rate * 1e9;
}

/* Hops between nodes of a chunk that goes round @laps times but for @laps hops: of those that it is
 * spared as few as can be are between nodes. */
static double ring_hops_across(double nodes, double per_node, double laps) {
    double spared = per_node > laps ? 0 : per_node > 1 ? laps - 1 : laps;
    return nodes > 1 ? laps * nodes - spared : 0;
}

/* Hops of the one that is last, inside nodes and between them: rings go from node to node once a
 * lap; of sends to all, halves follow one another. */
static void count_hops(const OrrCase *c, double nodes, double *inside, double *across) {
    double n = (double)c->group_gpus;
    double laps = c->op == ORR_ALL_REDUCE ? 2 : 1;
    *inside = laps * (n - 1);
    *across = ring_hops_across(nodes, n / nodes, laps);
    if (c->op == ORR_ALL_TO_ALL) {
        *inside = log2(fmax(2, n / nodes));
        *across = nodes > 1 ? 1 : 0;
    } else if (c->op == ORR_SEND_RECV) {
        *inside = 1;
        *across = nodes > 1 ? 1 : 0;
    } else {
        *inside -= *across;
    }
}

static double collective_ns(const OrrFakeMachine *m, const OrrCase *c) {
    double reach = (double)(c->group_gpus * c->stride), inside, across;
    double nodes = ceil(reach / m->n_per_node);
    count_hops(c, nodes, &inside, &across);
    double per_node = (double)c->group_gpus / nodes;
    double bytes = (double)c->bytes * orr_case_bus_factor((OrrCollective)c->op, c->group_gpus);
    /* Each GPU has its NIC; a ring's bytes leave a node once, through all of them. */
    double link_ns = per_node > 1 ? bytes / m->link_bytes_per_s * 1e9 : 0;
    double nic_ns = nodes > 1 ? bytes / (m->nic_bytes_per_s * per_node) * 1e9 : 0;
    if (c->op == ORR_SEND_RECV && nodes > 1) /* the pair that meets across has one NIC each */
        nic_ns = bytes / m->nic_bytes_per_s * 1e9;
    if (c->op == ORR_ALL_TO_ALL && nodes > 1) {
        double n = (double)c->group_gpus, all = (double)c->bytes;
        link_ns = all * (per_node - 1) / n / m->link_bytes_per_s * 1e9;
        nic_ns = all * (n - per_node) / n / m->nic_bytes_per_s * 1e9;
    }
    double ns =
        m->kernel_ns + inside * m->link_step_ns + across * m->nic_step_ns + fmax(link_ns, nic_ns);
    return c->has_compute ? ns * (1 + m->compute_slowdown_frac) : ns;
}

double orr_fake_time_ns(const OrrFakeMachine *m, const OrrCase *c) {
    switch (c->kind) {
    case ORR_CASE_GEMM:
    case ORR_CASE_BATCHED_GEMM:
    case ORR_CASE_GROUPED_GEMM:
        return product_ns(m, c);
    case ORR_CASE_ATTENTION:
        return attention_ns(m, c);
    case ORR_CASE_UNFUSED_ATTENTION:
    case ORR_CASE_KERNEL:
        return kernel_ns(m, c);
    case ORR_CASE_COPY:
        return copy_ns(m, c);
    case ORR_CASE_LAUNCH:
        return c->op == ORR_LAUNCH_GRAPH  ? m->graph_launch_ns
               : c->op == ORR_LAUNCH_RATE ? m->launch_ns
                                          : m->launch_ns + m->kernel_ns;
    case ORR_CASE_COLLECTIVE:
        return collective_ns(m, c);
    case ORR_N_CASE_KINDS:
        break;
    }
    return 0;
}

static void describe(OrrDevice *d, OrrDeviceFacts *facts) {
    const OrrFakeMachine *m = &((Fake *)d)->machine;
    *facts = (OrrDeviceFacts){.device = "fake",
                              .driver = "",
                              .cuda = "",
                              .cublas = "",
                              .cudnn = "",
                              .nccl = "",
                              .capability = "9.0",
                              .date = "2000-01-01", /* the same bytes each time */
                              .n_sms = FAKE_SMS,
                              .boost_mhz = 1830,
                              .hbm_bytes_per_s = m->hbm_bytes_per_s,
                              .memory_bytes = m->memory_bytes,
                              .n_gpus = m->n_gpus,
                              .n_per_node = m->n_per_node};
}

/* GPUs and memory must be enough, as on a real device. */
static OrrWork *prepare(OrrDevice *d, const OrrCase *c, GError **error) {
    const OrrFakeMachine *m = &((Fake *)d)->machine;
    if (orr_case_bytes(c) * 2 > (double)m->memory_bytes) {
        g_set_error(error, ORR_ERROR, ORR_ERROR_NO, "out of GPU memory");
        return NULL;
    }
    if (c->kind == ORR_CASE_COLLECTIVE &&
        orr_ranks_n_groups(m->n_gpus, (int)c->group_gpus, (int)c->stride) < c->n_groups) {
        g_set_error(error, ORR_ERROR, ORR_ERROR_NO, "needs more than %d GPUs", m->n_gpus);
        return NULL;
    }
    OrrWork *w = g_new0(OrrWork, 1);
    w->c = *c;
    w->ns = orr_fake_time_ns(m, c);
    return w;
}

static bool check(OrrDevice *d, OrrWork *w, double *error_frac, double *tolerance_frac,
                  GError **error) {
    (void)w, (void)error;
    Fake *f = (Fake *)d;
    bool is_wrong = f->machine.wrong_every && ++f->n_checked % f->machine.wrong_every == 0;
    *error_frac = is_wrong ? 1 : 0.001;
    *tolerance_frac = 0.01;
    return true;
}

static bool time_repeats(OrrDevice *d, OrrWork *w, uint32_t n, OrrTiming *timing, GError **error) {
    Fake *f = (Fake *)d;
    const OrrFakeMachine *m = &f->machine;
    f->n_timed++;
    if (m->vanishes_after && f->n_timed > m->vanishes_after)
        return orr_fail_env(error, "the GPU is lost");
    OrrRandom draws = orr_random(m->seed, "fake device");
    double noise =
        m->noise_frac * orr_random_normal(draws, (uint64_t)f->n_timed, (uint64_t)f->ranks->rank);
    timing->ns = w->ns * fmax(1 + noise, 0.5);
    f->spent_ns += timing->ns * n;
    if (w->c.has_compute) {
        timing->compute_ns = 1e6; /* a product of a millisecond */
        timing->compute_beside_ns = timing->compute_ns * (1 + m->compute_slowdown_frac);
    }
    return true;
}

static void release(OrrDevice *d, OrrWork *w) {
    (void)d;
    g_free(w);
}

static void read_sensors(OrrDevice *d, OrrReadings *readings) {
    (void)d;
    *readings = (OrrReadings){NAN, NAN, NAN, NAN};
}

static int64_t now_us(OrrDevice *d) {
    return (int64_t)(((Fake *)d)->spent_ns / 1e3);
}

static void close_fake(OrrDevice *d) {
    g_free(d);
}

static const OrrDeviceKind kind = {
    .name = "fake",
    .describe = describe,
    .prepare = prepare,
    .check = check,
    .time = time_repeats,
    .release = release,
    .read = read_sensors,
    .now_us = now_us,
    .close = close_fake,
};

OrrDevice *orr_device_fake(const OrrFakeMachine *machine, OrrRanks *ranks) {
    Fake *f = g_new0(Fake, 1);
    f->base.kind = &kind;
    f->machine = *machine;
    f->ranks = ranks;
    if (ranks->n_ranks > 1) {
        f->machine.n_gpus = ranks->n_ranks;
        f->machine.n_per_node = ranks->n_local;
    }
    return &f->base;
}
