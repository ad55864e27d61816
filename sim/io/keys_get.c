/* The getters of key files: each notes what was asked, what was assumed and what was wrong. */
#include "sim/io/keys_priv.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "sim/base/words.h"
#include "sim/io/text.h"

/* "FILE:LINE: [GROUP] KEY = VALUE" or, of an absent key, "FILE: [GROUP] KEY"; g_free. */
static char *place_of(const OrrKeys *keys, const char *group, const char *key, const KeyEntry *e) {
    if (!e)
        return g_strdup_printf("%s: [%s] %s", keys->name, group, key);
    g_autofree char *value = orr_text_excerpt(e->value);
    group = e->said ? e->said : group;
    if (e->origin)
        return g_strdup_printf("%s:%s: [%s] %s = %s", keys->name, e->origin, group, key, value);
    return g_strdup_printf("%s:%u: [%s] %s = %s", keys->name, e->line, group, key, value);
}

char *orr_keys_place(const OrrKeys *keys, const char *group, const char *key) {
    return place_of(keys, group, key, orr_keys__entry(keys, group, key));
}

char *orr_keys_origin(const OrrKeys *keys, const char *group, const char *key) {
    const KeyEntry *e = orr_keys__entry(keys, group, key);
    if (!e)
        return g_strdup(keys->name);
    return e->origin ? g_strdup(e->origin) : g_strdup_printf("%s:%u", keys->name, e->line);
}

void orr_keys_complain(OrrKeys *keys, const char *group, const char *key, const char *format, ...) {
    KeyEntry *e = orr_keys__entry(keys, group, key);
    if (e && e->is_bad)
        return; /* the first error of a value says it */
    if (e)
        e->is_bad = true;
    va_list args;
    va_start(args, format);
    g_autofree char *what = g_strdup_vprintf(format, args);
    va_end(args);
    g_autofree char *place = place_of(keys, group, key, e);
    orr_keys__flaw(keys, e ? e->line : 0, g_strdup_printf("%s: %s", place, what));
}

/* The entry, or NULL with its absence noted, as an assumption if new and @fallback is not NULL, or
 * (@is_missing) left to the caller to complain of: it was required. Takes @fallback. */
static KeyEntry *ask(OrrKeys *keys, const char *group, const char *key, OrrKeyFlags flags,
                     char *fallback, bool *is_missing) {
    g_autofree char *owned = fallback;
    g_autofree char *full = g_strconcat(group, "\n", key, NULL);
    bool is_new = !g_hash_table_contains(keys->asked, full);
    KeyEntry *e = g_hash_table_lookup(keys->by_name, full);
    *is_missing = !e && is_new && (flags & ORR_KEY_REQUIRED);
    if (is_new) {
        g_hash_table_add(keys->asked, full);
        g_ptr_array_add(keys->asked_list, g_steal_pointer(&full));
    }
    if (e)
        e->is_known = true;
    else if (is_new && !*is_missing && !(flags & ORR_KEY_QUIET) && owned) {
        OrrKeyDefault d = {g_strdup(group), g_strdup(key), g_steal_pointer(&owned)};
        g_array_append_val(keys->defaults, d);
    }
    return e;
}

const char *orr_keys_string(OrrKeys *keys, const char *group, const char *key, const char *fallback,
                            OrrKeyFlags flags) {
    bool is_missing;
    KeyEntry *e = ask(keys, group, key, flags, g_strdup(fallback), &is_missing);
    if (is_missing)
        orr_keys_complain(keys, group, key, "is missing; a text would do");
    if (!e)
        return fallback ? fallback : "";
    if ((flags & ORR_KEY_REQUIRED) && e->value[0] == 0)
        orr_keys_complain(keys, group, key, "is empty; a text would do");
    return e->value;
}

static void complain_range(OrrKeys *keys, const char *group, const char *key, OrrDim dim,
                           double min, double max) {
    g_autofree char *range = orr_units_range(min, max, dim);
    orr_keys_complain(keys, group, key, "is %s; %s will do",
                      isinf(max)   ? "too small"
                      : isinf(min) ? "too large"
                                   : "out of range",
                      range);
}

double orr_keys_number(OrrKeys *keys, const char *group, const char *key, OrrDim dim, double min,
                       double max, double fallback, OrrKeyFlags flags) {
    bool is_missing;
    char *shown = isfinite(fallback) ? orr_units_format(fallback, dim) : NULL;
    KeyEntry *e = ask(keys, group, key, flags, shown, &is_missing);
    if (is_missing) {
        g_autofree char *range = orr_units_range(min, max, dim);
        orr_keys_complain(keys, group, key, "is missing; %s would do", range);
    }
    if (!e)
        return fallback;
    double v;
    g_autoptr(GError) flaw = NULL;
    if (!orr_units_parse(e->value, dim, &v, &flaw)) {
        orr_keys_complain(keys, group, key, "%s", flaw->message);
        return fallback;
    }
    if (v < min || v > max) {
        complain_range(keys, group, key, dim, min, max);
        return fallback;
    }
    return v;
}

/* "GPUs" is a fit for noun "GPU" and the other way round; letter case is ignored. */
static bool noun_fits(const char *seen, const char *noun) {
    gsize n = strlen(seen), m = strlen(noun);
    n -= n > 0 && g_ascii_tolower(seen[n - 1]) == 's';
    m -= m > 0 && g_ascii_tolower(noun[m - 1]) == 's';
    return n == m && g_ascii_strncasecmp(seen, noun, n) == 0;
}

