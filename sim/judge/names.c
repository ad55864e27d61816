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

const char *orr_judge_gpu(const OrrPublishedNames *names, const char *gpu) {
    for (guint i = 0; i < names->n_gpus; i++)
        if (strstr(gpu, names->gpus[i].words))
            return names->gpus[i].gpu[0] ? names->gpus[i].gpu : NULL;
    return NULL;
}

const char *orr_judge_cluster(const OrrPublishedNames *names, const char *gpu,
                              const char *interconnect, bool *is_default) {
    for (guint i = 0; i < names->n_clusters; i++) {
        const OrrClusterName *c = &names->clusters[i];
        if (strcmp(c->gpu, gpu) != 0 || !strstr(interconnect, c->words))
            continue;
        *is_default = !c->words[0] && !strstr(interconnect, "IB") && !strstr(interconnect, "NDR") &&
                      !strstr(interconnect, "NVL72");
        return c->cluster;
    }
    return NULL;
}

/* Whether @note holds the words of @f, with a number behind them within its bounds if it has any.
 */
static bool note_holds(const char *note, const OrrFrameworkName *f) {
    const char *words = strstr(note, f->note);
    if (!words || f->note_below <= 0)
        return words != NULL;
    const char *number = words + strlen(f->note);
    char *end;
    double value = g_ascii_strtod(number, &end);
    return end > number && value >= f->note_from && value < f->note_below;
}

const char *orr_judge_framework(const OrrPublishedNames *names, const OrrPublishedRun *row,
                                const char *gpu, bool *is_nearest) {
    for (guint i = 0; i < names->n_frameworks; i++) {
        const OrrFrameworkName *f = &names->frameworks[i];
        if (!strstr(row->framework, f->framework) || !strstr(row->source, f->source) ||
            !strstr(row->model, f->model) || !note_holds(row->note, f) || row->pp < f->pp_from ||
            !g_str_has_prefix(gpu ? gpu : "", f->gpu) ||
            (f->after_pp_fix[0] && g_strcmp0(row->after_pp_fix, f->after_pp_fix) != 0))
            continue;
        *is_nearest = f->is_nearest;
        return f->profile;
    }
    *is_nearest = true;
    return NULL;
}

const OrrFamilyName *orr_judge_family(const OrrPublishedNames *names, const char *model,
                                      const char *framework, bool *is_default) {
    g_autofree char *name = g_ascii_strdown(model, -1);
    *is_default = false;
    for (guint i = 0; i < names->n_families; i++) {
        const OrrFamilyName *f = &names->families[i];
        if (strstr(name, f->words) && strstr(framework, f->framework))
            return f;
    }
    *is_default = true;
    return &names->families[names->n_families - 1];
}
