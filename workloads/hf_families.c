/* Architectures of transformers: shapes that the class fixes, class defaults, and the keys of their
 * own. Source: configuration_X.py and modeling_X.py of huggingface/transformers (v4.40 to v4.55),
 * one pair an entry. */
#include "workloads/hf_priv.h"

#include <string.h>

#define MAX_WIDTH (1 << 24) /* as in model files */

/* Q, K, V and the output projection together, as Llama, Qwen3 and Gemma have it. */
static void adjust_attention_bias(HfReader *r, OrrModel *m) {
    m->qkv_bias = m->out_bias = orr_hf__flag(r, "attention_bias", false);
}

static void adjust_llama(HfReader *r, OrrModel *m) {
    adjust_attention_bias(r, m);
    m->mlp_bias = orr_hf__flag(r, "mlp_bias", false);
}

static void adjust_mistral(HfReader *r, OrrModel *m) {
    if (!json_object_has_member(r->object, "sliding_window")) {
        m->window = r->family->shape.window;
        orr_hf__warn(r, "sliding_window is absent: %u, the default of MistralConfig", m->window);
    } else {
        m->window = orr_hf__optional(r, "sliding_window", 1 << 30);
    }
    m->window_every = m->window > 0 ? 1 : 0;
}

/* Only with use_sliding_window, and then from layer max_window_layers on. */
static void adjust_qwen2(HfReader *r, OrrModel *m) {
    bool used = json_object_has_member(r->object, "use_sliding_window") &&
                orr_hf__flag(r, "use_sliding_window", false);
    uint32_t window = orr_hf__optional(r, "sliding_window", 1 << 30);
    uint32_t full = orr_hf__optional(r, "max_window_layers", 1 << 20);
    if (used && window > 0 && full == 0) {
        m->window = window;
        m->window_every = 1;
    } else if (used && window > 0 && full < m->layers) {
        orr_hf__complain(r, "max_window_layers",
                         "windows behind layer %u only are not modelled; 0, or "
                         "use_sliding_window false, will do",
                         full);
    }
    orr_hf__ignore(r, "attention_bias"); /* Qwen2Attention has its biases in any case */
}

static void adjust_qwen3(HfReader *r, OrrModel *m) {
    adjust_qwen2(r, m);
    adjust_attention_bias(r, m);
}

static void adjust_gpt_neox(HfReader *r, OrrModel *m) {
    m->rotary_frac = orr_hf__share(r, "rotary_pct", m->rotary_frac);
    m->is_parallel = orr_hf__flag(r, "use_parallel_residual", true);
    m->qkv_bias = m->out_bias = orr_hf__flag(r, "attention_bias", true);
}

static void adjust_gptj(HfReader *r, OrrModel *m) {
    static const char *const names[] = {"rotary_dim", NULL};
    uint32_t dim = orr_hf__count(r, names, MAX_WIDTH, 64);
    if (dim > m->head_dim)
        orr_hf__complain(r, "rotary_dim",
                         "is more than the head has (%u); that much or less will do", m->head_dim);
    else
        m->rotary_frac = (double)dim / m->head_dim;
}

/* attention_types: [[["global", "local"], 12]]: half of the layers see window_size tokens. */
static void adjust_gpt_neo(HfReader *r, OrrModel *m) {
    static const char *const names[] = {"window_size", NULL};
    m->window = orr_hf__count(r, names, 1 << 30, 256);
    m->window_every = 2;
    orr_hf__ignore(r, "attention_layers"); /* attention_types, spelt out */
    orr_hf__ignore(r, "attention_types");
    JsonNode *types = json_object_get_member(r->object, "attention_types");
    if (types == NULL)
        return;
    g_autofree char *text = json_to_string(types, FALSE);
    if (!g_str_has_prefix(text, "[[[\"global\",\"local\"],"))
        orr_hf__complain(r, "attention_types", "only global and local in turn are modelled");
}

