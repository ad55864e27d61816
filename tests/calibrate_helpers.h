/* A folder that goes away, and files in it, for the tests of the calibrator. */
#ifndef TESTS_CALIBRATE_HELPERS_H
#define TESTS_CALIBRATE_HELPERS_H

#include "sim/io/csv.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

static inline char *scratch_file(const char *name) {
    g_autofree char *folder = g_dir_make_tmp("orrery-XXXXXX", NULL);
    return g_build_filename(folder, name, NULL);
}

static inline void scratch_remove(char *path) {
    g_autofree char *folder = g_path_get_dirname(path);
    g_unlink(path);
    g_rmdir(folder);
    g_free(path);
}

static inline char *scratch_read(const char *path) {
    char *text = NULL;
    g_file_get_contents(path, &text, NULL, NULL);
    return text;
}

static inline const char *cell(const OrrCsv *csv, guint row, const char *column) {
    return orr_csv_cell(csv, row, orr_csv_column(csv, column));
}

#endif
