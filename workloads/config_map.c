/* Names of DeepSpeed, nanotron and of YAML in general to keys of a job file. */
#include <string.h>

#include "workloads/config_priv.h"

static bool is_offloaded(const OrrConfig *c, const char *name) {
    const char *device = orr_config__said(c, name);
    return device && strcmp(device, "none") != 0;
}

/* "auto" is the launcher's to fill, or the user's. */
static void drop_autos(OrrConfig *c) {
    static const char *const names[] = {"train_batch_size",
                                        "train_micro_batch_size_per_gpu",
                                        "gradient_accumulation_steps",
                                        "bf16.enabled",
                                        "bfloat16.enabled",
                                        "fp16.enabled",
                                        "zero_optimization.stage"};
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++)
        if (g_strcmp0(orr_config__said(c, names[i]), "auto") == 0) {
            orr_workloads__note(c->import, "%s = auto: it must be said with --set", names[i]);
            orr_config__say(c, names[i], "");
        }
}

bool orr_config__map_deepspeed(OrrConfig *c, GError **error) {
    static const OrrConfigCount counts[] = {
        {"train_micro_batch_size_per_gpu", "batch.micro", "sequences"},
        {"zero_optimization.stage", "layout.zero_stage", NULL},
    };
    static const OrrConfigCount of_all[] = {{"train_batch_size", "batch.global", "sequences"}};
    static const OrrConfigCount of_each[] = {
        {"gradient_accumulation_steps", "batch.micro_batches", NULL}};
    static const char *const offloads[] = {"zero_optimization.offload_optimizer.device",
                                           "zero_optimization.offload_param.device"};
    for (gsize i = 0; i < G_N_ELEMENTS(offloads); i++)
        if (is_offloaded(c, offloads[i]))
            return orr_fail_input(error,
                                  "%s: %s = %s: offloading to the CPU is not modelled; none would "
                                  "do",
                                  c->import->path, offloads[i], orr_config__said(c, offloads[i]));
    if (orr_config__is_true(c, "zero_optimization.cpu_offload"))
        return orr_fail_input(error,
                              "%s: zero_optimization.cpu_offload: offloading to the CPU is not "
                              "modelled; false would do",
                              c->import->path);
    drop_autos(c);
    orr_config__put_counts(c, counts, G_N_ELEMENTS(counts));
    if (orr_config__said(c, "train_batch_size"))
        orr_config__put_counts(c, of_all, G_N_ELEMENTS(of_all));
    else
        orr_config__put_counts(c, of_each, G_N_ELEMENTS(of_each));
    if (!orr_config__said(c, "zero_optimization.stage")) /* a mere "true" was stage 1 */
        orr_config__put(c, "layout.zero_stage",
                        orr_config__is_true(c, "zero_optimization") ? "1" : "0", NULL);
    bool is_bf16 =
        orr_config__is_true(c, "bf16.enabled") || orr_config__is_true(c, "bfloat16.enabled");
    bool is_fp16 = orr_config__is_true(c, "fp16.enabled");
    orr_config__put(c, "precision.compute", is_bf16 ? "bf16" : is_fp16 ? "fp16" : "fp32", NULL);
    static const OrrConfigCount tensor[] = {{"tensor_parallel.autotp_size", "layout.tp", NULL},
                                            {"tensor_parallel.tp_size", "layout.tp", NULL}};
    orr_config__put_counts(c, tensor, G_N_ELEMENTS(tensor));
    orr_config__put(c, "job.framework", "deepspeed-zero3", NULL);
    return true;
}

/* Llamoe has its own keys, newer configurations a moe_config. */
static void map_experts(OrrConfig *c) {
    static const OrrConfigCount counts[] = {
        {"model.model_config.moe_num_experts", "model.experts", NULL},
        {"model.model_config.num_experts_per_tok", "model.experts_per_token", NULL},
        {"model.model_config.moe_config.num_experts", "model.experts", NULL},
        {"model.model_config.moe_config.top_k", "model.experts_per_token", NULL},
        {"model.model_config.moe_config.moe_intermediate_size", "model.expert_ffn", NULL},
        {"parallelism.expert_parallel_size", "layout.ep", NULL},
    };
    if (MAX(orr_config__count(c, "model.model_config.moe_num_experts"),
            orr_config__count(c, "model.model_config.moe_config.num_experts")) > 1)
        orr_config__put_counts(c, counts, G_N_ELEMENTS(counts));
}

