/* Shell scripts, as far as launch scripts use the shell: assignments (also arrays, exports and
 * defaults), $(( )), if with [ ] and [[ ]], case, the first turn of for, here-documents, continued
 * lines. Nothing is executed: $(command) and `command` are empty. Options of all commands and texts
 * are collected, later ones win. */
#include "workloads/config_shell.h"

#include <string.h>

#include "sim/io/json.h"
#include "sim/io/log.h"

/* Whether statements here are in a branch that is not followed. */
static bool is_skipped(const OrrShell *sh) {
    for (guint i = 0; i < sh->n_cases; i++)
        if (!sh->cases[i].is_followed)
            return true;
    return sh->skip > 0;
}

/* "--name value" and "--name=value" of expanded text; '_' in names becomes '-'. */
static void collect(OrrShell *sh, const char *expanded) {
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

/* "-z A", "-n A", "A = B"; conditions on files and commands do not hold. */
static bool holds_one(OrrShell *sh, const char *condition) {
    guint n;
    g_autofree char *expanded = orr_shell__expand(sh, condition);
    g_strdelimit(expanded, "[]\"'", ' ');
    g_auto(GStrv) words = orr_log_words(expanded, &n);
    if (n > 0 && strcmp(words[0], "test") == 0) {
        g_autofree char *rest = g_strjoinv(" ", words + 1);
        return holds_one(sh, rest);
    }
    if (n >= 1 && n <= 2 && strcmp(words[0], "-z") == 0)
        return n == 1;
    if (n >= 1 && n <= 2 && strcmp(words[0], "-n") == 0)
        return n == 2;
    return n == 3 && compare(words[0], words[1], words[2]);
}

static bool holds(OrrShell *sh, const char *condition) {
    g_auto(GStrv) any = g_strsplit(condition, "||", -1);
    for (guint i = 0; any[i]; i++) {
        g_auto(GStrv) every = g_strsplit(any[i], "&&", -1);
        bool is_held = true;
        for (guint k = 0; is_held && every[k]; k++)
            is_held = holds_one(sh, every[k]);
        if (is_held)
            return true;
    }
    return false;
}

static bool branch(OrrShell *sh, const char *statement) {
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

/* "for NAME in A B C": the first one. */
static bool begin_loop(OrrShell *sh, const char *statement) {
    guint n;
    if (!g_str_has_prefix(statement, "for "))
        return false;
    g_autofree char *expanded = orr_shell__expand(sh, statement);
    g_auto(GStrv) words = orr_log_words(expanded, &n);
    if (n < 4 || strcmp(words[2], "in") != 0 || is_skipped(sh))
        return true;
    g_strdelimit(words[3], "\"'", ' ');
    g_hash_table_insert(sh->variables, g_strdup(words[1]), g_strdup(g_strstrip(words[3])));
    if (n > 4)
        orr_workloads__note(sh->c->import, "for %s in %s ...: the first is taken", words[1],
                            words[3]);
    return true;
}

static void end_branch(OrrShell *sh) {
    if (sh->n_cases > 0)
        sh->cases[sh->n_cases - 1].is_open = false;
}

static bool matches(const char *patterns, const char *word) {
    g_auto(GStrv) part = g_strsplit(patterns, "|", -1);
    for (guint i = 0; part[i]; i++) {
        g_strdelimit(part[i], "\"'(", ' ');
        if (g_pattern_match_simple(g_strstrip(part[i]), word))
            return true;
    }
    return false;
}

/* What stands behind "case WORD in" or a pattern is left in *@statement; true: nothing is left. */
static bool branch_of_case(OrrShell *sh, const char **statement) {
    const char *in =
        g_str_has_prefix(*statement, "case ") ? strstr(*statement + strlen("case "), " in") : NULL;
    if (in && (in[3] == 0 || g_ascii_isspace(in[3])) && sh->n_cases < ORR_SHELL_MAX_CASES) {
        g_autofree char *text = g_strndup(*statement + 5, (gsize)(in - *statement) - 5);
        char *word = is_skipped(sh) ? NULL : orr_shell__expand(sh, text);
        if (word)
            g_strstrip(g_strdelimit(word, "\"'", ' '));
        sh->cases[sh->n_cases++] = (OrrShellCase){.word = word};
        *statement = in + 3 + strspn(in + 3, " \t\n");
    }
    if (sh->n_cases == 0)
        return false;
    OrrShellCase *last = &sh->cases[sh->n_cases - 1];
    if (strcmp(*statement, "esac") == 0) {
        g_free(last->word);
        sh->n_cases--;
        return true;
    }
    const char *close = strchr(*statement, ')');
    if (last->is_open || !close)
        return false;
    g_autofree char *patterns = g_strndup(*statement, (gsize)(close - *statement));
    last->is_open = true;
    last->is_followed = last->word && !last->is_done && matches(patterns, last->word);
    last->is_done |= last->is_followed;
    *statement = close + 1 + strspn(close + 1, " \t");
    return **statement == 0;
}

/* Length of the word at @text: up to a blank outside of quotes and brackets. */
static gsize word_length(const char *text) {
    char quote = 0;
    guint depth = 0;
    gsize n = 0;
    for (; text[n] && (quote || depth > 0 || !g_ascii_isspace(text[n])); n++) {
        if (text[n] == '\\' && text[n + 1]) {
            n++;
            continue;
        }
        if (text[n] == '"' || text[n] == '\'')
            quote = !quote ? text[n] : quote == text[n] ? 0 : quote;
        depth += !quote && (text[n] == '(' || text[n] == '{');
        depth -= !quote && (text[n] == ')' || text[n] == '}') && depth > 0;
    }
    return n;
}

/* "A=1 B+=(x y) command": assigns the words in front; returns what is behind them. */
static const char *assign(OrrShell *sh, const char *statement) {
    for (;;) {
        gsize n = 0;
        while (g_ascii_isalnum(statement[n]) || statement[n] == '_')
            n++;
        bool is_more = n > 0 && statement[n] == '+' && statement[n + 1] == '=';
        if (n == 0 || (statement[n] != '=' && !is_more))
            return statement;
        g_autofree char *name = g_strndup(statement, n);
        statement += n + (is_more ? 2 : 1);
        n = word_length(statement);
        g_autofree char *text = g_strndup(statement, n);
        g_autofree char *expanded = orr_shell__expand(sh, text);
        const char *old = is_more ? orr_shell__variable(sh, name) : NULL;
        collect(sh, expanded);
        g_strdelimit(expanded, "\"'()", ' ');
        g_strstrip(expanded);
        char *value = old ? g_strconcat(old, " ", expanded, NULL) : g_strdup(expanded);
        if (strlen(value) > ORR_SHELL_MAX_VALUE)
            value[ORR_SHELL_MAX_VALUE] = 0;
        g_hash_table_insert(sh->variables, g_strdup(name), value);
        statement += n + strspn(statement + n, " \t");
    }
}

/* "[ A = B ] && rest", "[ A = B ] || rest": what is to be run of it. */
static const char *behind_condition(OrrShell *sh, const char *statement) {
    if (!g_str_has_prefix(statement, "[ ") && !g_str_has_prefix(statement, "[[ ") &&
        !g_str_has_prefix(statement, "test "))
        return statement;
    const char *op = strstr(statement, " && "), *or_op = strstr(statement, " || ");
    bool is_or = or_op && (!op || or_op < op);
    op = is_or ? or_op : op;
    if (!op)
        return "";
    g_autofree char *condition = g_strndup(statement, (gsize)(op - statement));
    return holds(sh, condition) != is_or ? behind_condition(sh, op + 4) : "";
}

static void run_statement(OrrShell *sh, const char *text) {
    static const char *const prefixes[] = {"then ",    "else ",     "do ",         "export ",
                                           "local ",   "readonly ", "declare -a ", "declare -r ",
                                           "declare ", "typeset "};
    g_autofree char *copy = g_strdup(text);
    const char *statement = g_strstrip(copy);
    if (branch_of_case(sh, &statement))
        return;
    for (guint i = 0; i < G_N_ELEMENTS(prefixes); i++)
        if (g_str_has_prefix(statement, prefixes[i])) {
            if (i == 1)
                branch(sh, "else");
            statement += strlen(prefixes[i]);
            statement += strspn(statement, " \t");
        }
    if (branch(sh, statement) || begin_loop(sh, statement) || is_skipped(sh))
        return;
    statement = assign(sh, behind_condition(sh, statement));
    if (!*statement)
        return;
    g_autofree char *expanded = orr_shell__expand(sh, statement);
    collect(sh, expanded);
}

/* Of a here-document that begins with "<<" at @at: its text is kept; returns its end. What is
 * behind "<<WORD" on the line goes on. "$(cat <<WORD" in @now becomes its text. */
static const char *take_document(OrrShell *sh, const char *at, GString *now) {
    const char *word = at + 2 + (at[2] == '-');
    word += strspn(word, " ");
    char quote = *word == '"' || *word == '\'' ? *word++ : 0;
    gsize n = 0;
    while (g_ascii_isalnum(word[n]) || word[n] == '_')
        n++;
    const char *body = strchr(word, '\n');
    if (n == 0 || (quote && word[n] != quote) || !body)
        return NULL;
    g_autofree char *mark = g_strndup(word, n);
    const char *end = ++body;
    for (const char *stop = NULL; *end; end = stop + 1) {
        stop = strchr(end, '\n');
        g_autofree char *line = stop ? g_strndup(end, (gsize)(stop - end)) : g_strdup(end);
        if (strcmp(g_strstrip(line), mark) == 0 || !stop)
            break;
    }
    g_ptr_array_add(sh->bodies, g_strndup(body, (gsize)(end - body)));
    if (g_str_has_suffix(now->str, "$(cat ")) {
        g_autofree char *name = g_strdup_printf("_document_%u", sh->bodies->len);
        g_hash_table_insert(sh->variables, g_strdup(name),
                            g_strndup(body, MIN((gsize)(end - body), ORR_SHELL_MAX_VALUE)));
        g_string_truncate(now, now->len - strlen("$(cat "));
        g_string_append_printf(now, "(${%s}", name);
    }
    const char *behind = strchr(end, '\n');
    return behind ? behind : end + strlen(end);
}

/* Runs the statements of @text one by one: they end at a line end or ';' outside of quotes and
 * brackets; comments are skipped. */
static void run_text(OrrShell *sh, const char *text) {
    g_autoptr(GString) now = g_string_new(NULL);
    const char *document_end = NULL; /* where the here-document ends that begins on this line */
    char quote = 0;
    guint depth = 0;
    for (const char *at = text; *at; at++) {
        bool is_start = at == text || strchr(" \t\n;", at[-1]), is_end = false;
        if (*at == '\n' && document_end) {
            at = *document_end ? document_end : document_end - 1;
            document_end = NULL;
            is_end = !quote && depth == 0;
            g_string_append_c(now, ' ');
        } else if (*at == '\\' && at[1]) {
            g_string_append_c(now, at[1] == '\n' ? ' ' : '\\');
            if (at[1] != '\n')
                g_string_append_c(now, at[1]);
            at++;
        } else if (!quote && *at == '#' && is_start) {
            while (at[1] && at[1] != '\n')
                at++;
        } else if (!quote && g_str_has_prefix(at, "<<") && at[2] != '<' && !document_end &&
                   (document_end = take_document(sh, at, now))) {
            at += 1 + strcspn(at + 2, " )|>\n");
        } else if (!quote && depth == 0 && (*at == '\n' || *at == ';')) {
            is_end = true;
        } else {
            if (*at == '"' || *at == '\'')
                quote = !quote ? *at : quote == *at ? 0 : quote;
            depth += !quote && *at == '(';
            depth -= !quote && *at == ')' && depth > 0;
            if (now->len < ORR_SHELL_MAX_VALUE)
                g_string_append_c(now, *at);
        }
        if (!is_end)
            continue;
        run_statement(sh, now->str);
        g_string_truncate(now, 0);
        if (*at == ';' && at[1] == ';') {
            end_branch(sh);
            at++;
        }
    }
    run_statement(sh, now->str);
}

/* The number behind "#SBATCH --NAME=" or "#SBATCH -LETTER "; 0: none. */
static guint64 batch_option(const char *text, const char *name, char letter) {
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    guint64 value = 0;
    for (guint i = 0; lines[i]; i++) {
        const char *at = lines[i];
        if (!g_str_has_prefix(at, "#SBATCH"))
            continue;
        at += strlen("#SBATCH") + strspn(at + strlen("#SBATCH"), " \t");
        bool is_long = g_str_has_prefix(at, "--") && g_str_has_prefix(at + 2, name);
        if (!is_long && !(at[0] == '-' && at[1] == letter && letter))
            continue;
        at += is_long ? 2 + strlen(name) : 2;
        at += strspn(at, "= ");
        while (*at && !g_ascii_isdigit(*at) && *at != ' ') /* "--gres=gpu:a100:8" */
            at += *at == ':' && g_ascii_isalpha(at[1]) ? 1 + strcspn(at + 1, ": ") : 1;
        guint64 number = g_ascii_strtoull(at, NULL, 10);
        value = number > 0 && number < 1000000 ? number : value;
    }
    return value;
}

static void set_number(OrrShell *sh, const char *name, guint64 value) {
    if (value > 0)
        g_hash_table_insert(sh->variables, g_strdup(name),
                            g_strdup_printf("%" G_GUINT64_FORMAT, value));
}

/* What Slurm tells a job. */
static void read_batch_options(OrrShell *sh, const char *text) {
    guint64 nodes = batch_option(text, "nodes", 'N');
    guint64 gpus = batch_option(text, "gpus-per-node", 0);
    guint64 tasks = batch_option(text, "ntasks-per-node", 0);
    gpus = gpus > 0 ? gpus : batch_option(text, "gres", 0);
    set_number(sh, "SLURM_NNODES", nodes);
    set_number(sh, "SLURM_JOB_NUM_NODES", nodes);
    set_number(sh, "SLURM_GPUS_ON_NODE", gpus);
    set_number(sh, "SLURM_GPUS_PER_NODE", gpus);
    set_number(sh, "SLURM_NTASKS_PER_NODE", tasks);
    set_number(sh, "SLURM_NTASKS", nodes * tasks);
}

/* Here-documents that are JSON configure DeepSpeed ("deepspeed.NAME"); the others are looked into
 * only if the script itself says nothing: it may write the script that trains. */
static void read_documents(OrrShell *sh) {
    guint n = sh->bodies->len;
    for (guint i = 0; i < n; i++) {
        g_autofree char *text = orr_shell__expand(sh, sh->bodies->pdata[i]);
        g_strstrip(text);
        g_autoptr(OrrJson) json =
            text[0] == '{'
                ? orr_json_parse(sh->c->import->path, text, strlen(text), ORR_JSON_STRICT, NULL)
                : NULL;
        JsonObject *root = json ? orr_json_root_object(json, NULL) : NULL;
        if (root)
            orr_config__flatten(sh->c, "deepspeed", root);
    }
    for (guint i = 0; i < n && !orr_config__said(sh->c, "num-layers"); i++)
        run_text(sh, sh->bodies->pdata[i]);
}

static void shell_clear(OrrShell *sh) {
    while (sh->n_cases > 0)
        g_free(sh->cases[--sh->n_cases].word);
    g_hash_table_unref(sh->variables);
    g_ptr_array_unref(sh->bodies);
}

bool orr_config__read_shell(OrrConfig *c, const char *text, gsize length, GError **error) {
    OrrShell sh = {.c = c};
    g_autofree char *copy = g_utf8_make_valid(text, (gssize)length);
    sh.variables = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    sh.bodies = g_ptr_array_new_with_free_func(g_free);
    read_batch_options(&sh, copy);
    for (guint i = 0; c->import->sets && c->import->sets[i]; i++) {
        g_auto(GStrv) part = g_strsplit(c->import->sets[i], "=", 2);
        if (part[1] && !strchr(part[0], '.'))
            g_hash_table_insert(sh.variables, g_strdup(part[0]), g_strdup(part[1]));
    }
    run_text(&sh, copy);
    read_documents(&sh);
    const char *vocab = g_hash_table_lookup(sh.variables, "VOCAB_SIZE");
    if (vocab && !orr_config__said(c, "vocab-size"))
        orr_config__say(c, "vocab-size", vocab);
    shell_clear(&sh);
    if (!orr_config__said(c, "num-layers"))
        return orr_fail_input(error,
                              "%s: %s: no Megatron arguments (--num-layers, --hidden-size, ...) in "
                              "it",
                              c->import->path, c->kind);
    return true;
}
