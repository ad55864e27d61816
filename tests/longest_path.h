/* An evaluator of pipeline orders for tests, independent of sim/: the longest path through the
 * passes, by relaxation until nothing moves. It knows no events, streams or rendezvous. */
#ifndef TESTS_LONGEST_PATH_H
#define TESTS_LONGEST_PATH_H

#include "sim/schedule/schedule.h"

/* Duration of a pass on virtual stage v: pass_ns[pass][v]; a transfer between different stages
 * takes p2p_ns and occupies nobody. */
typedef struct {
    const int64_t *pass_ns[ORR_N_PASSES];
    int64_t p2p_ns;
} LongestPathTimes;

/* When the last pass ends, nanoseconds from the first start; -1 if the order hangs. */
int64_t longest_path_ns(const OrrOrder *order, const LongestPathTimes *times);

#endif
