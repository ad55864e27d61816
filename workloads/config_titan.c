/* torchtitan's names to keys of a job file, and the models that its flavors are. */
#include <string.h>

#include "workloads/config_priv.h"

/* Shapes of a flavor: dim, layers, heads, key-value heads, inner width, vocabulary; what makes it
 * a mixture of experts. The debug flavors are left out: their shapes change. Sources: model
 * registries of pytorch/torchtitan (models/deepseek_v3, models/qwen3, experiments/llama4) of 2025,
 * published config.json of the same models (heads and widths of Llama 4). */
typedef struct {
    const char *name, *flavor;
    const char *model; /* of ours; NULL: by shapes */
    guint dim, layers, heads, kv_heads, head_dim, ffn, vocab;
    bool is_tied, has_qk_norm;
    guint experts, top, expert_ffn, n_shared, dense_layers, every;
    guint q_rank, kv_rank, rotary_dim, value_dim;
} Flavor;

static const Flavor flavors[] = {
    {"llama2", "7B", .model = "llama2-7b"},
    {"llama2", "13B", .model = "llama2-13b"},
    {"llama2", "70B", .model = "llama2-70b"},
    {"llama3", "1B", .model = "llama3.2-1b"},
    {"llama3", "3B", .model = "llama3.2-3b"},
    {"llama3", "8B", .model = "llama3.1-8b"},
    {"llama3", "70B", .model = "llama3.1-70b"},
    {"llama3", "405B", .model = "llama3.1-405b"},
    {"qwen3", "0.6B", .model = "qwen3-0.6b"},
    {"qwen3", "1.7B", .model = "qwen3-1.7b"},
    {"qwen3", "4B", NULL, 2560, 36, 32, 8, 128, 9728, 151936, true, true},
    {"qwen3", "8B", NULL, 4096, 36, 32, 8, 128, 12288, 151936, false, true},
    {"qwen3", "14B", NULL, 5120, 40, 40, 8, 128, 17408, 151936, false, true},
    {"qwen3", "32B", NULL, 5120, 64, 64, 8, 128, 25600, 151936, false, true},
    {"qwen3", "30B-A3B", NULL, 2048, 48, 32, 4, 128, 6144, 151936, false, true, 128, 8, 768},
    {"qwen3", "235B-A22B", NULL, 4096, 94, 64, 4, 128, 12288, 151936, false, true, 128, 8, 1536},
    {"llama4", "17bx16e", NULL, 5120, 48, 40, 8, 128, 16384, 202048, false, false, 16, 1, 8192, 1},
    {"llama4", "17bx128e", NULL, 5120, 48, 40, 8, 128, 16384, 202048, false, false, 128, 1, 8192, 1,
     .every = 2},
    {"deepseek_v3",    "16B",           NULL,  2048, 27, 16,   16, 128, 10944,
     102400,           false,           false, 64,   6,  1408, 2,  1,   .kv_rank = 512,
     .rotary_dim = 64, .value_dim = 128},
    {"deepseek_v3",
     "236B",
     NULL,
     5120,
     60,
     128,
     128,
     128,
     12288,
     102400,
     false,
     false,
     160,
     6,
     1536,
     2,
     1,
     .q_rank = 1536,
     .kv_rank = 512,
     .rotary_dim = 64,
     .value_dim = 128},
    {"deepseek_v3",
     "671B",
     NULL,
     7168,
     61,
     128,
     128,
     128,
     18432,
     129280,
     false,
     false,
     256,
     8,
     2048,
     1,
     3,
     .q_rank = 1536,
     .kv_rank = 512,
     .rotary_dim = 64,
     .value_dim = 128},
};

static void put_number(OrrConfig *c, const char *key, guint value, const char *noun) {
    g_autofree char *text = value > 0 ? g_strdup_printf("%u", value) : NULL;
    orr_config__put(c, key, text, noun);
}