bool orr_config__map_nanotron(OrrConfig *c, GError **error) {
    static const OrrConfigCount counts[] = {
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
    (void)error;
    orr_config__put_counts(c, counts, G_N_ELEMENTS(counts));
    map_experts(c);
    const char *dtype = orr_config__said(c, "model.dtype"), *mode;
    bool has_bias = orr_config__is_true(c, "model.model_config.attention_bias");
    const OrrConfigBlock block = {
        .is_gated = true,
        .activation = "silu",
        .is_rms = true,
        .position = "rope",
        .is_tied = orr_config__is_true(c, "model.model_config.tie_word_embeddings")};
    orr_config__put_block(c, &block);
    orr_config__put(c, "model.qkv_bias", orr_config__yes(has_bias), NULL);
    orr_config__put(c, "precision.compute",
                    g_strcmp0(dtype, "float16") == 0   ? "fp16"
                    : g_strcmp0(dtype, "float32") == 0 ? "fp32"
                                                       : "bf16",
                    NULL);
    mode = orr_config__said(c, "parallelism.tp_mode");
    orr_config__put(c, "layout.sequence_parallel",
                    orr_config__yes(orr_config__count(c, "parallelism.tp") > 1 &&
                                    g_strcmp0(mode, "REDUCE_SCATTER") == 0),
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

static gint by_depth(gconstpointer a, gconstpointer b) {
    guint n_a = 0, n_b = 0;
    for (const char *at = a; *at; at++)
        n_a += *at == '.';
    for (const char *at = b; *at; at++)
        n_b += *at == '.';
    return n_a != n_b ? (gint)n_a - (gint)n_b : strcmp(a, b);
}

/* "MODEL_ARGS.--num-layers", "language_model.num_layers" as "num-layers"; the least nested wins. */
static void strip_sections(OrrConfig *c) {
    g_autoptr(GList) names = g_list_sort(g_hash_table_get_keys(c->said), by_depth);
    g_autoptr(GPtrArray) plain = g_ptr_array_new_with_free_func(g_free);
    for (GList *at = names; at; at = at->next) {
        const char *dot = strrchr(at->data, '.'), *leaf = dot ? dot + 1 : at->data;
        leaf += strspn(leaf, "-");
        g_ptr_array_add(plain, g_strdup(at->data));
        g_ptr_array_add(plain, g_strdelimit(g_strdup(leaf), "_", '-'));
    }
    for (guint i = 0; i < plain->len; i += 2) {
        const char *value = orr_config__said(c, plain->pdata[i]), *leaf = plain->pdata[i + 1];
        if (value && !orr_config__said(c, leaf))
            orr_config__say(c, leaf, value);
    }
}

bool orr_config__map_yaml(OrrConfig *c, GError **error) {
    if (orr_config__said(c, "model.model_config.num_hidden_layers")) {
        c->kind = "nanotron YAML";
        return orr_config__map_nanotron(c, error);
    }
    bool is_nemo =
        orr_config__said(c, "trainer.devices") || orr_config__said(c, "trainer.num_nodes");
    const char *optimizer = orr_config__said(c, "model.optim.name"),
               *shared = orr_config__said(c, "model.share_embeddings_and_output_weights");
    if (is_nemo && !orr_config__is_true(c, "model.share_embeddings_and_output_weights") && shared)
        orr_config__say(c, "untie-embeddings-and-output-weights", "true");
    if (is_nemo && optimizer && strstr(optimizer, "distributed"))
        orr_config__say(c, "use-distributed-optimizer", "true");
    if (is_nemo && orr_config__said(c, "model.num_query_groups"))
        orr_config__say(c, "group-query-attention", "true");
    strip_sections(c);
    if (!orr_config__said(c, "num-layers"))
        return orr_fail_input(error,
                              "%s: no configuration that is known: it says nothing of "
                              "model.model_config (nanotron) or num_layers (Megatron, NeMo)",
                              c->import->path);
    c->kind = is_nemo ? "NeMo YAML" : "Megatron YAML";
    if (is_nemo)
        orr_config__say(c, "is-nemo", "true");
    return orr_config__map_megatron(c, error);
}
