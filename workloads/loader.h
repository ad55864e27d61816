/* Files of workloads/: models, frameworks, jobs. */
#ifndef WORKLOADS_LOADER_H
#define WORKLOADS_LOADER_H

#include "sim/io/keys.h"
#include "sim/model/spec.h"

/* What was read: for the record's inputs and assumptions. */
typedef struct {
    GPtrArray *inputs;      /* OrrInput* */
    GPtrArray *assumptions; /* OrrAssumption* */
} OrrSources;
typedef struct {
    char *name, *sha256;
} OrrInput;
typedef struct {
    char *key, *value, *origin;
} OrrAssumption;
OrrSources *orr_sources_new(void);
void orr_sources_free(OrrSources *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrSources, orr_sources_free)

/* One `--set group.key=value`. Groups of the job file are job, layout, batch, schedule, precision,
 * recompute, network, nccl; model.KEY, framework.KEY and cluster.KEY, node.KEY, gpu.KEY reach the
 * files that the job names. */
typedef struct {
    const char *group, *key, *value;
    const char *origin; /* who says so, for messages: "FILE:LINE"; NULL: "--set" */
} OrrOverride;

/* Each: @ref is a name in its folder or a path; NULL with @error. @sources may be NULL. */
OrrModel *orr_workload_model(const char *ref, const OrrOverride *overrides, uint32_t n_overrides,
                             OrrSources *sources, GError **error);
OrrFramework *orr_workload_framework(const char *ref, const OrrOverride *overrides,
                                     uint32_t n_overrides, OrrSources *sources, GError **error);
OrrJob *orr_workload_job(const char *ref, const OrrOverride *overrides, uint32_t n_overrides,
                         OrrSources *sources, GError **error);

/**
 * orr_workload_job_overrides: what to pass to the loaders of the files that @job names: the
 * overrides in the job file itself, then those of the command line, which win.
 * Returns: an array of *@n_out (borrows the strings of @job and @overrides); g_free.
 */
OrrOverride *orr_workload_job_overrides(const OrrJob *job, const OrrOverride *overrides,
                                        uint32_t n_overrides, uint32_t *n_out);

/* For other loaders (topologies fills the same record): what was read, and what was assumed. */
void orr_sources_add_input(OrrSources *s, const char *name, const char *text, gsize length);
void orr_sources_add_assumption(OrrSources *s, const char *key, const char *value,
                                const char *origin);

/* Names, sentences, sources of a folder ("models", "jobs", "frameworks"), sorted. */
typedef struct {
    char *name, *summary, *source;
} OrrListed;
GPtrArray *orr_workload_list(const char *folder, GError **error); /* OrrListed*, free func set */

#endif
