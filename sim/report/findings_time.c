/* Findings about lost time: what the time account says, with the largest loss named. */
#include "sim/report/findings_priv.h"

#include "sim/report/report_priv.h"

#define MFU_LOW_FRAC (1.0 / 3) /* DESIGN.md, section 6: MFU below a third */
/* A loss below this share of the step is not worth a sentence: ours. */
#define LOSS_FRAC 0.05
#define BUBBLE_FRAC 0.10 /* of the step; M = 10 (P - 1) / V gives about this */
#define HOST_FRAC 0.05
#define IMBALANCE_FRAC 1.08 /* heaviest stage over the mean of the stages */

static double busy_frac(const OrrRecord *r) {
    double busy = 0;
    for (uint32_t o = 0; o < ORR_N_KERNEL_KINDS; o++)
        busy += orr_findings__share(r, o);
    return busy;
}

/* The largest owner that is not a kernel. */
static uint32_t largest_loss(const OrrRecord *r) {
    uint32_t best = ORR_OWN_INTERFERENCE;
    for (uint32_t o = ORR_OWN_INTERFERENCE; o < ORR_N_OWNERS; o++)
        if (r->time_account_ns[o] > r->time_account_ns[best])
            best = o;
    return best;
}

static void mfu_low(OrrRuleCase *k) {
    const OrrRecordMfu *m = &k->r->mfu[0];
    if (m->mfu_frac >= MFU_LOW_FRAC)
        return;
    uint32_t loss = largest_loss(k->r);
    double kernels = busy_frac(k->r);
    OrrFixed mfu = orr_report__percent(m->mfu_frac), busy = orr_report__percent(kernels);
    OrrFixed peak = orr_report__fixed(m->peak_flops_per_s * 1e-12, 1);
    OrrFixed share = orr_report__percent(orr_findings__share(k->r, loss));
    OrrFixed inside = orr_report__percent(kernels > 0 ? m->mfu_frac / kernels : 0);
    g_string_append_printf(
        k->evidence,
        "MFU is %s of the dense peak of %s TFLOP/s (formula %s). "
        "Kernels run for %s of the step, and reach %s of the peak while they do; the largest loss "
        "outside them is %s with %s.",
        mfu.text, peak.text, m->formula, busy.text, inside.text,
        orr_report__owner_words((OrrOwner)loss), share.text);
    /* what is lost inside the kernels against what is lost outside of them */
    if (kernels - m->mfu_frac > 1 - kernels)
        g_string_append(k->advice,
                        "More is lost inside the kernels than between them: look at the "
                        "size of the matrix products, at recomputation and at memory-bound kernels "
                        "first.");
    else
        g_string_append_printf(k->advice, "Start with the largest loss: %s.",
                               orr_report__owner_words((OrrOwner)loss));
}

/* How fast NICs would have to be for what crosses between nodes to take as long as the kernels.
 * Rates scale with the NIC where it is the bottleneck; latency is left out. */
static void network_break_even(OrrRuleCase *k, double kernels_ns) {
    double moving_ns = 0;
    uint32_t size = 0;
    for (uint32_t i = 0; i < k->r->n_groups; i++)
        if (k->r->groups[i].kind == ORR_GROUP_DP_CP && k->r->groups[i].domains > 1)
            size = k->r->groups[i].size;
    for (uint32_t i = 0; i < k->r->n_comms; i++) {
        const OrrRecordComm *c = &k->r->comms[i];
        if (c->group_size == size &&
            (c->kind == ORR_COMM_DP_GRADIENT || c->kind == ORR_COMM_DP_PARAMETER))
            moving_ns += (double)c->transfer_ns;
    }
    double nic = k->c->cluster ? 8e-9 * k->c->cluster->node->nic_bytes_per_s : 0;
    if (moving_ns <= kernels_ns || kernels_ns <= 0 || nic <= 0)
        return;
    OrrFixed now = orr_report__fixed(nic, 0),
             needed = orr_report__fixed(nic * moving_ns / kernels_ns, 0);
    g_string_append_printf(k->evidence,
                           " Transfers between nodes would take as long as the kernels with NICs "
                           "of about %s Gb/s; they have %s.",
                           needed.text, now.text);
}

static void communication_above_compute(OrrRuleCase *k) {
    double moving = 0, kernels = 0;
    for (uint32_t i = 0; i < k->r->n_comms; i++)
        moving += (double)k->r->comms[i].transfer_ns;
    for (uint32_t o = 0; o < ORR_N_KERNEL_KINDS; o++)
        kernels += (double)k->r->time_account_ns[o];
    if (moving <= kernels)
        return;
    OrrFixed a = orr_report__time(moving), b = orr_report__time(kernels);
    g_string_append_printf(k->evidence,
                           "transfers take %s a step and rank, kernels %s: even hidden "
                           "perfectly, communication would bound the step.",
                           a.text, b.text);
    network_break_even(k, kernels);
    g_string_append(k->advice,
                    "Fewer bytes or a faster network: keep TP inside the node, a larger "
                    "batch per rank, less sharding across slow links (hybrid sharding), more "
                    "gradient accumulation.");
}

