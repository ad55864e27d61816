/* Names of frameworks to keys of a job file. */
#include <string.h>

#include "workloads/config_priv.h"

typedef struct {
    const char *said, *key, *noun;
} Mapping;

static void apply(OrrConfig *c, const Mapping *mappings, gsize n) {
    for (gsize i = 0; i < n; i++)
        orr_config__put(c, mappings[i].key, orr_config__said(c, mappings[i].said),
                        mappings[i].noun);
}

static const char *yes(bool is_true) {
    return is_true ? "yes" : "no";
}

static bool refuse_experts(const OrrConfig *c, const char *name, GError **error) {
    if (orr_config__count(c, name) <= 1)
        return true;
    return orr_fail_input(error, "%s: %s = %s: mixtures of experts are not imported",
                          c->import->path, name, orr_config__said(c, name));
}

/* What architectures share: a plain GPT unless said otherwise. */
static void put_block(OrrConfig *c, bool is_gated, const char *activation, bool is_rms,
                      const char *position, bool is_tied, bool has_bias) {
    orr_config__put(c, "model.gated", yes(is_gated), NULL);
    orr_config__put(c, "model.activation", activation, NULL);
    orr_config__put(c, "model.norm", is_rms ? "rms_norm" : "layer_norm", NULL);
    orr_config__put(c, "model.position", position, NULL);
    orr_config__put(c, "model.tied", yes(is_tied), NULL);
    orr_config__put(c, "model.qkv_bias", yes(has_bias), NULL);
    orr_config__put(c, "model.out_bias", yes(has_bias), NULL);
    orr_config__put(c, "model.mlp_bias", yes(has_bias), NULL);
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
    put_block(c, is_gated, activation, norm && strcmp(norm, "RMSNorm") == 0,
              is_rope    ? "rope"
              : is_alibi ? "alibi"
                         : "learned",
              !orr_config__is_true(c, "untie-embeddings-and-output-weights"),
              !orr_config__is_true(c, "disable-bias-linear"));
    if (!is_rope && !is_alibi)
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
    if (is_deepspeed && orr_config__is_true(c, "bf16"))
        orr_config__put(c, "layout.zero_stage", "1", NULL); /* its BF16 optimizer is ZeRO-1 */
    else if (orr_config__said(c, "zero-stage"))
        orr_config__put(c, "layout.zero_stage", orr_config__said(c, "zero-stage"), NULL);
    else
        orr_config__put(c, "layout.zero_stage",
                        orr_config__is_true(c, "use-distributed-optimizer") ? "1" : "0", NULL);
    orr_config__put(c, "job.framework",
                    is_deepspeed                                      ? "megatron-deepspeed"
                    : is_old                                          ? "megatron-2021"
                    : orr_config__is_true(c, "recompute-activations") ? "megatron-2023"
                                                                      : "megatron-core-2024",
                    NULL);
}

