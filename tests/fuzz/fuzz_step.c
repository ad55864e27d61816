/* A whole step of a tiny job under any overrides, "group.key=value" a line: it is refused with a
 * reason, or runs and its accounts add up (self_check asserts bytes, bounds and accounts). */
#include <string.h>

#include "sim/api/orrery.h"
#include "tests/fuzz/fuzz.h"

/* Numbers of three digits make runs long and find nothing that two do not. */
static bool has_large_number(const char *text) {
    guint digits = 0;
    for (; *text && digits < 3; text++)
        digits = g_ascii_isdigit(*text) ? digits + 1 : 0;
    return digits == 3;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    g_autofree char *text = g_strndup((const char *)data, size);
    if (!g_utf8_validate(text, -1, NULL))
        return 0;
    g_auto(GStrv) lines = g_strsplit(text, "\n", 12);
    GPtrArray *sets = g_ptr_array_new();
    for (guint i = 0; lines[i]; i++)
        if (lines[i][0] && !has_large_number(lines[i]))
            g_ptr_array_add(sets, lines[i]);
    g_ptr_array_add(sets, NULL);
    OrreryOptions options = {.sets = (const char *const *)sets->pdata, .self_check = true};
    OrreryError *error = NULL;
    OrreryStep *step = orrery_step_run("tiny-pipeline", &options, &error);
    g_assert((step == NULL) == (error != NULL));
    if (error)
        g_assert(error->message[0] && error->status >= ORRERY_USAGE);
    if (step)
        g_assert(orrery_step_time_ns(step) > 0);
    orrery_error_free(error);
    orrery_step_free(step);
    g_ptr_array_free(sets, TRUE);
    return 0;
}