static void few_micro_batches(OrrRuleCase *k) {
    const OrrRecordLayout *l = &k->r->layout;
    if (l->pp < 2 || k->r->bubble_of_step_frac < BUBBLE_FRAC)
        return;
    OrrFixed bubble = orr_report__percent(k->r->bubble_of_step_frac);
    uint32_t enough = (19 * (l->pp - 1) + l->vpp - 1) / l->vpp; /* (P-1)/(V M) = 1/19: 5 % */
    g_string_append_printf(k->evidence,
                           "the bubble is %s of the step: M = %u micro-batches on P = %u "
                           "stages with V = %u chunks.",
                           bubble.text, l->micro_batches, l->pp, l->vpp);
    if (l->micro_batches >= enough)
        g_string_append(k->advice, "M is large enough for equal stages: look at uneven stages and "
                                   "at the time of sends.");
    else
        g_string_append_printf(
            k->advice,
            "About M = %u would bring it to 5 %% (equal stages). At "
            "fixed GBS, M grows with a smaller MBS or less DP (a larger MBS makes it worse); more "
            "chunks a stage (interleaved), fewer stages or a zero-bubble schedule help too.",
            enough);
}

static const OrrRecordGroup *group_of(const OrrRecord *r, OrrGroup kind) {
    for (uint32_t i = 0; i < r->n_groups; i++)
        if (r->groups[i].kind == kind)
            return &r->groups[i];
    return NULL;
}

static void tp_across_nodes(OrrRuleCase *k) {
    const OrrRecordGroup *g = group_of(k->r, ORR_GROUP_TP);
    if (!g || g->domains < 2)
        return;
    OrrFixed share =
        orr_report__percent(orr_findings__share(k->r, ORR_OWN_EXPOSED_FIRST + ORR_COMM_TP));
    g_string_append_printf(k->evidence,
                           "a TP group of %u ranks (%s) spans %u nodes over %s; exposed "
                           "TP communication is %s of the step.",
                           g->size, g->members, g->nodes, g->network, share.text);
    g_string_append(k->advice,
                    "TP talks in every layer and belongs inside the NVLink domain: lower "
                    "TP and use PP or DP across nodes, or change the rank order so that TP is "
                    "fastest.");
}

static void network_sockets(OrrRuleCase *k) {
    for (uint32_t i = 0; i < k->r->n_groups; i++) {
        const OrrRecordGroup *g = &k->r->groups[i];
        if (g_strcmp0(g->network, "sockets") != 0)
            continue;
        g_string_append_printf(k->evidence,
                               "traffic of the %s groups between nodes goes over TCP "
                               "sockets, not over the compute NICs.",
                               orr_group_name(g->kind));
        g_string_append(
            k->advice,
            "NCCL falls back to sockets when it finds no usable NIC: check "
            "NCCL_IB_HCA and NCCL_IB_DISABLE, and that its log says NET/IB. With sockets "
            "meant, NCCL_NSOCKS_PERTHREAD and NCCL_SOCKET_NTHREADS matter.");
        return;
    }
}

static void host_bound(OrrRuleCase *k) {
    double frac = orr_findings__share(k->r, ORR_OWN_HOST);
    if (frac < HOST_FRAC)
        return;
    OrrFixed share = orr_report__percent(frac);
    g_string_append_printf(k->evidence,
                           "for %s of the step the GPU has nothing to do because the "
                           "host has not issued the next kernel yet.",
                           share.text);
    g_string_append(k->advice,
                    "Fewer, larger kernels: fused kernels, torch.compile or CUDA graphs; a "
                    "larger MBS; a faster single CPU thread.");
}

static void interference(OrrRuleCase *k) {
    double frac = orr_findings__share(k->r, ORR_OWN_INTERFERENCE);
    if (frac < LOSS_FRAC)
        return;
    OrrFixed share = orr_report__percent(frac);
    g_string_append_printf(k->evidence,
                           "kernels lose %s of the step because communication kernels "
                           "hold SMs and memory bandwidth beside them.",
                           share.text);
    g_string_append(k->advice, "Fewer NCCL channels (NCCL_MAX_NCHANNELS) for what hides anyway, or "
                               "transfers by copy engine; overlap hides less than it seems.");
}

