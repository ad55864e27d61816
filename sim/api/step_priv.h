/* What a step run holds; private to sim/api. */
#ifndef ORR_API_STEP_PRIV_H
#define ORR_API_STEP_PRIV_H

#include "sim/api/calibration.h"
#include "sim/api/step.h"
#include "sim/collective/nccl_env.h"
#include "sim/exec/exec.h"
#include "sim/exec/fold.h"
#include "sim/exec/pace.h"
#include "sim/lower/lower.h"

/* The group of a kind that was asked for last. */
typedef struct {
    uint32_t group;
    uint32_t *ranks; /* NULL: none yet */
} OrrStepMembers;

struct OrrStepRun {
    const OrrStepRequest *request;
    OrrSources *sources;
    OrrJob *job;
    OrrModel *model;
    OrrFramework *framework;
    OrrNcclEnv nccl;
    OrrCluster *cluster;
    const OrrGpu *gpu;
    OrrFramework *profile;         /* the framework with what was measured; NULL: as it is */
    OrrCalibration *calibration;   /* NULL: roofline */
    const OrrSurfaceSet *surfaces; /* of it, or NULL */
    OrrCost *cost;
    OrrOrder *order;
    bool is_custom;
    OrrPlacement *placement;
    OrrPerturbs *perturbs; /* of the job and of the request */
    OrrProgram *program;
    OrrBound *bound, *folded; /* --unfold: every rank bound, and none folded */
    OrrStepMembers *members;  /* [ORR_N_GROUPS] */
    OrrExecResult *result;
    OrrExecResult *sound; /* without the perturbations; NULL if there are none */
    uint32_t *sound_rep;  /* [n_ranks] rank of it that stands for each */
    OrrRecord *record;
};

/* perturbs.c */
/* Reads what the job says is not as it should be, and the tables that it names. */
/* A table of speeds, columns rank and speed, into @item, whose file names it in messages. */
bool orr_step__parse_speeds(OrrPerturb *item, const char *text, gsize length, int64_t n_ranks,
                            GError **error);
bool orr_step__load_perturbs(OrrStepRun *run, GError **error);
/* Executes the same step with all as it should be, for the price. */
bool orr_step__run_sound(OrrStepRun *run, GError **error);
void orr_step__fill_perturbs(const OrrStepRun *run, OrrRecord *record);
/* The jitter of the perturbations: in the mean, or as @seed draws it; nothing if there is none. */
void orr_step__set_jitter(const OrrStepRun *run, bool is_sampled, uint64_t seed,
                          OrrExecOptions *options);
/* arrivals.c: whether something makes members of groups come apart in a way that can be told, and
 * who came when to the meetings that cost most. */
bool orr_step__has_arrivals(const OrrStepRun *run);
void orr_step__fill_arrivals(const OrrStepRun *run, OrrRecord *record);
/* need.c: tells the request's note, before it is bound, what the step will take, if that is much. */
void orr_step__tell_need(const OrrStepRun *run);
/* NULL: not worth a word. @available_bytes 0: not known. g_free. */
char *orr_step__need_text(uint64_t n_ranks, bool is_drawn, uint64_t available_bytes);
/* step.c: what lowering reads. */
OrrLowering orr_step__lowering(const OrrStepRun *run);

/* Fills run->record from everything else. */
bool orr_step__fill(OrrStepRun *run, GError **error);
/* interval.c: how far off such predictions were, into the record. */
bool orr_step__fill_interval(OrrStepRun *run, GError **error);

#endif
