/* Broken files and command lines, as a table: tests/bad-input/cases.txt. Each case runs the program
 * in an empty folder and must end with its exit status, its message on standard error, nothing on
 * standard output and no file left behind. A case is a test of its own.
 *
 *   == NAME
 *   copy SHIPPED FILE        a file of the source tree into the folder
 *   change FILE: OLD => NEW  in it, once; OLD must be there
 *   append FILE: TEXT        at its end
 *   write FILE: TEXT         a file of that text
 *   cut FILE: BYTES          its first bytes alone
 *   disk BYTES               the most that a file may hold, as on a full disk
 *   run ARGUMENTS            of orrery, split as a shell does
 *   exit STATUS
 *   says TEXT                on standard error; any number
 *   not TEXT                 not on standard error; any number
 *
 * Texts have C's escapes. */
#include "tests/near.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define LEAST_CASES 60 /* fewer: the table was not read */

typedef struct {
    char *name, *arguments;
    GPtrArray *steps; /* lines that make files */
    GPtrArray *says, *not ;
    gint64 disk_bytes; /* 0: no limit */
    int status;
} Case;

static char *source_path(const char *name) {
    const char *top = g_getenv("top_srcdir");
    return g_build_filename(top ? top : ORR_SRCDIR, name, NULL);
}

static void make_file(const char *folder, const char *step) {
    g_auto(GStrv) part = g_strsplit(step, ": ", 2);
    g_auto(GStrv) word = g_strsplit(part[0], " ", 3);
    bool is_copy = strcmp(word[0], "copy") == 0;
    g_strdelimit(word[1], ":", 0); /* "write FILE:" with nothing behind */
    g_autofree char *path = g_build_filename(folder, is_copy ? word[2] : word[1], NULL);
    g_autofree char *old = NULL, *text = NULL;
    g_autofree char *from = is_copy ? source_path(word[1]) : g_strdup(path);
    gsize length = 0;
    if (strcmp(word[0], "write") != 0 && !g_file_get_contents(from, &old, &length, NULL))
        fail_msg("cannot read %s", from);
    if (is_copy) {
        text = g_steal_pointer(&old);
    } else if (strcmp(word[0], "change") == 0) {
        g_auto(GStrv) side = g_strsplit(part[1], " => ", 2);
        g_autofree char *what = g_strcompress(side[0]), *by = g_strcompress(side[1]);
        char *at = strstr(old, what);
        if (!at)
            fail_msg("\"%s\" is not in %s", what, from);
        text = g_strdup_printf("%.*s%s%s", (int)(at - old), old, by, at + strlen(what));
    } else if (strcmp(word[0], "cut") == 0) {
        text = g_strndup(old, MIN(length, g_ascii_strtoull(part[1], NULL, 10)));
    } else {
        g_autofree char *more = g_strcompress(part[1] ? part[1] : "");
        text = g_strconcat(old ? old : "", more, NULL);
    }
    assert_true(g_file_set_contents(path, text, -1, NULL));
}

static gint by_text(gconstpointer a, gconstpointer b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Paths of the files in @folder, sorted. */
static GPtrArray *paths_in(const char *folder) {
    GPtrArray *paths = g_ptr_array_new_with_free_func(g_free);
    GDir *dir = g_dir_open(folder, 0, NULL);
    for (const char *name; (name = g_dir_read_name(dir));)
        g_ptr_array_add(paths, g_build_filename(folder, name, NULL));
    g_dir_close(dir);
    g_ptr_array_sort(paths, by_text);
    return paths;
}

/* Names and contents of all files in @folder. */
static char *snapshot(const char *folder) {
    g_autoptr(GPtrArray) paths = paths_in(folder);
    GString *all = g_string_new(NULL);
    for (guint i = 0; i < paths->len; i++) {
        g_autofree char *text = NULL;
        g_file_get_contents(paths->pdata[i], &text, NULL, NULL);
        g_string_append_printf(all, "%s\n%s\n", (char *)paths->pdata[i], text ? text : "");
    }
    return g_string_free(all, FALSE);
}

static void remove_folder(const char *folder) {
    g_autoptr(GPtrArray) paths = paths_in(folder);
    for (guint i = 0; i < paths->len; i++)
        g_remove(paths->pdata[i]);
    g_rmdir(folder);
}

static void check_outcome(const Case *c, int status, const char *out, const char *err) {
    if (!WIFEXITED(status))
        fail_msg("orrery %s: died of signal %d: %s", c->arguments, WTERMSIG(status), err);
    if (WEXITSTATUS(status) != c->status)
        fail_msg("orrery %s: status %d, expected %d: %s", c->arguments, WEXITSTATUS(status),
                 c->status, err);
    for (guint i = 0; i < c->says->len; i++)
        if (!strstr(err, c->says->pdata[i]))
            fail_msg("orrery %s: \"%s\" is not said in: %s", c->arguments,
                     (char *)c->says->pdata[i], err);
    for (guint i = 0; i < c->not ->len; i++)
        if (strstr(err, c->not ->pdata[i]))
            fail_msg("orrery %s: \"%s\" is said in: %s", c->arguments, (char *)c->not ->pdata[i],
                     err);
    if (out[0] && c->status != 1)
        fail_msg("orrery %s: wrote a result: %.200s", c->arguments, out);
    if (strstr(err, "CRITICAL") || strstr(err, "WARNING **") || strstr(err, "Sanitizer"))
        fail_msg("orrery %s: %s", c->arguments, err);
    assert_true(g_utf8_validate(err, -1, NULL));
}

/* In the child: no file grows beyond the limit. */
static void limit_files(gpointer data) {
    const Case *c = data;
    if (c->disk_bytes == 0)
        return;
    const struct rlimit limit = {(rlim_t)c->disk_bytes, (rlim_t)c->disk_bytes};
    setrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, SIG_IGN);
}