static void exposed_kind(OrrRuleCase *k) {
    static const char *const advice[ORR_N_COMM_KINDS] = {
        [ORR_COMM_TP] = "Lower TP where memory allows, or overlap it with the matrix products "
                        "(userbuffers, asynchronous weight gradients).",
        [ORR_COMM_SP] = "Lower TP.",
        [ORR_COMM_CP] = "Lower CP, or a longer sequence per rank.",
        [ORR_COMM_EP] = "Keep EP inside the NVLink domain, or overlap it with the shared expert.",
        [ORR_COMM_PP] = "Overlap sends with compute, or place neighbouring stages closer.",
        [ORR_COMM_DP_GRADIENT] = "Overlap the reduction with the last backward, more micro-batches "
                                 "a step, less DP, or a faster network.",
        [ORR_COMM_DP_PARAMETER] = "Gather parameters ahead of use (prefetch more layers), do not "
                                  "reshard after the forward where memory allows, a larger MBS.",
        [ORR_COMM_EMBEDDING] = "Untie the embedding or overlap its all-reduce.",
        [ORR_COMM_STEP_END] =
            "The overflow check and the gradient norm are barriers over all ranks: "
            "look for late stages and ranks.",
    };
    int worst = 0;
    for (int c = 1; c < ORR_N_COMM_KINDS; c++)
        if (k->r->time_account_ns[ORR_OWN_EXPOSED_FIRST + c] >
            k->r->time_account_ns[ORR_OWN_EXPOSED_FIRST + worst])
            worst = c;
    double frac = orr_findings__share(k->r, ORR_OWN_EXPOSED_FIRST + (uint32_t)worst);
    if (frac < LOSS_FRAC)
        return;
    OrrFixed share = orr_report__percent(frac);
    g_string_append_printf(k->evidence, "%s is %s of the step: the compute stream waits for it.",
                           orr_report__owner_words((OrrOwner)(ORR_OWN_EXPOSED_FIRST + worst)),
                           share.text);
    g_string_append(k->advice, advice[worst]);
}

static void input_starved(OrrRuleCase *k) {
    double frac = orr_findings__share(k->r, ORR_OWN_DATA);
    if (frac < LOSS_FRAC)
        return;
    OrrFixed share = orr_report__percent(frac);
    g_string_append_printf(k->evidence, "for %s of the step the GPU waits for input.", share.text);
    g_string_append(k->advice, "More loader workers, prefetching, or a faster data store.");
}

static void uneven_stages(OrrRuleCase *k) {
    const OrrRecord *r = k->r;
    if (r->n_stages < 2)
        return;
    const OrrRecordStage *heavy = &r->stages[0];
    double mean = 0;
    for (uint32_t s = 0; s < r->n_stages; s++) {
        mean += (double)r->stages[s].busy_ns / r->n_stages;
        if (r->stages[s].busy_ns > heavy->busy_ns)
            heavy = &r->stages[s];
    }
    if ((double)heavy->busy_ns < IMBALANCE_FRAC * mean)
        return;
    OrrFixed over = orr_report__percent((double)heavy->busy_ns / mean - 1);
    g_string_append_printf(k->evidence,
                           "stage %u (%u layers%s%s) works %s longer than the mean of "
                           "the stages, and every other stage waits for it.",
                           heavy->stage, heavy->layers, heavy->has_embedding ? ", embedding" : "",
                           heavy->has_head ? ", head" : "", over.text);
    g_string_append(k->advice,
                    "Give it fewer layers, or the embedding and the head a place of their "
                    "own (layout.ends, layout.stage_layers).");
}

const OrrRule orr_findings__time[] = {
    {{"mfu_low", "MFU is below a third.", "DESIGN.md, section 6"}, mfu_low},
    {{"communication_above_compute", "Transfers take longer than kernels.", "DESIGN.md, section 6"},
     communication_above_compute},
    {{"few_micro_batches", "The pipeline bubble is above 10 % of the step.",
      "bubble (P-1)/(V M): Narayanan et al. 2021, section 2.2"},
     few_micro_batches},
    {{"uneven_stages", "One stage works over 8 % longer than the mean.",
      "NVIDIA-NeMo/Megatron-Bridge pull request 5077"},
     uneven_stages},
    {{"tp_across_nodes", "A tensor-parallel group leaves the NVLink domain.",
      "Narayanan et al. 2021, takeaway 1"},
     tp_across_nodes},
    {{"network_sockets", "NCCL uses TCP sockets between nodes.", "NCCL user guide, NCCL_IB_HCA"},
     network_sockets},
    {{"exposed_communication", "One kind of communication leaves the GPU idle for over 5 %.",
      "DESIGN.md, section 6"},
     exposed_kind},
    {{"interference", "Communication kernels slow the others down by over 5 % of the step.",
      "DESIGN.md, section 4, Overlap"},
     interference},
    {{"host_bound", "The host issues kernels too slowly.", "DESIGN.md, section 4, Kernel time"},
     host_bound},
    {{"input_starved", "The GPU waits for input for over 5 % of the step.", "DESIGN.md, section 6"},
     input_starved},
    {{NULL, NULL, NULL}, NULL},
};
