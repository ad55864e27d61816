/* The command line of orrery-calibrate. */
#ifndef ORR_CALIBRATE_OPTIONS_H
#define ORR_CALIBRATE_OPTIONS_H

#include "calibrate/case.h"

typedef struct {
    gboolean is_full, is_quick, lists, flushes_l2, has_mpi, shows_version;
    char **only;  /* names of kinds; NULL: all */
    char *shapes; /* a CSV file, whose shapes are measured instead of the grid; or NULL */
    char *output; /* NULL: standard output */
    char *device; /* NULL: the default */
    int minutes;  /* 0: as the mode has it */
    bool kinds[ORR_N_CASE_KINDS];
} OrrCalibrateOptions;

/* @argv NULL-terminated. Errors: ORR_ERROR_USAGE. --help is answered on standard output and sets
 * *@is_answered. */
bool orr_calibrate_options(char **argv, OrrCalibrateOptions *o, bool *is_answered, GError **error);
void orr_calibrate_options_clear(OrrCalibrateOptions *o);

#endif
