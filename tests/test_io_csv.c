/* CSV tables: quotes, lines, refusals, and writing what reads back. */
#include "tests/near.h"

#include <string.h>

#include "sim/io/csv.h"

static OrrCsv *parse(const char *text, OrrCsvFlags flags) {
    g_autoptr(GError) error = NULL;
    OrrCsv *csv = orr_csv_parse("t.csv", text, strlen(text), flags, &error);
    if (!csv)
        fail_msg("%s", error->message);
    return csv;
}

static void check_refused(const char *text, OrrCsvFlags flags, const char *says) {
    g_autoptr(GError) error = NULL;
    assert_null(orr_csv_parse("t.csv", text, strlen(text), flags, &error));
    assert_int_equal(error->code, ORR_ERROR_INPUT);
    if (!strstr(error->message, says))
        fail_msg("\"%s\" does not say \"%s\"", error->message, says);
}

static void test_csv_quotes_and_lines_as_rfc_4180(void **state) {
    (void)state;
    g_autoptr(OrrCsv) csv =
        parse("\xef\xbb\xbfname,n\r\n\"a, \"\"b\"\"\n c\",1\r\n\r\n  x y ,2\nz,", ORR_CSV_PLAIN);
    assert_int_equal(orr_csv_n_rows(csv), 3);
    assert_int_equal(orr_csv_column(csv, "n"), 1);
    assert_int_equal(orr_csv_column(csv, "N"), -1);
    assert_string_equal(orr_csv_cell(csv, 0, 0), "a, \"b\"\n c");
    assert_string_equal(orr_csv_cell(csv, 1, 0), "x y");
    assert_string_equal(orr_csv_cell(csv, 2, 1), "");
    assert_int_equal(orr_csv_line(csv, 0), 2);
    assert_int_equal(orr_csv_line(csv, 1), 5);
    assert_int_equal(orr_csv_line(csv, 2), 6);
}

static void test_csv_refuses_with_the_line(void **state) {
    (void)state;
    check_refused("", ORR_CSV_PLAIN, "t.csv: is empty");
    check_refused("a,b\n1,2\n3\n", ORR_CSV_PLAIN, "t.csv:3: a row of 1 cells; 2 will do");
    check_refused("a,b\n1,2,3\n", ORR_CSV_PLAIN, "t.csv:2: a row of 3 cells; 2 will do");
    check_refused("a,a\n", ORR_CSV_PLAIN, "t.csv:1: column \"a\" stands twice");
    check_refused("a,b\n1,x\"y\n", ORR_CSV_PLAIN, "t.csv:2: a quote inside a cell");
    check_refused("a,b\n\n1,\"y\nz\n", ORR_CSV_PLAIN,
                  "t.csv:3: a quoted cell of this row does not");
    check_refused("a\n\xff\n", ORR_CSV_PLAIN, "t.csv:2: bytes that are not UTF-8");
}

static void test_csv_ragged_without_header(void **state) {
    (void)state;
    g_autoptr(OrrCsv) csv = parse("0F0,,0B0\n1F0\n", ORR_CSV_NO_HEADER | ORR_CSV_RAGGED);
    assert_int_equal(orr_csv_n_rows(csv), 2);
    assert_int_equal(orr_csv_row_length(csv, 0), 3);
    assert_int_equal(orr_csv_row_length(csv, 1), 1);
    assert_string_equal(orr_csv_cell(csv, 0, 1), "");
    assert_string_equal(orr_csv_cell(csv, 1, 2), "");
}

