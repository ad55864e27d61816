/* A recursive-descent scanner of RFC 8259, section 2 to 7, that builds nothing. */
#include "sim/io/json_scan.h"

#include <string.h>

#include "sim/io/text.h"

#define MAX_NESTING 200 /* ours: bounds recursion; RFC 8259, section 9 allows a limit */
#define FEW_KEYS 16     /* ours: below it comparing is quicker than hashing */

typedef struct {
    const char *start;
    gsize length;
} Slice;

typedef struct {
    const char *name;
    char *text;
    gsize at, length;
    bool has_infinity;
    guint depth;
    GArray *keys; /* Slice; those of the objects that are open, innermost last */
    /* looking for a line */
    const char *target;
    GString *path; /* NULL: not looking */
    guint found_line;
    GError **error;
} Scan;

static bool scan_value(Scan *s);

static bool fail(Scan *s, gsize at, const char *what) {
    gsize start = at;
    while (start > 0 && s->text[start - 1] != '\n')
        start--;
    return orr_fail_input(s->error, "%s:%u:%" G_GSIZE_FORMAT ": %s", s->name,
                          orr_text_line(s->text, at), at - start + 1, what);
}

static char peek(const Scan *s) {
    return s->at < s->length ? s->text[s->at] : 0;
}

static void skip_blanks(Scan *s) {
    while (s->at < s->length && strchr(" \t\r\n", s->text[s->at]) && s->text[s->at])
        s->at++;
}

/* Four hexadecimal digits at @at, or -1. */
static int hex4(const Scan *s, gsize at) {
    int v = 0;
    for (gsize i = at; i < at + 4; i++) {
        int digit = i < s->length ? g_ascii_xdigit_value(s->text[i]) : -1;
        if (digit < 0)
            return -1;
        v = v * 16 + digit;
    }
    return v;
}

static bool scan_escape(Scan *s) {
    gsize start = s->at++;
    char c = peek(s);
    if (c != 'u') {
        if (c == 0 || !strchr("\"\\/bfnrt", c))
            return fail(s, start, "an unknown escape in a string");
        s->at++;
        return true;
    }
    int code = hex4(s, s->at + 1);
    s->at += 5;
    bool is_high = code >= 0xd800 && code < 0xdc00; /* RFC 8259, section 7: surrogate pairs */
    if (code < 0 || (code >= 0xdc00 && code < 0xe000))
        return fail(s, start, "\\u without a character");
    if (code == 0)
        return fail(s, start, "\\u0000 in a string; texts here hold no NUL");
    if (!is_high)
        return true;
    int low = peek(s) == '\\' && s->at + 1 < s->length && s->text[s->at + 1] == 'u'
                  ? hex4(s, s->at + 2)
                  : -1;
    if (low < 0xdc00 || low >= 0xe000)
        return fail(s, start, "\\u with half a character");
    s->at += 6;
    return true;
}

static bool scan_string(Scan *s, Slice *slice) {
    gsize start = s->at++;
    for (;;) {
        char c = peek(s);
        if (c == '"')
            break;
        if (s->at >= s->length)
            return fail(s, start, "a string that does not end");
        if ((guchar)c < 0x20)
            return fail(s, s->at, "a bare control character in a string; escape it");
        if (c != '\\')
            s->at++;
        else if (!scan_escape(s))
            return false;
    }
    *slice = (Slice){s->text + start + 1, s->at - start - 1};
    s->at++;
    return true;
}

static gsize skip_digits(Scan *s) {
    gsize start = s->at;
    while (g_ascii_isdigit(peek(s)))
        s->at++;
    return s->at - start;
}

static bool fits_int64(const char *digits, gsize n, bool is_negative) {
    char text[24];
    if (n >= sizeof text)
        return false;
    memcpy(text, digits, n);
    text[n] = 0;
    guint64 limit = is_negative ? (guint64)G_MAXINT64 + 1 : (guint64)G_MAXINT64;
    return n < 19 || (n == 19 && g_ascii_strtoull(text, NULL, 10) <= limit);
}

static bool scan_number(Scan *s) {
    gsize start = s->at;
    bool is_negative = peek(s) == '-', is_whole = true;
    s->at += is_negative;
    gsize first = s->at, n = skip_digits(s);
    if (n == 0)
        return fail(s, start, "not a number");
    if (n > 1 && s->text[first] == '0')
        return fail(s, start, "a number that begins with 0");
    if (peek(s) == '.') {
        s->at++;
        is_whole = false;
        if (skip_digits(s) == 0)
            return fail(s, start, "a number without digits behind its point");
    }
    if (peek(s) == 'e' || peek(s) == 'E') {
        s->at++;
        is_whole = false;
        s->at += peek(s) == '+' || peek(s) == '-';
        if (skip_digits(s) == 0)
            return fail(s, start, "a number without digits in its exponent");
    }
    if (is_whole && !fits_int64(s->text + first, n, is_negative))
        return fail(s, start, "a whole number beyond 64 bits");
    return true;
}

static bool scan_word(Scan *s) {
    static const char *const words[] = {"true", "false", "null"};
    static const char *const infinities[] = {"Infinity", "-Infinity"};
    const char *at = s->text + s->at;
    gsize left = s->length - s->at, n = 0;
    while (n < left && (g_ascii_isalnum(at[n]) || at[n] == '_' || (n == 0 && at[n] == '-')))
        n++;
    for (guint i = 0; i < G_N_ELEMENTS(words); i++)
        if (strlen(words[i]) == n && memcmp(words[i], at, n) == 0) {
            s->at += n;
            return true;
        }
    for (guint i = 0; s->has_infinity && i < G_N_ELEMENTS(infinities); i++)
        if (strlen(infinities[i]) == n && memcmp(infinities[i], at, n) == 0) {
            memset(s->text + s->at, ' ', n);
            memcpy(s->text + s->at, "null", 4);
            s->at += n;
            return true;
        }
    g_autofree char *word = g_strndup(at, MIN(n, 40));
    g_autofree char *what = g_strdup_printf("%s is not JSON", n > 0 ? word : "this character");
    return fail(s, s->at, left == 0 ? "the text ends where a value should stand" : what);
}