static void adjust_falcon(HfReader *r, OrrModel *m) {
    bool is_new = orr_hf__flag(r, "new_decoder_architecture", false);
    bool multi_query = orr_hf__flag(r, "multi_query", true);
    m->is_parallel = orr_hf__flag(r, "parallel_attn", true) || is_new;
    uint32_t norms = orr_hf__optional(r, "num_ln_in_parallel_attn", 2);
    m->shares_norm = m->is_parallel && (!is_new || norms == 1);
    if (!is_new) {
        orr_hf__optional(r, "num_kv_heads", MAX_WIDTH);
        m->kv_heads = multi_query ? 1 : m->heads;
    }
    if (orr_hf__flag(r, "alibi", false))
        m->position = ORR_POS_ALIBI;
    m->qkv_bias = m->out_bias = m->mlp_bias = orr_hf__flag(r, "bias", false);
}

static void adjust_opt(HfReader *r, OrrModel *m) {
    m->max_positions += 2; /* OPTLearnedPositionalEmbedding: offset of 2 */
    m->qkv_bias = m->out_bias = m->mlp_bias = orr_hf__flag(r, "enable_bias", true);
    if (!orr_hf__flag(r, "do_layer_norm_before", true))
        orr_hf__complain(r, "do_layer_norm_before", "norms behind the layers are not modelled");
    uint32_t width = orr_hf__optional(r, "word_embed_proj_dim", MAX_WIDTH);
    if (width != 0 && width != m->hidden)
        orr_hf__complain(r, "word_embed_proj_dim",
                         "an embedding narrower than the layers is not "
                         "modelled; %u will do",
                         m->hidden);
}

/* The nested attn_config; returns whether ALiBi is on. */
static bool read_mpt_attention(HfReader *r, OrrModel *m) {
    static const char *const type[] = {"attn_type", NULL};
    HfReader inner = *r;
    if (!orr_json_object(r->json, r->object, "attn_config", &inner.object, NULL)) {
        orr_hf__complain(r, "attn_config", "is no object");
        return true;
    }
    uint32_t kv = orr_hf__optional(&inner, "kv_n_heads", MAX_WIDTH);
    const char *kind = orr_hf__text(&inner, type, "multihead_attention");
    if (strcmp(kind, "multiquery_attention") == 0)
        m->kv_heads = 1;
    else if (kv > 0)
        m->kv_heads = kv;
    if (json_object_has_member(inner.object, "qk_ln") && orr_hf__flag(&inner, "qk_ln", false))
        orr_hf__complain(&inner, "qk_ln", "this norm is not modelled; false will do");
    return orr_hf__flag(&inner, "alibi", true);
}

static void adjust_mpt(HfReader *r, OrrModel *m) {
    static const char *const ratio[] = {"expansion_ratio", NULL};
    uint32_t times = orr_hf__count(r, ratio, 64, 4);
    if (times > 0 && m->hidden > MAX_WIDTH / times)
        orr_hf__complain(r, ratio[0], "makes the inner width larger than %d", MAX_WIDTH);
    else
        m->ffn = m->hidden * times;
    bool no_bias = orr_hf__flag(r, "no_bias", true);
    m->norm_bias = m->qkv_bias = m->out_bias = m->mlp_bias = !no_bias;
    bool learned = orr_hf__flag(r, "learned_pos_emb", true), alibi = true;
    orr_hf__ignore(r, "attn_config");
    if (orr_json_has(r->object, "attn_config"))
        alibi = read_mpt_attention(r, m);
    m->position = alibi ? ORR_POS_ALIBI : learned ? ORR_POS_LEARNED : ORR_POS_NONE;
}

static void adjust_phi(HfReader *r, OrrModel *m) {
    m->rotary_frac = orr_hf__share(r, "partial_rotary_factor", m->rotary_frac);
    if (json_object_has_member(r->object, "qk_layernorm") && orr_hf__flag(r, "qk_layernorm", false))
        orr_hf__complain(r, "qk_layernorm", "this norm is not modelled; false will do");
}

