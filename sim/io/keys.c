/* Key files: storage, overrides, the list of errors. The scanner is keys_scan.c, the getters are
 * keys_get.c. */
#include "sim/io/keys.h"

#include <string.h>

#include "sim/base/words.h"
#include "sim/io/file.h"
#include "sim/io/keys_priv.h"
#include "sim/io/text.h"

#define MAX_KEY_FILE_BYTES (1u << 20) /* ours: a key file is written by hand */
#define MAX_FLAWS 20                  /* ours: nobody reads more at once */

static void group_free(gpointer data) {
    KeyGroup *g = data;
    g_free(g->name);
    g_free(g->origin);
    g_free(g);
}

static void entry_free(gpointer data) {
    KeyEntry *e = data;
    g_free(e->key);
    g_free(e->value);
    g_free(e->origin);
    g_free(e->said);
    g_free(e);
}

static void flaw_clear(gpointer data) {
    g_free(((KeyFlaw *)data)->text);
}

static void default_clear(gpointer data) {
    OrrKeyDefault *d = data;
    g_free((char *)d->group);
    g_free((char *)d->key);
    g_free((char *)d->value);
}

OrrKeys *orr_keys_parse(const char *name, const char *text, gsize length, GError **error) {
    if (length > MAX_KEY_FILE_BYTES) {
        orr_fail_input(error, "%s: a key file of %" G_GSIZE_FORMAT " bytes; at most %u will do",
                       name, length, MAX_KEY_FILE_BYTES);
        return NULL;
    }
    int skip = orr_text_check(name, text, length, error);
    if (skip < 0)
        return NULL;
    OrrKeys *keys = g_new0(OrrKeys, 1);
    keys->name = g_strdup(name);
    keys->text = g_strndup(text + skip, length - (gsize)skip);
    keys->length = length - (gsize)skip;
    keys->groups = g_ptr_array_new_with_free_func(group_free);
    keys->entries = g_ptr_array_new_with_free_func(entry_free);
    keys->by_name = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    keys->asked = g_hash_table_new(g_str_hash, g_str_equal);
    keys->asked_list = g_ptr_array_new_with_free_func(g_free);
    keys->defaults = g_array_new(FALSE, FALSE, sizeof(OrrKeyDefault));
    g_array_set_clear_func(keys->defaults, default_clear);
    keys->flaws = g_array_new(FALSE, FALSE, sizeof(KeyFlaw));
    g_array_set_clear_func(keys->flaws, flaw_clear);
    orr_keys__scan(keys);
    return keys;
}

OrrKeys *orr_keys_load(const char *path, GError **error) {
    gsize length;
    g_autofree char *text = orr_file_read(path, MAX_KEY_FILE_BYTES, &length, error);
    if (!text)
        return NULL;
    return orr_keys_parse(path, text, length, error);
}

void orr_keys_free(OrrKeys *keys) {
    if (!keys)
        return;
    g_hash_table_destroy(keys->by_name);
    g_hash_table_destroy(keys->asked);
    g_ptr_array_unref(keys->asked_list);
    g_ptr_array_unref(keys->groups);
    g_ptr_array_unref(keys->entries);
    g_array_unref(keys->defaults);
    g_array_unref(keys->flaws);
    g_free(keys->name);
    g_free(keys->text);
    g_free(keys);
}

void orr_keys__flaw(OrrKeys *keys, guint line, char *take_text) {
    KeyFlaw flaw = {line, take_text};
    g_array_append_val(keys->flaws, flaw);
}

KeyGroup *orr_keys__group(const OrrKeys *keys, const char *group) {
    for (guint i = 0; i < keys->groups->len; i++) {
        KeyGroup *g = keys->groups->pdata[i];
        if (strcmp(g->name, group) == 0)
            return g;
    }
    return NULL;
}

KeyGroup *orr_keys__add_group(OrrKeys *keys, const char *group, guint line) {
    KeyGroup *g = g_new0(KeyGroup, 1);
    g->name = g_strdup(group);
    g->line = line;
    g_ptr_array_add(keys->groups, g);
    return g;
}

KeyEntry *orr_keys__entry(const OrrKeys *keys, const char *group, const char *key) {
    g_autofree char *full = g_strconcat(group, "\n", key, NULL);
    return g_hash_table_lookup(keys->by_name, full);
}

KeyEntry *orr_keys__add(OrrKeys *keys, const char *group, const char *key, const char *value,
                        guint line) {
    KeyGroup *g = orr_keys__group(keys, group);
    g_assert(g != NULL);
    KeyEntry *e = g_new0(KeyEntry, 1);
    e->group = g->name;
    e->key = g_strdup(key);
    e->value = g_strdup(value);
    e->line = line;
    g_ptr_array_add(keys->entries, e);
    g_hash_table_insert(keys->by_name, g_strconcat(group, "\n", key, NULL), e);
    return e;
}

void orr_keys_override(OrrKeys *keys, const char *group, const char *key, const char *value,
                       const char *origin) {
    KeyEntry *e = orr_keys__entry(keys, group, key);
    if (e && strcmp(e->value, value) == 0)
        return; /* it stands in the file, where messages should point */
    if (!orr_keys__group(keys, group))
        orr_keys__add_group(keys, group, 0)->origin = g_strdup(origin);
    if (!e)
        e = orr_keys__add(keys, group, key, value, 0);
    g_free(e->value);
    e->value = g_strdup(value);
    g_free(e->origin);
    e->origin = g_strdup(origin);
}

