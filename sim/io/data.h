/* Where the data files are: gpus, clusters, models, jobs, tables.
 *
 * Looked for in the folder of the environment variable ORRERY_DATA, then in the source tree if the
 * program runs uninstalled from its build, then where `make install` puts them. The layout below is
 * the same everywhere: topologies/gpus/h100-sxm-80.ini. */
#ifndef ORR_IO_DATA_H
#define ORR_IO_DATA_H

#include "sim/base/error.h"

/**
 * orr_data_find: the path of the data file called @name.
 * @folder: below the data folder, "topologies/gpus".
 * @name: a name without suffix; with a '/' in it or ending in @suffix it is a path and used as it
 * is.
 * @suffix: ".ini"
 * Returns: the path, g_free; NULL with @error (ORR_ERROR_INPUT) that suggests the nearest name.
 */
char *orr_data_find(const char *folder, const char *name, const char *suffix, GError **error);

/* Names (without suffix) of the files in @folder, sorted, NULL-terminated; g_strfreev. */
char **orr_data_list(const char *folder, const char *suffix);

/* The folders searched, in order, NULL-terminated; g_strfreev. */
char **orr_data_roots(void);

#endif
