/* Findings about memory. */
#include "sim/report/findings_priv.h"

#include "sim/report/report_priv.h"

static const OrrRecordStage *fullest(const OrrRecord *r) {
    const OrrRecordStage *worst = &r->stages[0];
    for (uint32_t s = 1; s < r->n_stages; s++)
        if (r->stages[s].peak_bytes > worst->peak_bytes)
            worst = &r->stages[s];
    return worst;
}

static OrrMemKind largest_kind(const OrrRecordStage *s) {
    int best = 0;
    for (int m = 1; m < ORR_N_MEM_KINDS; m++)
        if (s->mem_bytes[m] > s->mem_bytes[best])
            best = m;
    return (OrrMemKind)best;
}

/* Advice by what takes most. Sources: activation recomputation and sequence parallelism,
 * Korthikanti et al. 2022; ZeRO, Rajbhandari et al. 2020. */
static const char *const relief[ORR_N_MEM_KINDS] = {
    [ORR_MEM_WEIGHTS] = "Weights take most: more TP or PP, or ZeRO stage 3.",
    [ORR_MEM_GRADIENTS] = "Gradients take most: shard them (ZeRO stage 2), or more TP or PP.",
    [ORR_MEM_OPTIMIZER] = "Optimizer states take most: spread them over DP (ZeRO stage 1, the "
                          "distributed optimizer), which helps the more the larger DP is; or more "
                          "TP or PP.",
    [ORR_MEM_ACTIVATIONS] = "Activations take most:",
    [ORR_MEM_LOGITS] = "Logits take most: a smaller MBS, more TP (vocabulary-parallel), or a fused "
                       "cross entropy.",
    [ORR_MEM_COMM_BUFFERS] = "Communication buffers take most: smaller buckets, fewer "
                             "communicators or prefetched layers.",
    [ORR_MEM_ALLOCATOR] = "Allocator slack takes most: expandable segments, steadier shapes.",
    [ORR_MEM_CONTEXT] = "The CUDA and NCCL contexts take most: a larger GPU, fewer communicators.",
};

/* What of the usual means is not used yet. */
static void activation_advice(const OrrRecord *r, GString *advice) {
    const OrrRecordLayout *l = &r->layout;
    if (l->tp > 1 && !l->sequence_parallel)
        g_string_append(advice, " sequence parallelism,");
    if (g_str_has_prefix(r->recompute, "none"))
        g_string_append(advice, " selective recompute,");
    if (!g_str_has_prefix(r->recompute, "full"))
        g_string_append(advice, " full recompute (of some layers),");
    if (l->micro_batch > 1)
        g_string_append(advice, " a smaller MBS,");
    g_string_append(advice, " more TP or CP.");
}

static void name_worst(OrrRuleCase *k, const char *room_word, double room_bytes) {
    const OrrRecordStage *s = fullest(k->r);
    OrrMemKind kind = largest_kind(s);
    OrrFixed peak = orr_report__gib((double)s->peak_bytes), room = orr_report__gib(room_bytes);
    OrrFixed capacity = orr_report__gib((double)k->r->capacity_bytes);
    OrrFixed part = orr_report__gib((double)s->mem_bytes[kind]);
    g_string_append_printf(k->evidence,
                           "stage %u (%u layers%s%s) peaks at %s of %s, %s %s; %s of it "
                           "are %s.",
                           s->stage, s->layers, s->has_embedding ? ", embedding" : "",
                           s->has_head ? ", head" : "", peak.text, capacity.text, room.text,
                           room_word, part.text, orr_mem_kind_name(kind));
    g_string_append(k->advice, relief[kind]);
    if (kind == ORR_MEM_ACTIVATIONS)
        activation_advice(k->r, k->advice);
}

static void does_not_fit(OrrRuleCase *k) {
    if (k->r->verdict != ORR_DOES_NOT_FIT)
        return;
    uint32_t n = 0;
    for (uint32_t s = 0; s < k->r->n_stages; s++)
        n += k->r->stages[s].verdict == ORR_DOES_NOT_FIT;
    if (k->r->n_stages > 1)
        g_string_append_printf(k->evidence, "%u of %u stages do not fit; the worst, ", n,
                               k->r->n_stages);
    name_worst(k, "too much", (double)(fullest(k->r)->peak_bytes - k->r->capacity_bytes));
}

static void tight(OrrRuleCase *k) {
    if (k->r->verdict == ORR_TIGHT)
        name_worst(k, "free", (double)(k->r->capacity_bytes - fullest(k->r)->peak_bytes));
}

const OrrRule orr_findings__memory[] = {
    {{"stage_does_not_fit", "The peak of a stage is above what its GPU has.",
      "DESIGN.md, section 4, Memory"},
     does_not_fit},
    {{"memory_tight", "Under 5 % of the memory is free at the peak.",
      "DESIGN.md, section 4, Memory"},
     tight},
    {{NULL, NULL, NULL}, NULL},
};
