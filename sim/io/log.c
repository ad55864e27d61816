#include "sim/io/log.h"

#include <math.h>
#include <string.h>

#define LIMIT_BYTES ((gsize)1 << 30) /* ours: larger logs should be cut by the user */

/* Removes colour codes (ESC [ ... m) and carriage returns in place: of "a\rb" b is what shows. */
static void drop_colours(char *line) {
    char *to = line;
    for (const char *at = line; *at; at++) {
        if (*at == '\033' && at[1] == '[') {
            const char *end = at + 2;
            while (g_ascii_isdigit(*end) || *end == ';')
                end++;
            if (g_ascii_isalpha(*end)) {
                at = end;
                continue;
            }
        }
        if (*at == '\r') {
            if (at[1])
                to = line;
            continue;
        }
        *to++ = *at;
    }
    *to = 0;
}

/* Behind one label of a launcher, or NULL. */
static const char *behind_label(const char *line) {
    const char *at = line + strspn(line, " ");
    if (*at == '[') {
        while (*at && *at != ']' && *at != ' ')
            at++;
        if (*at != ']')
            return NULL;
        at++;
        if (g_str_has_prefix(at, "<std")) {
            while (g_ascii_isalpha(*++at))
                ;
            if (*at++ != '>')
                return NULL;
        }
        return *at == ':' ? at + 1 : NULL;
    }
    const char *digits = at;
    while (g_ascii_isdigit(*at))
        at++;
    return at > digits && at - digits <= 6 && *at == ':' && (at[1] == ' ' || !at[1]) ? at + 1
                                                                                     : NULL;
}

static char *clean(const char *line, gsize length) {
    g_autofree char *copy = g_strndup(line, length);
    for (gsize i = 0; i < length; i++)
        if (copy[i] == 0)
            copy[i] = ' ';
    char *text = g_utf8_make_valid(copy, (gssize)length);
    drop_colours(text);
    const char *rest = text, *next;
    for (int i = 0; i < 3 && (next = behind_label(rest)); i++)
        rest = next; /* three: srun around mpirun around torchrun */
    memmove(text, rest, strlen(rest) + 1);
    return text;
}

OrrLog *orr_log_parse(const char *name, const char *text, gsize length, GError **error) {
    if (length == 0) {
        orr_fail_input(error, "%s: the file is empty", name);
        return NULL;
    }
    GPtrArray *lines = g_ptr_array_new();
    OrrLog *log = g_new0(OrrLog, 1);
    log->name = g_strdup(name);
    for (gsize at = 0; at < length;) {
        const char *end = memchr(text + at, '\n', length - at);
        gsize n = end ? (gsize)(end - text) - at : length - at;
        g_ptr_array_add(lines, clean(text + at, n));
        log->is_cut = end == NULL;
        at += n + 1;
    }
    log->n_lines = lines->len;
    g_ptr_array_add(lines, NULL);
    log->lines = (char **)g_ptr_array_free(lines, FALSE);
    return log;
}

OrrLog *orr_log_load(const char *path, GError **error) {
    gsize length;
    g_autofree char *text = orr_file_read(path, LIMIT_BYTES, &length, error);
    return text ? orr_log_parse(path, text, length, error) : NULL;
}

void orr_log_free(OrrLog *log) {
    if (!log)
        return;
    g_strfreev(log->lines);
    g_free(log->name);
    g_free(log);
}

char **orr_log_words(const char *line, guint *n_words) {
    GPtrArray *words = g_ptr_array_new();
    for (const char *at = line; *at;) {
        gsize n = strcspn(at, " \t");
        if (n > 0)
            g_ptr_array_add(words, g_strndup(at, n));
        at += n;
        at += strspn(at, " \t");
    }
    *n_words = words->len;
    g_ptr_array_add(words, NULL);
    return (char **)g_ptr_array_free(words, FALSE);
}

bool orr_log_int(const char *word, int64_t *value) {
    return g_ascii_string_to_signed(word, 10, INT64_MIN, INT64_MAX, value, NULL);
}

bool orr_log_number(const char *text, double *value, const char **end) {
    char digits[64];
    guint n = 0;
    const char *at = text;
    for (; *at && n < sizeof digits - 1; at++) {
        bool is_group = *at == ',' && at > text && g_ascii_isdigit(at[-1]) &&
                        g_ascii_isdigit(at[1]) && g_ascii_isdigit(at[2]) && g_ascii_isdigit(at[3]);
        if (is_group)
            continue;
        if (!g_ascii_isdigit(*at) && !strchr("+-.eE", *at))
            break;
        digits[n++] = *at;
    }
    digits[n] = 0;
    char *rest;
    *value = g_ascii_strtod(digits, &rest);
    if (end)
        *end = at - strlen(rest);
    return rest > digits && isfinite(*value);
}
