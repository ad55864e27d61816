/* The table of exporters. */
#include "traces/exporters.h"

#include "sim/base/words.h"
#include "traces/traces_priv.h"

#include <string.h>

const OrrExporter *const orr_exporters[] = {
    &orr_trace__chrome, &orr_trace__csv, &orr_trace__passes, &orr_trace__chakra, NULL,
};

const OrrExporter *orr_exporter_find(const char *name, GError **error) {
    const char *names[G_N_ELEMENTS(orr_exporters)] = {NULL};
    for (int i = 0; orr_exporters[i]; i++) {
        if (strcmp(orr_exporters[i]->name, name) == 0)
            return orr_exporters[i];
        names[i] = orr_exporters[i]->name;
    }
    g_autofree char *hint = orr_words_hint(name, names);
    orr_fail_usage(error, "unknown trace format '%s'; %s", name, hint);
    return NULL;
}
