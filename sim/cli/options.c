/* Command lines against option tables; what answers to them have in common. */
#include "config.h"

#include "sim/cli/command.h"

#include "sim/base/words.h"

#include <string.h>

static guint n_options(const OrrCommand *c) {
    guint n = 0;
    while (c->options[n].name)
        n++;
    return n;
}

static int index_of(const OrrCommand *c, const char *name) {
    for (guint i = 0; c->options[i].name; i++)
        if (strcmp(c->options[i].name, name) == 0)
            return (int)i;
    return -1;
}

static int index_of_letter(const OrrCommand *c, char letter) {
    for (guint i = 0; c->options[i].name; i++)
        if (c->options[i].letter == letter)
            return (int)i;
    return -1;
}

static bool unknown_option(const OrrCommand *c, const char *word, GError **error) {
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (guint i = 0; c->options[i].name; i++)
        g_ptr_array_add(names, (gpointer)c->options[i].name);
    g_ptr_array_add(names, NULL);
    g_autofree char *hint = orr_words_hint(word, (const char *const *)names->pdata);
    return orr_fail_usage(error, "orrery %s: unknown option '--%s'; %s (see orrery %s --help)",
                          c->name, word, hint, c->name);
}

static bool keep(OrrCli *cli, int option, const char *value, GError **error) {
    const OrrOption *o = &cli->command->options[option];
    if (cli->values[option] && !o->is_repeatable && o->argument)
        return orr_fail_usage(error, "orrery %s: option '--%s' is given twice", cli->command->name,
                              o->name);
    if (!cli->values[option])
        cli->values[option] = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(cli->values[option], g_strdup(value));
    return true;
}

/* One word that starts with "-"; *@at is its place in @words and moves on if the value is the next.
 */
static bool take_option(OrrCli *cli, char **words, guint *at, GError **error) {
    const OrrCommand *c = cli->command;
    const char *word = words[*at], *value = NULL;
    int option;
    if (word[1] == '-') {
        g_autofree char *name = g_strdup(word + 2);
        char *equals = strchr(name, '=');
        if (equals)
            *equals = 0, value = word + 2 + (equals - name) + 1;
        option = index_of(c, name);
        if (option < 0)
            return unknown_option(c, name, error);
    } else {
        option = index_of_letter(c, word[1]);
        if (option < 0)
            return orr_fail_usage(error, "orrery %s: unknown option '%s' (see orrery %s --help)",
                                  c->name, word, c->name);
        value = word[2] ? word + 2 : NULL;
    }
    const OrrOption *o = &c->options[option];
    if (!o->argument && value)
        return orr_fail_usage(error, "orrery %s: option '--%s' takes no value, but got '%s'",
                              c->name, o->name, value);
    if (o->argument && !value) {
        value = words[*at + 1];
        if (!value)
            return orr_fail_usage(error, "orrery %s: option '--%s' needs a value: --%s %s", c->name,
                                  o->name, o->name, o->argument);
        ++*at;
    }
    return keep(cli, option, value ? value : "", error);
}

static bool count_arguments(const OrrCli *cli, GError **error) {
    const OrrCommand *c = cli->command;
    guint n = cli->arguments->len;
    int help = index_of(c, "help");
    if (help >= 0 && cli->values[help])
        return true;
    if (n < c->min_arguments)
        return orr_fail_usage(error, "orrery %s: something is missing; usage: orrery %s %s",
                              c->name, c->name, c->synopsis);
    if (n > c->max_arguments)
        return orr_fail_usage(error, "orrery %s: '%s' is one word too many; usage: orrery %s %s",
                              c->name, orr_cli_argument(cli, c->max_arguments), c->name,
                              c->synopsis);
    return true;
}

