/* Several jobs on one cluster: a queue, gangs, places, preemption.
 *
 * A node has units: its GPUs times the slices of a GPU (1 without MIG or time-slicing). A job takes
 * whole GPUs over nodes, or some slices of one; all of it at once or none (gang). Units of a node
 * are interchangeable: where on the node they lie is not modelled. Cost: events times queue times
 * nodes. Sources: Lifka 1995 and Mu'alem and Feitelson 2001 for backfill (EASY). */
#ifndef ORR_JOB_SHARE_H
#define ORR_JOB_SHARE_H

#include "sim/facts/share.h"

typedef struct {
    int64_t start_ns, end_ns;    /* first start, end; -1: it never could */
    int64_t waited_ns;           /* in the queue, all times together */
    int64_t lost_ns;             /* work done twice, and starts again */
    uint32_t preemptions, racks; /* racks: over how many its last nodes lie */
} OrrShareResult;

/* Where the time of all units went, unit-nanoseconds; the parts add up to units x makespan_ns. */
typedef struct {
    int64_t makespan_ns;
    int64_t useful, lost;    /* by jobs */
    int64_t idle_empty;      /* nothing was waiting */
    int64_t idle_short;      /* the first in the queue is larger than what is free */
    int64_t idle_fragmented; /* it is not larger, but what is free lies in the wrong places */
    uint64_t units;
} OrrShareAccount;

/* Errors (ORR_ERROR_INPUT): a job that no empty cluster could hold, a limit below the work, ... */
bool orr_share_check(const OrrShareSpec *spec, GError **error);
/* @results: n_jobs. The spec has passed orr_share_check, so every job ends. */
void orr_share_simulate(const OrrShareSpec *spec, OrrShareResult *results,
                        OrrShareAccount *account);

#endif
