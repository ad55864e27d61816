/* Whole runs for tests, built by hand. */
#ifndef TESTS_JOB_CASES_H
#define TESTS_JOB_CASES_H

#include "sim/job/engine.h"

#define S INT64_C(1000000000)

/* 100 s a step, 10 tokens a step, no end yet, checkpoints every ten steps. */
OrrRunSpec *plain(void);
OrrTier *tier(OrrRunSpec *s, int64_t block_ns, int64_t write_ns, int64_t load_ns);
OrrFailureKind *strike_at(OrrRunSpec *s, OrrEffect effect, int64_t at_ns);
/* A sound seed; anything else fails the test. */
OrrRunSeed simulate(const OrrRunSpec *s, uint64_t seed);
int64_t lost(const OrrRunSeed *o, uint32_t cause, OrrLoss loss);

#endif
