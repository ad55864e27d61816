/* A measured table of collectives against what the machine should do: expected and measured time by
 * size, the plateau, and which fault explains the difference.
 *
 * Each likely fault is a change to the machine or to what NCCL may use (sockets, one NIC for all
 * GPUs, NVLS off, a protocol, ...); the model prices the whole table under it, and those that come
 * nearest to what was measured are named, with how near they come. Left out: two faults at once. */
#ifndef ORR_JUDGE_CHECK_H
#define ORR_JUDGE_CHECK_H

#include "sim/collective/collective.h"
#include "sim/facts/measured.h"

typedef struct {
    int64_t bytes;
    double measured_ns, expected_ns;
    double measured_busbw_bytes_per_s, expected_busbw_bytes_per_s;
    double ratio; /* of bandwidths, measured over expected: below 1 is slow */
    OrrAlgo algo;
    OrrProto proto;
} OrrCheckRow;

typedef struct {
    const char *code, *words; /* static */
    char *evidence;
    double error_frac; /* mean error over the sizes above 64 KiB if this is the cause */
} OrrCheckCause;

typedef struct {
    OrrCheckRow *rows;
    uint32_t n_rows;
    double plateau_ratio;     /* median over the sizes within 4 of the largest */
    double error_frac;        /* as of causes, of the sound machine */
    double wire_bytes_per_s;  /* most busbw that a ring may show; 0: none to compare with */
    bool is_faster_than_wire; /* a ring could not do it */
    bool is_within;           /* plateau within the tolerance */
    OrrCheckCause *causes;    /* likeliest first */
    uint32_t n_causes;
} OrrCheck;

/**
 * orr_judge_check: @table over the group at @place. @management_bytes_per_s: of the network that
 * NCCL falls back to; 0: none. @tolerance_frac: how far the plateau may be from the expected one.
 * NULL with @error (ORR_ERROR_INPUT): no sound row, a force that NCCL refuses.
 */
OrrCheck *orr_judge_check(const OrrMeasuredTable *table, const OrrCommPlace *place,
                          const OrrNcclForce *force, double management_bytes_per_s,
                          double tolerance_frac, GError **error);
void orr_check_free(OrrCheck *check);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrCheck, orr_check_free)

#endif
