/* The program: a table of commands, and the way from the command line to one of them. */
#include "config.h"

#include "sim/base/words.h"
#include "sim/cli/commands.h"

#include <stdio.h>
#include <string.h>

const OrrCommand *const orr_commands[] = {
    &orr_cmd_step,  &orr_cmd_run,     &orr_cmd_trace,     &orr_cmd_plot,
    &orr_cmd_show,  &orr_cmd_list,    &orr_cmd_import,    &orr_cmd_validate,
    &orr_cmd_check, &orr_cmd_compare, &orr_cmd_calibrate, NULL,
};

static const OrrCommand *find(const char *name, GError **error) {
    const char *names[G_N_ELEMENTS(orr_commands)] = {NULL};
    for (int i = 0; orr_commands[i]; i++) {
        if (strcmp(orr_commands[i]->name, name) == 0)
            return orr_commands[i];
        names[i] = orr_commands[i]->name;
    }
    g_autofree char *hint = orr_words_hint(name, names);
    orr_fail_usage(error, "unknown command '%s'; %s (see orrery --help)", name, hint);
    return NULL;
}

/* Help and version of the program itself; -1 if @word asks for neither. */
static int answer_general(const char *word, const char *next, GError **error) {
    bool is_help = !word || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 ||
                   strcmp(word, "help") == 0;
    bool is_version = word && strcmp(word, "--version") == 0;
    if (!is_help && !is_version)
        return -1;
    if (!word) { /* a mistake, so it goes where messages go */
        g_autoptr(GString) text = g_string_new(NULL);
        g_autoptr(OrrOut) help = orr_out_to_string(text);
        orr_cli_general_help(help);
        fputs(text->str, stderr);
        return ORR_ERROR_USAGE;
    }
    g_autoptr(OrrOut) out = orr_out_open(NULL, error);
    if (!out)
        return ORR_ERROR_ENV;
    if (is_version)
        orr_out_puts(out, PACKAGE_STRING "\n");
    else if (next && strcmp(next, "--man") == 0)
        orr_cli_man(out);
    else if (next) {
        const OrrCommand *command = find(next, error);
        if (!command)
            return ORR_ERROR_USAGE;
        orr_cli_help(command, out);
    } else
        orr_cli_general_help(out);
    if (!orr_out_commit(out, error))
        return ORR_ERROR_ENV;
    return 0;
}

static bool run_command(char **words, GError **error) {
    const OrrCommand *command = find(words[0], error);
    if (!command)
        return false;
    g_autoptr(OrrCli) cli = orr_cli_parse(command, words + 1, error);
    if (!cli)
        return false;
    if (!orr_cli_has(cli, "help"))
        return command->run(cli, error);
    g_autoptr(OrrOut) out = orr_out_open(NULL, error);
    if (!out)
        return false;
    orr_cli_help(command, out);
    return orr_out_commit(out, error);
}

int main(int argc, char **argv) {
    GError *error = NULL;
    int status = answer_general(argv[1], argc > 2 ? argv[2] : NULL, &error);
    if (status < 0)
        status = run_command(argv + 1, &error) ? 0 : error->code;
    if (error) {
        bool is_named = g_str_has_prefix(error->message, "orrery ");
        fprintf(stderr, "%s%s\n", is_named ? "" : "orrery: ", error->message);
        g_error_free(error);
    }
    return status;
}
