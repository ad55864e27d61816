/* The pictures of a whole run. */
#ifndef ORR_CLI_RUN_PLOTS_H
#define ORR_CLI_RUN_PLOTS_H

#include "sim/api/run.h"

/* Tables, scripts and pictures of an executed run in @folder, which is made if need be. What does
 * not apply (no prices, no checkpoints) is left out. */
bool orr_cli_run_plots(const OrrRun *run, const char *folder, GError **error);

#endif
