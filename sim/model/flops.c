/* FLOPs of one step by named formula (declared in params.h). All share three terms per token:
 * products with layer weights, attention scores and context, products with the output table; they
 * differ in what they count and how attention is counted. Sources in doc/models/flops.md. */
#include "sim/model/params.h"

#include <string.h>

typedef struct {
    double layers;    /* weights of all layers' products */
    double head;      /* vocabulary x hidden */
    double total;     /* all parameters */
    double embedding; /* token table */
    double attention; /* forward FLOPs of scores and context a token, full square: 4 L a d s */
} Terms;

/* Forward FLOPs a token: of the layers' products, of attention, of the head. */
typedef struct {
    double layers, attention, head;
} Forward;

static Terms terms_of(const OrrModel *m, const OrrBatch *b) {
    OrrParams p;
    orr_params_count(m, &p);
    double h = m->hidden, d = m->head_dim, layers = m->layers;
    Terms t;
    t.layers = layers * (h * d * (2.0 * m->heads + 2.0 * m->kv_heads) +
                         h * m->ffn * (m->is_gated ? 3.0 : 2.0));
    t.head = (double)m->vocab * h;
    t.total = (double)p.total;
    t.embedding = (double)m->vocab * h;
    t.attention = 4.0 * layers * m->heads * d * b->sequence_tokens;
    return t;
}

/* 2 FLOPs a weight and token forward (a multiplication and an addition). */
static Forward products(const Terms *t, double attention_share) {
    return (Forward){2.0 * t->layers, attention_share * t->attention, 2.0 * t->head};
}

static Forward by_megatron(const OrrModel *m, const Terms *t) {
    (void)m;
    return products(t, 0.5); /* causal: half the square */
}

static Forward by_megatron_full(const OrrModel *m, const Terms *t) {
    (void)m;
    return products(t, 1.0);
}

static Forward by_6n(const OrrModel *m, const Terms *t) {
    (void)m;
    return (Forward){2.0 * t->total, 0.0, 0.0};
}

static Forward by_palm(const OrrModel *m, const Terms *t) {
    (void)m;
    return (Forward){2.0 * t->total, t->attention, 0.0};
}

static Forward by_palm_causal(const OrrModel *m, const Terms *t) {
    (void)m;
    return (Forward){2.0 * t->total, 0.5 * t->attention, 0.0};
}

/* llm-foundry leaves the input table out where the head has its own. */
static Forward by_mpt(const OrrModel *m, const Terms *t) {
    return (Forward){2.0 * (t->total - (m->is_tied ? 0.0 : t->embedding)), t->attention, 0.0};
}

static Forward by_torchtitan(const OrrModel *m, const Terms *t) {
    (void)m;
    return (Forward){2.0 * (t->total - t->embedding), t->attention, 0.0};
}

typedef struct {
    Forward (*forward)(const OrrModel *, const Terms *);
    bool has_recompute; /* the number includes a second forward of the layers */
} Formula;

const char *const orr_flops_formulas[] = {
    "megatron", "megatron-full", "palm", "palm-causal", "6n", "mpt", "sc21", "torchtitan", NULL};
static const Formula formulas[] = {
    {by_megatron, false},     {by_megatron_full, false},
    {by_palm, false},         {by_palm_causal, false},
    {by_6n, false},           {by_mpt, false},
    {by_megatron_full, true}, {by_torchtitan, false},
};

static const Formula *find(const char *name, GError **error) {
    for (size_t i = 0; i < G_N_ELEMENTS(formulas); i++)
        if (strcmp(name, orr_flops_formulas[i]) == 0)
            return &formulas[i];
    g_autofree char *known = g_strjoinv(", ", (char **)orr_flops_formulas);
    orr_fail_input(error, "FLOP formula %s is not known; known: %s", name, known);
    return NULL;
}

static double step_tokens(const OrrBatch *b) {
    return (double)b->global_sequences * b->sequence_tokens;
}

/* Forward once, backward twice: both gradients. */
static double three_passes(const Forward *f) {
    return 3.0 * (f->layers + f->attention + f->head);
}

bool orr_flops_model(const char *formula, const OrrModel *model, const OrrBatch *batch,
                     double *flops, GError **error) {
    const Formula *f = find(formula, error);
    if (!f)
        return false;
    Terms t = terms_of(model, batch);
    Forward forward = f->forward(model, &t);
    double again = f->has_recompute ? forward.layers + forward.attention : 0.0;
    *flops = step_tokens(batch) * (three_passes(&forward) + again);
    return true;
}

double orr_flops_model_share(const char *formula) {
    const Formula *f = find(formula, NULL);
    return f && f->has_recompute ? 0.75 : 1.0; /* published/README.md: "divide by 4/3" */
}

/* Share of the layers that full recompute runs again. */
static double recomputed_frac(const OrrModel *model, const OrrLayout *layout,
                              const OrrRecomputeSpec *recompute) {
    if (recompute->policy != ORR_RECOMPUTE_FULL)
        return 0.0;
    if (recompute->method == ORR_RECOMPUTE_UNIFORM)
        return 1.0;
    double again = (double)recompute->layers * layout->pp * layout->vpp;
    return MIN(1.0, again / model->layers);
}

/* Share of a layer's products that per-operation recompute runs again: every second one of q, k, v,
 * out, (gate,) up, down in this order, but for the last, which is not reached. */
static double second_products_frac(const OrrModel *m) {
    double d = (double)m->head_dim, h = (double)m->hidden, f = (double)m->ffn;
    double width[7] = {m->heads * d * h,
                       m->kv_heads * d * h,
                       m->kv_heads * d * h,
                       m->heads * d * h,
                       f * h,
                       f * h,
                       f * h};
    int n = m->is_gated ? 7 : 6;
    double all = 0.0, again = 0.0;
    for (int i = 0; i < n; i++) {
        all += width[i];
        again += i % 2 == 1 && i < n - 1 ? width[i] : 0.0;
    }
    return again / all;
}

bool orr_flops_hardware(const char *formula, const OrrModel *model, const OrrLayout *layout,
                        const OrrBatch *batch, const OrrRecomputeSpec *recompute, double *flops,
                        GError **error) {
    const Formula *f = find(formula, error);
    if (!f)
        return false;
    if (f->has_recompute)
        return orr_flops_model(formula, model, batch, flops, error);
    Terms t = terms_of(model, batch);
    Forward forward = f->forward(model, &t);
    double again = recomputed_frac(model, layout, recompute) * (forward.layers + forward.attention);
    if (recompute->policy == ORR_RECOMPUTE_SELECTIVE)
        again = forward.attention;
    if (recompute->policy == ORR_RECOMPUTE_PER_OP)
        again = second_products_frac(model) * forward.layers;
    *flops = step_tokens(batch) * (three_passes(&forward) + again);
    return true;
}
