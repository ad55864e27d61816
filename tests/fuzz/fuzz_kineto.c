/* Profiler traces: any bytes give a profile whose shares add up or an error that says why. */
#include <math.h>
#include <string.h>

#include "sim/io/csv.h"
#include "tests/fuzz/fuzz.h"
#include "traces/kineto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    GError *error = NULL;
    g_autoptr(GString) notes = g_string_new(NULL);
    OrrImport import = {.path = "fuzz.json", .notes = notes};
    g_autoptr(OrrMeasuredProfile) p = orr_kineto_parse(&import, (const char *)data, size, &error);
    fuzz_check_error(p, &error);
    if (!p)
        return 0;
    double slack = 1e-6 * p->window_ns + 1e-3;
    g_assert(isfinite(p->window_ns) && p->busy_ns <= p->window_ns + slack);
    g_assert(p->compute_ns + p->exposed_ns <= p->busy_ns + slack);
    g_autofree char *text = orr_kineto_format(p);
    g_autoptr(OrrCsv) csv = orr_csv_parse("out.csv", text, strlen(text), ORR_CSV_PLAIN, &error);
    if (!csv)
        g_error("imported, but not a table: %s", error->message);
    return 0;
}
