#include "sim/judge/names.h"

#include <string.h>

const OrrJudgeRuleText orr_judge_rules[ORR_N_JUDGE_RULES] = {
    [ORR_RULE_CLUSTER] = {"cluster", "interconnect not told or not known: the network that most "
                                     "published machines with this GPU have"},
    [ORR_RULE_NODE] = {"node",
                       "nodes with fewer GPUs than that machine's: a fat tree of such nodes"},
    [ORR_RULE_FRAMEWORK] = {"framework", "no profile of its own: the nearest one (JAX: "
                                         "megatron-core-2024; Megatron-LM by the GPU's age)"},
    [ORR_RULE_FAMILY] = {"model.family", "name of no known family: Llama-like"},
    [ORR_RULE_TIED] = {"model.tied", "embeddings tied or not as the family has them"},
    [ORR_RULE_KV_HEADS] = {"model.kv_heads", "as many as heads"},
    [ORR_RULE_FFN] = {"model.ffn", "four times hidden"},
    [ORR_RULE_VOCAB] = {"model.vocab", "the family's vocabulary"},
    [ORR_RULE_DP] = {"layout.dp", "GPUs / (tp x pp)"},
    [ORR_RULE_ZERO] = {"layout.zero_stage", "the profile's"},
    [ORR_RULE_SP] = {"layout.sequence_parallel", "the profile's"},
    [ORR_RULE_VPP] = {"layout.vpp", "interleaved without a number of chunks: chunks of one layer "
                                    "where embedding and head have their own, else two chunks"},
    [ORR_RULE_SCHEDULE] = {"schedule.name", "1f1b, interleaved with more than one chunk"},
    [ORR_RULE_SPLIT] = {"layout.stage_layers", "layers that do not divide: as even as can be, the "
                                               "longer stages first"},
    [ORR_RULE_RECOMPUTE] = {"recompute.policy", "none"},
    [ORR_RULE_PRECISION] = {"precision.compute", "FP16 and BF16 both said, or neither: bf16"},
    [ORR_RULE_SHARDS] = {"layout.hsdp_shard", "HSDP shards within a node"},
    [ORR_RULE_TFLOPS] = {"measured",
                         "no step time and no tokens/s: TFLOP/s by the source's formula"},
    [ORR_RULE_TOKENS] = {"measured", "no step time: from tokens/s"},
};

/* Longer words before the shorter ones they hold. */
static const struct {
    const char *words, *gpu;
} gpus[] = {
    {"GB300", "gb300"},
    {"gb300", "gb300"},
    {"GB200", "gb200"},
    {"gb200", "gb200"},
    {"B300", "b300-sxm"},
    {"b300", "b300-sxm"},
    {"B200", "b200-sxm"},
    {"b200", "b200-sxm"},
    {"H100-96", "h100-hbm2e-96"},
    {"GH200", NULL}, /* another memory and another CPU link */
    {"H200 NVL", NULL},
    {"H200", "h200-sxm"},
    {"h200", "h200-sxm"},
    {"H800", "h800-sxm-80"},
    {"h800", "h800-sxm-80"},
    {"H100 PCIe", NULL},
    {"H100", "h100-sxm-80"},
    {"h100", "h100-sxm-80"},
    {"A100 PCIe", "a100-pcie-80"},
    {"A100-40", "a100-sxm-40"},
    {"A100 40", "a100-sxm-40"},
    {"A100", "a100-sxm-80"},
    {"a100", "a100-sxm-80"},
    {"V100-16", "v100-sxm2-16"},
    {"V100", "v100-sxm2-32"},
    {"A10 ", "a10-24"},
};

const char *orr_judge_gpu(const char *gpu) {
    for (size_t i = 0; i < G_N_ELEMENTS(gpus); i++)
        if (strstr(gpu, gpus[i].words))
            return gpus[i].gpu;
    return NULL;
}

