/* Numbers with units: what is accepted is finite, and its short print is accepted again. */
#include <math.h>

#include "sim/base/units.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    g_autofree char *text = g_strndup((const char *)data, size);
    for (OrrDim dim = 0; dim < ORR_N_DIMS; dim++) {
        double value = NAN, again = NAN;
        GError *error = NULL;
        bool is_sound = orr_units_parse(text, dim, &value, &error);
        g_assert(is_sound == (error == NULL) && is_sound == !!isfinite(value));
        g_clear_error(&error);
        if (!is_sound || dim == ORR_DIM_COUNT)
            continue;
        g_autofree char *shown = orr_units_format(value, dim);
        if (dim != ORR_DIM_TIME && fabs(value) < 1e30)
            g_assert(orr_units_parse(shown, dim, &again, NULL));
    }
    return 0;
}
