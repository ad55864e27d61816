/* A journal after everything that a kill or a full disk can leave behind. */
#include <glib.h>
#include <glib/gstdio.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "sim/io/journal.h"

static char *fresh(void) {
    char *folder = g_dir_make_tmp("orrery-journal-XXXXXX", NULL);
    char *path = g_build_filename(folder, "j", NULL);
    g_free(folder);
    return path;
}

static void forget(char *path) {
    g_autofree char *folder = g_path_get_dirname(path);
    g_unlink(path);
    g_rmdir(folder);
    g_free(path);
}

static void fill(const char *path, int from, int to) {
    g_autoptr(GError) error = NULL;
    g_autoptr(OrrJournal) j = orr_journal_open(path, "key", &error);
    if (!j)
        fail_msg("%s", error->message);
    for (int i = from; i < to; i++) {
        g_autofree char *line = g_strdup_printf("%d is done", i);
        assert_true(orr_journal_append(j, line, &error));
    }
}

static void check_lines(const char *path, guint n) {
    g_autoptr(GError) error = NULL;
    g_autoptr(OrrJournal) j = orr_journal_open(path, "key", &error);
    if (!j)
        fail_msg("%s", error->message);
    assert_int_equal(orr_journal_n_lines(j), n);
    for (guint i = 0; i < n; i++) {
        g_autofree char *line = g_strdup_printf("%u is done", i);
        assert_string_equal(orr_journal_line(j, i), line);
    }
}

static void test_lines_come_back_in_order(void **state) {
    (void)state;
    char *path = fresh();
    fill(path, 0, 3);
    fill(path, 3, 5);
    check_lines(path, 5);
    forget(path);
}

static void test_cut_at_any_byte_loses_only_the_torn_line(void **state) {
    (void)state;
    char *path = fresh(), *text;
    gsize length;
    fill(path, 0, 4);
    assert_true(g_file_get_contents(path, &text, &length, NULL));
    gsize head = (gsize)(strchr(text, '\n') - text) + 1;
    for (gsize cut = head; cut <= length; cut++) {
        guint whole = 0;
        for (gsize i = head; i < cut; i++)
            whole += text[i] == '\n';
        assert_true(g_file_set_contents(path, text, (gssize)cut, NULL));
        check_lines(path, whole);
        fill(path, (int)whole, 4);
        check_lines(path, 4);
    }
    g_free(text);
    forget(path);
}

static void test_foreign_and_damaged_files_are_refused(void **state) {
    (void)state;
    char *path = fresh(), *text;
    GError *error = NULL;
    fill(path, 0, 4);
    assert_null(orr_journal_open(path, "another", &error));
    assert_int_equal(error->code, ORR_ERROR_INPUT);
    assert_non_null(strstr(error->message, "other inputs"));
    g_clear_error(&error);
    assert_true(g_file_get_contents(path, &text, NULL, NULL));
    *strstr(text, "1 is done") = '7';
    assert_true(g_file_set_contents(path, text, -1, NULL));
    assert_null(orr_journal_open(path, "key", &error));
    assert_non_null(strstr(error->message, "line 3 is damaged"));
    g_clear_error(&error);
    assert_true(g_file_set_contents(path, "hello\n", -1, NULL));
    assert_null(orr_journal_open(path, "key", &error));
    assert_non_null(strstr(error->message, "no store"));
    g_clear_error(&error);
    assert_null(orr_journal_open("/dev/full", "key", &error));
    assert_int_equal(error->code, ORR_ERROR_ENV);
    g_clear_error(&error);
    g_free(text);
    forget(path);
}

static void test_two_writers_are_refused(void **state) {
    (void)state;
    char *path = fresh();
    GError *error = NULL;
    OrrJournal *first = orr_journal_open(path, "key", NULL);
    assert_non_null(first);
    assert_null(orr_journal_open(path, "key", &error));
    assert_non_null(strstr(error->message, "another run"));
    g_clear_error(&error);
    orr_journal_free(first);
    forget(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_come_back_in_order),
        cmocka_unit_test(test_cut_at_any_byte_loses_only_the_torn_line),
        cmocka_unit_test(test_foreign_and_damaged_files_are_refused),
        cmocka_unit_test(test_two_writers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
