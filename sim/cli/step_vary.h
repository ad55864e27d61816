/* orrery step --vary: a table of the same job with other values of some keys. */
#ifndef ORR_CLI_STEP_VARY_H
#define ORR_CLI_STEP_VARY_H

#include "sim/cli/command.h"

/* Runs all combinations of the --vary options and writes the table. Errors: what does not go
 * together with --vary, what is no list of values, all combinations refused. Exit status 1: none
 * of them fits in memory. */
bool orr_cli_step_vary(const OrrCli *cli, const char *job, GError **error);

#endif
