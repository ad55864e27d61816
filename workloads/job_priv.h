/* Private to the job loader: what its parts share while they read one file. */
#ifndef WORKLOADS_JOB_PRIV_H
#define WORKLOADS_JOB_PRIV_H

#include "workloads/loader_priv.h"

/* 2^20 GPUs and some: the largest cluster that the design speaks of is 1,048,576. */
#define ORR_JOB_MAX_RANKS (1 << 24)

typedef struct {
    OrrKeys *keys;
    OrrJob *job;
    OrrFramework *framework; /* NULL if the job names none; then our own defaults hold */
    const OrrOverride *overrides;
    uint32_t n_overrides;
    OrrSources *derived; /* assumptions that are worked out, not plain defaults */
} JobReader;

/* Applies one override, with its key's proper name. */
void orr_job__override(JobReader *r, const OrrOverride *o);
bool orr_job__is_overridden(const JobReader *r, const char *group, const char *key);
void orr_job__assume(JobReader *r, const char *key, double value, const char *origin);
void orr_job__read_layout(JobReader *r);
void orr_job__read_precision(JobReader *r);
/* Defaults with their origins: the job format's, the profile's, or worked out. */
void orr_job__note_assumptions(JobReader *r, OrrSources *sources);

#endif
