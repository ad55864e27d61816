/* Architectures, layouts and profiles that the model tests share; plain structs, no files. */
#ifndef TESTS_MODEL_SAMPLES_H
#define TESTS_MODEL_SAMPLES_H

#include "sim/model/spec.h"

/* GPT-2/3 as Megatron-LM has it: biases everywhere, GELU, learned positions, tied. */
static inline OrrModel sample_gpt(uint32_t layers, uint32_t hidden, uint32_t heads, uint32_t vocab,
                                  uint32_t positions) {
    OrrModel m = {0};
    m.name = (char *)"gpt";
    m.layers = layers;
    m.hidden = hidden;
    m.heads = m.kv_heads = heads;
    m.head_dim = hidden / heads;
    m.ffn = 4 * hidden;
    m.vocab = vocab;
    m.max_positions = positions;
    m.norm = ORR_LAYER_NORM;
    m.activation = ORR_GELU;
    m.position = ORR_POS_LEARNED;
    m.is_tied = true;
    m.qkv_bias = m.out_bias = m.mlp_bias = m.norm_bias = true;
    return m;
}

/* Llama 2 and 3: RMSNorm, SwiGLU, rotary, no biases, untied. */
static inline OrrModel sample_llama(uint32_t layers, uint32_t hidden, uint32_t heads,
                                    uint32_t kv_heads, uint32_t ffn, uint32_t vocab) {
    OrrModel m = {0};
    m.name = (char *)"llama";
    m.layers = layers;
    m.hidden = hidden;
    m.heads = heads;
    m.kv_heads = kv_heads;
    m.head_dim = hidden / heads;
    m.ffn = ffn;
    m.vocab = vocab;
    m.norm = ORR_RMS_NORM;
    m.activation = ORR_SILU;
    m.is_gated = true;
    m.position = ORR_POS_ROPE;
    m.rotary_frac = 1.0;
    return m;
}

static inline OrrLayout sample_layout(uint32_t tp, uint32_t pp, uint32_t dp) {
    OrrLayout l = {0};
    l.tp = tp;
    l.pp = pp;
    l.dp = dp;
    l.vpp = l.cp = l.ep = 1;
    for (int i = 0; i < ORR_MAX_DIMS; i++)
        l.rank_order[i] = (OrrRankDim)i;
    return l;
}

/* Megatron-LM as of the activation-recompute paper: all fusions, unfused attention, dropout. */
static inline OrrFramework sample_megatron(void) {
    OrrFramework f = {0};
    f.name = (char *)"megatron";
    f.attention = ORR_ATTENTION_UNFUSED;
    f.fused_softmax = f.fused_bias_gelu = f.fused_bias_dropout_add = f.fused_rotary = true;
    f.fused_norm = f.fused_optimizer = f.fused_wgrad_accumulate = true;
    f.fused_qkv = f.fused_gate_up = true;
    f.dropout = f.attention_dropout = 0.1;
    f.vocab_multiple = 128;
    f.tp_async_wgrad = true;
    f.host_layer_ns = 1000.0;
    f.optimizer_bytes_per_param = 30.0;
    f.store_dropout_mask = f.store_norm_output = f.store_activation_output = true;
    return f;
}

#endif
