/* What a step run holds; private to sim/api. */
#ifndef ORR_API_STEP_PRIV_H
#define ORR_API_STEP_PRIV_H

#include "sim/api/step.h"
#include "sim/collective/nccl_env.h"
#include "sim/exec/exec.h"
#include "sim/exec/fold.h"
#include "sim/lower/lower.h"

struct OrrStepRun {
    const OrrStepRequest *request;
    OrrSources *sources;
    OrrJob *job;
    OrrModel *model;
    OrrFramework *framework;
    OrrNcclEnv nccl;
    OrrCluster *cluster;
    const OrrGpu *gpu;
    OrrSurfaceSet *surfaces;
    OrrCost *cost;
    OrrOrder *order;
    bool is_custom;
    OrrPlacement *placement;
    OrrProgram *program;
    OrrBound *bound, *folded; /* folded: NULL with --unfold */
    OrrExecResult *result;
    OrrRecord *record;
};

/* Fills run->record from everything else. */
bool orr_step__fill(OrrStepRun *run, GError **error);

#endif
