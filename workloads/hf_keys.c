/* Reading a config: aliases, defaults, harmless keys, and what cannot be modelled. */
#include "workloads/hf_priv.h"

#include <string.h>

void orr_hf__complain(HfReader *r, const char *key, const char *format, ...) {
    va_list args;
    va_start(args, format);
    g_autofree char *what = g_strdup_vprintf(format, args);
    va_end(args);
    g_autoptr(GError) flaw = NULL;
    orr_json_fail(r->json, r->object, key, &flaw, "%s", what);
    g_string_append_printf(r->errors, "%s%s", r->errors->len > 0 ? "\n" : "", flaw->message);
}

static void take_error(HfReader *r, GError *flaw) {
    g_string_append_printf(r->errors, "%s%s", r->errors->len > 0 ? "\n" : "", flaw->message);
    g_error_free(flaw);
}

void orr_hf__warn(HfReader *r, const char *format, ...) {
    if (r->warnings == NULL)
        return;
    va_list args;
    va_start(args, format);
    g_string_append_vprintf(r->warnings, format, args);
    va_end(args);
    g_string_append_c(r->warnings, '\n');
}

static bool has(HfReader *r, const char *key) {
    g_hash_table_add(r->known, g_strdup(key));
    return orr_json_has(r->object, key);
}

void orr_hf__ignore(HfReader *r, const char *key) {
    g_hash_table_add(r->known, g_strdup(key));
}

uint32_t orr_hf__count(HfReader *r, const char *const *names, uint32_t max, uint32_t fallback) {
    int64_t value = 0;
    const char *seen = NULL;
    for (guint i = 0; names[i] != NULL; i++) {
        if (!has(r, names[i]))
            continue;
        int64_t v;
        GError *flaw = NULL;
        if (!orr_json_int(r->json, r->object, names[i], 1, max, &v, &flaw)) {
            take_error(r, flaw);
            return MAX(fallback, 1);
        }
        if (seen != NULL && v != value)
            orr_hf__complain(r, names[i],
                             "is not what %s says (%" G_GINT64_FORMAT
                             "); make them equal or drop one",
                             seen, value);
        seen = names[i];
        value = v;
    }
    if (seen != NULL)
        return (uint32_t)value;
    if (fallback == 0)
        orr_hf__complain(r, names[0], "is missing; a whole number from 1 to %u will do", max);
    return MAX(fallback, 1);
}

uint32_t orr_hf__optional(HfReader *r, const char *key, uint32_t max) {
    int64_t v = 0;
    GError *flaw = NULL;
    if (has(r, key) && !orr_json_int(r->json, r->object, key, 0, max, &v, &flaw))
        take_error(r, flaw);
    return (uint32_t)v;
}

bool orr_hf__flag(HfReader *r, const char *key, bool fallback) {
    bool value = fallback;
    GError *flaw = NULL;
    if (!has(r, key)) {
        orr_hf__warn(r, "%s is absent: %s, the default of %s", key, fallback ? "true" : "false",
                     r->family->class_name);
        return fallback;
    }
    if (!orr_json_bool(r->json, r->object, key, &value, &flaw))
        take_error(r, flaw);
    return value;
}

double orr_hf__share(HfReader *r, const char *key, double fallback) {
    double value = fallback;
    GError *flaw = NULL;
    if (has(r, key) && !orr_json_double(r->json, r->object, key, 0, 1, &value, &flaw))
        take_error(r, flaw);
    return value;
}

const char *orr_hf__text(HfReader *r, const char *const *names, const char *fallback) {
    const char *value = NULL;
    for (guint i = 0; names[i] != NULL; i++) {
        GError *flaw = NULL;
        if (has(r, names[i]) && value == NULL &&
            !orr_json_string(r->json, r->object, names[i], &value, &flaw))
            take_error(r, flaw);
    }
    return value != NULL ? value : fallback;
}

/* Keys that do not change shapes: names, tokens, initialisation, dropout, generation, positions of
 * rotary tables, implementation choices, quantisation of a checkpoint. */
static const char *const harmless[] = {"architectures",
                                       "auto_map",
                                       "tokenizer_class",
                                       "transformers_version",
                                       "torch_dtype",
                                       "dtype",
                                       "model_type",
                                       "use_cache",
                                       "initializer_range",
                                       "initializer_factor",
                                       "init_device",
                                       "init_config",
                                       "gradient_checkpointing",
                                       "max_position_embeddings",
                                       "n_positions",
                                       "n_ctx",
                                       "seq_length",
                                       "max_seq_len",
                                       "model_max_length",
                                       "max_sequence_length",
                                       "pretraining_tp",
                                       "slow_but_exact",
                                       "scale_attn_weights",
                                       "scale_attn_by_inverse_layer_idx",
                                       "reorder_and_upcast_attn",
                                       "attention_softmax_in_fp32",
                                       "scale_attention_softmax_in_fp32",
                                       "masked_softmax_fusion",
                                       "bias_dropout_fusion",
                                       "skip_bias_add",
                                       "skip_bias_add_qkv",
                                       "offset_alibi",
                                       "rotary",
                                       "rotary_emb_base",
                                       "original_max_position_embeddings",
                                       "query_pre_attn_scalar",
                                       "attn_logit_softcapping",
                                       "final_logit_softcapping",
                                       "cache_implementation",
                                       "task_specific_params",
                                       "return_dict",
                                       "pruned_heads",
                                       "id2label",
                                       "label2id",
                                       "is_encoder_decoder",
                                       "logits_processor",
                                       "inference_runner",
                                       "max_batch_size",
                                       "pad_key_length",
                                       "pre_allocate_kv_cache",
                                       "validate_runner_input",
                                       "layerdrop",
                                       "mm_tokens_per_image",
                                       "embd_pdrop",
                                       "attn_pdrop",
                                       "resid_pdrop",
                                       "emb_pdrop",
                                       "logit_scale",
                                       "verbose",
                                       "norm_type",
                                       "attn_impl",
                                       "apply_residual_connection_post_layernorm",
                                       "use_bidirectional_attention",
                                       "quantization_config",
                                       "max_window_layers",
                                       "prefix",
                                       "problem_type",
                                       "finetuning_task",
                                       "output_attentions",
                                       "output_hidden_states",
                                       "temperature",
                                       "top_k",
                                       "top_p",
                                       "do_sample",
                                       "max_length",
                                       "num_beams",
                                       "repetition_penalty",
                                       "bad_words_ids",
                                       "unsloth_fixed",
                                       "num_logits_to_keep",
                                       "z_loss_weight",
                                       "embedding_fraction",
                                       NULL};