bool orr_config__map_megatron(OrrConfig *c, GError **error) {
    static const Mapping mappings[] = {
        {"num-layers", "model.layers", NULL},
        {"hidden-size", "model.hidden", NULL},
        {"num-attention-heads", "model.heads", NULL},
        {"ffn-hidden-size", "model.ffn", NULL},
        {"kv-channels", "model.head_dim", NULL},
        {"tensor-model-parallel-size", "layout.tp", NULL},
        {"pipeline-model-parallel-size", "layout.pp", NULL},
        {"context-parallel-size", "layout.cp", NULL},
        {"num-virtual-stages-per-pipeline-rank", "layout.vpp", NULL},
        {"seq-length", "batch.sequence", "tokens"},
        {"micro-batch-size", "batch.micro", "sequences"},
        {"global-batch-size", "batch.global", "sequences"},
    };
    if (!refuse_experts(c, "num-experts", error))
        return false;
    map_megatron_model(c);
    map_megatron_memory(c);
    apply(c, mappings, G_N_ELEMENTS(mappings));
    orr_config__put(c, "layout.sequence_parallel", yes(orr_config__is_true(c, "sequence-parallel")),
                    NULL);
    orr_config__put(c, "precision.compute",
                    orr_config__is_true(c, "bf16")   ? "bf16"
                    : orr_config__is_true(c, "fp16") ? "fp16"
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

bool orr_config__map_deepspeed(OrrConfig *c, GError **error) {
    static const Mapping mappings[] = {
        {"train_batch_size", "batch.global", "sequences"},
        {"train_micro_batch_size_per_gpu", "batch.micro", "sequences"},
        {"zero_optimization.stage", "layout.zero_stage", NULL},
    };
    if (orr_config__said(c, "zero_optimization.offload_optimizer.device") ||
        orr_config__said(c, "zero_optimization.offload_param.device"))
        return orr_fail_input(error,
                              "%s: zero_optimization.offload_optimizer: offloading to the CPU "
                              "is not modelled",
                              c->import->path);
    static const char *const sizes[] = {"train_batch_size", "train_micro_batch_size_per_gpu"};
    for (int i = 0; i < 2; i++)
        if (g_strcmp0(orr_config__said(c, sizes[i]), "auto") == 0) {
            orr_workloads__note(c->import, "%s = auto: it must be said with --set", sizes[i]);
            orr_config__say(c, sizes[i], "");
        }
    apply(c, mappings, G_N_ELEMENTS(mappings));
    if (!orr_config__said(c, "zero_optimization.stage"))
        orr_config__put(c, "layout.zero_stage", "0", NULL);
    bool is_bf16 = orr_config__is_true(c, "bf16.enabled");
    bool is_fp16 = orr_config__is_true(c, "fp16.enabled");
    orr_config__put(c, "precision.compute", is_bf16 ? "bf16" : is_fp16 ? "fp16" : "fp32", NULL);
    orr_config__put(c, "job.framework", "deepspeed-zero3", NULL);
    return true;
}

bool orr_config__map_nanotron(OrrConfig *c, GError **error) {
    static const Mapping mappings[] = {
        {"model.model_config.num_hidden_layers", "model.layers", NULL},
        {"model.model_config.hidden_size", "model.hidden", NULL},
        {"model.model_config.num_attention_heads", "model.heads", NULL},
        {"model.model_config.num_key_value_heads", "model.kv_heads", NULL},
        {"model.model_config.intermediate_size", "model.ffn", NULL},
        {"model.model_config.vocab_size", "model.vocab", NULL},
        {"parallelism.tp", "layout.tp", NULL},
        {"parallelism.pp", "layout.pp", NULL},
        {"parallelism.dp", "layout.dp", NULL},
        {"parallelism.context_parallel_size", "layout.cp", NULL},
        {"optimizer.zero_stage", "layout.zero_stage", NULL},
        {"tokens.micro_batch_size", "batch.micro", "sequences"},
        {"tokens.batch_accumulation_per_replica", "batch.micro_batches", NULL},
        {"tokens.sequence_length", "batch.sequence", "tokens"},
    };
    if (!refuse_experts(c, "model.model_config.moe_num_experts", error) ||
        !refuse_experts(c, "parallelism.expert_parallel_size", error))
        return false;
    apply(c, mappings, G_N_ELEMENTS(mappings));
    const char *dtype = orr_config__said(c, "model.dtype"), *mode;
    bool has_bias = orr_config__is_true(c, "model.model_config.attention_bias");
    put_block(c, true, "silu", true, "rope",
              orr_config__is_true(c, "model.model_config.tie_word_embeddings"), false);
    orr_config__put(c, "model.qkv_bias", yes(has_bias), NULL);
    orr_config__put(c, "precision.compute",
                    g_strcmp0(dtype, "float16") == 0   ? "fp16"
                    : g_strcmp0(dtype, "float32") == 0 ? "fp32"
                                                       : "bf16",
                    NULL);
    mode = orr_config__said(c, "parallelism.tp_mode");
    orr_config__put(c, "layout.sequence_parallel", yes(g_strcmp0(mode, "REDUCE_SCATTER") == 0),
                    NULL);
    orr_config__put(c, "recompute.policy",
                    orr_config__is_true(c, "parallelism.recompute_layer") ? "full" : "none", NULL);
    const char *engine = orr_config__said(c, "parallelism.pp_engine");
    orr_config__put(c, "schedule.name", g_strcmp0(engine, "afab") == 0 ? "gpipe" : "1f1b", NULL);
    orr_config__put(c, "job.framework", "nanotron", NULL);
    int64_t gpus = MAX(1, orr_config__count(c, "parallelism.tp")) *
                   MAX(1, orr_config__count(c, "parallelism.pp")) *
                   MAX(1, orr_config__count(c, "parallelism.dp"));
    g_autofree char *text = g_strdup_printf("%" G_GINT64_FORMAT, gpus);
    orr_config__say(c, "gpus", text);
    return true;
}

bool orr_config__map_torchtitan(OrrConfig *c, GError **error) {
    static const Mapping mappings[] = {
        {"parallelism.tensor_parallel_degree", "layout.tp", NULL},
        {"parallelism.pipeline_parallel_degree", "layout.pp", NULL},
        {"parallelism.context_parallel_degree", "layout.cp", NULL},
        {"training.local_batch_size", "batch.micro", "sequences"},
        {"training.batch_size", "batch.micro", "sequences"}, /* before 2025 */
        {"training.seq_len", "batch.sequence", "tokens"},
    };
    static const struct {
        const char *name, *flavor, *model;
    } models[] = {{"llama3", "8B", "llama3.1-8b"},
                  {"llama3", "70B", "llama3.1-70b"},
                  {"llama3", "405B", "llama3.1-405b"}};
    const char *name = orr_config__said(c, "model.name");
    const char *flavor = orr_config__said(c, "model.flavor");
    for (gsize i = 0; i < G_N_ELEMENTS(models); i++)
        if (g_strcmp0(name, models[i].name) == 0 && g_strcmp0(flavor, models[i].flavor) == 0)
            orr_config__put(c, "job.model", models[i].model, NULL);
    if (!g_hash_table_lookup(c->job, "job.model"))
        return orr_fail_input(error,
                              "%s: model.name = %s, model.flavor = %s: not among the dense models "
                              "(llama3 8B, 70B, 405B)",
                              c->import->path, name ? name : "", flavor ? flavor : "");
    apply(c, mappings, G_N_ELEMENTS(mappings));
    const char *recompute = orr_config__said(c, "activation_checkpoint.mode");
    orr_config__put(c, "recompute.policy",
                    g_strcmp0(recompute, "full") == 0        ? "full"
                    : g_strcmp0(recompute, "selective") == 0 ? "selective"
                                                             : "none",
                    NULL);
    int64_t global = orr_config__count(c, "training.global_batch_size");
    orr_config__put(c, global > 0 ? "batch.global" : "batch.micro_batches",
                    global > 0 ? orr_config__said(c, "training.global_batch_size") : "1",
                    global > 0 ? "sequences" : NULL);
    orr_config__put(c, "layout.zero_stage", "3", NULL); /* FSDP2 */
    orr_config__put(c, "precision.compute", "bf16", NULL);
    orr_config__put(c, "job.framework", "torchtitan", NULL);
    return true;
}
