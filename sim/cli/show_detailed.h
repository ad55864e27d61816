/* orrery show collective --detailed: every message as its own flow. */
#ifndef ORR_CLI_SHOW_DETAILED_H
#define ORR_CLI_SHOW_DETAILED_H

#include "sim/cli/command.h"
#include "sim/detail/detail.h"

/* Runs @base for sizes from @min_bytes to @max_bytes, doubling, and writes them as @cli asks;
 * @cluster is what to call the machine. */
bool orr_cli_write_detailed(const OrrCli *cli, const OrrDetailCase *base, int64_t min_bytes,
                            int64_t max_bytes, const char *cluster, OrrOut *out, GError **error);

#endif
