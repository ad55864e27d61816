/* A simulated step against a profiler trace of one rank: kernels by kind, exposed communication by
 * collective, idle time by whether the host had launched what came next. A bubble shows in a trace
 * as a receive that waits, so it is compared with exposed sends and receives. */
#include <math.h>
#include <string.h>

#include "sim/judge/judge_priv.h"

#define N_EXPOSED (ORR_N_COLLECTIVES + 1) /* the last: kind not known by its name */

static const char *const exposed_names[N_EXPOSED] = {
    [ORR_ALL_REDUCE] = "exposed_all_reduce",
    [ORR_ALL_GATHER] = "exposed_all_gather",
    [ORR_REDUCE_SCATTER] = "exposed_reduce_scatter",
    [ORR_ALL_TO_ALL] = "exposed_all_to_all",
    [ORR_BROADCAST] = "exposed_broadcast",
    [ORR_REDUCE] = "exposed_reduce",
    [ORR_SEND_RECV] = "exposed_send_receive_and_bubble",
    [ORR_N_COLLECTIVES] = "exposed_not_known_by_name",
};

/* The owners of exposed time, each divided over the collectives of its kind as they were exposed.
 */
static void simulated_exposed(const OrrRecord *one, int64_t ns[N_EXPOSED]) {
    for (int k = 0; k < ORR_N_COMM_KINDS; k++) {
        int64_t left = one->time_account_ns[ORR_OWN_EXPOSED_FIRST + k], sum = 0;
        int last = ORR_N_COLLECTIVES;
        for (uint32_t i = 0; i < one->n_comms; i++)
            sum += (int)one->comms[i].kind == k ? one->comms[i].exposed_ns : 0;
        double scale = sum > 0 ? (double)left / (double)sum : 0;
        for (uint32_t i = 0; i < one->n_comms; i++) {
            if ((int)one->comms[i].kind != k)
                continue;
            int64_t part = (int64_t)(scale * (double)one->comms[i].exposed_ns);
            last = (int)one->comms[i].collective;
            ns[last] += part;
            left -= part;
        }
        ns[k == ORR_COMM_PP && sum == 0 ? ORR_SEND_RECV : last] += left;
    }
    ns[ORR_SEND_RECV] += one->time_account_ns[ORR_OWN_BUBBLE];
}

/* Of the trace's exposed time; calls side by side share it. */
static void measured_exposed(const OrrMeasuredProfile *p, double steps, int64_t ns[N_EXPOSED]) {
    double sum = 0;
    for (uint32_t i = 0; i < p->n_transfers; i++)
        sum += p->transfers[i].exposed_ns;
    double scale = sum > 0 ? p->exposed_ns / sum / steps : 0;
    for (uint32_t i = 0; i < p->n_transfers; i++) {
        const OrrMeasuredTransfer *t = &p->transfers[i];
        ns[t->has_kind ? (int)t->kind : ORR_N_COLLECTIVES] += (int64_t)(scale * t->exposed_ns);
    }
    if (p->n_transfers == 0)
        ns[ORR_N_COLLECTIVES] += (int64_t)(p->exposed_ns / steps);
}

/* Kinds that PyTorch's kernels have no names for: where a trace has none of them, they are among
 * those of @into. */
static const struct {
    OrrKernelKind kind;
    int into; /* a kind, or ORR_N_KERNEL_KINDS: not known by name */
} nameless[] = {{ORR_K_BATCHED_GEMM, ORR_K_GEMM},
                {ORR_K_RESIDUAL, ORR_N_KERNEL_KINDS},
                {ORR_K_GRADIENT, ORR_N_KERNEL_KINDS},
                {ORR_K_DROPOUT, ORR_N_KERNEL_KINDS},
                {ORR_K_CAST, ORR_N_KERNEL_KINDS}};

static void add_kernels(OrrCompare *c, const OrrRecord *one, const OrrMeasuredProfile *p,
                        double steps) {
    int64_t simulated[ORR_N_KERNEL_KINDS + 1] = {0};
    memcpy(simulated, one->time_account_ns, ORR_N_KERNEL_KINDS * sizeof *simulated);
    bool is_merged = false;
    for (size_t i = 0; i < G_N_ELEMENTS(nameless); i++) {
        OrrKernelKind kind = nameless[i].kind;
        if (p->kind_ns[kind] > 0 || p->kind_ns[nameless[i].into] <= 0)
            continue;
        is_merged |= nameless[i].into == ORR_N_KERNEL_KINDS && simulated[kind] > 0;
        simulated[nameless[i].into] += simulated[kind];
        simulated[kind] = 0;
    }
    for (int k = 0; k < ORR_N_KERNEL_KINDS; k++)
        orr_judge__add_term(c, orr_kernel_kind_name((OrrKernelKind)k), simulated[k],
                            (int64_t)(p->kind_ns[k] / steps));
    orr_judge__add_term(c, is_merged ? "elementwise_and_not_known" : "kernels_not_known_by_name",
                        simulated[ORR_N_KERNEL_KINDS],
                        (int64_t)(p->kind_ns[ORR_N_KERNEL_KINDS] / steps));
    orr_judge__add_term(c, "copies", 0, (int64_t)(p->copy_ns / steps));
    orr_judge__add_term(c, "interference", one->time_account_ns[ORR_OWN_INTERFERENCE], 0);
}

static void add_idle(OrrCompare *c, const OrrRecord *one, const OrrMeasuredProfile *p,
                     double steps) {
    const int64_t *account = one->time_account_ns;
    int64_t host = account[ORR_OWN_HOST];
    int64_t other = account[ORR_OWN_DATA] + account[ORR_OWN_STEP_END] + account[ORR_OWN_STRAGGLER];
    if (isnan(p->host_idle_ns)) {
        orr_judge__add_term(c, "idle", host + other, (int64_t)(p->idle_ns / steps));
        g_ptr_array_add(c->notes, g_strdup("the trace has no launches: idle time is not divided"));
        return;
    }
    orr_judge__add_term(c, "host", host, (int64_t)(p->host_idle_ns / steps));
    orr_judge__add_term(c, "idle_though_launched", other,
                        (int64_t)((p->idle_ns - p->host_idle_ns) / steps));
}

OrrCompare *orr_judge_compare_profile(const OrrRecord *one, const OrrMeasuredProfile *profile) {
    OrrCompare *c = orr_judge__compare_new();
    double steps = MAX(profile->n_steps, 1);
    int64_t simulated[N_EXPOSED] = {0}, measured[N_EXPOSED] = {0};
    c->one_ns = one->step_time_ns;
    c->other_ns = (int64_t)ceil(profile->window_ns / steps);
    add_kernels(c, one, profile, steps);
    simulated_exposed(one, simulated);
    measured_exposed(profile, steps, measured);
    for (int e = 0; e < N_EXPOSED; e++)
        orr_judge__add_term(c, exposed_names[e], simulated[e], measured[e]);
    add_idle(c, one, profile, steps);
    orr_judge__settle(c, "streams_side_by_side");
    orr_judge__note_count(c, "gpus", one->world_size, profile->world_size);
    if (profile->gpu && one->gpu[0])
        g_ptr_array_add(c->notes,
                        g_strdup_printf("GPU: %s simulated, %s traced", one->gpu, profile->gpu));
    g_ptr_array_add(c->notes, g_strdup("in a trace, interference is part of the kernels, and waits "
                                       "for peers are part of exposed communication"));
    if (profile->n_steps == 0)
        g_ptr_array_add(c->notes, g_strdup("the trace marks no steps: its whole window counts as "
                                           "one"));
    return c;
}
