#include "config.h" /* for O_TMPFILE */

/* Files: whole or not at all, gzip, limits; and finding data files. */
#include "tests/near.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/io/data.h"
#include "sim/io/file.h"
#include "sim/io/progress.h"

typedef struct {
    char *dir, *path;
} Place;

static int set_up(void **state) {
    Place *p = g_new0(Place, 1);
    p->dir = g_dir_make_tmp("orrery-test-XXXXXX", NULL);
    p->path = g_build_filename(p->dir, "out.txt", NULL);
    *state = p;
    return p->dir ? 0 : -1;
}

static guint n_files(const char *path) {
    GDir *dir = g_dir_open(path, 0, NULL);
    guint n = 0;
    while (g_dir_read_name(dir))
        n++;
    g_dir_close(dir);
    return n;
}

static int tear_down(void **state) {
    Place *p = *state;
    GDir *dir = g_dir_open(p->dir, 0, NULL);
    for (const char *name; (name = g_dir_read_name(dir));) {
        g_autofree char *path = g_build_filename(p->dir, name, NULL);
        g_remove(path);
    }
    g_dir_close(dir);
    g_rmdir(p->dir);
    g_free(p->dir);
    g_free(p->path);
    g_free(p);
    return 0;
}

static void check_holds(const char *path, const char *expected) {
    g_autoptr(GError) error = NULL;
    g_autofree char *text = orr_file_read(path, 1 << 20, NULL, &error);
    if (!text)
        fail_msg("%s", error->message);
    assert_string_equal(text, expected);
}

