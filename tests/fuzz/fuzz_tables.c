/* Efficiency surfaces. A set that is accepted can be evaluated anywhere and written again. */
#include "calibrate/tables.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>

static void use_set(const OrrSurfaceSet *set) {
    for (uint32_t i = 0; i < set->n_surfaces; i++)
        for (double at = -4.0; at < 70.0; at += 7.3) {
            double x[ORR_SURFACE_AXES] = {at, at * 0.5, 64.0 - at};
            double ratio = orr_surface_ratio(&set->surfaces[i], x);
            g_assert(isfinite(ratio) && ratio > 0.0);
        }
    g_autofree char *text = orr_tables_format(set);
    g_assert(text && *text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    GError *error = NULL;
    OrrSurfaceSet *set = orr_tables_parse("fuzz", (const char *)data, size, &error);
    fuzz_check_error(set, &error);
    if (set)
        use_set(set);
    orr_surface_set_free(set);
    return 0;
}
