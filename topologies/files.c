/* Where the files are: names, aliases, folders. */
#include <string.h>

#include "sim/base/words.h"
#include "sim/io/data.h"
#include "topologies/loader_priv.h"

const char *const orr_topology_kind_names[] = {"gpus", "nodes", "clusters", NULL};
static const char *const group_names[] = {"gpu", "node", "cluster", NULL};

static void entry_free(gpointer data) {
    OrrTopologyEntry *e = data;
    g_free(e->name);
    g_free(e->summary);
    g_free(e->source);
    g_strfreev(e->aliases);
    g_free(e);
}

static char *folder_of(OrrTopologyKind kind) {
    return g_strconcat("topologies/", orr_topology_kind_names[kind], NULL);
}

static char *find_path(OrrTopologyKind kind, const char *stem, GError **error) {
    g_autofree char *folder = folder_of(kind);
    return orr_data_find(folder, stem, ".ini", error);
}

/* Name, sentence and aliases of one shipped file; what else is in it may be wrong. */
static OrrTopologyEntry *read_entry(OrrTopologyKind kind, const char *stem, GError **error) {
    g_autofree char *path = find_path(kind, stem, error);
    g_autoptr(OrrKeys) keys = path ? orr_keys_load(path, error) : NULL;
    if (!keys)
        return NULL;
    const char *group = group_names[kind];
    OrrTopologyEntry *e = g_new0(OrrTopologyEntry, 1);
    e->name = g_strdup(stem);
    e->summary = g_strdup(orr_keys_string(keys, group, "summary", "", ORR_KEY_QUIET));
    e->source = g_strdup(orr_keys_string(keys, group, "source", "", ORR_KEY_QUIET));
    e->aliases = orr_keys_strings(keys, group, "aliases", ORR_KEY_QUIET);
    if (!e->aliases)
        e->aliases = g_new0(char *, 1);
    return e;
}

GPtrArray *orr_topology_list(OrrTopologyKind kind, GError **error) {
    g_autofree char *folder = folder_of(kind);
    g_auto(GStrv) stems = orr_data_list(folder, ".ini");
    g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func(entry_free);
    for (guint i = 0; stems && stems[i]; i++) {
        OrrTopologyEntry *e = read_entry(kind, stems[i], error);
        if (!e)
            return NULL;
        g_ptr_array_add(list, e);
    }
    return g_steal_pointer(&list);
}

/* Suggests the nearest name or alias, else lists the names. */
static bool fail_unknown(OrrTopologyKind kind, const char *ref, const GPtrArray *list,
                         GError **error) {
    g_autoptr(GPtrArray) names = g_ptr_array_new(), all = g_ptr_array_new();
    for (guint i = 0; i < list->len; i++) {
        const OrrTopologyEntry *e = list->pdata[i];
        g_ptr_array_add(names, e->name);
        g_ptr_array_add(all, e->name);
        for (guint j = 0; e->aliases[j]; j++)
            g_ptr_array_add(all, e->aliases[j]);
    }
    g_ptr_array_add(names, NULL);
    g_ptr_array_add(all, NULL);
    const char *near = orr_words_nearest(ref, (const char *const *)all->pdata);
    g_autofree char *hint = near ? g_strdup_printf("did you mean %s?", near)
                                 : orr_words_hint(ref, (const char *const *)names->pdata);
    return orr_fail_input(error, "no %s is called \"%s\": %s; or give the path of an .ini file%s",
                          group_names[kind], ref, hint,
                          kind == ORR_TOPOLOGY_CLUSTERS ? " or a shape such as fat_tree:256" : "");
}

/* The stem of the shipped file that @ref names, itself or by an alias; g_free. */
static char *find_stem(OrrTopologyKind kind, const char *ref, GError **error) {
    g_autofree char *folder = folder_of(kind);
    g_auto(GStrv) stems = orr_data_list(folder, ".ini");
    for (guint i = 0; stems && stems[i]; i++) /* without a look into the files */
        if (!g_ascii_strcasecmp(stems[i], ref))
            return g_strdup(stems[i]);
    g_autoptr(GPtrArray) list = orr_topology_list(kind, error);
    for (guint i = 0; list && i < list->len; i++) {
        const OrrTopologyEntry *e = list->pdata[i];
        for (guint j = 0; e->aliases[j]; j++)
            if (!g_ascii_strcasecmp(e->aliases[j], ref))
                return g_strdup(e->name);
    }
    if (list)
        fail_unknown(kind, ref, list, error);
    return NULL;
}

static bool is_path(const char *ref) {
    return strchr(ref, '/') || g_str_has_suffix(ref, ".ini");
}

bool orr_topology_has(OrrTopologyKind kind, const char *ref, GError **error) {
    g_autofree char *stem = is_path(ref) ? NULL : find_stem(kind, ref, error);
    return stem || is_path(ref);
}