static void adjust_phi3(HfReader *r, OrrModel *m) {
    m->rotary_frac = orr_hf__share(r, "partial_rotary_factor", m->rotary_frac);
    m->window = orr_hf__optional(r, "sliding_window", 1 << 30);
    m->window_every = m->window > 0 ? 1 : 0;
}

static void adjust_gemma(HfReader *r, OrrModel *m) {
    adjust_attention_bias(r, m);
    static const char *const window[] = {"sliding_window", NULL};
    static const char *const pattern[] = {"sliding_window_pattern", NULL};
    if (r->family->shape.window == 0)
        return;
    m->window = orr_hf__count(r, window, 1 << 30, r->family->shape.window);
    m->window_every =
        orr_hf__count(r, pattern, ORR_MODEL_MAX_LAYERS, r->family->shape.window_every);
}

/* The 13 B code has ALiBi, the 7 B code rotary positions; the config does not say which it is. */
static void adjust_baichuan(HfReader *r, OrrModel *m) {
    bool is_13b = m->hidden == 5120; /* baichuan-inc/Baichuan2-13B-Base config.json */
    m->position = is_13b ? ORR_POS_ALIBI : ORR_POS_ROPE;
    m->rotary_frac = is_13b ? 0 : 1;
    orr_hf__warn(r, "baichuan: %s, judged by the width",
                 is_13b ? "ALiBi as the 13B" : "rotary positions as the 7B");
}

static void adjust_gpt_bigcode(HfReader *r, OrrModel *m) {
    m->kv_heads = orr_hf__flag(r, "multi_query", true) ? 1 : m->heads;
}

static void adjust_starcoder2(HfReader *r, OrrModel *m) {
    m->qkv_bias = m->out_bias = m->mlp_bias = orr_hf__flag(r, "use_bias", true);
    m->window = orr_hf__optional(r, "sliding_window", 1 << 30);
    m->window_every = m->window > 0 ? 1 : 0;
}

#define RMS                                                                                        \
    .norm = ORR_RMS_NORM, .activation = ORR_SILU, .is_gated = true, .position = ORR_POS_ROPE,      \
    .rotary_frac = 1
#define LAYER_NORM .norm = ORR_LAYER_NORM, .norm_bias = true, .activation = ORR_GELU
#define BIASES .qkv_bias = true, .out_bias = true, .mlp_bias = true

