/* Configurations: any bytes give a job file or an error that says why. The first byte picks the
 * kind. */
#include "sim/io/keys.h"
#include "tests/fuzz/fuzz.h"
#include "workloads/import_config.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const names[] = {"fuzz.sh", "fuzz.json", "fuzz.toml", "fuzz.yaml"};
    static const char *const sets[] = {"job.cluster=h100-ib:8", "batch.sequence=4096 tokens", NULL};
    if (size < 2)
        return 0;
    GError *error = NULL;
    g_autoptr(GString) notes = g_string_new(NULL);
    OrrImport import = {.path = names[data[0] % 4], .sets = sets, .notes = notes};
    g_autofree char *text =
        orr_import_config_text(&import, (const char *)data + 1, size - 1, &error);
    fuzz_check_error(text, &error);
    g_assert(g_utf8_validate(notes->str, -1, NULL));
    if (!text)
        return 0;
    g_autoptr(OrrKeys) keys = orr_keys_parse("out.ini", text, strlen(text), &error);
    if (!keys)
        g_error("imported, but no key file: %s", error->message);
    return 0;
}
