/* A published row as a job: what the row states, and by written rules what it leaves open. Never
 * per row; every rule that was used is noted. */
#ifndef ORR_JUDGE_MAPPING_H
#define ORR_JUDGE_MAPPING_H

#include "sim/judge/names.h"

/* What the row measured: its time, or else its rate by the source's own formula. */
typedef enum { ORR_MEASURED_STEP, ORR_MEASURED_TOKENS, ORR_MEASURED_TFLOPS } OrrJudgeMeasure;

typedef struct {
    const OrrPublishedNames *names; /* the caller's; outlives the case */
    const char *gpu, *profile;      /* names of files; NULL: not known */
    char *cluster_ref;              /* "h100-ib:64" */
    uint32_t rules;                 /* bits 1 << OrrJudgeRule that were used */
    OrrJudgeMeasure measure;
    bool is_hardware_flops; /* the source's TFLOP/s count recomputed work */
    bool is_allocated;      /* its memory is what was allocated, not what was reserved */
    OrrModel *model;
    OrrJob *job;
} OrrJudgeCase;
void orr_judge_case_clear(OrrJudgeCase *c);

/**
 * orr_judge_begin: names of the files that @row needs, into @c, of which names alone is set.
 * @all_rows: rows that their table does not recommend too.
 * Returns: NULL, or why the row can't be compared (a static text or the row's flaw); the names that
 * are known are filled in anyway.
 */
const char *orr_judge_begin(const OrrPublishedRun *row, bool all_rows, OrrJudgeCase *c);
/**
 * orr_judge_complete: model and job of @row under @framework, its profile, on nodes of
 * @gpus_per_node GPUs. Returns as orr_judge_begin.
 */
const char *orr_judge_complete(const OrrPublishedRun *row, const OrrFramework *framework,
                               uint32_t gpus_per_node, OrrJudgeCase *c);
/* The step time that the row measured, ns. @sim_ns and
 * @sim_tflops: of the simulated step, by the formula that the source uses. */
double orr_judge_measured_ns(const OrrPublishedRun *row, const OrrJudgeCase *c, double sim_ns,
                             double sim_tflops);

#endif