/* Notes the key; false if it stands in this object already. */
static bool is_new_key(Scan *s, Slice key, guint first, GHashTable **set) {
    guint n = s->keys->len - first;
    const Slice *keys = n > 0 ? &g_array_index(s->keys, Slice, first) : NULL;
    if (n == FEW_KEYS) {
        *set = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        for (guint i = 0; i < n; i++)
            g_hash_table_add(*set, g_strndup(keys[i].start, keys[i].length));
    }
    bool is_new = true;
    if (*set)
        is_new = g_hash_table_add(*set, g_strndup(key.start, key.length));
    for (guint i = 0; !*set && i < n && is_new; i++)
        is_new = keys[i].length != key.length || memcmp(keys[i].start, key.start, key.length) != 0;
    g_array_append_val(s->keys, key);
    return is_new;
}

static bool scan_member(Scan *s, guint first, GHashTable **set) {
    Slice key;
    gsize key_at = s->at;
    if (peek(s) != '"')
        return fail(s, s->at,
                    peek(s) == '}' ? "a comma before the closing brace"
                                   : "a key in quotes should stand here");
    if (!scan_string(s, &key))
        return false;
    if (!is_new_key(s, key, first, set)) {
        g_autofree char *shown = g_strndup(key.start, MIN(key.length, 60));
        g_autofree char *what = g_strdup_printf("key \"%s\" stands twice in its object", shown);
        return fail(s, key_at, what);
    }
    skip_blanks(s);
    if (peek(s) != ':')
        return fail(s, s->at, "a colon should stand between key and value");
    s->at++;
    gsize path_length = 0;
    if (s->path) {
        path_length = s->path->len;
        g_string_append_printf(s->path, "%s%.*s", path_length ? "." : "", (int)key.length,
                               key.start);
    }
    bool is_sound = scan_value(s);
    if (s->path)
        g_string_truncate(s->path, path_length);
    return is_sound;
}

/* After a member or an element: a comma (true, more follow) or the closing bracket. */
static bool scan_separator(Scan *s, char close, bool *has_more) {
    skip_blanks(s);
    char c = peek(s);
    if (c != ',' && c != close)
        return fail(s, s->at,
                    close == '}' ? "a comma or } should stand here"
                                 : "a comma or ] should stand here");
    *has_more = c == ',';
    s->at++;
    if (*has_more)
        skip_blanks(s);
    return true;
}

static bool scan_object(Scan *s) {
    guint first = s->keys->len;
    g_autoptr(GHashTable) set = NULL;
    s->at++;
    skip_blanks(s);
    bool has_more = peek(s) != '}';
    s->at += !has_more;
    while (has_more)
        if (!scan_member(s, first, &set) || !scan_separator(s, '}', &has_more))
            return false;
    g_array_set_size(s->keys, first);
    return true;
}

static bool scan_array(Scan *s) {
    s->at++;
    skip_blanks(s);
    bool has_more = peek(s) != ']';
    s->at += !has_more;
    for (guint i = 0; has_more; i++) {
        if (peek(s) == ']')
            return fail(s, s->at, "a comma before the closing bracket");
        gsize path_length = s->path ? s->path->len : 0;
        if (s->path)
            g_string_append_printf(s->path, "[%u]", i);
        if (!scan_value(s))
            return false;
        if (s->path)
            g_string_truncate(s->path, path_length);
        if (!scan_separator(s, ']', &has_more))
            return false;
    }
    return true;
}

static bool scan_value(Scan *s) {
    skip_blanks(s);
    if (s->path && s->found_line == 0 && strcmp(s->path->str, s->target) == 0)
        s->found_line = orr_text_line(s->text, s->at);
    char c = peek(s);
    Slice ignored;
    if (c == '"')
        return scan_string(s, &ignored);
    if (g_ascii_isdigit(c) ||
        (c == '-' && s->at + 1 < s->length && g_ascii_isdigit(s->text[s->at + 1])))
        return scan_number(s);
    if (c != '{' && c != '[')
        return scan_word(s);
    if (++s->depth > MAX_NESTING)
        return fail(s, s->at, "nested deeper than 200 levels");
    bool is_sound = c == '{' ? scan_object(s) : scan_array(s);
    s->depth--;
    return is_sound;
}

bool orr_json_scan(const char *name, char *text, gsize length, bool has_infinity, GError **error) {
    g_autoptr(GArray) keys = g_array_new(FALSE, FALSE, sizeof(Slice));
    Scan s = {.name = name,
              .text = text,
              .length = length,
              .has_infinity = has_infinity,
              .keys = keys,
              .error = error};
    if (!scan_value(&s))
        return false;
    skip_blanks(&s);
    return s.at == length || fail(&s, s.at, "text behind the end of the value");
}

guint orr_json_line_of(const char *text, gsize length, const char *path) {
    g_autoptr(GArray) keys = g_array_new(FALSE, FALSE, sizeof(Slice));
    g_autoptr(GString) here = g_string_new(NULL);
    Scan s = {.name = "",
              .text = (char *)text,
              .length = length,
              .keys = keys,
              .target = path,
              .path = here};
    return scan_value(&s) ? s.found_line : 0;
}