OrrCli *orr_cli_parse(const OrrCommand *command, char **words, GError **error) {
    g_autoptr(OrrCli) cli = g_new0(OrrCli, 1);
    cli->command = command;
    cli->arguments = g_ptr_array_new_with_free_func(g_free);
    cli->values = g_new0(GPtrArray *, n_options(command) + 1);
    bool only_arguments = false;
    for (guint i = 0; words[i]; i++) {
        if (only_arguments || words[i][0] != '-' || words[i][1] == 0)
            g_ptr_array_add(cli->arguments, g_strdup(words[i]));
        else if (strcmp(words[i], "--") == 0)
            only_arguments = true;
        else if (!take_option(cli, words, &i, error))
            return NULL;
    }
    return count_arguments(cli, error) ? g_steal_pointer(&cli) : NULL;
}

void orr_cli_free(OrrCli *cli) {
    if (!cli)
        return;
    for (guint i = 0; i < n_options(cli->command); i++)
        g_clear_pointer(&cli->values[i], g_ptr_array_unref);
    g_free(cli->values);
    g_ptr_array_unref(cli->arguments);
    g_free(cli);
}

static const GPtrArray *values_of(const OrrCli *cli, const char *option) {
    int i = index_of(cli->command, option);
    g_assert(i >= 0);
    return cli->values[i];
}

bool orr_cli_has(const OrrCli *cli, const char *option) {
    return values_of(cli, option) != NULL;
}

guint orr_cli_n_values(const OrrCli *cli, const char *option) {
    const GPtrArray *values = values_of(cli, option);
    return values ? values->len : 0;
}

const char *orr_cli_nth_value(const OrrCli *cli, const char *option, guint i) {
    return values_of(cli, option)->pdata[i];
}

const char *orr_cli_value(const OrrCli *cli, const char *option) {
    return orr_cli_has(cli, option) ? orr_cli_nth_value(cli, option, 0) : NULL;
}

const char *orr_cli_argument(const OrrCli *cli, guint i) {
    return i < cli->arguments->len ? cli->arguments->pdata[i] : NULL;
}

bool orr_cli_int(const OrrCli *cli, const char *option, int64_t min, int64_t max, int64_t *value,
                 GError **error) {
    const char *text = orr_cli_value(cli, option);
    if (!text)
        return true;
    gint64 v;
    if (!g_ascii_string_to_signed(text, 10, min, max, &v, NULL))
        return orr_fail_usage(error,
                              "orrery %s: --%s %s: a whole number from %" G_GINT64_FORMAT
                              " to %" G_GINT64_FORMAT " would do",
                              cli->command->name, option, text, min, max);
    *value = v;
    return true;
}

OrrOut *orr_cli_output(const OrrCli *cli, GError **error) {
    return orr_out_open(orr_cli_value(cli, "output"), error);
}

void orr_cli_json_begin(OrrJsonWriter *w, const char *schema) {
    orr_json_begin_object(w, NULL);
    orr_json_put_string(w, "schema", schema);
    orr_json_put_string(w, "version", PACKAGE_VERSION);
}

static char *file_of(const OrrCli *cli, const char *name) {
    const char *path = orr_cli_value(cli, name);
    return path && strcmp(path, "-") != 0 ? g_canonicalize_filename(path, NULL) : NULL;
}

bool orr_cli_are_apart(const OrrCli *cli, const char *command, const char *const *names,
                       GError **error) {
    for (uint32_t i = 0; names[i]; i++) {
        g_autofree char *mine = file_of(cli, names[i]);
        for (uint32_t j = 0; j < i && mine; j++) {
            g_autofree char *other = file_of(cli, names[j]);
            if (g_strcmp0(mine, other) == 0)
                return orr_fail_usage(error,
                                      "orrery %s: --%s and --%s are both %s; another name would do",
                                      command, names[j], names[i], orr_cli_value(cli, names[i]));
        }
    }
    return true;
}

bool orr_cli_can_write(const OrrCli *cli, const char *const *names, GError **error) {
    for (uint32_t i = 0; names[i]; i++)
        if (!orr_out_probe(orr_cli_value(cli, names[i]), error))
            return false;
    return true;
}