OrrKeys *orr_topologies__open(OrrTopologyKind kind, const char *group, const char *ref,
                              const OrrTopologyOptions *options, char **name, GError **error) {
    g_autofree char *stem = is_path(ref) ? g_path_get_basename(ref) : find_stem(kind, ref, error);
    if (!stem)
        return NULL;
    if (g_str_has_suffix(stem, ".ini"))
        stem[strlen(stem) - strlen(".ini")] = 0;
    g_autofree char *shown =
        is_path(ref) ? g_strdup(ref)
                     : g_strdup_printf("topologies/%s/%s.ini", orr_topology_kind_names[kind], stem);
    g_autofree char *path = is_path(ref) ? g_strdup(ref) : find_path(kind, stem, error);
    OrrKeys *keys = path ? orr_keys_load(path, error) : NULL;
    if (!keys)
        return NULL;
    gsize length;
    const char *text = orr_keys_text(keys, &length);
    if (options && options->notes && options->notes->input)
        options->notes->input(options->notes->data, shown, text, length);
    orr_topologies__override(keys, group, options);
    *name = g_steal_pointer(&stem);
    return keys;
}

bool orr_topologies__close(OrrKeys *keys, const OrrTopologyOptions *options, GError **error) {
    guint n;
    if (!orr_keys_finish(keys, error))
        return false;
    if (!options || !options->notes || !options->notes->assumption)
        return true;
    const OrrKeyDefault *defaults = orr_keys_defaults(keys, &n);
    g_autofree char *base = g_path_get_basename(orr_keys_name(keys));
    g_autofree char *origin = g_strdup_printf("default: not in %s", base);
    for (guint i = 0; i < n; i++) {
        g_autofree char *key = g_strdup_printf("%s.%s", defaults[i].group, defaults[i].key);
        options->notes->assumption(options->notes->data, key, defaults[i].value, origin);
    }
    return true;
}

/* What stands in the member, as a number; 0 for text. */
static double current_value(const OrrTopoField *f, const void *at) {
    int value;
    switch (f->kind) {
    case TOPO_NUMBER:
        return *(const double *)at;
    case TOPO_COUNT:
        return *(const uint32_t *)at;
    case TOPO_SEED:
        return (double)*(const uint64_t *)at;
    case TOPO_BOOL:
        return *(const bool *)at;
    case TOPO_ENUM:
        memcpy(&value, at, sizeof value);
        return value;
    case TOPO_TEXT:
        return 0;
    }
    g_assert_not_reached();
}

static void read_field(OrrKeys *keys, const char *group, const OrrTopoField *f, double fallback,
                       OrrKeyFlags flags, void *at) {
    int value;
    switch (f->kind) {
    case TOPO_NUMBER:
        *(double *)at =
            orr_keys_number(keys, group, f->key, f->dim, f->min, f->max, fallback, flags);
        return;
    case TOPO_COUNT:
        *(uint32_t *)at = (uint32_t)orr_keys_int(keys, group, f->key, f->noun, (int64_t)f->min,
                                                 (int64_t)f->max, (int64_t)fallback, flags);
        return;
    case TOPO_SEED:
        *(uint64_t *)at = (uint64_t)orr_keys_int(keys, group, f->key, NULL, 0, INT64_MAX,
                                                 (int64_t)fallback, flags);
        return;
    case TOPO_BOOL:
        *(bool *)at = orr_keys_bool(keys, group, f->key, fallback != 0, flags);
        return;
    case TOPO_ENUM:
        value = orr_keys_enum(keys, group, f->key, f->names, (int)fallback, flags);
        memcpy(at, &value, sizeof value); /* every enum here has the size of int */
        return;
    case TOPO_TEXT:
        g_free(*(char **)at);
        *(char **)at = g_strdup(orr_keys_string(keys, group, f->key, "", flags));
        return;
    }
}

void orr_topologies__read(OrrKeys *keys, const char *group, const OrrTopoField *fields, size_t n,
                          void *into) {
    for (size_t i = 0; i < n; i++)
        read_field(keys, group, &fields[i], fields[i].fallback, fields[i].flags,
                   (char *)into + fields[i].offset);
}

void orr_topologies__update(OrrKeys *keys, const char *group, const OrrTopoField *fields, size_t n,
                            void *into) {
    for (size_t i = 0; i < n; i++) {
        void *at = (char *)into + fields[i].offset;
        if (fields[i].kind != TOPO_TEXT)
            read_field(keys, group, &fields[i], current_value(&fields[i], at), ORR_KEY_QUIET, at);
    }
}

void orr_topologies__override(OrrKeys *keys, const char *group, const OrrTopologyOptions *options) {
    for (uint32_t i = 0; options && i < options->n_sets; i++)
        if (!strcmp(options->sets[i].group, group))
            orr_keys_override(keys, group, options->sets[i].key, options->sets[i].value,
                              options->sets[i].origin ? options->sets[i].origin : "--set");
}
