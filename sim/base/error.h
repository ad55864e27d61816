/* Errors of the whole house: one GError domain, whose code is the exit status. */
#ifndef ORR_BASE_ERROR_H
#define ORR_BASE_ERROR_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define ORR_ERROR (orr_error_quark())
GQuark orr_error_quark(void);

/* The exit status of the program is the code of the error that ended it. */
typedef enum {
    ORR_ERROR_NO = 1,    /* the answer is no: does not fit, outside tolerance */
    ORR_ERROR_USAGE = 2, /* the command line is wrong */
    ORR_ERROR_INPUT = 3, /* a file or a value in it is wrong */
    ORR_ERROR_ENV = 4    /* surroundings: disk full, program missing, no GPU */
} OrrErrorCode;

/**
 * orr_fail_input: sets @error (may be NULL) to ORR_ERROR_INPUT with a printf-style text.
 * Returns: false, so that a function can end with `return orr_fail_input(error, ...)`.
 */
bool orr_fail_input(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);
bool orr_fail_usage(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);
bool orr_fail_env(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);

#endif
