/* orrery run --shared: several jobs on one cluster. */
#ifndef ORR_CLI_RUN_SHARED_H
#define ORR_CLI_RUN_SHARED_H

#include "sim/api/run.h"
#include "sim/cli/command.h"

/* @request: what the command line or a saved record says; its run is the shared cluster. */
bool orr_cli_run_shared(const OrrCli *cli, const OrrRunRequest *request, GError **error);

#endif
