/* Inside the findings: a rule sees the record and its context, and answers with evidence and advice
 * or not at all. */
#ifndef ORR_REPORT_FINDINGS_PRIV_H
#define ORR_REPORT_FINDINGS_PRIV_H

#include "sim/report/findings.h"

typedef struct {
    const OrrRecord *r;
    const OrrFindingContext *c;
    GString *evidence, *advice; /* empty at the call; a rule that holds fills both */
} OrrRuleCase;

typedef struct {
    OrrFindingKind kind;
    void (*apply)(OrrRuleCase *k);
} OrrRule;

/* Tables that end with a rule without a function. */
extern const OrrRule orr_findings__memory[];
extern const OrrRule orr_findings__time[];
extern const OrrRule orr_findings__work[];
extern const OrrRule orr_findings__perturbs[];

/* Share of the step that an owner has in the time account. */
static inline double orr_findings__share(const OrrRecord *r, uint32_t owner) {
    return (double)r->time_account_ns[owner] / (double)r->step_time_ns;
}

#endif