static void put_flavor(OrrConfig *c, const Flavor *f) {
    const struct {
        const char *key;
        guint value;
    } numbers[] = {
        {"model.layers", f->layers},
        {"model.hidden", f->dim},
        {"model.heads", f->heads},
        {"model.kv_heads", f->kv_heads},
        {"model.head_dim", f->head_dim},
        {"model.ffn", f->ffn},
        {"model.vocab", f->vocab},
        {"model.experts", f->experts},
        {"model.experts_per_token", f->top},
        {"model.expert_ffn", f->expert_ffn},
        {"model.shared_experts", f->n_shared},
        {"model.dense_layers", f->dense_layers},
        {"model.moe_every", f->every},
        {"model.q_rank", f->q_rank},
        {"model.kv_rank", f->kv_rank},
        {"model.rotary_dim", f->rotary_dim},
        {"model.value_dim", f->value_dim},
    };
    orr_config__put(c, "job.model", f->model, NULL);
    if (f->model)
        return;
    for (gsize i = 0; i < G_N_ELEMENTS(numbers); i++)
        put_number(c, numbers[i].key, numbers[i].value, NULL);
    const OrrConfigBlock block = {.is_gated = true,
                                  .activation = "silu",
                                  .is_rms = true,
                                  .position = "rope",
                                  .is_tied = f->is_tied};
    orr_config__put_block(c, &block);
    if (f->has_qk_norm)
        orr_config__put(c, "model.qk_norm", "yes", NULL);
}

static bool find_flavor(OrrConfig *c, GError **error) {
    const char *name = orr_config__said(c, "model.name");
    const char *flavor = orr_config__said(c, "model.flavor");
    g_autoptr(GString) list = g_string_new(NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(flavors); i++) {
        bool is_name = g_strcmp0(name, flavors[i].name) == 0;
        if (is_name && g_ascii_strcasecmp(flavor, flavors[i].flavor) == 0) {
            put_flavor(c, &flavors[i]);
            return true;
        }
        bool is_new = i == 0 || strcmp(flavors[i - 1].name, flavors[i].name) != 0;
        g_string_append_printf(list, "%s%s%s%s",
                               i == 0   ? ""
                               : is_new ? "; "
                                        : ", ",
                               is_new ? flavors[i].name : "", is_new ? " " : "", flavors[i].flavor);
    }
    if (orr_config__set(c, "job.model"))
        return true;
    return orr_fail_input(error,
                          "%s: model.name = %s, model.flavor = %s: not among those that are known "
                          "(%s); --set job.model=... would do",
                          c->import->path, name ? name : "", flavor, list->str);
}

/* The schedules of torch.distributed.pipelining that have one of ours. */
static void put_schedule(OrrConfig *c) {
    static const struct {
        const char *theirs, *ours;
    } names[] = {{"GPipe", "gpipe"}, {"1F1B", "1f1b"}, {"Interleaved1F1B", "interleaved_padded"}};
    const char *said = orr_config__said(c, "parallelism.pipeline_parallel_schedule");
    if (orr_config__count(c, "parallelism.pipeline_parallel_degree") <= 1)
        return;
    for (gsize i = 0; said && i < G_N_ELEMENTS(names); i++)
        if (g_ascii_strcasecmp(said, names[i].theirs) == 0) {
            orr_config__put(c, "schedule.name", names[i].ours, NULL);
            if (i == 2) /* pipeline_parallel.py: two stages a rank unless layers are given */
                orr_config__put(c, "layout.vpp", "2", NULL);
            return;
        }
    if (said)
        orr_workloads__note(c->import,
                            "pipeline_parallel_schedule = %.40s is none of ours: the default of "
                            "the job is taken; --set schedule.name=... says another",
                            said);
}

/* Under pipelines the local batch is cut into micro-batches of one sequence, or as said. */
static void put_batch(OrrConfig *c) {
    int64_t local = orr_config__count(c, "training.local_batch_size");
    local = local > 0 ? local : orr_config__count(c, "training.batch_size"); /* before 2025 */
    int64_t micro = local, global = orr_config__count(c, "training.global_batch_size");
    if (orr_config__count(c, "parallelism.pipeline_parallel_degree") > 1) {
        micro = orr_config__count(c, "parallelism.pipeline_parallel_microbatch_size");
        micro = MAX(micro, 1);
    }
    if (local == 0)
        return;
    if (local % micro != 0)
        orr_workloads__note(c->import,
                            "micro-batches of %" G_GINT64_FORMAT " do not divide the local batch "
                            "of %" G_GINT64_FORMAT,
                            micro, local);
    put_number(c, "batch.micro", (guint)micro, "sequences");
    if (global > 0)
        put_number(c, "batch.global", (guint)global, "sequences");
    else
        put_number(c, "batch.micro_batches", (guint)MAX(1, local / micro), NULL);
}

