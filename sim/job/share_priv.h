/* Inside the shared cluster: free units, and where a job would go. */
#ifndef ORR_JOB_SHARE_PRIV_H
#define ORR_JOB_SHARE_PRIV_H

#include "sim/job/share.h"

/* Units that are free on each node. */
typedef struct {
    const OrrShareSpec *spec;
    uint32_t *free;
} Floor;

/* What a job holds: units on nodes. */
typedef struct {
    uint32_t *nodes, *units;
    uint32_t n;
} Grant;

uint32_t orr_share__units_of_job(const OrrShareSpec *spec, const OrrShareJob *job);
uint64_t orr_share__units_free(const Floor *floor, const OrrShareJob *job);
/* Takes room for @job from @floor into @grant (NULL: only asks); false and nothing if there is
 * none. */
bool orr_share__place(Floor *floor, const OrrShareJob *job, Grant *grant);
void orr_share__release(Floor *floor, Grant *grant);
void orr_share__grant_clear(Grant *grant);
Floor orr_share__floor(const OrrShareSpec *spec); /* all free */
Floor orr_share__floor_copy(const Floor *floor);

#endif