/* The last row of a GPU, with words "", is its default. */
static const struct {
    const char *gpu, *words, *cluster;
} clusters[] = {
    {"a100-sxm-80", "Omni-Path", "jean-zay-a100"},
    {"a100-sxm-80", "2 Tb/s", "a100-roce-2t"},
    {"a100-sxm-80", "400 Gbps", "a100-roce-400g"},
    {"a100-sxm-80", "4x100G RoCE", "a100-roce-400g"},
    {"a100-sxm-80", "1600 Gbps", "a100-roce"},
    {"a100-sxm-80", "Selene", "selene"},
    {"a100-sxm-80", "HDR", "selene"},
    {"a100-sxm-80", "Ethernet", "a100-ethernet"},
    {"a100-sxm-80", "", "a100-ib"},
    {"a100-sxm-40", "EFA", "aws-p4d"},
    {"a100-sxm-40", "HDR", "a100-40-ib"},
    {"a100-sxm-40", "", "a100-40-roce"},
    {"h100-hbm2e-96", "", "h100-96-roce"},
    {"h100-sxm-80", "3072-GPU", "meta-24k-roce"},
    {"h100-sxm-80", "EFA", "aws-p5"},
    {"h100-sxm-80", "800 Gbps", "h100-ethernet-800g"},
    {"h100-sxm-80", "TCPXO", "gcp-a3-mega"},
    {"h100-sxm-80", "8x200G", "gcp-a3-mega"},
    {"h100-sxm-80", "RoCE", "h100-roce"},
    {"h100-sxm-80", "RDMA", "h100-roce"},
    {"h100-sxm-80", "", "h100-ib"},
    {"h200-sxm", "RDMA", "h200-roce"},
    {"h200-sxm", "RoCE", "h200-roce"},
    {"h200-sxm", "", "h200-ib"},
    {"h800-sxm-80", "", "h800-ib"},
    {"b200-sxm", "EFA", "aws-p6-b200"},
    {"b200-sxm", "", "b200-ib"},
    {"b300-sxm", "", "b300-ib"},
    {"gb200", "", "gb200-nvl72-ib"},
    {"gb300", "", "gb300-nvl72-ib"},
    {"v100-sxm2-16", "", "v100-ib"},
    {"v100-sxm2-32", "", "v100-ib"},
    {"a10-24", "", "a10-ethernet"},
};

const char *orr_judge_cluster(const char *gpu, const char *interconnect, bool *is_default) {
    for (size_t i = 0; i < G_N_ELEMENTS(clusters); i++)
        if (strcmp(clusters[i].gpu, gpu) == 0 && strstr(interconnect, clusters[i].words)) {
            *is_default = !clusters[i].words[0] && !strstr(interconnect, "IB") &&
                          !strstr(interconnect, "NDR") && !strstr(interconnect, "NVL72");
            return clusters[i].cluster;
        }
    return NULL;
}

/* By the framework column, then the source: papers of Megatron-LM tell the year of the code. */
static const struct {
    const char *framework, *source, *profile;
} frameworks[] = {
    {"DeepSpeed ZeRO-3", "", "deepspeed-zero3"},
    {"", "Megatron-LM SC21", "megatron-2021"},
    {"Megatron-LM", "Activation Recomputation", "megatron-2022"},
    {"zero bubble", "", "zero-bubble"},
    {"Meta internal", "", "meta-llama3"},
    {"nanotron", "", "nanotron"},
    {"llm-foundry", "", "llm-foundry"},
    {"vTrain", "", "vtrain-megatron"},
    {"Megatron-DeepSpeed", "", "megatron-deepspeed"},
    {"torchtitan", "", "torchtitan"},
    {"FSDP2", "", "torchtitan"},
    {"FSDP + compile", "", "fms-fsdp"},
    {"FSDP", "", "pytorch-fsdp"},
    {"InternEvo", "", "internevo"},
    {"NeMo", "NeMo-Megatron-Launcher", "nemo-2022"},
    {"NeMo", "", "nemo-2024"},
    {"Megatron-Bridge", "", "nemo-2024"},
    {"Megatron-Core", "", "megatron-core-2024"},
};
/* The nearest to those without a profile. */
static const struct {
    const char *framework, *profile;
} nearest[] = {
    {"Paxml", "megatron-core-2024"},  {"MaxText", "megatron-core-2024"},
    {"JAX", "megatron-core-2024"},    {"Colossal", "pytorch-fsdp"},
    {"DeepSpeed", "deepspeed-zero3"}, {"Megatron", "megatron-core-2024"},
};

const char *orr_judge_framework(const OrrPublishedRun *row, const char *gpu, bool *is_nearest) {
    *is_nearest = false;
    for (size_t i = 0; i < G_N_ELEMENTS(frameworks); i++)
        if (strstr(row->framework, frameworks[i].framework) &&
            strstr(row->source, frameworks[i].source))
            return frameworks[i].profile;
    *is_nearest = true;
    bool is_old = gpu && (g_str_has_prefix(gpu, "a100") || g_str_has_prefix(gpu, "v100"));
    if (strstr(row->framework, "Megatron-LM"))
        return is_old ? "megatron-2023" : "megatron-core-2024";
    for (size_t i = 0; i < G_N_ELEMENTS(nearest); i++)
        if (strstr(row->framework, nearest[i].framework))
            return nearest[i].profile;
    return NULL;
}

