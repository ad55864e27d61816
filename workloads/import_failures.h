/* Histories of failures to a file of topologies/failures. */
#ifndef WORKLOADS_IMPORT_FAILURES_H
#define WORKLOADS_IMPORT_FAILURES_H

#include "sim/io/importer.h"

extern const OrrImporter orr_importer_failures;

/* The same from a text; @import->path stands for the file in messages and is not opened. */
char *orr_import_failures_text(const OrrImport *import, const char *text, gsize length,
                               GError **error);

/**
 * orr_weibull_fit: shape and scale of @n positive times by maximum likelihood.
 * Returns: false if there are fewer than two different times.
 */
bool orr_weibull_fit(const double *x, guint n, double *shape, double *scale);

#endif