static void test_file_commit_replaces_the_old_contents(void **state) {
    Place *p = *state;
    assert_true(orr_file_write(p->path, "old", NULL));
    g_chmod(p->path, 0640);
    g_autoptr(OrrOut) out = orr_out_open(p->path, NULL);
    orr_out_printf(out, "%s-%d ", "new", 3);
    orr_out_double(out, 0.1);
    check_holds(p->path, "old");
    assert_true(orr_out_commit(out, NULL));
    check_holds(p->path, "new-3 0.1");
    struct stat st;
    assert_int_equal(stat(p->path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(n_files(p->dir), 1);
}

static void test_file_abort_leaves_the_old_file_alone(void **state) {
    Place *p = *state;
    assert_true(orr_file_write(p->path, "old", NULL));
    OrrOut *out = orr_out_open(p->path, NULL);
    orr_out_puts(out, "half of the n");
    orr_out_free(out);
    check_holds(p->path, "old");
    assert_int_equal(n_files(p->dir), 1);
}

static void test_file_killed_run_leaves_the_old_file(void **state) {
    Place *p = *state;
    assert_true(orr_file_write(p->path, "old", NULL));
    pid_t child = fork();
    if (child == 0) {
        OrrOut *out = orr_out_open(p->path, NULL); /* never freed: the process dies */
        for (int i = 0; i < 100000; i++)
            orr_out_puts(out, "half written ");
        kill(getpid(), SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    check_holds(p->path, "old");
    if (open(p->dir, O_TMPFILE | O_WRONLY, 0600) >= 0) /* else a hidden file may be left */
        assert_int_equal(n_files(p->dir), 1);
}

static void test_file_full_disk_is_told_by_commit(void **state) {
    (void)state;
    if (!g_file_test("/dev/full", G_FILE_TEST_EXISTS))
        skip();
    g_autoptr(GError) error = NULL;
    g_autoptr(OrrOut) out = orr_out_open("/dev/full", &error);
    assert_non_null(out);
    for (int i = 0; i < 100000; i++)
        orr_out_puts(out, "much too much ");
    assert_true(orr_out_has_failed(out));
    assert_false(orr_out_commit(out, &error));
    assert_int_equal(error->code, ORR_ERROR_ENV);
    assert_non_null(strstr(error->message, "/dev/full: cannot write: No space left"));
    g_autoptr(GError) small = NULL; /* so little that it waits in the buffer until the commit */
    assert_false(orr_file_write("/dev/full", "x", &small));
    assert_int_equal(small->code, ORR_ERROR_ENV);
}

static void test_file_absent_folder_and_folder_are_errors(void **state) {
    Place *p = *state;
    g_autoptr(GError) absent = NULL, folder = NULL, read = NULL;
    g_autofree char *deep = g_build_filename(p->dir, "no", "such", NULL);
    assert_null(orr_out_open(deep, &absent));
    assert_int_equal(absent->code, ORR_ERROR_ENV);
    assert_null(orr_out_open(p->dir, &folder));
    assert_non_null(strstr(folder->message, "it is a folder"));
    assert_null(orr_file_read(p->dir, 100, NULL, &read));
    assert_int_equal(read->code, ORR_ERROR_INPUT);
}

static void test_file_symbolic_link_stays_a_link(void **state) {
    Place *p = *state;
    g_autofree char *link = g_build_filename(p->dir, "link", NULL);
    assert_true(orr_file_write(p->path, "old", NULL));
    assert_int_equal(symlink(p->path, link), 0);
    assert_true(orr_file_write(link, "new", NULL));
    check_holds(p->path, "new");
    assert_true(g_file_test(link, G_FILE_TEST_IS_SYMLINK));
}

static void test_file_gzip_reads_back_and_is_reproducible(void **state) {
    Place *p = *state;
    g_autofree char *packed = g_strconcat(p->path, ".gz", NULL);
    char *raw[2] = {NULL};
    g_autoptr(GString) text = g_string_new(NULL);
    for (int i = 0; i < 50000; i++)
        g_string_append_printf(text, "%d,", i);
    gsize length[2];
    for (int i = 0; i < 2; i++) {
        assert_true(orr_file_write(packed, text->str, NULL));
        assert_true(g_file_get_contents(packed, &raw[i], &length[i], NULL));
    }
    check_holds(packed, text->str);
    assert_true(length[0] < text->len / 2);
    assert_int_equal(length[0], length[1]);
    assert_memory_equal(raw[0], raw[1], length[0]);
    assert_true(g_file_set_contents(packed, raw[0], (gssize)length[0] / 2, NULL));
    g_autoptr(GError) cut = NULL;
    assert_null(orr_file_read(packed, 1 << 20, NULL, &cut));
    assert_non_null(strstr(cut->message, "cut short"));
    g_free(raw[0]);
    g_free(raw[1]);
}

static void test_file_limit_holds_after_decompression(void **state) {
    Place *p = *state;
    g_autofree char *packed = g_strconcat(p->path, ".gz", NULL);
    g_autofree char *zeros = g_strnfill(1 << 20, '0');
    assert_true(orr_file_write(packed, zeros, NULL));
    g_autoptr(GError) error = NULL;
    assert_null(orr_file_read(packed, 1 << 19, NULL, &error));
    assert_non_null(strstr(error->message, "larger than the 512 KiB"));
}

static void test_file_sha256_of_known_text(void **state) {
    (void)state;
    g_autofree char *sum = orr_file_sha256("abc", 3); /* FIPS 180-2, appendix B.1 */
    assert_string_equal(sum, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void test_data_is_found_by_name_and_by_path(void **state) {
    Place *p = *state;
    g_setenv("ORRERY_DATA", p->dir, TRUE);
    g_autofree char *here = g_build_filename(p->dir, "h100-sxm-80.ini", NULL);
    assert_true(orr_file_write(here, "[gpu]\n", NULL));
    g_autofree char *by_name = orr_data_find(".", "h100-sxm-80", ".ini", NULL);
    assert_non_null(by_name);
    g_autofree char *by_path = orr_data_find("gpus", here, ".ini", NULL);
    assert_string_equal(by_path, here);
    g_autoptr(GError) error = NULL;
    assert_null(orr_data_find(".", "h100-sxm-8", ".ini", &error));
    assert_int_equal(error->code, ORR_ERROR_INPUT);
    assert_non_null(strstr(error->message, "did you mean h100-sxm-80?"));
    g_auto(GStrv) names = orr_data_list(".", ".ini");
    assert_true(g_strv_contains((const char *const *)names, "h100-sxm-80"));
    g_unsetenv("ORRERY_DATA");
}

static void test_progress_tells_the_time_left(void **state) {
    (void)state;
    g_autoptr(OrrProgress) p = orr_progress_new("simulating", 4000, "steps");
    orr_progress_set(p, 1);
    g_autofree char *begun = orr_progress_text(p, 0, 5),
                    *text = orr_progress_text(p, 1000, 2000000);
    assert_string_equal(begun, "simulating: 0 of 4,000 steps");
    assert_string_equal(text, "simulating: 1,000 of 4,000 steps, 6 s left");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

static void test_probe_tells_and_leaves_nothing(void **state) {
    const Place *p = *state;
    g_autoptr(GError) error = NULL;
    assert_true(orr_out_probe(p->path, &error));
    assert_int_equal(n_files(p->dir), 0);
    assert_true(g_file_set_contents(p->path, "old", -1, NULL));
    assert_true(orr_out_probe(p->path, &error));
    check_holds(p->path, "old");
    assert_true(orr_out_probe("-", &error));
    assert_true(orr_out_probe(NULL, &error));
    assert_true(orr_out_probe("/dev/null", &error));
    assert_false(orr_out_probe(p->dir, &error));
    assert_int_equal(error->code, ORR_ERROR_ENV);
    g_clear_error(&error);
    assert_false(orr_out_probe("/no/such/folder/x", &error));
    assert_non_null(strstr(error->message, "/no/such/folder/x: cannot write"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_probe_tells_and_leaves_nothing),
        TEST(test_file_commit_replaces_the_old_contents),
        TEST(test_file_abort_leaves_the_old_file_alone),
        TEST(test_file_killed_run_leaves_the_old_file),
        TEST(test_file_full_disk_is_told_by_commit),
        TEST(test_file_absent_folder_and_folder_are_errors),
        TEST(test_file_symbolic_link_stays_a_link),
        TEST(test_file_gzip_reads_back_and_is_reproducible),
        TEST(test_file_limit_holds_after_decompression),
        TEST(test_file_sha256_of_known_text),
        TEST(test_data_is_found_by_name_and_by_path),
        TEST(test_progress_tells_the_time_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