/* Architectures by name, as their papers and configurations have them (workloads/models). */
static const OrrJudgeFamily families[] = {
    {.words = "bloom",
     .has_biases = true,
     .has_qkv_bias = true,
     .is_tied = true,
     .has_embedding_norm = true,
     .norm = ORR_LAYER_NORM,
     .activation = ORR_GELU,
     .position = ORR_POS_ALIBI,
     .vocab = 250880},
    {.words = "mpt",
     .has_biases = true,
     .has_qkv_bias = true,
     .is_tied = true,
     .norm = ORR_LAYER_NORM,
     .activation = ORR_GELU,
     .position = ORR_POS_LEARNED,
     .vocab = 50368},
    {.words = "mingpt",
     .has_biases = true,
     .has_qkv_bias = true,
     .norm = ORR_LAYER_NORM,
     .activation = ORR_GELU,
     .position = ORR_POS_LEARNED,
     .vocab = 50000},
    {.words = "nemotron",
     .norm = ORR_LAYER_NORM,
     .activation = ORR_RELU,
     .position = ORR_POS_ROPE,
     .rotary_frac = 0.5,
     .vocab = 256000},
    {.words = "gpt-oss",
     .is_gated = true,
     .has_qkv_bias = true,
     .norm = ORR_RMS_NORM,
     .activation = ORR_SILU,
     .position = ORR_POS_ROPE,
     .rotary_frac = 1,
     .vocab = 201088},
    {.words = "gpt",
     .has_biases = true,
     .has_qkv_bias = true,
     .is_tied = true,
     .norm = ORR_LAYER_NORM,
     .activation = ORR_GELU,
     .position = ORR_POS_LEARNED,
     .vocab = 50257},
    {.words = "megatron",
     .has_biases = true,
     .has_qkv_bias = true,
     .is_tied = true,
     .norm = ORR_LAYER_NORM,
     .activation = ORR_GELU,
     .position = ORR_POS_LEARNED,
     .vocab = 50257},
    {.words = "turing",
     .has_biases = true,
     .has_qkv_bias = true,
     .is_tied = true,
     .norm = ORR_LAYER_NORM,
     .activation = ORR_GELU,
     .position = ORR_POS_LEARNED,
     .vocab = 50257},
    {.words = "opt",
     .has_biases = true,
     .has_qkv_bias = true,
     .is_tied = true,
     .norm = ORR_LAYER_NORM,
     .activation = ORR_RELU,
     .position = ORR_POS_LEARNED,
     .vocab = 50272},
    {.words = "internlm",
     .is_gated = true,
     .has_qkv_bias = true,
     .norm = ORR_RMS_NORM,
     .activation = ORR_SILU,
     .position = ORR_POS_ROPE,
     .rotary_frac = 1,
     .vocab = 103168},
    {.words = "qwen2",
     .is_gated = true,
     .has_qkv_bias = true,
     .norm = ORR_RMS_NORM,
     .activation = ORR_SILU,
     .position = ORR_POS_ROPE,
     .rotary_frac = 1,
     .vocab = 152064},
    {.words = "qwen",
     .is_gated = true,
     .norm = ORR_RMS_NORM,
     .activation = ORR_SILU,
     .position = ORR_POS_ROPE,
     .rotary_frac = 1,
     .vocab = 151936},
    {.words = "llama3",
     .is_gated = true,
     .norm = ORR_RMS_NORM,
     .activation = ORR_SILU,
     .position = ORR_POS_ROPE,
     .rotary_frac = 1,
     .vocab = 128256},
    {.words = "llama",
     .is_gated = true,
     .norm = ORR_RMS_NORM,
     .activation = ORR_SILU,
     .position = ORR_POS_ROPE,
     .rotary_frac = 1,
     .vocab = 32000},
};

const OrrJudgeFamily *orr_judge_family(const char *model, bool *is_default) {
    g_autofree char *name = g_ascii_strdown(model, -1);
    *is_default = false;
    for (size_t i = 0; i < G_N_ELEMENTS(families); i++)
        if (strstr(name, families[i].words))
            return &families[i];
    *is_default = true;
    return &families[G_N_ELEMENTS(families) - 1];
}
