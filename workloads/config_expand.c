/* Variables, arithmetic and expansion of launch scripts. */
#include <string.h>

#include "sim/io/log.h"
#include "workloads/config_shell.h"

const char *orr_shell__variable(OrrShell *sh, const char *name) {
    const char *value = g_hash_table_lookup(sh->variables, name);
    const char *nodes = g_hash_table_lookup(sh->variables, "SLURM_NNODES");
    if (value || strcmp(name, "NODES") != 0 || !nodes)
        return value;
    orr_workloads__note(sh->c->import,
                        "NODES is not set in the script: %s of #SBATCH --nodes is "
                        "taken",
                        nodes);
    g_hash_table_insert(sh->variables, g_strdup(name), g_strdup(nodes));
    return g_hash_table_lookup(sh->variables, name);
}

/* Arithmetic: sums of products of numbers, names and brackets. */
static int64_t sum(OrrShell *sh, const char **at, guint depth);

static int64_t atom(OrrShell *sh, const char **at, guint depth) {
    while (**at == ' ' || **at == '$' || **at == '{' || **at == '}')
        (*at)++;
    if (**at == '(' && depth < 16) {
        (*at)++;
        int64_t value = sum(sh, at, depth + 1);
        *at += strspn(*at, " ");
        *at += **at == ')';
        return value;
    }
    gsize n = 0;
    while (g_ascii_isalnum((*at)[n]) || (*at)[n] == '_')
        n++;
    g_autofree char *word = g_strndup(*at, n);
    *at += n;
    *at += strspn(*at, "} ");
    const char *text = g_ascii_isdigit(word[0]) ? word : orr_shell__variable(sh, word);
    int64_t value = 0;
    return text && orr_log_int(text, &value) ? CLAMP(value, -(INT64_C(1) << 40), INT64_C(1) << 40)
                                             : 0;
}

static int64_t product(OrrShell *sh, const char **at, guint depth) {
    int64_t value = atom(sh, at, depth);
    for (; **at == '*' || **at == '/' || **at == '%';) {
        char op = *(*at)++;
        int64_t other = atom(sh, at, depth);
        if (op == '*')
            value = (int64_t)CLAMP((double)value * (double)other, -1e15, 1e15);
        else
            value = other == 0 ? 0 : op == '/' ? value / other : value % other;
        *at += strspn(*at, " ");
    }
    return value;
}

static int64_t sum(OrrShell *sh, const char **at, guint depth) {
    int64_t value = product(sh, at, depth);
    *at += strspn(*at, " ");
    while (**at == '+' || **at == '-') {
        char op = *(*at)++;
        int64_t other = product(sh, at, depth);
        value = CLAMP(value + (op == '+' ? other : -other), -(INT64_C(1) << 60), INT64_C(1) << 60);
        *at += strspn(*at, " ");
    }
    return value;
}

const char *orr_shell__behind(const char *at, char open, char close) {
    guint depth = 0;
    for (; *at; at++) {
        depth += *at == open;
        if (*at == close && --depth == 0)
            return at + 1;
    }
    return at;
}

static char *expand(OrrShell *sh, const char *text, guint depth);

/* The @index-th word of an array's value; NULL: there is none. g_free. */
static char *element(const char *value, guint64 index) {
    guint n;
    g_auto(GStrv) words = orr_log_words(value, &n);
    return index < n ? g_strdup(words[index]) : NULL;
}

/* "${#NAME[@]}" words, "${#NAME}" characters. */
static void expand_length(OrrShell *sh, const char *inside, GString *out) {
    gsize n = strcspn(inside, "[");
    g_autofree char *name = g_strndup(inside, n);
    const char *value = orr_shell__variable(sh, name);
    guint n_words = value ? (guint)strlen(value) : 0;
    if (value && inside[n] == '[')
        g_strfreev(orr_log_words(value, &n_words));
    g_string_append_printf(out, "%u", n_words);
}

/* "${NAME}", "${NAME:-default}", "${NAME:=default}", "${NAME:+other}", "${NAME[@]}", "${NAME[2]}",
 * "${#NAME}" of which @inside is the inside; what cuts or replaces parts of a value is not done. */
static void expand_braces(OrrShell *sh, const char *inside, GString *out, guint depth) {
    if (*inside == '#') {
        expand_length(sh, inside + 1, out);
        return;
    }
    gsize n = 0;
    while (g_ascii_isalnum(inside[n]) || inside[n] == '_')
        n++;
    g_autofree char *name = g_strndup(inside, n), *part = NULL;
    const char *value = orr_shell__variable(sh, name), *op = inside + n;
    if (value && op[0] == '[' && g_ascii_isdigit(op[1]))
        value = part = element(value, g_ascii_strtoull(op + 1, NULL, 10));
    op += *op == ':';
    bool is_set = value && *value;
    g_autofree char *other =
        *op && strchr("-=+", *op) ? expand(sh, op + 1, depth + 1) : g_strdup("");
    if (*op == '+')
        g_string_append(out, is_set ? other : "");
    else if (is_set)
        g_string_append(out, value);
    else
        g_string_append(out, other);
    if (*op == '=' && !is_set)
        g_hash_table_insert(sh->variables, g_strdup(name), g_strdup(other));
}

static char *expand(OrrShell *sh, const char *text, guint depth) {
    GString *out = g_string_new(NULL);
    for (const char *at = text; *at && out->len < ORR_SHELL_MAX_VALUE;) {
        if (*at == '`') {
            const char *end = strchr(at + 1, '`');
            at = end ? end + 1 : at + 1;
        } else if (*at == '\\' && at[1]) {
            g_string_append_c(out, at[1] == '\n' ? ' ' : at[1]);
            at += 2;
        } else if (g_str_has_prefix(at, "$((")) {
            const char *inside = at + 3;
            g_string_append_printf(out, "%" G_GINT64_FORMAT, sum(sh, &inside, 0));
            at = orr_shell__behind(at + 1, '(', ')');
        } else if (g_str_has_prefix(at, "$(")) {
            at = orr_shell__behind(at + 1, '(', ')');
        } else if (g_str_has_prefix(at, "${") && depth < 8) {
            const char *end = orr_shell__behind(at + 1, '{', '}');
            g_autofree char *inside =
                g_strndup(at + 2, (gsize)(end - at) > 3 ? (gsize)(end - at) - 3 : 0);
            expand_braces(sh, inside, out, depth);
            at = end;
        } else if (*at == '$' && (g_ascii_isdigit(at[1]) || (at[1] && strchr("@*#?", at[1])))) {
            const char name[] = {at[1], 0}, *value = orr_shell__variable(sh, name);
            g_string_append(out, value ? value : "");
            at += 2;
        } else if (*at == '$' && (g_ascii_isalpha(at[1]) || at[1] == '_')) {
            gsize n = 1;
            while (g_ascii_isalnum(at[n]) || at[n] == '_')
                n++;
            g_autofree char *name = g_strndup(at + 1, n - 1);
            const char *value = orr_shell__variable(sh, name);
            g_string_append(out, value ? value : "");
            at += n;
        } else {
            g_string_append_c(out, *at++);
        }
    }
    g_string_truncate(out, MIN(out->len, ORR_SHELL_MAX_VALUE));
    return g_string_free(out, FALSE);
}

char *orr_shell__expand(OrrShell *sh, const char *text) {
    return expand(sh, text, 0);
}
