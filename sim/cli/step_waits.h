/* orrery step --waits: how long each rank idled for others, as a table. */
#ifndef ORR_CLI_STEP_WAITS_H
#define ORR_CLI_STEP_WAITS_H

#include "sim/api/step.h"

/* After execute: a row a rank of the job to the CSV at @path, whole or not at all. */
bool orr_cli_step_waits(const OrrStepRun *run, const char *path, GError **error);

#endif
