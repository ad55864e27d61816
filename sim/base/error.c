#include "sim/base/error.h"

GQuark orr_error_quark(void) {
    return g_quark_from_static_string("orr-error-quark");
}

static bool fail(GError **error, OrrErrorCode code, const char *format, va_list args) {
    if (error)
        *error = g_error_new_valist(ORR_ERROR, (gint)code, format, args);
    return false;
}

#define DEFINE_FAIL(name, code)                                                                    \
    bool name(GError **error, const char *format, ...) {                                           \
        va_list args;                                                                              \
        va_start(args, format);                                                                    \
        fail(error, code, format, args);                                                           \
        va_end(args);                                                                              \
        return false;                                                                              \
    }

DEFINE_FAIL(orr_fail_input, ORR_ERROR_INPUT)
DEFINE_FAIL(orr_fail_usage, ORR_ERROR_USAGE)
DEFINE_FAIL(orr_fail_env, ORR_ERROR_ENV)