/* What is wrong with @text as a whole number within the range; NULL: nothing. g_free. */
static char *whole_flaw(const char *text, const char *noun, int64_t min, int64_t max, double *v) {
    const char *unit;
    g_autoptr(GError) flaw = NULL;
    g_autofree char *range = orr_units_whole_range(min, max);
    if (!orr_units_split(text, v, &unit, &flaw))
        return g_strdup_printf("%s; a whole number will do, %s", flaw->message, range);
    if (*v != floor(*v))
        return g_strdup_printf("is not a whole number; %s will do", range);
    if (*unit && !noun)
        return g_strdup_printf("\"%s\" does not fit here; a bare number will do", unit);
    if (*unit && !noun_fits(unit, noun))
        return g_strdup_printf("\"%s\" does not fit here; %s will do", unit, noun);
    if (fabs(*v) > 0x1p53) /* beyond it a double skips whole numbers */
        return g_strdup("is too large; whole numbers to 2^53 will do");
    return NULL;
}

int64_t orr_keys_int(OrrKeys *keys, const char *group, const char *key, const char *noun,
                     int64_t min, int64_t max, int64_t fallback, OrrKeyFlags flags) {
    bool is_missing;
    KeyEntry *e = ask(keys, group, key, flags, g_strdup_printf("%" PRId64, fallback), &is_missing);
    if (is_missing) {
        g_autofree char *range = orr_units_whole_range(min, max);
        orr_keys_complain(keys, group, key, "is missing; %s would do", range);
    }
    if (!e)
        return fallback;
    double v;
    g_autofree char *flaw = whole_flaw(e->value, noun, min, max, &v);
    if (flaw) {
        orr_keys_complain(keys, group, key, "%s", flaw);
    } else if (v < (double)min || v > (double)max) {
        double limit = max >= INT64_MAX / 2 ? INFINITY : (double)max;
        complain_range(keys, group, key, ORR_DIM_NONE, (double)min, limit);
    } else {
        return (int64_t)v;
    }
    return fallback;
}

bool orr_keys_bool(OrrKeys *keys, const char *group, const char *key, bool fallback,
                   OrrKeyFlags flags) {
    static const char *const yes[] = {"yes", "true", "on", "1", NULL};
    static const char *const no[] = {"no", "false", "off", "0", NULL};
    bool is_missing;
    KeyEntry *e = ask(keys, group, key, flags, g_strdup(fallback ? "yes" : "no"), &is_missing);
    if (is_missing)
        orr_keys_complain(keys, group, key, "is missing; yes or no would do");
    if (!e)
        return fallback;
    for (guint i = 0; yes[i]; i++) {
        if (g_ascii_strcasecmp(e->value, yes[i]) == 0)
            return true;
        if (g_ascii_strcasecmp(e->value, no[i]) == 0)
            return false;
    }
    orr_keys_complain(keys, group, key,
                      "is not a yes or a no; yes, no, true, false, on, off, 1 "
                      "or 0 will do");
    return fallback;
}

int orr_keys_enum(OrrKeys *keys, const char *group, const char *key, const char *const *names,
                  int fallback, OrrKeyFlags flags) {
    int n = (int)g_strv_length((char **)names);
    char *shown = fallback >= 0 && fallback < n ? g_strdup(names[fallback]) : NULL;
    bool is_missing;
    KeyEntry *e = ask(keys, group, key, flags, shown, &is_missing);
    g_autofree char *list = NULL;
    if (is_missing) {
        list = orr_words_list(names);
        orr_keys_complain(keys, group, key, "is missing; %s would do", list);
    }
    if (!e)
        return fallback;
    for (int i = 0; i < n; i++)
        if (g_ascii_strcasecmp(names[i], e->value) == 0)
            return i;
    list = orr_words_list(names);
    const char *near = orr_words_nearest(e->value, names);
    if (near)
        orr_keys_complain(keys, group, key, "is unknown; did you mean %s? %s will do", near, list);
    else
        orr_keys_complain(keys, group, key, "is unknown; %s will do", list);
    return fallback;
}

char **orr_keys_strings(OrrKeys *keys, const char *group, const char *key, OrrKeyFlags flags) {
    bool is_missing;
    KeyEntry *e = ask(keys, group, key, flags, NULL, &is_missing);
    if (is_missing)
        orr_keys_complain(keys, group, key, "is missing; a list, a, b, c, would do");
    if (!e)
        return NULL;
    GPtrArray *parts = g_ptr_array_new();
    g_auto(GStrv) raw = g_strsplit_set(e->value, ",;", -1);
    for (guint i = 0; raw[i]; i++) {
        char *part = g_strstrip(raw[i]);
        bool is_tail = !raw[i + 1] && *part == 0; /* "a, b," or an empty value */
        if (*part == 0 && !is_tail)
            orr_keys_complain(keys, group, key, "has an empty place in its list; a, b, c would do");
        if (*part)
            g_ptr_array_add(parts, g_strdup(part));
    }
    if (parts->len == 0 && (flags & ORR_KEY_REQUIRED))
        orr_keys_complain(keys, group, key, "is empty; a list, a, b, c, would do");
    g_ptr_array_add(parts, NULL);
    return (char **)g_ptr_array_free(parts, FALSE);
}
