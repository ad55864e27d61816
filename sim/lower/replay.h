/* A recorded rank as a program that execution runs: every operation a kernel of its recorded
 * duration on its stream, in order, behind what it waits for. Communication is not met again: its
 * recorded time holds the waiting for others. The host blocks at the end of a step, so that steps
 * do not overlap and the period is the longest path. */
#ifndef ORR_LOWER_REPLAY_H
#define ORR_LOWER_REPLAY_H

#include "sim/bound/bound.h"
#include "sim/facts/replay.h"

/**
 * orr_lower_replay: @program (orr_program_free) and its binding to one rank. NULL with @error: no
 * operation has a duration, some that should lack one, more streams than a rank has here, or one
 * that waits for more than ORR_MAX_WAITS others.
 */
OrrBound *orr_lower_replay(const OrrReplay *replay, OrrProgram **program, GError **error);

#endif
