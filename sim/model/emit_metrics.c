/* Metrics that a framework computes from the logits of each micro-batch unless told not to. They
 * change nothing in the training, but they read the logits, which for a small model or a large
 * vocabulary are its largest tensor.
 *
 * Composer (llm-foundry): ComposerMPTCausalLM has LanguageCrossEntropy and LanguagePerplexity as
 * training metrics (use_train_metrics, on by default); trainer.py updates both behind the backward
 * of each micro-batch, each with PyTorch's cross-entropy, which autocast runs in FP32.
 * InternEvo: AccPerplex (internlm/model/metrics.py) runs behind the forward on logits in FP32: the
 * loss once more (LossWithTypeId), two maxima, the largest index, a difference, an exponential, a
 * sum, and over TP the maximum, the predicted logit, the sum and the count of hits.
 * Left out: their small kernels on tokens, which the host issues ahead. */
#include "sim/model/emit_priv.h"

static double n_logits(const OrrCtx *c) {
    return (double)(c->tokens * c->vocab);
}

/* Bytes of FP32 are 4 in what follows. */
void orr_emit__metrics_with_loss(OrrCtx *c) {
    if (c->f->metrics != ORR_METRICS_ACC_PERPLEX)
        return;
    double n = n_logits(c), tokens = 4.0 * (double)c->tokens;
    orr_emit__stream(c, ORR_K_CROSS_ENTROPY, ORR_PASS_FORWARD, "metrics_loss", n * 4.0, 0.0, 1);
    orr_emit__stream(c, ORR_K_CROSS_ENTROPY, ORR_PASS_FORWARD, "metrics_max", n * 4.0 * 3.0, 0.0,
                     3);
    orr_emit__coll_blocking(c, ORR_ALL_REDUCE, tokens, "metrics_max");
    orr_emit__coll_blocking(c, ORR_ALL_REDUCE, 8.0, "metrics_hits"); /* one integer of 8 bytes */
    orr_emit__stream(c, ORR_K_CROSS_ENTROPY, ORR_PASS_FORWARD, "metrics_shift", n * 4.0, n * 4.0,
                     1);
    orr_emit__temp(c, n * 4.0);
    orr_emit__coll_blocking(c, ORR_ALL_REDUCE, tokens, "metrics_predicted");
    orr_emit__stream(c, ORR_K_CROSS_ENTROPY, ORR_PASS_FORWARD, "metrics_exp", n * 8.0, n * 4.0, 2);
    orr_emit__untemp(c, n * 4.0);
    orr_emit__coll_blocking(c, ORR_ALL_REDUCE, tokens, "metrics_sum");
}

void orr_emit__metrics_behind(OrrCtx *c) {
    if (c->f->metrics != ORR_METRICS_CROSS_ENTROPIES || c->pass == ORR_W)
        return;
    double n = n_logits(c), e = c->size;
    /* as the loss of PyTorch on one rank: a copy in FP32, log-softmax, twice */
    orr_emit__stream(c, ORR_K_CROSS_ENTROPY, ORR_PASS_FORWARD, "metrics", 2.0 * n * (e + 8.0),
                     2.0 * n * 8.0, 8);
    double held = n * (e + 8.0); /* the logits, kept until now, and one metric's copies */
    orr_emit__temp(c, held);
    orr_emit__untemp(c, held);
}
