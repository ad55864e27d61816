/* Published measurements against the simulator: `orrery validate`. */
#ifndef ORR_API_VALIDATE_H
#define ORR_API_VALIDATE_H

#include "sim/base/error.h"
#include "sim/facts/published.h"
#include "sim/result/validation.h"

typedef struct {
    const OrrPublished *facts;
    bool is_all_rows;        /* also rows that their table does not recommend */
    const char *calibration; /* efficiency tables for every GPU; NULL: each GPU's own */
    double hold_out_frac;    /* collectives: fit each system's smaller sizes, judge this share, the
                                larger ones; 0: judge all by the shipped constants */
    uint32_t n_threads;      /* 0: as many as processors; no result depends on it */
    void (*progress)(void *data, uint64_t done); /* of the runs; from this thread; may be NULL */
    void *data;
} OrrValidateRequest;

/* Rows that can't be compared are counted by reason, never an error. Errors: a data file of ours is
 * broken or missing, a calibration that is not there. */
OrrValidation *orr_validate(const OrrValidateRequest *request, GError **error);

#endif
