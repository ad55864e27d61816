/* How often a case is run, and what is kept of it: warm-up, then samples of several repeats each,
 * their median and spread. Nothing here knows what is measured. */
#ifndef ORR_CALIBRATE_SAMPLE_H
#define ORR_CALIBRATE_SAMPLE_H

#include "calibrate/device.h"

typedef struct {
    double warm_up_ns;  /* run at least so long before the first sample */
    double sample_ns;   /* a sample has as many repeats as take so long */
    uint32_t n_samples; /* as many, unless limit_ns comes first */
    uint32_t n_min_samples;
    uint32_t n_max_repeats; /* of one sample */
    double limit_ns;        /* no new sample after so long */
} OrrSampling;

/* For a run of two minutes, and for one without a limit. */
extern const OrrSampling orr_sampling_quick, orr_sampling_full;

/* Of one repeat, over the samples, over the slowest process. */
typedef struct {
    double median_ns, mean_ns, min_ns, p10_ns, p90_ns;
    double spread_frac;                   /* (p90 - p10) / median */
    double compute_ns, compute_beside_ns; /* medians; NAN without compute */
    uint32_t n_samples, n_repeats;
} OrrSummary;

/* Errors: those of the device, agreed between the processes. */
bool orr_sample(OrrDevice *d, OrrWork *w, OrrRanks *ranks, const OrrSampling *s, bool flushes_l2,
                OrrSummary *summary, GError **error);

#endif
