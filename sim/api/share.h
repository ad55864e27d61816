/* A shared cluster from file to report: load, price the steps of its jobs, simulate its seeds. */
#ifndef ORR_API_SHARE_H
#define ORR_API_SHARE_H

#include "sim/report/share_report.h"
#include "workloads/loader_share.h"

typedef struct {
    const char *share; /* a file of workloads/shares, or a path */
    const OrrOverride *overrides;
    uint32_t n_overrides;
    const char *calibration;     /* NULL: the GPU file's own */
    uint64_t seed;               /* the first */
    uint32_t n_seeds, n_threads; /* 0 threads: as many as there are processors */
} OrrShareRequest;

typedef struct OrrShareRun OrrShareRun;
/* Everything but the seeds; the request is borrowed until the run is freed. NULL with @error. */
OrrShareRun *orr_share_prepare(const OrrShareRequest *request, GError **error);
void orr_share_free(OrrShareRun *run);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrShareRun, orr_share_free)

/* Simulates all seeds; @progress may be NULL. Errors: as orr_share_simulate, and a step that cannot
 * be simulated on some place. */
bool orr_share_execute(OrrShareRun *run, void (*progress)(void *data, uint64_t done),
                       void *progress_data, GError **error);
/* After execute. Owned by the run. */
const OrrShareReport *orr_share_report(const OrrShareRun *run);
/* The first seed again, seen by @probe. */
bool orr_share_replay(OrrShareRun *run, const OrrShareProbe *probe, GError **error);

#endif
