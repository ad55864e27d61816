/* Command lines, a word a line, and NCCL's variables among them (NAME=VALUE): taken, or refused
 * with a reason. */
#include <string.h>

#include "sim/cli/command.h"
#include "sim/collective/nccl_env.h"
#include "tests/fuzz/fuzz.h"

static const OrrOption options[] = {ORR_OPTION_OUTPUT, ORR_OPTION_JSON, ORR_OPTION_SET,
                                    ORR_OPTION_SEED,   ORR_OPTION_HELP, ORR_OPTION_END};
static const OrrCommand command = {.name = "fuzz",
                                   .summary = "fuzz",
                                   .synopsis = "JOB",
                                   .min_arguments = 1,
                                   .max_arguments = 3,
                                   .options = options};

static void read_command(char **words) {
    GError *error = NULL;
    g_autoptr(OrrCli) cli = orr_cli_parse(&command, words, &error);
    fuzz_check_error(cli, &error);
    if (!cli)
        return;
    int64_t seed = 7;
    bool is_read = orr_cli_int(cli, "seed", 0, 1000, &seed, &error);
    fuzz_check_error(is_read ? cli : NULL, &error);
    g_assert(!is_read || (seed >= 0 && seed <= 1000));
    for (guint i = 0; i < orr_cli_n_values(cli, "set"); i++)
        g_assert(orr_cli_nth_value(cli, "set", i));
}

static void read_variables(char **words) {
    g_autoptr(GPtrArray) names = g_ptr_array_new(), values = g_ptr_array_new();
    for (guint i = 0; words[i]; i++) {
        char *equals = strchr(words[i], '=');
        if (!equals)
            continue;
        *equals = 0;
        g_ptr_array_add(names, words[i]);
        g_ptr_array_add(values, equals + 1);
    }
    g_ptr_array_add(names, NULL);
    g_ptr_array_add(values, NULL);
    OrrNcclEnv env = {0};
    GError *error = NULL;
    bool is_read = orr_nccl_env_parse((const char *const *)names->pdata,
                                      (const char *const *)values->pdata, NULL, &env, &error);
    fuzz_check_error(is_read ? names : NULL, &error);
    if (is_read)
        orr_nccl_env_clear(&env);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    g_autofree char *text = g_strndup((const char *)data, size);
    if (!g_utf8_validate(text, -1, NULL))
        return 0; /* main refuses such words */
    g_auto(GStrv) words = g_strsplit(text, "\n", 64);
    read_command(words);
    read_variables(words);
    return 0;
}
