/* CSV: an accepted table, written and read again, is the same table. */
#include <string.h>

#include "sim/io/csv.h"
#include "tests/fuzz/fuzz.h"

static void check_round_trip(const OrrCsv *csv) {
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(OrrOut) out = orr_out_to_string(text);
    OrrCsvWriter w = {.out = out};
    orr_csv_put(&w, "x"); /* a first row, so that a byte-order mark in a cell does not come first */
    orr_csv_end_row(&w);
    for (guint i = 0; i < orr_csv_n_rows(csv); i++) {
        for (guint j = 0; j < orr_csv_row_length(csv, i); j++)
            orr_csv_put(&w, orr_csv_cell(csv, i, (int)j));
        orr_csv_end_row(&w);
    }
    g_autoptr(OrrCsv) again =
        orr_csv_parse("again.csv", text->str, text->len, ORR_CSV_NO_HEADER | ORR_CSV_RAGGED, NULL);
    g_assert(again && orr_csv_n_rows(again) == orr_csv_n_rows(csv) + 1);
    for (guint i = 0; i < orr_csv_n_rows(csv); i++) {
        g_assert(orr_csv_row_length(again, i + 1) == orr_csv_row_length(csv, i));
        for (guint j = 0; j < orr_csv_row_length(csv, i); j++)
            g_assert(strcmp(orr_csv_cell(csv, i, (int)j), orr_csv_cell(again, i + 1, (int)j)) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (OrrCsvFlags flags = 0; flags <= (ORR_CSV_NO_HEADER | ORR_CSV_RAGGED); flags++) {
        GError *error = NULL;
        g_autoptr(OrrCsv) csv = orr_csv_parse("fuzz.csv", (const char *)data, size, flags, &error);
        fuzz_check_error(csv, &error);
        for (guint i = 0; csv && i < orr_csv_n_rows(csv); i++)
            for (guint j = 0; j < orr_csv_n_columns(csv); j++) {
                double value;
                bool is_number = orr_csv_number(csv, i, (int)j, 0, 1e9, &value, &error);
                fuzz_check_error(is_number ? csv : NULL, &error);
            }
        if (csv)
            check_round_trip(csv);
    }
    return 0;
}