static void test_csv_numbers_are_checked_with_their_place(void **state) {
    (void)state;
    g_autoptr(OrrCsv) csv = parse("m,time_us\n128,3.5\n1.5,x\n9,2 us\n", ORR_CSV_PLAIN);
    static const char *const need[] = {"time_us", "m", NULL};
    static const char *const lacks[] = {"time_ns", "q", NULL};
    int at[2];
    double d;
    int64_t i;
    assert_true(orr_csv_need(csv, need, at, NULL));
    assert_true(orr_csv_number(csv, 0, at[0], 0, 10, &d, NULL) && d == 3.5);
    assert_true(orr_csv_int(csv, 0, at[1], 1, 1000, &i, NULL) && i == 128);
    GError *e[5] = {NULL};
    assert_false(orr_csv_need(csv, lacks, at, &e[0]));
    assert_string_equal(e[0]->message, "t.csv: the header lacks time_ns (there is time_us), q");
    assert_false(orr_csv_int(csv, 1, 0, 0, 10, &i, &e[1]));
    assert_string_equal(e[1]->message, "t.csv:3: m = 1.5: is not a whole number; 0 to 10 will do");
    assert_false(orr_csv_number(csv, 1, 1, 0, 10, &d, &e[2]));
    assert_string_equal(e[2]->message, "t.csv:3: time_us = x: is not a number; 0 to 10 will do");
    assert_false(orr_csv_number(csv, 2, 1, 0, 10, &d, &e[3]));
    assert_non_null(strstr(e[3]->message, "t.csv:4: time_us = 2 us: \"us\" behind the number"));
    assert_false(orr_csv_number(csv, 2, 0, 10, 20, &d, &e[4]));
    assert_string_equal(e[4]->message, "t.csv:4: m = 9: is out of range; 10 to 20 will do");
    for (int k = 0; k < 5; k++)
        g_clear_error(&e[k]);
}

static void test_csv_written_table_reads_back(void **state) {
    (void)state;
    static const char *const pieces[] = {"a", ",", "\"", "\n", " ", "\xc3\xa9", "#", "\r\n", ""};
    g_autoptr(GRand) rand = g_rand_new_with_seed(5);
    for (int round = 0; round < 500; round++) {
        g_autoptr(GString) text = g_string_new(NULL);
        g_autoptr(OrrOut) out = orr_out_to_string(text);
        OrrCsvWriter w = {.out = out};
        g_autoptr(GPtrArray) cells = g_ptr_array_new_with_free_func(g_free);
        guint n_columns = (guint)g_rand_int_range(rand, 1, 4), n_rows = 3;
        for (guint i = 0; i < n_columns * n_rows; i++) {
            GString *cell = g_string_new(NULL);
            for (int n = g_rand_int_range(rand, 0, 5); n > 0; n--)
                g_string_append(cell, pieces[g_rand_int_range(rand, 0, G_N_ELEMENTS(pieces))]);
            orr_csv_put(&w, cell->str);
            if ((i + 1) % n_columns == 0)
                orr_csv_end_row(&w);
            g_ptr_array_add(cells, g_string_free(cell, FALSE));
        }
        g_autoptr(OrrCsv) csv = parse(text->str, ORR_CSV_NO_HEADER);
        assert_int_equal(orr_csv_n_rows(csv), n_rows);
        for (guint i = 0; i < cells->len; i++)
            assert_string_equal(orr_csv_cell(csv, i / n_columns, (int)(i % n_columns)),
                                cells->pdata[i]);
    }
}

static void test_csv_writes_numbers_shortest(void **state) {
    (void)state;
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(OrrOut) out = orr_out_to_string(text);
    OrrCsvWriter w = {.out = out};
    static const char *const head[] = {"a", "b_ns", NULL};
    orr_csv_put_row(&w, head);
    orr_csv_put_double(&w, 0.1);
    orr_csv_put_int(&w, INT64_MIN);
    orr_csv_end_row(&w);
    orr_csv_put_int(&w, 1);
    orr_csv_put_double(&w, NAN);
    orr_csv_end_row(&w);
    assert_string_equal(text->str, "a,b_ns\n0.1,-9223372036854775808\n1,\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_csv_quotes_and_lines_as_rfc_4180),
        cmocka_unit_test(test_csv_refuses_with_the_line),
        cmocka_unit_test(test_csv_ragged_without_header),
        cmocka_unit_test(test_csv_numbers_are_checked_with_their_place),
        cmocka_unit_test(test_csv_written_table_reads_back),
        cmocka_unit_test(test_csv_writes_numbers_shortest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
