/* A command of the program: one file each, the table is in main.c. Help, the man page's synopsis
 * and the completion are made from these tables. */
#ifndef ORR_CLI_COMMAND_H
#define ORR_CLI_COMMAND_H

#include "sim/io/file.h"
#include "sim/io/json_write.h"

#include <stddef.h>

/* An option "--name" or "-letter"; with @argument it takes a value ("--name VALUE",
 * "--name=VALUE"). Tables end with a name of NULL. */
typedef struct {
    const char *name;
    char letter;          /* 0: none */
    const char *argument; /* NULL: a switch */
    bool is_repeatable;
    const char *help;
} OrrOption;

typedef struct OrrCli OrrCli;

typedef struct {
    const char *name, *summary;
    const char *synopsis;    /* what follows the name, without options: "JOB" */
    const char *description; /* paragraphs, separated by an empty line */
    const char *const
        *kinds; /* first argument of commands that have kinds; NULL-terminated or NULL */
    guint min_arguments, max_arguments;
    const OrrOption *options;
    /* Returns true, or false with @error, whose code is the exit status. */
    bool (*run)(OrrCli *cli, GError **error);
} OrrCommand;

/* A parsed command line. */
struct OrrCli {
    const OrrCommand *command;
    GPtrArray *arguments; /* char*, without options */
    GPtrArray **values;   /* an option of the table each; NULL where not given */
};

/**
 * orr_cli_parse: @words are those behind the command's name, NULL-terminated. "--" ends the
 * options;
 * "-" is an argument. Errors (ORR_ERROR_USAGE): unknown option (with the nearest), missing or
 * unwanted value, given twice, too few or too many arguments.
 */
OrrCli *orr_cli_parse(const OrrCommand *command, char **words, GError **error);
void orr_cli_free(OrrCli *cli);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrCli, orr_cli_free)

/* By the option's name, which must be in the command's table. */
bool orr_cli_has(const OrrCli *cli, const char *option);
const char *orr_cli_value(const OrrCli *cli, const char *option); /* NULL: not given */
guint orr_cli_n_values(const OrrCli *cli, const char *option);
const char *orr_cli_nth_value(const OrrCli *cli, const char *option, guint i);
const char *orr_cli_argument(const OrrCli *cli, guint i); /* NULL behind the last */
/* A whole number within [@min, @max]; false with @error if it is none. *@value stays if not given.
 */
bool orr_cli_int(const OrrCli *cli, const char *option, int64_t min, int64_t max, int64_t *value,
                 GError **error);

/* The output of a command: --output, or standard output. */
OrrOut *orr_cli_output(const OrrCli *cli, GError **error);
/* A file can't be two things: false where two of the options @names (up to NULL) of the command
 * name one. */
bool orr_cli_are_apart(const OrrCli *cli, const char *command, const char *const *names,
                       GError **error);

/* Whether the files that the options @names (up to NULL) of the command name can be written, so
 * that it is told before the work. */
bool orr_cli_can_write(const OrrCli *cli, const char *const *names, GError **error);

/* Begins the object that a command prints: its schema, and the version of the program. */
void orr_cli_json_begin(OrrJsonWriter *w, const char *schema);

/* Help of a command, made from its tables. */
void orr_cli_help(const OrrCommand *command, OrrOut *out);
/* What `orrery` alone says: the commands and where to begin. */
void orr_cli_general_help(OrrOut *out);
/* The manual page, doc/orrery.1. */
void orr_cli_man(OrrOut *out);

/* The table, NULL-terminated. */
extern const OrrCommand *const orr_commands[];

/* Options that several commands share. */
#define ORR_OPTION_OUTPUT                                                                          \
    {                                                                                              \
        "output", 'o', "FILE", false,                                                              \
            "write to FILE (replaced whole or not at all) and not to stdout"                       \
    }
#define ORR_OPTION_JSON                                                                            \
    { "json", 0, NULL, false, "JSON instead of text" }
#define ORR_OPTION_CSV                                                                             \
    { "csv", 0, NULL, false, "CSV instead of text" }
#define ORR_OPTION_SET                                                                             \
    {                                                                                              \
        "set", 0, "GROUP.KEY=VALUE", true,                                                         \
            "override a key of the job or of a file it names; repeatable"                          \
    }
#define ORR_OPTION_JITTER                                                                          \
    {                                                                                              \
        "jitter", 0, "SD", false,                                                                  \
            "kernels take now more, now less time: standard deviation of a stretch between two "   \
            "meetings, 0.02 say; the step in the mean (orrery step --seeds N draws it too)"        \
    }
#define ORR_OPTION_PERTURB                                                                         \
    {                                                                                              \
        "perturb", 0, "TARGET=VALUE", true,                                                        \
            "what is not as it should be: gpu:17:speed=0.9, gpu:*:speed~normal(1,0.01), "          \
            "gpu:*:speed=@FILE.csv, link:NAME:bandwidth=0.5, nic:NODE:INDEX:bandwidth=0; "         \
            "repeatable"                                                                           \
    }
#define ORR_OPTION_SEED                                                                            \
    { "seed", 0, "N", false, "seed of all random draws; default: the job's" }
#define ORR_OPTION_UNFOLD                                                                          \
    { "unfold", 0, NULL, false, "execute every rank as itself, not one of each kind" }
#define ORR_OPTION_SELF_CHECK                                                                      \
    { "self-check", 0, NULL, false, "check bytes, bandwidth bounds and accounts while running" }
#define ORR_OPTION_STATS                                                                           \
    { "stats", 0, NULL, false, "wall time, memory and rates of the simulation, on stderr" }
#define ORR_OPTION_CALIBRATION                                                                     \
    {                                                                                              \
        "calibration", 0, "NAME", false,                                                           \
            "a calibration or efficiency tables; default: the GPU file's own"                      \
    }
#define ORR_OPTION_HELP                                                                            \
    { "help", 'h', NULL, false, "this help" }
#define ORR_OPTION_END                                                                             \
    { NULL, 0, NULL, false, NULL }

#endif
