/* Megatron's arguments, of a script or as YAML (also NeMo's names for them), to keys of a job. */
#include <string.h>

#include "workloads/config_priv.h"

/* Where one name stands for another. */
static void rename(OrrConfig *c) {
    static const struct {
        const char *other, *name;
    } names[] = {
        {"num-moe-experts", "num-experts"},
        {"encoder-seq-length", "seq-length"},
        {"num-nodes", "nnodes"},
        {"devices", "nproc-per-node"},
        {"nproc_per_node", "nproc-per-node"},
        {"model-parallel-size", "tensor-model-parallel-size"},
        {"activations-checkpoint-granularity", "recompute-granularity"},
        {"activations-checkpoint-num-layers", "recompute-num-layers"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        const char *value = orr_config__said(c, names[i].other);
        if (value && !orr_config__said(c, names[i].name))
            orr_config__say(c, names[i].name, value);
    }
    static const char *const biases[] = {"add-bias-linear", "bias"};
    for (gsize i = 0; i < G_N_ELEMENTS(biases); i++)
        if (orr_config__said(c, biases[i]) && !orr_config__is_true(c, biases[i]))
            orr_config__say(c, "disable-bias-linear", "true");
    const char *activation = orr_config__said(c, "activation");
    activation = activation ? activation : orr_config__said(c, "activation-func");
    if (activation && strstr(activation, "swiglu"))
        orr_config__say(c, "swiglu", "true");
    const char *precision = orr_config__said(c, "precision");
    if (precision && g_str_has_prefix(precision, "bf16"))
        orr_config__say(c, "bf16", "true");
    if (precision && g_str_has_prefix(precision, "16"))
        orr_config__say(c, "fp16", "true");
}

/* As an argument, or in the configuration that the script writes for DeepSpeed. */
static bool is_on(const OrrConfig *c, const char *dtype) {
    g_autofree char *name = g_strdup_printf("deepspeed.%s.enabled", dtype);
    return orr_config__is_true(c, dtype) || orr_config__is_true(c, name);
}

static void put_rotary(OrrConfig *c, bool is_rope) {
    const char *percent = orr_config__said(c, "rotary-percent");
    double share = percent ? g_ascii_strtod(percent, NULL) : 1;
    if (!is_rope || !(share > 0 && share < 1))
        return;
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_formatd(text, sizeof text, "%.6g", share * 100);
    orr_config__put(c, "model.rotary", text, "%");
}

/* Every n-th layer has experts ("2"), or, by a list such as ([0]*3+[1]*58), all but the first. */
static void put_frequency(OrrConfig *c) {
    const char *text = orr_config__said(c, "moe-layer-freq");
    if (!text)
        return;
    const char *zeros = strstr(text, "[0]*");
    guint64 n = g_ascii_strtoull(zeros ? zeros + 4 : text, NULL, 10);
    bool is_list = zeros && strstr(text, "[1]*");
    if (n == 0 || n > 100000 || (!is_list && strcspn(text, "[(") < strlen(text))) {
        orr_workloads__note(c->import,
                            "moe-layer-freq = %.60s: a number or ([0]*A+[1]*B) would do, "
                            "left out",
                            text);
        return;
    }
    g_autofree char *number = g_strdup_printf("%" G_GUINT64_FORMAT, n);
    orr_config__put(c, is_list ? "model.dense_layers" : "model.moe_every", number, NULL);
}

static void map_sparse(OrrConfig *c) {
    static const OrrConfigCount experts[] = {
        {"num-experts", "model.experts", NULL},
        {"moe-router-topk", "model.experts_per_token", NULL},
        {"moe-ffn-hidden-size", "model.expert_ffn", NULL},
    };
    static const OrrConfigCount latent[] = {
        {"q-lora-rank", "model.q_rank", NULL},   {"kv-lora-rank", "model.kv_rank", NULL},
        {"qk-head-dim", "model.head_dim", NULL}, {"qk-pos-emb-head-dim", "model.rotary_dim", NULL},
        {"v-head-dim", "model.value_dim", NULL},
    };
    if (orr_config__is_true(c, "multi-latent-attention"))
        orr_config__put_counts(c, latent, G_N_ELEMENTS(latent));
    if (orr_config__count(c, "num-experts") <= 1)
        return;
    orr_config__put_counts(c, experts, G_N_ELEMENTS(experts));
    put_frequency(c);
    int64_t shared = orr_config__count(c, "moe-shared-expert-intermediate-size");
    int64_t width = orr_config__count(c, "moe-ffn-hidden-size");
    width = width > 0 ? width : orr_config__count(c, "ffn-hidden-size");
    if (shared > 0 && width > 0) {
        g_autofree char *number =
            g_strdup_printf("%" G_GINT64_FORMAT, (shared + width - 1) / width);
        orr_config__put(c, "model.shared_experts", number, NULL);
    }
}

static void map_megatron_model(OrrConfig *c) {
    const char *position = orr_config__said(c, "position-embedding-type");
    bool is_rope = (position && strcmp(position, "rope") == 0) ||
                   orr_config__is_true(c, "use-rotary-position-embeddings");
    bool is_alibi = position && strcmp(position, "alibi") == 0;
    const char *norm = orr_config__said(c, "normalization");
    bool is_gated = orr_config__is_true(c, "swiglu");
    const char *activation = is_gated                                 ? "silu"
                             : orr_config__is_true(c, "squared-relu") ? "relu"
                                                                      : "gelu";
    bool has_none = position && strcmp(position, "none") == 0;
    const OrrConfigBlock block = {
        .is_gated = is_gated,
        .activation = activation,
        .is_rms = norm && g_ascii_strcasecmp(norm, "RMSNorm") == 0,
        .position = is_rope    ? "rope"
                    : is_alibi ? "alibi"
                    : has_none ? "none"
                               : "learned",
        .is_tied = !orr_config__is_true(c, "untie-embeddings-and-output-weights"),
        .has_bias = !orr_config__is_true(c, "disable-bias-linear")};
    orr_config__put_block(c, &block);
    if (orr_config__is_true(c, "add-qkv-bias"))
        orr_config__put(c, "model.qkv_bias", "yes", NULL);
    if (orr_config__is_true(c, "qk-layernorm"))
        orr_config__put(c, "model.qk_norm", "yes", NULL);
    put_rotary(c, is_rope);
    if (!is_rope && !is_alibi && !has_none)
        orr_config__put(c, "model.max_positions", orr_config__said(c, "max-position-embeddings"),
                        "tokens");
    if (orr_config__is_true(c, "embed-layernorm"))
        orr_config__put(c, "model.embedding_norm", "yes", NULL);
    int64_t hidden = orr_config__count(c, "hidden-size");
    /* arguments.py: 4 h, or 8/3 h rounded to 64 with SwiGLU */
    int64_t ffn = is_gated ? hidden * 8 / 3 / 64 * 64 : hidden * 4;
    g_autofree char *width = g_strdup_printf("%" G_GINT64_FORMAT, ffn);
    if (!orr_config__said(c, "ffn-hidden-size"))
        orr_config__put(c, "model.ffn", width, NULL);
    const char *groups = orr_config__said(c, "num-query-groups");
    if (orr_config__is_true(c, "group-query-attention") && groups)
        orr_config__put(c, "model.kv_heads", groups, NULL);
    const char *vocab = orr_config__said(c, "pad-vocab-size-to");
    vocab = vocab ? vocab : orr_config__said(c, "vocab-size");
    vocab = vocab ? vocab : orr_config__said(c, "padded-vocab-size");
    const char *file = orr_config__said(c, "vocab-file");
    if (!vocab && file && strstr(file, "gpt2")) {
        orr_workloads__note(c->import,
                            "the vocabulary is that of GPT-2 by the name of --vocab-file: "
                            "50257");
        vocab = "50257";
    }
    orr_config__put(c, "model.vocab", vocab, NULL);
}

static void map_megatron_memory(OrrConfig *c) {
    const char *granularity = orr_config__said(c, "recompute-granularity");
    bool is_old = orr_config__is_true(c, "checkpoint-activations") ||
                  orr_config__said(c, "activations-checkpoint-method");
    bool is_full = is_old || (granularity && strcmp(granularity, "full") == 0);
    bool is_selective = orr_config__is_true(c, "recompute-activations") ||
                        (granularity && strcmp(granularity, "selective") == 0);
    orr_config__put(c, "recompute.policy",
                    is_full        ? "full"
                    : is_selective ? "selective"
                                   : "none",
                    NULL);
    if (is_full) {
        orr_config__put(c, "recompute.method", orr_config__said(c, "recompute-method"), NULL);
        orr_config__put(c, "recompute.layers", orr_config__said(c, "recompute-num-layers"),
                        "layers");
    }
    bool is_deepspeed = orr_config__is_true(c, "deepspeed");
    const char *stage = orr_config__said(c, "zero-stage");
    stage = stage ? stage : orr_config__said(c, "deepspeed.zero_optimization.stage");
    if (is_deepspeed && is_on(c, "bf16"))
        orr_config__put(c, "layout.zero_stage", "1", NULL); /* its BF16 optimizer is ZeRO-1 */
    else if (is_deepspeed && stage)
        orr_config__put(c, "layout.zero_stage", stage, NULL);
    else
        orr_config__put(c, "layout.zero_stage",
                        orr_config__is_true(c, "use-distributed-optimizer") ? "1" : "0", NULL);
    orr_config__put(c, "job.framework",
                    is_deepspeed                                      ? "megatron-deepspeed"
                    : orr_config__is_true(c, "is-nemo")               ? "nemo-2024"
                    : is_old                                          ? "megatron-2021"
                    : orr_config__is_true(c, "recompute-activations") ? "megatron-2023"
                                                                      : "megatron-core-2024",
                    NULL);
}

bool orr_config__map_megatron(OrrConfig *c, GError **error) {
    static const OrrConfigCount counts[] = {
        {"num-layers", "model.layers", NULL},
        {"hidden-size", "model.hidden", NULL},
        {"num-attention-heads", "model.heads", NULL},
        {"ffn-hidden-size", "model.ffn", NULL},
        {"kv-channels", "model.head_dim", NULL},
        {"tensor-model-parallel-size", "layout.tp", NULL},
        {"pipeline-model-parallel-size", "layout.pp", NULL},
        {"context-parallel-size", "layout.cp", NULL},
        {"num-virtual-stages-per-pipeline-rank", "layout.vpp", NULL},
        {"virtual-pipeline-model-parallel-size", "layout.vpp", NULL},
        {"expert-model-parallel-size", "layout.ep", NULL},
        {"seq-length", "batch.sequence", "tokens"},
        {"micro-batch-size", "batch.micro", "sequences"},
        {"global-batch-size", "batch.global", "sequences"},
    };
    (void)error;
    rename(c);
    map_megatron_model(c);
    map_megatron_memory(c);
    orr_config__put_counts(c, counts, G_N_ELEMENTS(counts));
    map_sparse(c);
    bool is_split = orr_config__count(c, "tensor-model-parallel-size") > 1; /* else it is ignored */
    orr_config__put(c, "layout.sequence_parallel",
                    orr_config__yes(is_split && orr_config__is_true(c, "sequence-parallel")), NULL);
    bool is_fp8 = orr_config__said(c, "fp8-format") || orr_config__said(c, "fp8");
    orr_config__put(c, "precision.compute",
                    is_fp8             ? "fp8"
                    : is_on(c, "bf16") ? "bf16"
                    : is_on(c, "fp16") ? "fp16"
                                       : "fp32",
                    NULL);
    int64_t layers = orr_config__count(c, "num-layers");
    int64_t stages = MAX(1, orr_config__count(c, "pipeline-model-parallel-size"));
    int64_t each = orr_config__count(c, "num-layers-per-virtual-pipeline-stage");
    if (each > 0 && layers / stages / each > 1) {
        g_autofree char *vpp = g_strdup_printf("%" G_GINT64_FORMAT, layers / stages / each);
        orr_config__put(c, "layout.vpp", vpp, NULL);
    }
    const char *partition = orr_config__said(c, "pp-partition-method");
    if (partition && strstr(partition, "embedding"))
        orr_config__put(c, "layout.ends", "one_layer_less", NULL);
    int64_t nodes = orr_config__count(c, "nnodes"),
            each_gpus = orr_config__count(c, "nproc-per-node");
    if (nodes > 0 && each_gpus > 0) {
        g_autofree char *gpus = g_strdup_printf("%" G_GINT64_FORMAT, nodes * each_gpus);
        orr_config__say(c, "gpus", gpus);
    }
    return true;
}
