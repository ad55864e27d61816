/* Programs and bounds for tests of execution, straight from an order: every pass one kernel. */
#ifndef TESTS_EXEC_HELPERS_H
#define TESTS_EXEC_HELPERS_H

#include "sim/bound/bound.h"
#include "sim/exec/exec.h"
#include "sim/program/builder.h"
#include "sim/schedule/schedule.h"

typedef struct {
    int64_t pass_ns[ORR_N_PASSES];
    int64_t send_ns;  /* of every message; at least 1 */
    bool has_barrier; /* an all-reduce of all stages before the step's end */
} ExecTimes;

/* A pipeline of one rank a stage, communication beside compute. Free both. */
OrrProgram *exec_program(const OrrOrder *order, const ExecTimes *times);
OrrBound *exec_bound(const OrrProgram *program, const ExecTimes *times);

#endif
