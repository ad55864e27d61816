/* Private to workloads/: a launch script while it is read. */
#ifndef WORKLOADS_CONFIG_SHELL_H
#define WORKLOADS_CONFIG_SHELL_H

#include "workloads/config_priv.h"

#define ORR_SHELL_MAX_VALUE 65536 /* ours: variables that hold themselves must not grow for ever   \
                                   */
#define ORR_SHELL_MAX_CASES 8     /* ours: nested ones */

typedef struct {
    char *word; /* NULL: it stands in a branch that is not followed */
    bool is_open, is_followed, is_done;
} OrrShellCase;

typedef struct {
    OrrConfig *c;
    GHashTable *variables;
    guint depth, skip; /* of ifs; skip: depth of the outermost one that is not followed, 0: none */
    bool is_taken[32]; /* a branch of this if was followed */
    OrrShellCase cases[ORR_SHELL_MAX_CASES];
    guint n_cases;
    GPtrArray *bodies; /* char *, of here-documents */
} OrrShell;

/* NULL: not set. */
const char *orr_shell__variable(OrrShell *sh, const char *name);
/* @text with its variables and arithmetic; $(command) and `command` are empty. g_free. */
char *orr_shell__expand(OrrShell *sh, const char *text);
/* Behind the bracket that closes the one at @at. */
const char *orr_shell__behind(const char *at, char open, char close);

#endif
