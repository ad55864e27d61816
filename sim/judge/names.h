/* What a published row's words mean in ours: GPU, cluster, framework profile, family of model, by
 * the tables of workloads/names, first match wins; the rules are the same for every row and file.
 */
#ifndef ORR_JUDGE_NAMES_H
#define ORR_JUDGE_NAMES_H

#include "sim/facts/published.h"
#include "workloads/published_names.h"

/* Choices that a row leaves open; what each does stands in orr_judge_rules. */
typedef enum {
    ORR_RULE_CLUSTER,
    ORR_RULE_NODE,
    ORR_RULE_FRAMEWORK,
    ORR_RULE_FAMILY,
    ORR_RULE_TIED,
    ORR_RULE_KV_HEADS,
    ORR_RULE_FFN,
    ORR_RULE_VOCAB,
    ORR_RULE_DP,
    ORR_RULE_ZERO,
    ORR_RULE_SP,
    ORR_RULE_VPP,
    ORR_RULE_SCHEDULE,
    ORR_RULE_SPLIT,
    ORR_RULE_RECOMPUTE,
    ORR_RULE_PRECISION,
    ORR_RULE_SHARDS,
    ORR_RULE_TFLOPS,
    ORR_RULE_TOKENS,
    ORR_N_JUDGE_RULES
} OrrJudgeRule;
typedef struct {
    const char *key, *rule;
} OrrJudgeRuleText;
extern const OrrJudgeRuleText orr_judge_rules[ORR_N_JUDGE_RULES];

/* NULL where nothing of ours is like it. What is returned here and below is owned by @names. */
const char *orr_judge_gpu(const OrrPublishedNames *names, const char *gpu);
/* Cluster for a GPU (as orr_judge_gpu gives it) behind @interconnect; *@is_default: the words named
 * none that is known. */
const char *orr_judge_cluster(const OrrPublishedNames *names, const char *gpu,
                              const char *interconnect, bool *is_default);
/* @gpu (may be NULL) decides the age of the code where only "Megatron-LM" is said. */
const char *orr_judge_framework(const OrrPublishedNames *names, const OrrPublishedRun *row,
                                const char *gpu, bool *is_nearest);
const OrrFamilyName *orr_judge_family(const OrrPublishedNames *names, const char *model,
                                      const char *framework, bool *is_default);

#endif