static const char *const harmless_starts[] = {"_", "summary_", "rope_", "rotary_emb_", NULL};
static const char *const harmless_ends[] = {
    "_token_id", "_token_index", "_dropout",   "dropout_prob", "dropout", "_eps",
    "_epsilon",  "_std",         "_base_freq", "_range",       "_token",  NULL};

static bool is_harmless(const char *key) {
    if (g_strv_contains(harmless, key))
        return true;
    for (guint i = 0; harmless_starts[i] != NULL; i++)
        if (g_str_has_prefix(key, harmless_starts[i]))
            return true;
    for (guint i = 0; harmless_ends[i] != NULL; i++)
        if (g_str_has_suffix(key, harmless_ends[i]))
            return true;
    return false;
}

/* Off, empty or absent: says nothing. */
static bool is_off(JsonNode *node) {
    if (JSON_NODE_HOLDS_NULL(node))
        return true;
    if (JSON_NODE_HOLDS_ARRAY(node))
        return json_array_get_length(json_node_get_array(node)) == 0;
    if (JSON_NODE_HOLDS_OBJECT(node))
        return json_object_get_size(json_node_get_object(node)) == 0;
    return json_node_get_value_type(node) == G_TYPE_BOOLEAN && !json_node_get_boolean(node);
}

void orr_hf__check_unknown(HfReader *r) {
    g_autoptr(GList) keys = json_object_get_members(r->object);
    for (GList *l = keys; l != NULL; l = l->next) {
        const char *key = l->data;
        if (g_hash_table_contains(r->known, key) || is_harmless(key) ||
            is_off(json_object_get_member(r->object, key)))
            continue;
        orr_hf__complain(r, key,
                         "is unknown for %s and could change shapes; remove it if it does not",
                         r->family->type);
    }
}

/* What the model types of transformers that are no dense decoders are. */
static const struct {
    const char *types; /* words */
    const char *reason;
} refused[] = {
    {"mamba mamba2 falcon_mamba rwkv recurrent_gemma xlstm", "has state-space or recurrent layers"},
    {"jamba nemotron_h bamba zamba zamba2 falcon_h1 granitemoehybrid qwen3_next lfm2",
     "mixes attention with state-space or recurrent layers"},
    {"mixtral qwen2_moe qwen3_moe qwen3_vl_moe qwen3_vl_moe_text gpt_oss llama4 llama4_text dbrx "
     "olmoe "
     "phimoe granitemoe minimax minimax_m2 glm4_moe ernie4_5_moe hunyuan_v1_moe gemma4 gemma4_text "
     "switch_transformers grok-1 arctic",
     "is a mixture of experts, which is not built yet"},
    {"deepseek_v2 deepseek_v3 kimi_k2 minicpm3",
     "has latent attention (MLA) or a mixture of experts, which are not built yet"},
    {"t5 mt5 umt5 bart mbart pegasus whisper marian m2m_100 led blenderbot",
     "is an encoder-decoder; decoders will do"},
    {"bert roberta xlm-roberta deberta deberta-v2 distilbert electra albert modernbert vit clip "
     "siglip",
     "is an encoder; decoders will do"},
};

/* Keys whose presence says the same of a type that the table does not know. */
static const struct {
    const char *key, *reason;
} refused_keys[] = {
    {"num_experts", "is a mixture of experts, which is not built yet"},
    {"num_local_experts", "is a mixture of experts, which is not built yet"},
    {"n_routed_experts", "is a mixture of experts, which is not built yet"},
    {"moe_intermediate_size", "is a mixture of experts, which is not built yet"},
    {"kv_lora_rank", "has latent attention (MLA), which is not built yet"},
    {"hybrid_override_pattern", "mixes attention with state-space layers"},
    {"attn_layer_period", "mixes attention with state-space layers"},
    {"mamba_d_state", "has state-space layers"},
    {"ssm_state_size", "has state-space layers"},
    {"num_decoder_layers", "is an encoder-decoder; decoders will do"},
    {"type_vocab_size", "is an encoder; decoders will do"},
};

const char *orr_hf__refusal(const char *type, JsonObject *object, const char **because_of) {
    *because_of = "model_type";
    for (size_t i = 0; i < G_N_ELEMENTS(refused); i++) {
        g_auto(GStrv) types = g_strsplit(refused[i].types, " ", -1);
        if (g_strv_contains((const char *const *)types, type))
            return refused[i].reason;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(refused_keys); i++) {
        *because_of = refused_keys[i].key;
        if (orr_json_has(object, refused_keys[i].key))
            return refused_keys[i].reason;
    }
    *because_of = "is_encoder_decoder";
    JsonNode *node = json_object_get_member(object, *because_of);
    if (node != NULL && !is_off(node))
        return "is an encoder-decoder; decoders will do";
    return NULL;
}
