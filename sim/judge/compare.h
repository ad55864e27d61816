/* Why two step times differ, term by term: two simulated steps, or a simulated and a measured one.
 * The terms add up to the difference, to the nanosecond. */
#ifndef ORR_JUDGE_COMPARE_H
#define ORR_JUDGE_COMPARE_H

#include "sim/facts/measured.h"
#include "sim/result/record.h"

typedef struct {
    const char *name;         /* "gemm", "bubble", "exposed_tp", ... or what a trace tells */
    int64_t one_ns, other_ns; /* of a step */
} OrrCompareTerm;

typedef struct {
    int64_t one_ns, other_ns; /* step times; the terms add up to each */
    OrrCompareTerm *terms;    /* largest difference first */
    uint32_t n_terms;
    GPtrArray *notes; /* char *: settings that differ, and what cannot be told apart */
} OrrCompare;
void orr_compare_free(OrrCompare *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrCompare, orr_compare_free)

/* Owners of the compute stream's time in both. */
OrrCompare *orr_judge_compare_records(const OrrRecord *one, const OrrRecord *other);
/* A log tells the whole only: what it does not tell is one term. */
OrrCompare *orr_judge_compare_log(const OrrRecord *one, const OrrMeasuredRun *log);
/* A profile tells kernels by kind, exposed transfers and idle time. */
OrrCompare *orr_judge_compare_profile(const OrrRecord *one, const OrrMeasuredProfile *profile);

#endif
