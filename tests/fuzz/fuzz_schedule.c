/* A schedule of one's own: CSV cells to an order; what is accepted must be free of flaws. */
#include "sim/io/csv.h"
#include "sim/schedule/schedules.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    GError *error = NULL;
    g_autoptr(OrrCsv) csv = orr_csv_parse("fuzz.csv", (const char *)data, size,
                                          ORR_CSV_NO_HEADER | ORR_CSV_RAGGED, NULL);
    if (!csv)
        return 0;
    guint n = orr_csv_n_rows(csv);
    char ***rows = g_new0(char **, n + 1);
    for (guint i = 0; i < n; i++) {
        rows[i] = g_new0(char *, orr_csv_row_length(csv, i) + 1);
        for (guint j = 0; j < orr_csv_row_length(csv, i); j++)
            rows[i][j] = g_strdup(orr_csv_cell(csv, i, (int)j));
    }
    g_autoptr(OrrOrder) order = orr_schedule_custom("fuzz.csv", rows, n, &error);
    fuzz_check_error(order, &error);
    g_autofree char *flaw = order ? orr_order_flaw(order) : NULL;
    g_assert(flaw == NULL);
    for (guint i = 0; i < n; i++)
        g_strfreev(rows[i]);
    g_free(rows);
    return 0;
}
