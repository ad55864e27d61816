/* Whole runs for tests: prepared, executed, and asked for their causes. */
#ifndef ORR_TESTS_RUN_WITH_H
#define ORR_TESTS_RUN_WITH_H

#include "sim/api/run.h"
#include "tests/near.h"

#include <string.h>

static inline OrrRun *run_with(OrrRunRequest *q, const char *name, uint32_t seeds,
                               const char *const *sets) {
    static OrrOverride overrides[8]; /* of one test at a time */
    static char texts[8][3][64];
    uint32_t n = 0;
    for (; sets && sets[n]; n++) {
        g_auto(GStrv) part = g_strsplit_set(sets[n], ".=", 3); /* the value may hold both */
        for (int i = 0; i < 3; i++)
            g_strlcpy(texts[n][i], part[i], sizeof texts[n][i]);
        overrides[n] = (OrrOverride){texts[n][0], texts[n][1], texts[n][2]};
    }
    *q = (OrrRunRequest){.run = name, .overrides = overrides, .n_overrides = n, .n_seeds = seeds};
    g_autoptr(GError) error = NULL;
    OrrRun *run = orr_run_prepare(q, &error);
    if (!run || !orr_run_execute(run, NULL, NULL, NULL, &error))
        fail_msg("%s: %s", name, error->message);
    return run;
}

static inline const OrrRunCause *cause(const OrrRun *run, const char *name) {
    const OrrRunRecord *r = orr_run_record(run);
    for (uint32_t c = 0; c < r->n_causes; c++)
        if (strcmp(r->causes[c].name, name) == 0)
            return &r->causes[c];
    fail_msg("no cause %s", name);
    return NULL;
}

#endif
