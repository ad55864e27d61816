/* Lowering: model, layout, schedule and framework profile become one program; cost, collectives and
 * cluster bind it. Pure: no clock, no files. */
#ifndef ORR_LOWER_LOWER_H
#define ORR_LOWER_LOWER_H

#include "sim/bound/bound.h"
#include "sim/cluster/perturb.h"
#include "sim/cluster/placement.h"
#include "sim/collective/collective.h"
#include "sim/cost/cost.h"
#include "sim/model/emit.h"
#include "sim/schedule/schedule.h"

/* Everything that lowering reads; all borrowed. */
typedef struct {
    const OrrModel *model;
    const OrrFramework *framework;
    const OrrJob *job;
    const OrrOrder *order; /* of the job's schedule and shape */
    bool is_custom_order;
    const OrrCluster *cluster;
    const OrrPlacement *placement; /* NULL: rank r on GPU r */
    const OrrCost *cost;
    const OrrNcclForce *force;   /* NULL: nothing forced */
    const OrrPerturbs *perturbs; /* NULL: all is as it should be */
    uint64_t seed;               /* of what they draw */
    bool is_whole;               /* bind every rank, also those that cannot differ */
} OrrLowering;

/* The program of one step. Errors (ORR_ERROR_INPUT): a split or a combination that cannot be run.
 */
OrrProgram *orr_lower_program(const OrrLowering *in, GError **error);
/* Durations, plans and load vectors of @program on the cluster; the program is borrowed for the
 * life of the result. Ranks that cannot differ by the regularity of machine and layout are bound
 * once, with a weight (cells.h), unless @in says that all be; what is left may be folded further.
 * Errors (ORR_ERROR_INPUT): an algorithm that NCCL would refuse. */
OrrBound *orr_lower_bind(const OrrLowering *in, const OrrProgram *program, GError **error);

#endif
