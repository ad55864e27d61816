/* When each kind of failure strikes: counter-based, so that a strike does not depend on what the
 * job did before it, and two runs that differ in policy only meet the same failures. */
#ifndef ORR_JOB_STRIKES_H
#define ORR_JOB_STRIKES_H

#include "sim/base/random.h"
#include "sim/core/queue.h"
#include "sim/job/spec.h"

#define ORR_MOST_STRIKES                                                                           \
    5000000u /* ours, of one seed: some seconds; 54 days of 16,384 GPUs have 460 */

typedef struct {
    const OrrRunSpec *spec;
    uint32_t n;
    struct OrrStrikeClock *clocks;
    uint32_t next;   /* kind that strikes first */
    int64_t next_ns; /* INT64_MAX: nothing any more, or the most have come */
    uint32_t n_taken;
} OrrStrikes;

void orr_strikes_init(OrrStrikes *s, const OrrRunSpec *spec, uint64_t seed);
void orr_strikes_clear(OrrStrikes *s);
/* Consumes the next strike. */
void orr_strikes_take(OrrStrikes *s);
/* A draw that belongs to the strike that was taken last of @kind: exponential of mean 1; @what
 * tells several draws apart. */
double orr_strikes_exponential(const OrrStrikes *s, uint32_t kind, uint32_t what);
/* The same, inside (0, 1): where it struck. */
double orr_strikes_uniform(const OrrStrikes *s, uint32_t kind, uint32_t what);

#endif
