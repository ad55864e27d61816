/* Where inputs come from: data folders, checksums, assumptions. */
#include "sim/io/data.h"
#include "sim/io/file.h"
#include "workloads/loader_priv.h"

#include <string.h>

static void free_input(gpointer p) {
    OrrInput *input = p;
    g_free(input->name);
    g_free(input->sha256);
    g_free(input);
}

static void free_assumption(gpointer p) {
    OrrAssumption *a = p;
    g_free(a->key);
    g_free(a->value);
    g_free(a->origin);
    g_free(a);
}

OrrSources *orr_sources_new(void) {
    OrrSources *s = g_new0(OrrSources, 1);
    s->inputs = g_ptr_array_new_with_free_func(free_input);
    s->assumptions = g_ptr_array_new_with_free_func(free_assumption);
    return s;
}

void orr_sources_free(OrrSources *s) {
    if (s == NULL)
        return;
    g_ptr_array_unref(s->inputs);
    g_ptr_array_unref(s->assumptions);
    g_free(s);
}

void orr_sources_add_input(OrrSources *s, const char *name, const char *text, gsize length) {
    if (s == NULL)
        return;
    g_autofree char *sha256 = orr_file_sha256(text, length);
    for (guint i = 0; i < s->inputs->len; i++) {
        const OrrInput *seen = s->inputs->pdata[i];
        if (strcmp(seen->name, name) == 0 && strcmp(seen->sha256, sha256) == 0)
            return;
    }
    OrrInput *input = g_new0(OrrInput, 1);
    input->name = g_strdup(name);
    input->sha256 = g_steal_pointer(&sha256);
    g_ptr_array_add(s->inputs, input);
}

void orr_sources_add_assumption(OrrSources *s, const char *key, const char *value,
                                const char *origin) {
    if (s == NULL)
        return;
    OrrAssumption *a = g_new0(OrrAssumption, 1);
    a->key = g_strdup(key);
    a->value = g_strdup(value);
    a->origin = g_strdup(origin);
    g_ptr_array_add(s->assumptions, a);
}

void orr_workloads__note_defaults(OrrSources *sources, const OrrKeys *keys, const char *prefix,
                                  const char *origin) {
    guint n;
    const OrrKeyDefault *defaults = orr_keys_defaults(keys, &n);
    for (guint i = 0; i < n; i++) {
        g_autofree char *key =
            g_strconcat(prefix ? prefix : defaults[i].group, ".", defaults[i].key, NULL);
        orr_sources_add_assumption(sources, key, defaults[i].value, origin);
    }
}

char *orr_workloads__stem(const char *path) {
    char *stem = g_path_get_basename(path);
    if (g_str_has_suffix(stem, ".ini"))
        stem[strlen(stem) - strlen(".ini")] = '\0';
    return stem;
}

void orr_workloads__check_ref(OrrKeys *keys, const char *group, const char *key, const char *folder,
                              const char *ref) {
    g_autoptr(GError) flaw = NULL;
    g_autofree char *path = *ref ? orr_data_find(folder, ref, ".ini", &flaw) : NULL;
    if (flaw)
        orr_keys_complain(keys, group, key, "%s", flaw->message);
}
