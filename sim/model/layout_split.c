/* Layers to pipeline stages (declared in groups.h). A split that the policy cannot make is refused
 * with one that would do; a layer is never dropped (Megatron-LM issue 1304: 30 layers on 4 stages
 * once became 28). Policies: Megatron-LM --decoder-*-pipeline-num-layers and
 * --account-for-embedding-in-pipeline-split; Llama 3 paper (arXiv 2407.21783), section 3.3.2;
 * DeepSpeed runtime/pipe/module.py, partition method `type:transformer|embedding` (as_layers);
 * nanotron models/base.py and LlamaForTraining.get_block_compute_costs (by_cost). */
#include "sim/model/groups.h"

#define MAX_SHOWN 32 /* stages up to which a message spells the split out */

/* "8,8,7,7": as even as can be, the longer stages first. */
static char *even_as_can_be(uint32_t layers, uint32_t n) {
    GString *text = g_string_new(NULL);
    for (uint32_t v = 0; v < n; v++)
        g_string_append_printf(text, "%s%u", v ? "," : "", layers / n + (v < layers % n));
    return g_string_free(text, FALSE);
}

static bool refuse_uneven(const OrrModel *model, const OrrLayout *layout, GError **error) {
    uint32_t n = layout->pp * layout->vpp, layers = model->layers;
    GString *advice = g_string_new(NULL);
    if (n <= MAX_SHOWN) {
        g_autofree char *even = even_as_can_be(layers, n);
        g_string_append_printf(advice, "stage_layers = %s", even);
    } else
        g_string_append_printf(advice, "stage_layers (%u numbers that add up to %u)", n, layers);
    if (n > 1 && layout->ends != ORR_ENDS_ONE_LAYER_LESS && (layers + 2) % n == 0)
        g_string_append(advice, ", or ends = one_layer_less");
    if (n > 2 && layout->ends != ORR_ENDS_OWN_CHUNK && layers % (n - 2) == 0)
        g_string_append(advice, ", or ends = own_chunk");
    g_autofree char *would_do = g_string_free(advice, FALSE);
    const char *rule = "";
    if (layout->ends == ORR_ENDS_OWN_CHUNK)
        rule = " with chunks of their own for embedding and head (ends = own_chunk)";
    else if (layout->ends == ORR_ENDS_ONE_LAYER_LESS)
        rule = " with one layer less on the first and the last (ends = one_layer_less)";
    return orr_fail_input(error,
                          "[layout] pp, vpp: %u layers do not divide over %u x %u stages%s; "
                          "would do: %s",
                          layers, layout->pp, layout->vpp, rule, would_do);
}

static bool check_stage_layers(const OrrModel *model, const OrrLayout *layout, GError **error) {
    uint32_t n = layout->pp * layout->vpp;
    uint64_t sum = 0;
    if (layout->n_stage_layers != n)
        return orr_fail_input(error,
                              "[layout] stage_layers: %u numbers for %u x %u virtual "
                              "stages; give one for each",
                              layout->n_stage_layers, layout->pp, layout->vpp);
    for (uint32_t v = 0; v < n; v++)
        sum += layout->stage_layers[v];
    if (sum != model->layers)
        return orr_fail_input(error,
                              "[layout] stage_layers: they add up to %" G_GUINT64_FORMAT
                              " and the model has %u layers",
                              sum, model->layers);
    return true;
}

/* Stages take blocks in order; the one whose running cost comes to a stage's share of the total is
 * its last (also where it comes out exactly: the 16 layers of the ultra-scale benchmark's 1.34 B,
 * whose head costs 4, leave 10 on the first of 2 stages and 5 on that of 4, by what was allocated).
 * A layer costs its products' weights as nanotron counts them (three for the MLP, gated or not; no
 * less for grouped heads), the head its own, the embedding nothing. */
static uint32_t layers_by_cost(const OrrModel *model, uint32_t n, uint32_t v) {
    double hidden = model->hidden;
    double layer = 4.0 * (double)model->heads * (double)model->head_dim * hidden +
                   3.0 * (double)model->ffn * hidden;
    double total = layer * model->layers + (double)model->vocab * hidden;
    uint32_t stage = 0, n_layers = 0;
    for (uint32_t i = 0; i < model->layers; i++) {
        n_layers += stage == v;
        if (layer * (i + 1.0) * n >= total * (stage + 1.0))
            stage++;
    }
    return n_layers;
}

/* Layers of virtual stage @v of @n, embedding and head counted, the longer stages first. */
static uint32_t layers_as_layers(uint32_t layers, uint32_t n, uint32_t v) {
    uint32_t blocks = layers + 2, here = blocks / n + (v < blocks % n);
    return here - (v == 0) - (v == n - 1);
}

/* Layers of virtual stage @v of @n, or false if the policy does not come out even. */
static bool layers_of(const OrrModel *model, const OrrLayout *layout, uint32_t n, uint32_t v,
                      uint32_t *n_layers) {
    bool is_end = v == 0 || v == n - 1;
    uint32_t layers = model->layers;
    switch (layout->ends) {
    case ORR_ENDS_WITH_LAYERS:
        *n_layers = layers / n;
        return layers % n == 0;
    case ORR_ENDS_OWN_CHUNK:
        *n_layers = is_end || n < 3 ? 0 : layers / (n - 2);
        return n >= 3 && layers % (n - 2) == 0;
    case ORR_ENDS_ONE_LAYER_LESS:
        *n_layers = n == 1 ? layers : (layers + 2) / n - is_end;
        return (layers + 2) % n == 0 || n == 1;
    case ORR_ENDS_AS_LAYERS:
        *n_layers = layers + 2 < n ? 0 : layers_as_layers(layers, n, v);
        return layers + 2 >= n;
    case ORR_ENDS_BY_COST:
        *n_layers = layers_by_cost(model, n, v);
        return true;
    }
    g_assert_not_reached();
}

bool orr_layout_split(const OrrModel *model, const OrrLayout *layout, OrrStagePart *parts,
                      GError **error) {
    uint32_t n = layout->pp * layout->vpp, first = 0;
    if (layout->stage_layers && !check_stage_layers(model, layout, error))
        return false;
    for (uint32_t v = 0; v < n; v++) {
        uint32_t n_layers;
        if (layout->stage_layers)
            n_layers = layout->stage_layers[v];
        else if (!layers_of(model, layout, n, v, &n_layers))
            return refuse_uneven(model, layout, error);
        parts[v] = (OrrStagePart){first, n_layers, v == 0, v == n - 1};
        first += n_layers;
    }
    g_assert(first == model->layers);
    return true;
}
