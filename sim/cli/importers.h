/* The table of importers: what `orrery import` takes. */
#ifndef ORR_CLI_IMPORTERS_H
#define ORR_CLI_IMPORTERS_H

#include "sim/io/importer.h"

extern const OrrImporter *const orr_importers[]; /* NULL-terminated */
extern const char *const orr_importer_names[];   /* same order, NULL-terminated */

#endif
