#include "sim/io/data.h"

#include <string.h>

#include "sim/base/words.h"

/* The source tree counts only for a program that lies in its build: an installed one must not
 * depend on it. A build folder holds config.status. */
static bool runs_from_build(void) {
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    g_autofree char *dir = self ? g_path_get_dirname(self) : NULL;
    for (int up = 0; dir && up < 3; up++) { /* DIR/orrery, DIR/.libs/orrery, DIR/tests/.libs/x */
        g_autofree char *mark = g_build_filename(dir, "config.status", NULL);
        if (g_file_test(mark, G_FILE_TEST_EXISTS))
            return true;
        char *above = g_path_get_dirname(dir);
        g_free(dir);
        dir = above;
    }
    return false;
}

char **orr_data_roots(void) {
    GPtrArray *roots = g_ptr_array_new();
    const char *own = g_getenv("ORRERY_DATA");
    if (own && *own)
        g_ptr_array_add(roots, g_strdup(own));
    if (runs_from_build())
        g_ptr_array_add(roots, g_canonicalize_filename(ORR_SRCDIR, NULL));
    g_ptr_array_add(roots, g_strdup(ORR_PKGDATADIR));
    g_ptr_array_add(roots, NULL);
    return (char **)g_ptr_array_free(roots, FALSE);
}

static gint by_text(gconstpointer a, gconstpointer b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

char **orr_data_list(const char *folder, const char *suffix) {
    g_auto(GStrv) roots = orr_data_roots();
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; roots[i]; i++) {
        g_autofree char *path = g_build_filename(roots[i], folder, NULL);
        g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
        for (const char *file; dir && (file = g_dir_read_name(dir));) {
            if (!g_str_has_suffix(file, suffix) || file[0] == '.')
                continue;
            char *name = g_strndup(file, strlen(file) - strlen(suffix));
            if (g_ptr_array_find_with_equal_func(names, name, g_str_equal, NULL))
                g_free(name);
            else
                g_ptr_array_add(names, name);
        }
    }
    g_ptr_array_sort(names, by_text);
    g_ptr_array_set_free_func(names, NULL);
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_free(names, FALSE);
}

/* "gpu" of "topologies/gpus": what one file there is. */
static char *kind_of(const char *folder) {
    char *kind = g_path_get_basename(folder);
    if (g_str_has_suffix(kind, "s"))
        kind[strlen(kind) - 1] = 0;
    return kind;
}

char *orr_data_find(const char *folder, const char *name, const char *suffix, GError **error) {
    if (strchr(name, '/') || g_str_has_suffix(name, suffix)) {
        if (g_file_test(name, G_FILE_TEST_EXISTS))
            return g_strdup(name);
        orr_fail_input(error, "%s: no such file", name);
        return NULL;
    }
    g_auto(GStrv) roots = orr_data_roots();
    g_autofree char *file = g_strconcat(name, suffix, NULL);
    for (guint i = 0; roots[i] && *name; i++) {
        g_autofree char *path = g_build_filename(roots[i], folder, file, NULL);
        if (g_file_test(path, G_FILE_TEST_IS_REGULAR))
            return g_steal_pointer(&path);
    }
    g_autofree char *kind = kind_of(folder);
    g_auto(GStrv) names = orr_data_list(folder, suffix);
    g_autofree char *hint = orr_words_hint(name, (const char *const *)names);
    g_autofree char *places = g_strjoinv(", ", roots);
    if (names[0])
        orr_fail_input(error, "%s: no such %s; %s", name, kind, hint);
    else
        orr_fail_input(error,
                       "%s: no such %s: no data files in %s; set ORRERY_DATA to their folder", name,
                       kind, places);
    return NULL;
}
