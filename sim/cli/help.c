/* Help and manual page, both made from the tables of commands and options. */
#include "sim/cli/command.h"

#include "config.h"

#include <string.h>

#define HELP_COLUMNS 92

/* Words of @text broken at HELP_COLUMNS behind @indent; an empty line stays one. */
static void paragraph(OrrOut *out, const char *text, guint indent, guint column) {
    g_auto(GStrv) words = g_strsplit(text, " ", -1);
    for (guint i = 0; words[i]; i++) {
        guint n = (guint)strlen(words[i]);
        if (column > indent && column + 1 + n > HELP_COLUMNS) {
            orr_out_printf(out, "\n%*s", (int)indent, "");
            column = indent;
        }
        orr_out_printf(out, "%s%s", column > indent ? " " : "", words[i]);
        column += n + (column > indent);
    }
    orr_out_puts(out, "\n");
}

static void option_help(const OrrOption *o, OrrOut *out) {
    g_autofree char *letter = o->letter ? g_strdup_printf("-%c, ", o->letter) : g_strdup("    ");
    g_autofree char *left = g_strdup_printf("  %s--%s%s%s", letter, o->name, o->argument ? " " : "",
                                            o->argument ? o->argument : "");
    orr_out_printf(out, "%-28s", left);
    if (strlen(left) > 27)
        orr_out_printf(out, "\n%28s", "");
    paragraph(out, o->help, 28, 28);
}

void orr_cli_help(const OrrCommand *c, OrrOut *out) {
    orr_out_printf(out, "usage: orrery %s %s [options]\n\n%s\n\n", c->name, c->synopsis,
                   c->summary);
    g_auto(GStrv) paragraphs = g_strsplit(c->description, "\n\n", -1);
    for (guint i = 0; paragraphs[i]; i++) {
        if (paragraphs[i][0] == ' ') /* an example or a list: as it is */
            orr_out_printf(out, "%s\n", paragraphs[i]);
        else
            paragraph(out, paragraphs[i], 0, 0);
        orr_out_puts(out, "\n");
    }
    if (c->kinds) {
        orr_out_puts(out, "kinds:");
        for (guint i = 0; c->kinds[i]; i++)
            orr_out_printf(out, " %s", c->kinds[i]);
        orr_out_puts(out, "\n\n");
    }
    orr_out_puts(out, "options:\n");
    for (guint i = 0; c->options[i].name; i++)
        option_help(&c->options[i], out);
}

void orr_cli_general_help(OrrOut *out) {
    orr_out_puts(
        out,
        "Orrery simulates distributed training on GPU clusters: what a step takes and why, before\n"
        "any money is spent.\n\n"
        "usage: orrery COMMAND [options]\n\ncommands:\n");
    for (int i = 0; orr_commands[i]; i++)
        orr_out_printf(out, "  %-8s %s\n", orr_commands[i]->name, orr_commands[i]->summary);
    orr_out_puts(
        out,
        "\nTry:\n"
        "  orrery list jobs                          what can be run as it is\n"
        "  orrery step llama3-405b-16k               one step of Llama 3 405B on 16,384 H100s\n"
        "  orrery step llama3-8b-8 --set batch.micro=2\n"
        "  orrery show collective all_reduce 1MiB..1GiB --cluster h100-ib --gpus 64\n\n"
        "orrery COMMAND --help explains a command; orrery --version tells the version.\n"
        "Exit status: 0 done, 1 the answer is no (does not fit), 2 usage, 3 bad input, 4 "
        "surroundings.\n");
}

/* @text for roff: '-' and '\\' escaped, a line that would be a request shielded. */
static void roff(OrrOut *out, const char *text) {
    if (*text == '.' || *text == '\'')
        orr_out_puts(out, "\\&");
    for (; *text; text++) {
        if (*text == '-' || *text == '\\')
            orr_out_puts(out, *text == '-' ? "\\-" : "\\e");
        else
            orr_out_write(out, text, 1);
    }
}

static void man_option(const OrrOption *o, OrrOut *out) {
    orr_out_puts(out, ".TP\n.B ");
    if (o->letter)
        orr_out_printf(out, "\\-%c\\fR, \\fB", o->letter);
    orr_out_puts(out, "\\-\\-");
    roff(out, o->name);
    if (o->argument) {
        orr_out_puts(out, " \\fI");
        roff(out, o->argument);
        orr_out_puts(out, "\\fR");
    }
    orr_out_puts(out, "\n");
    roff(out, o->help);
    orr_out_puts(out, "\n");
}

static void man_command(const OrrCommand *c, OrrOut *out) {
    orr_out_printf(out, ".SS orrery %s \\fI", c->name);
    roff(out, c->synopsis);
    orr_out_puts(out, "\\fR\n");
    roff(out, c->summary);
    orr_out_puts(out, ".\n");
    g_auto(GStrv) paragraphs = g_strsplit(c->description, "\n\n", -1);
    for (guint i = 0; paragraphs[i]; i++) {
        bool is_example = paragraphs[i][0] == ' ';
        orr_out_puts(out, is_example ? ".PP\n.nf\n" : ".PP\n");
        roff(out, paragraphs[i]);
        orr_out_puts(out, is_example ? "\n.fi\n" : "\n");
    }
    for (guint i = 0; c->options[i].name; i++)
        man_option(&c->options[i], out);
}

void orr_cli_man(OrrOut *out) {
    orr_out_puts(
        out,
        ".\\\" Made by 'orrery help --man' from the tables of commands and options; a test "
        "compares.\n"
        ".TH ORRERY 1 \"\" \"" PACKAGE_STRING "\" \"User commands\"\n"
        ".SH NAME\norrery \\- simulate distributed training on GPU clusters\n"
        ".SH SYNOPSIS\n.B orrery\n.I COMMAND\n.RI [ options ]\n"
        ".SH DESCRIPTION\n.B orrery\nanswers what a training run on a GPU cluster will do, before "
        "any "
        "money is spent: time of a step and why,\nFLOP/s per GPU, memory by pipeline stage, "
        "communication hidden and exposed.\nResults go to standard output, all else to standard "
        "error.\n.SH COMMANDS\n");
    for (int i = 0; orr_commands[i]; i++)
        man_command(orr_commands[i], out);
    orr_out_puts(
        out,
        ".SH EXIT STATUS\n.TP\n.B 0\ndone\n.TP\n.B 1\nthe answer is no: does not fit\n"
        ".TP\n.B 2\nthe command line is wrong\n.TP\n.B 3\na file or a value in it is wrong\n"
        ".TP\n.B 4\nsurroundings: disk full, program missing\n"
        ".SH ENVIRONMENT\n.TP\n.B ORRERY_DATA\nfolder that is searched first for data files\n");
}