void orr_keys_said_as(OrrKeys *keys, const char *group, const char *key, const char *said) {
    KeyEntry *e = orr_keys__entry(keys, group, key);
    if (!e || !e->origin)
        return;
    g_free(e->said);
    e->said = g_strdup(said);
}

const char *orr_keys_name(const OrrKeys *keys) {
    return keys->name;
}

const char *orr_keys_text(const OrrKeys *keys, gsize *length) {
    if (length)
        *length = keys->length;
    return keys->text;
}

bool orr_keys_has(const OrrKeys *keys, const char *group, const char *key) {
    return orr_keys__entry(keys, group, key) != NULL;
}

bool orr_keys_has_group(const OrrKeys *keys, const char *group) {
    return orr_keys__group(keys, group) != NULL;
}

char **orr_keys_list(OrrKeys *keys, const char *group) {
    GPtrArray *names = g_ptr_array_new();
    for (guint i = 0; i < keys->entries->len; i++) {
        KeyEntry *e = keys->entries->pdata[i];
        if (strcmp(e->group, group) != 0)
            continue;
        e->is_known = true;
        g_ptr_array_add(names, g_strdup(e->key));
    }
    g_autofree char *full = g_strconcat(group, "\n", NULL); /* the group itself, for suggestions */
    if (!g_hash_table_contains(keys->asked, full)) {
        g_hash_table_add(keys->asked, full);
        g_ptr_array_add(keys->asked_list, g_steal_pointer(&full));
    }
    KeyGroup *g = orr_keys__group(keys, group);
    if (g)
        g->is_known = true;
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_free(names, FALSE);
}

const OrrKeyDefault *orr_keys_defaults(const OrrKeys *keys, guint *n) {
    *n = keys->defaults->len;
    return (const OrrKeyDefault *)(gpointer)keys->defaults->data;
}

/* NULL-terminated names that getters asked for: keys of @group, or groups if @group is NULL. */
static GPtrArray *asked_names(const OrrKeys *keys, const char *group) {
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < keys->asked_list->len; i++) {
        const char *full = keys->asked_list->pdata[i], *key = strchr(full, '\n') + 1;
        gsize group_length = (gsize)(key - 1 - full);
        char *name = NULL;
        if (!group)
            name = g_strndup(full, group_length);
        else if (*key && strlen(group) == group_length && strncmp(full, group, group_length) == 0)
            name = g_strdup(key);
        if (name && g_ptr_array_find_with_equal_func(names, name, g_str_equal, NULL))
            g_clear_pointer(&name, g_free);
        if (name)
            g_ptr_array_add(names, name);
    }
    g_ptr_array_add(names, NULL);
    return names;
}

static void note_unknown_groups(OrrKeys *keys) {
    g_autoptr(GPtrArray) known = asked_names(keys, NULL);
    for (guint i = 0; i < keys->groups->len; i++) {
        KeyGroup *g = keys->groups->pdata[i];
        for (guint j = 0; known->pdata[j] && !g->is_known; j++)
            g->is_known = strcmp(known->pdata[j], g->name) == 0;
        if (g->is_known || g->is_torn)
            continue;
        g_autofree char *hint = orr_words_hint(g->name, (const char *const *)known->pdata);
        g_autofree char *line = g->line ? g_strdup_printf("%u", g->line) : g_strdup(g->origin);
        orr_keys__flaw(
            keys, g->line,
            g_strdup_printf("%s:%s: [%s]: unknown group; %s", keys->name, line, g->name, hint));
    }
}

static void note_unknown_keys(OrrKeys *keys) {
    for (guint i = 0; i < keys->entries->len; i++) {
        KeyEntry *e = keys->entries->pdata[i];
        if (e->is_known || !orr_keys__group(keys, e->group)->is_known)
            continue;
        g_autoptr(GPtrArray) known = asked_names(keys, e->group);
        g_autofree char *hint = orr_words_hint(e->key, (const char *const *)known->pdata);
        orr_keys_complain(keys, e->group, e->key, "unknown key; %s", hint);
    }
}

static gint flaw_order(gconstpointer a, gconstpointer b) {
    guint x = ((const KeyFlaw *)a)->line - 1, y = ((const KeyFlaw *)b)->line - 1; /* 0 is last */
    return x < y ? -1 : x > y;
}

bool orr_keys_finish(OrrKeys *keys, GError **error) {
    note_unknown_groups(keys);
    note_unknown_keys(keys);
    if (keys->flaws->len == 0)
        return true;
    g_array_sort(keys->flaws, flaw_order); /* GLib's sort is stable */
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < keys->flaws->len && i < MAX_FLAWS; i++)
        g_string_append_printf(text, "%s%s", i ? "\n" : "",
                               g_array_index(keys->flaws, KeyFlaw, i).text);
    if (keys->flaws->len > MAX_FLAWS)
        g_string_append_printf(text, "\n%s: and %u more", keys->name, keys->flaws->len - MAX_FLAWS);
    return orr_fail_input(error, "%s", text->str);
}
