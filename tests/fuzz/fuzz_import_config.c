/* Configurations: any bytes give a job file or an error that says why. What the text looks like
 * picks the kind. */
#include "sim/io/keys.h"
#include "tests/fuzz/fuzz.h"
#include "workloads/import_config.h"

#include <string.h>

static const char *name_of(const uint8_t *data, size_t size) {
    size_t at = 0;
    while (at < size && g_ascii_isspace((char)data[at]))
        at++;
    if (at < size && data[at] == '{')
        return "fuzz.json";
    if (fuzz_has_group(data, size, "--num") && !fuzz_has_group(data, size, "--num-layers:"))
        return "fuzz.sh";
    return fuzz_has_group(data, size, "]\n") && fuzz_has_group(data, size, "= ") ? "fuzz.toml"
                                                                                 : "fuzz.yaml";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const sets[] = {"job.cluster=h100-ib:8", "batch.sequence=4096 tokens", NULL};
    GError *error = NULL;
    g_autoptr(GString) notes = g_string_new(NULL);
    OrrImport import = {.path = name_of(data, size), .sets = sets, .notes = notes};
    g_autofree char *text = orr_import_config_text(&import, (const char *)data, size, &error);
    fuzz_check_error(text, &error);
    g_assert(g_utf8_validate(notes->str, -1, NULL));
    if (!text)
        return 0;
    g_autoptr(OrrKeys) keys = orr_keys_parse("out.ini", text, strlen(text), &error);
    if (!keys)
        g_error("imported, but no key file: %s", error->message);
    return 0;
}