static const HfFamily families[] = {
    {"llama", "LlamaConfig", {RMS, .vocab = 32000, .ffn = 11008}, "silu", adjust_llama},
    {"mistral",
     "MistralConfig",
     {RMS, .vocab = 32000, .ffn = 14336, .kv_heads = 8, .window = 4096},
     "silu",
     adjust_mistral},
    {"qwen2",
     "Qwen2Config",
     {RMS, .vocab = 151936, .ffn = 22016, .qkv_bias = true},
     "silu",
     adjust_qwen2},
    {"qwen3",
     "Qwen3Config",
     {RMS, .vocab = 151936, .ffn = 22016, .head_dim = 128, .has_qk_norm = true},
     "silu",
     adjust_qwen3},
    {"gpt2",
     "GPT2Config",
     {LAYER_NORM, BIASES, .position = ORR_POS_LEARNED, .is_tied = true, .vocab = 50257,
      .max_positions = 1024, .ffn = HF_FOUR_TIMES},
     "gelu_new",
     NULL},
    {"gpt_neox",
     "GPTNeoXConfig",
     {LAYER_NORM, BIASES, .position = ORR_POS_ROPE, .rotary_frac = 0.25, .vocab = 50432,
      .ffn = 24576, .is_parallel = true},
     "gelu",
     adjust_gpt_neox},
    {"gptj",
     "GPTJConfig",
     {LAYER_NORM, .mlp_bias = true, .head_bias = true, .position = ORR_POS_ROPE, .vocab = 50400,
      .ffn = HF_FOUR_TIMES, .is_parallel = true, .shares_norm = true},
     "gelu_new",
     adjust_gptj},
    {"gpt_neo",
     "GPTNeoConfig",
     {LAYER_NORM, .out_bias = true, .mlp_bias = true, .position = ORR_POS_LEARNED, .is_tied = true,
      .vocab = 50257, .max_positions = 2048, .ffn = HF_FOUR_TIMES},
     "gelu_new",
     adjust_gpt_neo},
    {"falcon",
     "FalconConfig",
     {LAYER_NORM, .position = ORR_POS_ROPE, .rotary_frac = 1, .is_tied = true, .vocab = 65024,
      .ffn = HF_FOUR_TIMES},
     "gelu",
     adjust_falcon},
    {"opt",
     "OPTConfig",
     {LAYER_NORM, BIASES, .position = ORR_POS_LEARNED, .is_tied = true, .vocab = 50272,
      .max_positions = 2048, .ffn = 3072},
     "relu",
     adjust_opt},
    {"bloom",
     "BloomConfig",
     {LAYER_NORM, BIASES, .position = ORR_POS_ALIBI, .is_tied = true, .has_embedding_norm = true,
      .vocab = 250880, .ffn = HF_FOUR_TIMES},
     "gelu",
     NULL},
    {"mpt",
     "MptConfig",
     {LAYER_NORM, .position = ORR_POS_LEARNED, .is_tied = true, .vocab = 50368,
      .max_positions = 2048, .ffn = HF_FOUR_TIMES},
     "gelu",
     adjust_mpt},
    {"phi",
     "PhiConfig",
     {LAYER_NORM, BIASES, .head_bias = true, .position = ORR_POS_ROPE, .rotary_frac = 0.5,
      .vocab = 51200, .ffn = 8192, .is_parallel = true, .shares_norm = true},
     "gelu_new",
     adjust_phi},
    {"phi3", "Phi3Config", {RMS, .vocab = 32064, .ffn = 8192}, "silu", adjust_phi3},
    {"gemma",
     "GemmaConfig",
     {RMS, .vocab = 256000, .ffn = 24576, .head_dim = 256, .is_tied = true},
     "gelu_pytorch_tanh",
     adjust_gemma},
    {"gemma2",
     "Gemma2Config",
     {RMS, .vocab = 256000, .ffn = 9216, .head_dim = 256, .is_tied = true, .has_post_norms = true,
      .window = 4096, .window_every = 2},
     "gelu_pytorch_tanh",
     adjust_gemma},
    {"gemma3_text",
     "Gemma3TextConfig",
     {RMS, .vocab = 262208, .ffn = 9216, .head_dim = 256, .is_tied = true, .has_post_norms = true,
      .has_qk_norm = true, .window = 4096, .window_every = 6},
     "gelu_pytorch_tanh",
     adjust_gemma},
    {"baichuan", "BaichuanConfig", {RMS, .vocab = 125696, .ffn = 11008}, "silu", adjust_baichuan},
    {"gpt_bigcode",
     "GPTBigCodeConfig",
     {LAYER_NORM, BIASES, .position = ORR_POS_LEARNED, .is_tied = true, .vocab = 50257,
      .max_positions = 1024, .ffn = HF_FOUR_TIMES},
     "gelu_pytorch_tanh",
     adjust_gpt_bigcode},
    {"starcoder2",
     "Starcoder2Config",
     {LAYER_NORM, BIASES, .position = ORR_POS_ROPE, .rotary_frac = 1, .is_tied = true,
      .vocab = 49152, .ffn = 12288, .kv_heads = 2},
     "gelu_pytorch_tanh",
     adjust_starcoder2},
};

const HfFamily *orr_hf__family(const char *type) {
    for (size_t i = 0; i < G_N_ELEMENTS(families); i++)
        if (strcmp(families[i].type, type) == 0)
            return &families[i];
    return NULL;
}

char *orr_hf__family_names(void) {
    GString *names = g_string_new(NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(families); i++)
        g_string_append_printf(names, "%s%s", i > 0 ? ", " : "", families[i].type);
    return g_string_free(names, FALSE);
}
