/* Findings about the work itself: small matrix products, recomputation. */
#include "sim/report/findings_priv.h"

#include "sim/report/report_priv.h"

#include <math.h>

/* Times the ridge of the roofline: below that, tiles, waves and launches leave well under half of
 * the peak. Ours; GPT-2 small on an H100 (S12) has 1.25, Llama 2 7B at TP 8 1.4, at TP 1 4.6. */
#define NARROW_RIDGES 1.5
#define SMALL_MODEL 1e9     /* parameters: below that one may have meant another model (S12) */
#define LOGITS_FRAC 0.15    /* of the matrix FLOPs in the head: above this the vocabulary matters */
#define RECOMPUTE_FRAC 1.10 /* hardware over model FLOPs */
#define ROOM_FRAC 0.25      /* free memory that less recompute could use */

/* FLOPs a byte of the projection that a rank has: m = tokens, k = hidden, n = hidden / TP. */
static double narrow_intensity(const OrrRecord *r, const OrrModel *model, OrrDtype dtype) {
    double m = (double)r->layout.micro_batch * r->layout.sequence_length / r->layout.cp;
    double k = model->hidden, n = (double)model->hidden / r->layout.tp;
    return 2 * m * n * k / (orr_dtype_bytes(dtype) * (m * k + k * n + m * n));
}

/* Share of the matrix FLOPs that the head takes (attention products left out). */
static double head_share(const OrrModel *m) {
    double qkv = (double)m->hidden * m->head_dim * (2.0 * m->heads + 2.0 * m->kv_heads);
    double mlp = (double)m->hidden * m->ffn * (m->is_gated ? 3 : 2);
    double head = (double)m->hidden * m->vocab;
    return head / (head + m->layers * (qkv + mlp));
}

static void small_products(OrrRuleCase *k) {
    if (!k->c->model || !k->c->cluster || !k->c->job)
        return;
    const OrrGpu *gpu = k->c->cluster->node->gpu;
    OrrDtype dtype = k->c->job->precision.compute;
    double ridge = gpu->peak_flops_per_s[dtype] / gpu->hbm_bytes_per_s;
    double intensity = narrow_intensity(k->r, k->c->model, dtype);
    if (!(intensity < NARROW_RIDGES * ridge))
        return;
    OrrFixed params = orr_report__count((double)k->r->parameters_total);
    OrrFixed a = orr_report__fixed(intensity, 0), b = orr_report__fixed(ridge, 0);
    double head = head_share(k->c->model);
    OrrFixed head_text = orr_report__percent(head);
    g_string_append_printf(k->evidence,
                           "the model has %s parameters, hidden size %u on TP %u: a "
                           "rank's square projection does %s FLOP a byte, and the %s needs %s to "
                           "reach its peak even in "
                           "theory.",
                           params.text, k->c->model->hidden, k->r->layout.tp, a.text, gpu->name,
                           b.text);
    if (head > LOGITS_FRAC)
        g_string_append_printf(k->evidence, " The vocabulary of %u takes %s of the matrix FLOPs.",
                               k->c->model->vocab, head_text.text);
    g_string_append_printf(k->advice,
                           "Expect an MFU in the tens%s. %s larger MBS, fused kernels and CUDA "
                           "graphs help.",
                           (double)k->r->parameters_total < SMALL_MODEL
                               ? ": check that this is the model you mean"
                               : "",
                           k->r->layout.tp > 1 ? "Less TP, a" : "A");
}

static void recompute_cost(OrrRuleCase *k) {
    const OrrRecord *r = k->r;
    double ratio = r->hardware_flops_per_step / r->model_flops_per_step;
    if (!(ratio > RECOMPUTE_FRAC) || r->n_stages == 0)
        return;
    int64_t peak = 0;
    for (uint32_t s = 0; s < r->n_stages; s++)
        peak = MAX(peak, r->stages[s].peak_bytes);
    double room = 1 - (double)peak / (double)r->capacity_bytes;
    OrrFixed more = orr_report__percent(ratio - 1), room_text = orr_report__percent(room);
    g_string_append_printf(
        k->evidence,
        "recompute %s makes the GPUs do %s more FLOPs than the model "
        "needs, which MFU does not count; %s of the memory is free on the fullest "
        "stage.",
        r->recompute, more.text, room_text.text);
    if (room > ROOM_FRAC)
        g_string_append(k->advice, "There is room: selective recompute, or full recompute of fewer "
                                   "layers.");
    else
        g_string_append(k->advice,
                        "Selective recompute with sequence parallelism, or the optimizer "
                        "spread over more DP, may make room for less recompute.");
}

const OrrRule orr_findings__work[] = {
    {{"small_products", "Matrix products too small or narrow for the GPU.",
      "roofline: Williams et al. 2009; mosaicml/llm-foundry issue 1706"},
     small_products},
    {{"recompute_cost", "Recomputation adds over 10 % of FLOPs.",
      "Korthikanti et al. 2022, section 5"},
     recompute_cost},
    {{NULL, NULL, NULL}, NULL},
};