/* FSDP2 over all ranks unless the degrees say replicas, alone or of shards. */
static void put_sharding(OrrConfig *c) {
    int64_t copies = orr_config__count(c, "parallelism.data_parallel_replicate_degree");
    const char *shard = orr_config__said(c, "parallelism.data_parallel_shard_degree");
    int64_t shards = orr_config__count(c, "parallelism.data_parallel_shard_degree");
    bool is_plain = copies > 1 && shards == 1;
    orr_config__put(c, "layout.zero_stage", is_plain ? "0" : "3", NULL);
    if (copies > 1 && shards > 1)
        put_number(c, "layout.hsdp_shard", (guint)shards, "ranks");
    else if (copies > 1 && !is_plain)
        orr_workloads__note(c->import,
                            "data_parallel_replicate_degree = %" G_GINT64_FORMAT " with shards of "
                            "%s: say --set layout.hsdp_shard=...",
                            copies, shard ? shard : "-1");
    const char *reshard = orr_config__said(c, "parallelism.fsdp_reshard_after_forward");
    bool has_stages = orr_config__count(c, "parallelism.pipeline_parallel_degree") > 1;
    bool is_default = !reshard || strcmp(reshard, "default") == 0;
    if (!is_plain)
        orr_config__put(c, "layout.reshard_after_forward",
                        orr_config__yes(is_default ? !has_stages : strcmp(reshard, "never") != 0),
                        NULL);
}

bool orr_config__map_torchtitan(OrrConfig *c, GError **error) {
    static const OrrConfigCount counts[] = {
        {"parallelism.tensor_parallel_degree", "layout.tp", NULL},
        {"parallelism.pipeline_parallel_degree", "layout.pp", NULL},
        {"parallelism.context_parallel_degree", "layout.cp", NULL},
        {"training.seq_len", "batch.sequence", "tokens"},
    };
    static const OrrConfigCount experts[] = {
        {"parallelism.expert_parallel_degree", "layout.ep", NULL}};
    if (!find_flavor(c, error))
        return false;
    orr_config__put_counts(c, counts, G_N_ELEMENTS(counts));
    if (orr_config__count(c, "parallelism.expert_parallel_degree") > 1)
        orr_config__put_counts(c, experts, G_N_ELEMENTS(experts));
    put_batch(c);
    put_schedule(c);
    put_sharding(c);
    const char *recompute = orr_config__said(c, "activation_checkpoint.mode");
    const char *option = orr_config__said(c, "activation_checkpoint.selective_ac_option");
    bool is_by_layer = option && g_ascii_isdigit(option[0]);
    if (is_by_layer && g_strcmp0(recompute, "selective") == 0)
        orr_workloads__note(c->import,
                            "activation_checkpoint.selective_ac_option = %s: whole layers "
                            "made again here and there are taken as per operation",
                            option);
    orr_config__put(c, "recompute.policy",
                    g_strcmp0(recompute, "full") == 0        ? "full"
                    : g_strcmp0(recompute, "selective") == 0 ? "per_op"
                                                             : "none",
                    NULL);
    const char *dtype = orr_config__said(c, "training.mixed_precision_param");
    orr_config__put(c, "precision.compute", g_strcmp0(dtype, "float32") == 0 ? "fp32" : "bf16",
                    NULL);
    const char *converters = orr_config__said(c, "model.converters");
    if (converters && strstr(converters, "float8"))
        orr_workloads__note(c->import, "model.converters has float8: the job is in BF16; --set "
                                       "precision.compute=fp8 says otherwise");
    bool is_compiled =
        orr_config__is_true(c, "training.compile") || orr_config__is_true(c, "compile.enable");
    orr_config__put(c, "job.framework", is_compiled ? "torchtitan" : "torchtitan-eager", NULL);
    return true;
}
