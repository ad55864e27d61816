/* Logs of collectives: any bytes give tables with sound rows or an error that says why. */
#include <math.h>
#include <string.h>

#include "calibrate/nccl_tests.h"
#include "sim/io/csv.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    GError *error = NULL;
    g_autoptr(GString) notes = g_string_new(NULL);
    OrrImport import = {.path = "fuzz.log", .op = size % 2 ? NULL : "all_gather", .notes = notes};
    g_autoptr(OrrMeasuredTables) tables =
        orr_nccl_tests_parse(&import, (const char *)data, size, &error);
    fuzz_check_error(tables, &error);
    g_assert(g_utf8_validate(notes->str, -1, NULL));
    if (!tables)
        return 0;
    for (uint32_t i = 0; i < tables->n_tables; i++)
        for (uint32_t k = 0; k < tables->tables[i]->n_rows; k++) {
            const OrrMeasuredCollective *row = &tables->tables[i]->rows[k];
            g_assert(row->bytes > 0 && isfinite(orr_measured_time_ns(row)));
            g_assert(row->flaw || orr_measured_time_ns(row) > 0);
        }
    g_autofree char *text = orr_nccl_tests_format(tables);
    g_autoptr(OrrCsv) csv = orr_csv_parse("out.csv", text, strlen(text), ORR_CSV_PLAIN, &error);
    if (!csv)
        g_error("imported, but not a table: %s", error->message);
    return 0;
}
