/* The shipped efficiency surfaces: one key file a GPU in calibrate/tables, written by
 * fit_kernels, read here. Holds the provenance; see doc/models/kernels.md. */
#ifndef ORR_CALIBRATE_TABLES_H
#define ORR_CALIBRATE_TABLES_H

#include "sim/base/error.h"
#include "sim/facts/surface.h"

/* Reads one file. Errors name file, line, group and key. Free with orr_surface_set_free. */
OrrSurfaceSet *orr_tables_load(const char *path, GError **error);
/* The shipped file of that name ("h100_sxm": OrrGpu.surfaces). */
OrrSurfaceSet *orr_tables_named(const char *name, GError **error);
/* As orr_tables_load, from memory; @name stands for the file in messages. */
OrrSurfaceSet *orr_tables_parse(const char *name, const char *text, gsize length, GError **error);
/* The text of the file for @set; g_free. Reading it back gives the same set to the digits kept. */
char *orr_tables_format(const OrrSurfaceSet *set);

#endif
