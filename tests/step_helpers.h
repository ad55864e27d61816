/* Whole steps in tests: a job by name with overrides, run to its record. */
#ifndef TESTS_STEP_HELPERS_H
#define TESTS_STEP_HELPERS_H

#include "sim/api/step.h"

#define STEP_UNFOLDED 1u
#define STEP_CHECKED 2u /* --self-check */

typedef struct {
    OrrStepRun *run;
    const OrrRecord *record;
    OrrStepRequest request;
    OrrOverride *overrides;
    char **texts;
} Step;

/* @sets: "group.key=value; group.key=value", or "". NULL with @error. The record is sound. */
Step *step_try(const char *job, const char *sets, unsigned flags, GError **error);
/* The same; an error fails the test. */
Step *step_new(const char *job, const char *sets, unsigned flags);
void step_free(Step *step);

/* The record as JSON; g_free. */
char *step_json(const Step *step);
/* Sum of the rows of @kind and @collective; all zero if there is none. */
OrrRecordComm step_comm(const Step *step, OrrCommKind kind, OrrCollective collective);

#endif
