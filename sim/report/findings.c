/* The table of findings: memory first, since a run that does not fit has no step time. */
#include "sim/report/findings.h"

#include "sim/report/findings_priv.h"

static const OrrRule *const tables[] = {
    orr_findings__memory,
    orr_findings__time,
    orr_findings__work,
    orr_findings__perturbs,
};

const OrrFindingKind *orr_finding_kind(uint32_t i) {
    for (guint t = 0; t < G_N_ELEMENTS(tables); t++)
        for (const OrrRule *rule = tables[t]; rule->apply; rule++)
            if (i-- == 0)
                return &rule->kind;
    return NULL;
}

void orr_findings_add(OrrRecord *record, const OrrFindingContext *context) {
    g_autoptr(GString) evidence = g_string_new(NULL);
    g_autoptr(GString) advice = g_string_new(NULL);
    for (guint t = 0; t < G_N_ELEMENTS(tables); t++)
        for (const OrrRule *rule = tables[t]; rule->apply; rule++) {
            g_string_truncate(evidence, 0);
            g_string_truncate(advice, 0);
            OrrRuleCase k = {record, context, evidence, advice};
            rule->apply(&k);
            if (evidence->len > 0)
                orr_record_add_finding(record, rule->kind.code, evidence->str, advice->str);
        }
}
