/* The shipped efficiency surfaces: one key file a GPU in calibrate/tables, written by
 * fit_kernels, read here. Holds the provenance; see doc/models/kernels.md. */
#ifndef ORR_CALIBRATE_TABLES_H
#define ORR_CALIBRATE_TABLES_H

#include "sim/base/error.h"
#include "sim/facts/surface.h"
#include "sim/io/keys.h"

/* Reads one file. Errors name file, line, group and key. Free with orr_surface_set_free. */
OrrSurfaceSet *orr_tables_load(const char *path, GError **error);
/* The shipped file of that name ("h100_sxm": OrrGpu.surfaces). */
OrrSurfaceSet *orr_tables_named(const char *name, GError **error);
/* As orr_tables_load, from memory; @name stands for the file in messages. */
OrrSurfaceSet *orr_tables_parse(const char *name, const char *text, gsize length, GError **error);
/* The groups of a file that holds more: [table] with its surfaces, whose errors and other groups
 * are for the caller's orr_keys_finish; and [streaming], false if there is none. */
OrrSurfaceSet *orr_tables_read(OrrKeys *keys);
bool orr_tables_read_rates(OrrKeys *keys, OrrKernelRates *rates);
/* Those groups, appended to @out; [table] only where there are surfaces. */
void orr_tables_put(GString *out, const OrrSurfaceSet *set);
/* The text of the file for @set; g_free. Reading it back gives the same set to the digits kept. */
char *orr_tables_format(const OrrSurfaceSet *set);

#endif
