/* Files of shared clusters (workloads/shares): the machine, the policy, and the jobs as a CSV
 * table. */
#ifndef WORKLOADS_LOADER_SHARE_H
#define WORKLOADS_LOADER_SHARE_H

#include "sim/facts/share.h"
#include "workloads/loader.h"

typedef struct {
    char *name, *summary, *source;
    OrrShareSpec *spec;
} OrrShareFile;
void orr_share_file_free(OrrShareFile *file);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrShareFile, orr_share_file_free)

/* NULL with @error. */
OrrShareFile *orr_workload_share(const char *ref, const OrrOverride *overrides,
                                 uint32_t n_overrides, OrrSources *sources, GError **error);

#endif
