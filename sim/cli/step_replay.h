/* orrery step of a recorded trace. */
#ifndef ORR_CLI_STEP_REPLAY_H
#define ORR_CLI_STEP_REPLAY_H

#include "sim/cli/command.h"

/* Whether @ref is the path of an execution trace: it ends in .et or .et.gz. */
bool orr_cli_is_trace(const char *ref);
/* Runs the trace at @path and reports it. */
bool orr_cli_step_replay(const OrrCli *cli, const char *path, GError **error);

#endif
