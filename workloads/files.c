/* Finding, opening and listing the files of workloads/. */
#include "sim/io/data.h"
#include "workloads/loader_priv.h"

#include <string.h>

static bool is_path(const char *ref) {
    return strchr(ref, '/') != NULL || g_str_has_suffix(ref, ".ini");
}

char *orr_workloads__path(const char *folder, const char *ref, GError **error) {
    g_autofree char *inside = g_build_filename("workloads", folder, NULL);
    return orr_data_find(inside, ref, ".ini", error);
}

OrrKeys *orr_workloads__open(const char *folder, const char *ref, OrrSources *sources,
                             GError **error) {
    g_autofree char *path = orr_workloads__path(folder, ref, error);
    if (path == NULL)
        return NULL;
    OrrKeys *keys = orr_keys_load(path, error);
    if (keys == NULL)
        return NULL;
    /* The record names shipped files without the machine's folders, so that it is the same
     * anywhere. */
    g_autofree char *shipped = g_strdup_printf("workloads/%s/%s.ini", folder, ref);
    gsize length;
    const char *text = orr_keys_text(keys, &length);
    orr_sources_add_input(sources, is_path(ref) ? ref : shipped, text, length);
    return keys;
}

static void free_listed(gpointer p) {
    OrrListed *l = p;
    g_free(l->name);
    g_free(l->summary);
    g_free(l->source);
    g_free(l);
}

GPtrArray *orr_workload_list(const char *folder, GError **error) {
    static const struct {
        const char *folder, *group;
    } groups[] = {{"models", "model"}, {"jobs", "job"}, {"frameworks", "framework"}};
    const char *group = NULL;
    for (size_t i = 0; i < G_N_ELEMENTS(groups); i++)
        if (strcmp(groups[i].folder, folder) == 0)
            group = groups[i].group;
    g_assert(group != NULL);
    g_autofree char *inside = g_build_filename("workloads", folder, NULL);
    g_auto(GStrv) names = orr_data_list(inside, ".ini");
    g_autoptr(GPtrArray) out = g_ptr_array_new_with_free_func(free_listed);
    for (guint i = 0; names[i] != NULL; i++) {
        g_autoptr(OrrKeys) keys = orr_workloads__open(folder, names[i], NULL, error);
        if (keys == NULL)
            return NULL;
        OrrListed *l = g_new0(OrrListed, 1);
        l->name = g_strdup(names[i]);
        l->summary = g_strdup(orr_keys_string(keys, group, "summary", NULL, ORR_KEY_QUIET));
        l->source = g_strdup(orr_keys_string(keys, group, "source", NULL, ORR_KEY_QUIET));
        g_ptr_array_add(out, l);
    }
    return g_steal_pointer(&out);
}
