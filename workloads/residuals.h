/* The shipped table of residuals (workloads/residuals/steps.csv): what `orrery validate
 * --residuals` wrote of the published runs. A row is a regime of a source; its errors stand in one
 * cell. */
#ifndef WORKLOADS_RESIDUALS_H
#define WORKLOADS_RESIDUALS_H

#include "sim/base/error.h"
#include "sim/facts/residuals.h"
#include "sim/io/file.h"

/* NULL with @error (ORR_ERROR_INPUT): absent, broken, a cell that is no list of numbers. */
OrrResiduals *orr_workload_residuals(const char *path, GError **error);
/* The path of the shipped table; g_free. */
char *orr_workload_residuals_shipped(GError **error);
/* Writes @r in that form, rows of one regime together, sorted. */
void orr_workload_residuals_write(const OrrResiduals *r, OrrOut *out);

#endif
