/* The table of exporters. */
#ifndef TRACES_EXPORTERS_H
#define TRACES_EXPORTERS_H

#include "traces/exporter.h"

extern const OrrExporter *const orr_exporters[]; /* NULL-terminated */
/* NULL with @error (ORR_ERROR_USAGE) that lists the names. */
const OrrExporter *orr_exporter_find(const char *name, GError **error);

#endif
