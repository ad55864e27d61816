/* A form in which files of other programs come in: one row a form, one file each in the room that
 * knows what the file means. `orrery import` holds the table. */
#ifndef ORR_IO_IMPORTER_H
#define ORR_IO_IMPORTER_H

#include "sim/base/error.h"

/* What was asked. NULL and 0: not said. */
typedef struct {
    const char *path;
    const char *op;  /* collectives, comma-separated, one a table */
    guint n_ranks;   /* how many took part */
    const char *gpu; /* a GPU of ours, where the file does not name one */
    const char *nic; /* rate of a NIC, where the file does not say */
    guint n_nodes;
    double window_ns;        /* how long failures were counted */
    const char *const *sets; /* "NAME=VALUE", NULL-terminated; NULL: none */
    GString *notes;          /* lines for stderr: what was assumed, left out, doubtful */
} OrrImport;

typedef struct {
    const char *name, *summary, *source;
    /* The text of our file or table; g_free. NULL with @error that says file, line and key. */
    char *(*run)(const OrrImport *import, GError **error);
} OrrImporter;

#endif
