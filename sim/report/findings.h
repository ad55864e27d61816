/* What looks wrong with a run, in words: a rule each finding, computed from the record and what the
 * run was made of. */
#ifndef ORR_REPORT_FINDINGS_H
#define ORR_REPORT_FINDINGS_H

#include "sim/cluster/cluster.h"
#include "sim/model/spec.h"
#include "sim/result/record.h"

/* Each pointer may be NULL: rules that need it stay silent. Borrowed. */
typedef struct {
    const OrrModel *model;
    const OrrJob *job;
    const OrrFramework *framework;
    const OrrClusterSpec *cluster; /* with its node and GPU */
} OrrFindingContext;

/* Adds the findings that hold to @record, in the order of the table; call once, when the record is
 * otherwise complete. */
void orr_findings_add(OrrRecord *record, const OrrFindingContext *context);

/* A rule, for `orrery list findings` and the tests. */
typedef struct {
    const char *code, *summary, *source;
} OrrFindingKind;
/* Row @i of the table; NULL behind the last. */
const OrrFindingKind *orr_finding_kind(uint32_t i);

#endif
