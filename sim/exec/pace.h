/* How long a step takes, and nothing else: for seeds, of which only that is asked.
 *
 * The clock of an execution (exec.c) is one for all ranks, so that links can be shared and all be
 * accounted. Where the transfers of pairs share no link the order in which ranks are looked at is
 * free: each goes its own way, event by event, up to the first moment at which a communication
 * might end whose members have not all come yet (it takes its latency and its bytes at least), and
 * goes on when they have. Only where all are held up so, and for collectives that share links, is
 * the earliest of all looked for. This is conservative parallel simulation (Chandy and Misra 1979)
 * on one processor, with the latency of communication as the lookahead. The same integers as in
 * exec.c, hence the same nanoseconds; a test compares both over random programs.
 *
 * Left out: accounts, path, waits, spans, checks while it runs; sends that complete early (eager),
 * sends that share links, jitter in the mean: these are executed. Cost: an event is some 100
 * instructions, of exec.c some 2,000; 0.5 KB a rank. */
#ifndef ORR_EXEC_PACE_H
#define ORR_EXEC_PACE_H

#include "sim/exec/exec.h"

/* What runs of a program have in common; read only, so that threads can share it. */
typedef struct OrrPace OrrPace;

/* Of the program of @bound, which must outlive it. NULL: its order of events is not free. */
OrrPace *orr_pace_new(const OrrBound *bound);
void orr_pace_free(OrrPace *pace);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrPace, orr_pace_free)

/* The step time of @bound, as orr_exec_run has it. It may differ from the one that @pace was made
 * of in all but the program and the host. Of @options max_steps and sampled jitter count. Returns
 * false where it must be executed: it cannot be told so, or ranks wait for each other for ever. */
bool orr_pace_run(const OrrPace *pace, const OrrBound *bound, const OrrExecOptions *options,
                  int64_t *step_time_ns);

#endif
