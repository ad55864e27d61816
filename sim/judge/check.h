/* Measured tables of collectives against what the machine should do: expected and measured time by
 * size, the plateau, and which faults explain the difference.
 *
 * Each fault of sim/judge/faults.h, alone and in pairs, is a change to the machine or to what NCCL
 * may use; the model prices the whole table under it, and what was measured makes it more or less
 * likely: doc/check.md. Left out: three faults at once, and faults that change with time. */
#ifndef ORR_JUDGE_CHECK_H
#define ORR_JUDGE_CHECK_H

#include "sim/collective/collective.h"
#include "sim/facts/measured.h"

/* A table and the group it was measured on. */
typedef struct {
    const OrrMeasuredTable *table;
    OrrCommPlace place;
    OrrNcclForce force;
    double management_bytes_per_s; /* of the network that NCCL falls back to; 0: none */
    const char *log; /* what the log says besides the table, for marks of faults; may be NULL */
} OrrCheckCase;

typedef struct {
    int64_t bytes;
    double measured_ns, expected_ns;
    double measured_busbw_bytes_per_s, expected_busbw_bytes_per_s;
    double ratio; /* of bandwidths, measured over expected: below 1 is slow */
    OrrAlgo algo;
    OrrProto proto;
} OrrCheckRow;

typedef struct {
    const char *codes[2]; /* of orr_faults; the second NULL: one fault alone */
    char *code;           /* "sockets", "one_nic+protocol_ll" */
    char *words, *evidence, *advice;
    double error_frac;      /* mean error over the sizes from 64 KiB on if this is the cause */
    double likelihood_frac; /* against all other faults and pairs, and one that is not known */
} OrrCheckCause;

typedef struct {
    OrrCheckCause *causes; /* likeliest first */
    uint32_t n_causes;
} OrrCheckCauses;
void orr_check_causes_clear(OrrCheckCauses *causes);

typedef struct {
    OrrCheckRow *rows;
    uint32_t n_rows;
    double plateau_ratio;     /* median over the sizes within 4 of the largest */
    double middle_ratio;      /* median from 64 KiB to the plateau; NAN: no such sizes */
    double error_frac;        /* as of causes, of the sound machine */
    double wire_bytes_per_s;  /* most busbw that a ring may show; 0: none to compare with */
    bool is_faster_than_wire; /* a ring could not do it */
    bool is_plateau; /* false: bandwidth still rises at the largest size, which is judged alone */
    bool is_within;  /* plateau within the tolerance, and the middle not far out of it */
    OrrCheckCauses found;
} OrrCheck;

/**
 * orr_judge_check: the table of @c. @tolerance_frac: how far the plateau may be from the expected
 * one. NULL with @error (ORR_ERROR_INPUT): no sound row, a force that NCCL refuses.
 */
OrrCheck *orr_judge_check(const OrrCheckCase *c, double tolerance_frac, GError **error);
void orr_check_free(OrrCheck *check);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrCheck, orr_check_free)

/* What explains all @n cases of one machine together, likeliest first. */
void orr_judge_causes(const OrrCheckCase *cases, uint32_t n, OrrCheckCauses *out);

/* Private to the room: expected time of a row, ns; 0 with @error where NCCL refuses. */
#define ORR_CHECK_FROM_BYTES (64 << 10) /* ours: below, latencies of the host decide */
double orr_check__expected_ns(const OrrCheckCase *c, const OrrMeasuredCollective *row,
                              OrrCollPlan *plan, GError **error);
/* Mean of |ln(measured / expected)| over the sizes that tell; negative where there are none. */
double orr_check__error(const OrrCheckCase *c);

#endif
