/* Runs a bound program on a clock: streams, rendezvous, blocks, fluid links, accounts.
 *
 * Steps are simulated until two successive ones agree in length and relative state (2 to
 * `max_steps`); the last is the one that is reported. Ring skew is ignored: a collective ends on
 * all members together. */
#ifndef ORR_EXEC_EXEC_H
#define ORR_EXEC_EXEC_H

#include "sim/bound/bound.h"
#include "sim/core/probe.h"
#include "sim/result/record.h"

/* The mean under jitter takes a variance for each pair of executed ranks. */
#define ORR_MAX_JITTER_RANKS 256u

typedef struct {
    /* 0: 8. Ranks go on beyond the last until all have ended it, as in any other step. */
    uint32_t max_steps;
    bool self_check;     /* assert conservation, bounds and accounts while running */
    bool has_path;       /* keep what the critical path needs */
    uint32_t path_words; /* 8 bytes each of that, to come before it is cleared up; 0: as suits */
    bool has_launches;   /* note when members come to their collectives */
    /* No shortcut: each event at its time, each transfer in the fluid. Slow; the same result to the
     * nanosecond, against which tests hold the others. */
    bool is_plain;
    /* Standard deviation of a stretch of kernels between two meetings, as a part of its time; 0:
     * none. Not sampled: in the mean, of at most ORR_MAX_JITTER_RANKS executed ranks. */
    double jitter_frac;
    bool is_jitter_sampled;
    uint64_t jitter_seed;
    /* Spans that overlap [probe_begin_ns, probe_end_ns), cut to it and counted from its begin, of
     * the ranks (of the bound program) whose is_probed is set. */
    const OrrProbe *probe;
    int64_t probe_begin_ns, probe_end_ns;
    const uint8_t *is_probed;
    /* Called now and then with the calls done (thousandths of a step, over all steps so far) by the
     * rank that is furthest behind of a few; may be NULL. */
    void (*progress)(void *data, uint64_t thousandths);
    void *progress_data;
} OrrExecOptions;

/* Mean over all real ranks in the reported step, also those that never call it. Not rounded: a sum
 * over descriptors is. */
typedef struct {
    double count;       /* calls */
    double transfer_ns; /* last arrival to end */
    double wait_ns;     /* own launch to last arrival */
    double exposed_ns;  /* part of either with the compute stream idle for it */
} OrrExecComm;

typedef struct {
    int64_t step_time_ns, first_step_ns;
    int64_t step_begin_ns; /* end of the step before the reported one, on its last rank */
    uint32_t n_steps;      /* simulated */
    bool is_periodic;
    int64_t account_ns[ORR_N_OWNERS];   /* mean over ranks; adds up to step_time_ns */
    int64_t path_ns[ORR_N_PATH_OWNERS]; /* adds up to step_time_ns; all 0 without has_path */
    int64_t *rank_account_ns;           /* [n_ranks * ORR_N_OWNERS] */
    int64_t *rank_end_ns;               /* [n_ranks] end of the reported step */
    OrrExecComm *colls, *p2ps;          /* by descriptor of the program */
    /* [n_colls * n_ranks] with has_launches, else NULL: when the rank came to the collective, at
     * the call that its group waited at longest, in the last step whose meetings are all over (with
     * drawn jitter the reported one); -1: it did not. */
    int64_t *launch_ns;
    uint64_t n_operations, n_blocks, n_events; /* of all simulated steps, over executed ranks */
    uint64_t n_solves, n_headroom;
} OrrExecResult;

/* NULL with @error (ORR_ERROR_INPUT) if ranks wait for each other for ever: says who for what. */
OrrExecResult *orr_exec_run(const OrrBound *bound, const OrrExecOptions *options, GError **error);
void orr_exec_result_free(OrrExecResult *result);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrExecResult, orr_exec_result_free)

#endif
