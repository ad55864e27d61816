/* orrery import: files of other programs into ours. */
#include "sim/cli/commands.h"

#include "sim/base/words.h"
#include "workloads/import_hf.h"

#include <stdio.h>
#include <string.h>

static const char *const kinds[] = {"hf", NULL};

static const OrrOption options[] = {
    ORR_OPTION_OUTPUT,
    ORR_OPTION_HELP,
    ORR_OPTION_END,
};

static bool run(OrrCli *cli, GError **error) {
    const char *kind = orr_cli_argument(cli, 0), *path = orr_cli_argument(cli, 1);
    if (strcmp(kind, "hf") != 0) {
        g_autofree char *hint = orr_words_hint(kind, kinds);
        return orr_fail_usage(error, "orrery import: unknown kind '%s'; %s", kind, hint);
    }
    g_autoptr(GString) warnings = g_string_new(NULL);
    g_autofree char *text = orr_import_hf(path, warnings, error);
    if (!text)
        return false;
    fputs(warnings->str, stderr);
    g_autoptr(OrrOut) out = orr_cli_output(cli, error);
    if (!out)
        return false;
    orr_out_puts(out, text);
    return orr_out_commit(out, error);
}

const OrrCommand orr_cmd_import = {
    .name = "import",
    .summary = "turn a file of another program into one of ours",
    .synopsis = "KIND FILE",
    .description =
        "hf: a Hugging Face config.json of a dense decoder becomes a model file. Keys that "
        "are absent take the defaults of their architecture, which are told on stderr. What "
        "cannot be modelled is refused by name.\n\n"
        "  orrery import hf config.json -o my-model.ini\n"
        "  orrery show model ./my-model.ini",
    .kinds = kinds,
    .min_arguments = 2,
    .max_arguments = 2,
    .options = options,
    .run = run,
};
