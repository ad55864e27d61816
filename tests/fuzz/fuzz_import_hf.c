/* config.json: an import is a model file that loads, anything else says why. */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "workloads/import_hf.h"
#include "workloads/loader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    GError *error = NULL;
    g_autoptr(GString) warnings = g_string_new(NULL);
    g_autofree char *text =
        orr_import_hf_text("fuzz.json", (const char *)data, size, warnings, &error);
    fuzz_check_error(text, &error);
    g_assert(g_utf8_validate(warnings->str, -1, NULL));
    if (text == NULL)
        return 0;
    g_auto(FuzzFile) file = fuzz_file(text, strlen(text));
    g_autoptr(OrrModel) model = orr_workload_model(file.path, NULL, 0, NULL, &error);
    if (model == NULL)
        g_error("imported, but does not load: %s", error->message);
    return 0;
}
