/* orrery run --shared: several jobs on one cluster. */
#ifndef ORR_CLI_RUN_SHARED_H
#define ORR_CLI_RUN_SHARED_H

#include "sim/cli/command.h"
#include "workloads/loader.h"

bool orr_cli_run_shared(const OrrCli *cli, const OrrOverride *overrides, uint32_t n_overrides,
                        GError **error);

#endif
