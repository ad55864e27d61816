/* Shell scripts, as far as launch scripts use the shell: assignments (also arrays, exports and
 * defaults), $(( )), if with [ ] and [[ ]], continued lines. Nothing is executed: $(command) and
 * `command` are empty. Options of all commands and texts are collected, later ones win. */
#include <string.h>

#include "sim/io/log.h"
#include "workloads/config_priv.h"

#define MAX_VALUE 65536 /* ours: variables that hold themselves must not grow for ever */

typedef struct {
    OrrConfig *c;
    GHashTable *variables;
    guint depth, skip; /* of ifs; skip: depth of the outermost one that is not followed, 0: none */
    bool is_taken[32]; /* a branch of this if was followed */
} Shell;

static const char *variable(Shell *sh, const char *name) {
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
static int64_t sum(Shell *sh, const char **at, guint depth);

static int64_t atom(Shell *sh, const char **at, guint depth) {
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
    const char *text = g_ascii_isdigit(word[0]) ? word : variable(sh, word);
    int64_t value = 0;
    return text && orr_log_int(text, &value) ? CLAMP(value, -(INT64_C(1) << 40), INT64_C(1) << 40)
                                             : 0;
}

static int64_t product(Shell *sh, const char **at, guint depth) {
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

static int64_t sum(Shell *sh, const char **at, guint depth) {
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

/* Behind the bracket that closes the one at @at. */
static const char *behind_bracket(const char *at, char open, char close) {
    guint depth = 0;
    for (; *at; at++) {
        depth += *at == open;
        if (*at == close && --depth == 0)
            return at + 1;
    }
    return at;
}

static char *expand(Shell *sh, const char *text, guint depth);

/* "${NAME}", "${NAME:-default}", "${NAME:=default}", "${NAME[@]}" of which @inside is the inside.
 */
static void expand_braces(Shell *sh, const char *inside, GString *out, guint depth) {
    gsize n = strcspn(inside, ":[-=");
    g_autofree char *name = g_strndup(inside, n);
    const char *value = variable(sh, name), *fallback = strchr(inside + n, '-');
    if (!fallback)
        fallback = strchr(inside + n, '=');
    if (value && *value) {
        g_string_append(out, value);
    } else if (fallback && inside[n] != '[') {
        g_autofree char *other = expand(sh, fallback + 1, depth + 1);
        g_string_append(out, other);
        if (*fallback == '=')
            g_hash_table_insert(sh->variables, g_strdup(name), g_strdup(other));
    }
}

static char *expand(Shell *sh, const char *text, guint depth) {
    GString *out = g_string_new(NULL);
    for (const char *at = text; *at && out->len < MAX_VALUE;) {
        if (*at == '`') {
            const char *end = strchr(at + 1, '`');
            at = end ? end + 1 : at + 1;
        } else if (*at == '\\' && at[1]) {
            g_string_append_c(out, at[1] == '\n' ? ' ' : at[1]);
            at += 2;
        } else if (g_str_has_prefix(at, "$((")) {
            const char *inside = at + 3;
            g_string_append_printf(out, "%" G_GINT64_FORMAT, sum(sh, &inside, 0));
            at = behind_bracket(at + 1, '(', ')');
        } else if (g_str_has_prefix(at, "$(")) {
            at = behind_bracket(at + 1, '(', ')');
        } else if (g_str_has_prefix(at, "${") && depth < 8) {
            const char *end = behind_bracket(at + 1, '{', '}');
            g_autofree char *inside =
                g_strndup(at + 2, (gsize)(end - at) > 3 ? (gsize)(end - at) - 3 : 0);
            expand_braces(sh, inside, out, depth);
            at = end;
        } else if (*at == '$' && (g_ascii_isalpha(at[1]) || at[1] == '_')) {
            gsize n = 1;
            while (g_ascii_isalnum(at[n]) || at[n] == '_')
                n++;
            g_autofree char *name = g_strndup(at + 1, n - 1);
            const char *value = variable(sh, name);
            g_string_append(out, value ? value : "");
            at += n;
        } else {
            g_string_append_c(out, *at++);
        }
    }
    g_string_truncate(out, MIN(out->len, MAX_VALUE));
    return g_string_free(out, FALSE);
}

/* "--name value" and "--name=value" of expanded text; '_' in names becomes '-'. */
static void collect(Shell *sh, const char *expanded) {
    guint n;
    g_autofree char *plain = g_strdup(expanded);
    g_strdelimit(plain, "\"'\n()", ' ');
    g_auto(GStrv) words = orr_log_words(plain, &n);
    for (guint i = 0; i < n; i++) {
        if (!g_str_has_prefix(words[i], "--") || !words[i][2])
            continue;
        g_auto(GStrv) part = g_strsplit(words[i] + 2, "=", 2);
        g_strdelimit(part[0], "_", '-');
        bool has_value = i + 1 < n && !g_str_has_prefix(words[i + 1], "--");
        orr_config__say(sh->c, part[0], part[1] ? part[1] : has_value ? words[i + 1] : "true");
    }
}

static bool compare(const char *a, const char *op, const char *b) {
    int64_t x = 0, y = 0;
    bool has_both = orr_log_int(a, &x) && orr_log_int(b, &y);
    if (strcmp(op, "==") == 0 || strcmp(op, "=") == 0)
        return strcmp(a, b) == 0;
    if (strcmp(op, "!=") == 0)
        return strcmp(a, b) != 0;
    if (!has_both)
        return false;
    return strcmp(op, "-eq") == 0   ? x == y
           : strcmp(op, "-ne") == 0 ? x != y
           : strcmp(op, "-le") == 0 ? x <= y
           : strcmp(op, "-lt") == 0 ? x < y
           : strcmp(op, "-ge") == 0 ? x >= y
                                    : strcmp(op, "-gt") == 0 && x > y;
}

/* Conditions that are not comparisons (files, commands) do not hold. */
static bool holds(Shell *sh, const char *condition) {
    guint n;
    g_autofree char *expanded = expand(sh, condition, 0);
    g_strdelimit(expanded, "[]\"'", ' ');
    g_auto(GStrv) words = orr_log_words(expanded, &n);
    return n == 3 && compare(words[0], words[1], words[2]);
}

static bool branch(Shell *sh, const char *statement) {
    bool is_if = g_str_has_prefix(statement, "if ");
    bool is_elif = g_str_has_prefix(statement, "elif ");
    bool is_else = strcmp(statement, "else") == 0, is_fi = strcmp(statement, "fi") == 0;
    if (!is_if && !is_elif && !is_else && !is_fi)
        return false;
    if (is_if && sh->depth + 1 < G_N_ELEMENTS(sh->is_taken))
        sh->is_taken[++sh->depth] = false;
    if (sh->depth == 0 || (sh->skip > 0 && sh->skip < sh->depth)) {
        sh->depth -= is_fi && sh->depth > 0;
        return true;
    }
    if (is_fi) {
        sh->skip = 0;
        sh->depth--;
        return true;
    }
    bool *is_taken = &sh->is_taken[sh->depth];
    bool is_followed = !*is_taken && (is_else || holds(sh, statement + (is_if ? 3 : 5)));
    *is_taken |= is_followed;
    sh->skip = is_followed ? 0 : sh->depth;
    return true;
}

static void run_statement(Shell *sh, const char *text) {
    static const char *const prefixes[] = {"then ", "else ", "export ", "declare -a ", "do "};
    g_autofree char *copy = g_strdup(text);
    const char *statement = g_strstrip(copy);
    for (guint i = 0; i < G_N_ELEMENTS(prefixes); i++)
        if (g_str_has_prefix(statement, prefixes[i])) {
            if (i == 1)
                branch(sh, "else");
            statement += strlen(prefixes[i]);
            statement += strspn(statement, " \t");
        }
    if (branch(sh, statement) || sh->skip > 0 || !*statement)
        return;
    gsize n = 0;
    while (g_ascii_isalnum(statement[n]) || statement[n] == '_')
        n++;
    bool is_assignment = n > 0 && statement[n] == '=';
    g_autofree char *expanded = expand(sh, statement + (is_assignment ? n + 1 : 0), 0);
    collect(sh, expanded);
    if (!is_assignment)
        return;
    g_strdelimit(expanded, "\"'()", ' ');
    g_hash_table_insert(sh->variables, g_strndup(statement, n), g_strdup(g_strstrip(expanded)));
}

/* Runs the statements of @text one by one: they end at a line end or ';' outside of quotes and
 * brackets; comments and here-documents are skipped. */
static void run_text(Shell *sh, const char *text) {
    g_autoptr(GString) now = g_string_new(NULL);
    char quote = 0;
    guint depth = 0;
    for (const char *at = text; *at; at++) {
        bool is_start = at == text || strchr(" \t\n;", at[-1]);
        if (*at == '\\' && at[1]) {
            g_string_append_c(now, at[1] == '\n' ? ' ' : '\\');
            if (at[1] != '\n')
                g_string_append_c(now, at[1]);
            at++;
        } else if (!quote && *at == '#' && is_start) {
            while (at[1] && at[1] != '\n')
                at++;
        } else if (!quote && g_str_has_prefix(at, "<<") && g_ascii_isalpha(at[2])) {
            gsize n = 0;
            while (g_ascii_isalnum(at[2 + n]))
                n++;
            g_autofree char *mark = g_strdup_printf("\n%.*s\n", (int)n, at + 2);
            const char *end = strstr(at, mark);
            at = end ? end + n : at + 1;
        } else if (!quote && depth == 0 && (*at == '\n' || *at == ';')) {
            run_statement(sh, now->str);
            g_string_truncate(now, 0);
        } else {
            if (*at == '"' || *at == '\'')
                quote = !quote ? *at : quote == *at ? 0 : quote;
            depth += !quote && *at == '(';
            depth -= !quote && *at == ')' && depth > 0;
            if (now->len < MAX_VALUE)
                g_string_append_c(now, *at);
        }
    }
    run_statement(sh, now->str);
}

/* "#SBATCH --nodes=24" */
static void read_batch_options(Shell *sh, const char *text) {
    const char *at = strstr(text, "#SBATCH --nodes=");
    at = at ? at + strlen("#SBATCH --nodes=") : strstr(text, "#SBATCH -N ");
    if (at && g_str_has_prefix(at, "#SBATCH -N "))
        at += strlen("#SBATCH -N ");
    gsize n = at ? strspn(at, "0123456789") : 0;
    if (n == 0)
        return;
    g_hash_table_insert(sh->variables, g_strdup("SLURM_NNODES"), g_strndup(at, n));
    g_hash_table_insert(sh->variables, g_strdup("SLURM_JOB_NUM_NODES"), g_strndup(at, n));
}

bool orr_config__read_shell(OrrConfig *c, const char *text, gsize length, GError **error) {
    Shell sh = {.c = c};
    g_autofree char *copy = g_utf8_make_valid(text, (gssize)length);
    sh.variables = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    read_batch_options(&sh, copy);
    for (guint i = 0; c->import->sets && c->import->sets[i]; i++) {
        g_auto(GStrv) part = g_strsplit(c->import->sets[i], "=", 2);
        if (part[1] && !strchr(part[0], '.'))
            g_hash_table_insert(sh.variables, g_strdup(part[0]), g_strdup(part[1]));
    }
    run_text(&sh, copy);
    const char *vocab = g_hash_table_lookup(sh.variables, "VOCAB_SIZE");
    if (vocab && !orr_config__said(c, "vocab-size"))
        orr_config__say(c, "vocab-size", vocab);
    g_hash_table_unref(sh.variables);
    if (!orr_config__said(c, "num-layers"))
        return orr_fail_input(error,
                              "%s: %s: no Megatron arguments (--num-layers, --hidden-size, ...) in "
                              "it",
                              c->import->path, c->kind);
    return true;
}
