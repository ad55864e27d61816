/* Files of shared clusters (workloads/shares): the machine, the policy, what fails, the store, and
 * the jobs as a CSV table. doc/formats.md has the keys and columns. */
#ifndef WORKLOADS_LOADER_SHARE_H
#define WORKLOADS_LOADER_SHARE_H

#include "sim/facts/prices.h"
#include "sim/facts/share.h"
#include "workloads/loader.h"

typedef struct {
    char *name, *summary, *source;
    char *prices_ref; /* "": none */
    OrrContract contract;
    bool has_reclaim;   /* the file says how often spot nodes are taken back; else the prices do */
    OrrShareSpec *spec; /* work_ns is 0 where a job file has to say how long a step is */
} OrrShareFile;
void orr_share_file_free(OrrShareFile *file);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrShareFile, orr_share_file_free)

/* NULL with @error. Overrides of other groups than orr_share_file_owns are left for the cluster,
 * the prices and the jobs. */
OrrShareFile *orr_workload_share(const char *ref, const OrrOverride *overrides,
                                 uint32_t n_overrides, OrrSources *sources, GError **error);
bool orr_share_file_owns(const char *group);

#endif
