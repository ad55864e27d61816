/* Saved records of a step: any JSON is run again as it says, or refused with its place. Only the
 * reading and lowering, not the step. */
#include <stdlib.h>
#include <string.h>

#include "sim/cli/run.h"
#include "tests/fuzz/fuzz.h"

static const OrrOption options[] = {ORR_RUN_OPTIONS, ORR_OPTION_END};
static const OrrCommand command = {.name = "fuzz", .max_arguments = 1, .options = options};

/* A path that ends in .json and means @target. g_free. */
static char *link_to(const char *target) {
    char *path = g_strdup_printf("%s/orrery-fuzz-%d.json", g_get_tmp_dir(), (int)getpid());
    unlink(path);
    if (symlink(target, path) != 0)
        g_error("cannot link %s", path);
    return path;
}

/* Numbers of four digits make programs long and find nothing that three do not. */
static bool has_large_number(const uint8_t *data, size_t size) {
    guint digits = 0;
    for (size_t i = 0; i < size && digits < 4; i++)
        digits = g_ascii_isdigit((char)data[i]) ? digits + 1 : 0;
    return digits == 4;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *words[] = {NULL};
    if (has_large_number(data, size))
        return 0;
    static bool is_quiet; /* files of the record that changed are told on stderr */
    if (!is_quiet)
        is_quiet = freopen("/dev/null", "w", stderr) != NULL;
    g_auto(FuzzFile) file = fuzz_file(data, size);
    g_autofree char *path = link_to(file.path);
    GError *error = NULL;
    g_autoptr(OrrCli) cli = orr_cli_parse(&command, words, &error);
    g_assert(cli);
    g_autoptr(OrrCliRun) run = orr_cli_run_prepare(cli, path, &error);
    unlink(path);
    fuzz_check_error(run, &error);
    return 0;
}
