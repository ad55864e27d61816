/* The scanner of key files: GLib's syntax, with lines, trailing comments and duplicates.
 *
 * Where both accept a text, this scanner and GKeyFile agree on groups, keys and values, trailing
 * comments and blanks behind a value apart (tests/test_io_keys.c). Left out: GKeyFile's localised
 * keys and its escapes (values are taken as they stand). */
#include "sim/io/keys_priv.h"

#include <string.h>

#include "sim/io/text.h"

static bool is_key_name(const char *s) {
    if (!*s)
        return false;
    for (; *s; s++)
        if (!g_ascii_isalnum(*s) && !strchr("_-.:/+", *s))
            return false;
    return true;
}

/* Cuts a comment: '#' behind a blank. The line itself doesn't start with '#'. */
static void cut_comment(char *line) {
    for (char *c = line + 1; *line && *c; c++)
        if (*c == '#' && g_ascii_isspace(c[-1])) {
            *c = 0;
            return;
        }
}

/* What a broken group line most likely meant, so that its keys are not told of as well. */
static const KeyGroup *mend_group(OrrKeys *keys, char *name, guint number) {
    name[strcspn(name, "[]")] = 0;
    g_strstrip(name);
    KeyGroup *old = orr_keys__group(keys, name);
    if (old)
        return old;
    KeyGroup *group = orr_keys__add_group(keys, name, number);
    group->is_torn = true;
    return group;
}

static const KeyGroup *scan_group(OrrKeys *keys, char *line, guint number) {
    char *close = strchr(line, ']');
    bool is_sound = close && close > line + 1 && close[1] == 0;
    for (char *c = line + 1; is_sound && c < close; c++)
        is_sound = *c != '[' && !g_ascii_iscntrl(*c);
    if (!is_sound) {
        g_autofree char *shown = orr_text_excerpt(line);
        orr_keys__flaw(keys, number,
                       g_strdup_printf("%s:%u: \"%s\" is not a group; write [name]", keys->name,
                                       number, shown));
        return mend_group(keys, line + 1, number);
    }
    *close = 0;
    KeyGroup *old = orr_keys__group(keys, line + 1);
    if (!old)
        return orr_keys__add_group(keys, line + 1, number);
    orr_keys__flaw(keys, number,
                   g_strdup_printf("%s:%u: [%s]: this group stands in line %u already; put its "
                                   "keys there",
                                   keys->name, number, old->name, old->line));
    return old;
}

/* A line "key value": the key counts as given and told of, so that it is not missing as well. */
static void mend_pair(OrrKeys *keys, const KeyGroup *group, char *line, guint number) {
    char *value = line + strcspn(line, " \t");
    if (*value)
        *value++ = 0;
    if (group && is_key_name(line) && !orr_keys__entry(keys, group->name, line))
        orr_keys__add(keys, group->name, line, value, number)->is_bad = true;
}

static void scan_pair(OrrKeys *keys, const KeyGroup *group, char *line, guint number) {
    g_autofree char *shown = orr_text_excerpt(line);
    char *equals = strchr(line, '=');
    if (!equals) {
        orr_keys__flaw(keys, number,
                       g_strdup_printf("%s:%u: \"%s\" is neither a group nor a key; write [group] "
                                       "or key = value",
                                       keys->name, number, shown));
        mend_pair(keys, group, line, number);
        return;
    }
    *equals = 0;
    char *key = g_strstrip(line), *value = g_strstrip(equals + 1);
    const char *flaw = NULL;
    if (!is_key_name(key))
        flaw = "is not a key; letters, digits and _ - . : / + will do";
    else if (!group)
        flaw = "stands before any [group]; write [name] above it";
    if (flaw) {
        orr_keys__flaw(keys, number,
                       g_strdup_printf("%s:%u: \"%s\" %s", keys->name, number,
                                       flaw[0] == 'i' ? key : shown, flaw));
        return;
    }
    KeyEntry *old = orr_keys__entry(keys, group->name, key);
    if (old)
        orr_keys__flaw(keys, number,
                       g_strdup_printf("%s:%u: [%s] %s = %s: this key stands in line %u already "
                                       "(%s); keep one",
                                       keys->name, number, group->name, key, value, old->line,
                                       old->value));
    else
        orr_keys__add(keys, group->name, key, value, number);
}

void orr_keys__scan(OrrKeys *keys) {
    g_auto(GStrv) lines = g_strsplit(keys->text, "\n", -1);
    const KeyGroup *group = NULL;
    for (guint i = 0; lines[i]; i++) {
        char *line = lines[i];
        while (g_ascii_isspace(*line))
            line++;
        if (*line == 0 || *line == '#')
            continue;
        cut_comment(line);
        g_strchomp(line);
        if (*line == '[')
            group = scan_group(keys, line, i + 1);
        else
            scan_pair(keys, group, line, i + 1);
    }
}