static void test_case(void **state) {
    Case *c = *state;
    g_autofree char *folder = g_dir_make_tmp("orrery-bad-XXXXXX", NULL);
    for (guint i = 0; i < c->steps->len; i++)
        make_file(folder, c->steps->pdata[i]);
    g_autofree char *before = snapshot(folder);
    const char *build = g_getenv("top_builddir");
    g_autofree char *here = g_get_current_dir();
    g_autofree char *program = g_build_filename(build ? build : here, "orrery", NULL);
    g_autofree char *line = g_strconcat(program, " ", c->arguments, NULL);
    g_auto(GStrv) argv = NULL;
    g_autofree char *out = NULL, *err = NULL;
    g_autoptr(GError) error = NULL;
    int status = -1;
    if (!g_shell_parse_argv(line, NULL, &argv, &error) ||
        !g_spawn_sync(folder, argv, NULL, G_SPAWN_DEFAULT, limit_files, c, &out, &err, &status,
                      &error))
        fail_msg("%s", error->message);
    g_autofree char *after = snapshot(folder);
    remove_folder(folder);
    check_outcome(c, status, out, err);
    if (strcmp(before, after) != 0)
        fail_msg("orrery %s: changed its folder from\n%s\nto\n%s", c->arguments, before, after);
}

static Case *case_new(const char *name) {
    Case *c = g_new0(Case, 1);
    c->name = g_strdup(name);
    c->steps = g_ptr_array_new();
    c->says = g_ptr_array_new();
    c->not = g_ptr_array_new();
    c->status = -1;
    return c;
}

static void case_free(gpointer data) {
    Case *c = data;
    g_free(c->name);
    g_ptr_array_unref(c->steps);
    g_ptr_array_unref(c->says);
    g_ptr_array_unref(c->not );
    g_free(c);
}

/* Lines of the table into cases; the strings of @lines are kept. */
static GPtrArray *read_cases(char **lines) {
    GPtrArray *cases = g_ptr_array_new_with_free_func(case_free);
    Case *c = NULL;
    for (; *lines; lines++) {
        char *line = *lines;
        if (*line == 0 || *line == '#')
            continue;
        if (g_str_has_prefix(line, "== ")) {
            c = case_new(line + 3);
            g_ptr_array_add(cases, c);
        } else if (g_str_has_prefix(line, "run ")) {
            c->arguments = line + 4;
        } else if (strcmp(line, "run") == 0) {
            c->arguments = line + 3;
        } else if (g_str_has_prefix(line, "exit ")) {
            c->status = (int)g_ascii_strtoll(line + 5, NULL, 10);
        } else if (g_str_has_prefix(line, "says ")) {
            g_ptr_array_add(c->says, line + 5);
        } else if (g_str_has_prefix(line, "not ")) {
            g_ptr_array_add(c->not, line + 4);
        } else if (g_str_has_prefix(line, "disk ")) {
            c->disk_bytes = g_ascii_strtoll(line + 5, NULL, 10);
        } else {
            g_ptr_array_add(c->steps, line);
        }
    }
    return cases;
}

int main(int argc, char **argv) {
    g_autofree char *path = source_path("tests/bad-input/cases.txt"), *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL)) {
        g_printerr("cannot read %s\n", path);
        return 1;
    }
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autoptr(GPtrArray) cases = read_cases(lines);
    g_autofree struct CMUnitTest *tests = g_new0(struct CMUnitTest, cases->len);
    guint n = 0;
    for (guint i = 0; i < cases->len; i++) {
        Case *c = cases->pdata[i];
        if (!c->arguments || c->status < 1 || c->says->len == 0) {
            g_printerr("%s: case \"%s\" lacks run, exit or says\n", path, c->name);
            return 1;
        }
        if (argc < 2 || strstr(c->name, argv[1])) /* one case: test_bad_input NAME */
            tests[n++] = (struct CMUnitTest){c->name, test_case, NULL, NULL, c};
    }
    if (argc < 2 && n < LEAST_CASES) {
        g_printerr("%s: only %u cases\n", path, n);
        return 1;
    }
    return _cmocka_run_group_tests("bad input", tests, n, NULL, NULL);
}
