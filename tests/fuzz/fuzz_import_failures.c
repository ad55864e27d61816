/* Histories of failures: an import is a failure file that loads, anything else says why. */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "workloads/import_failures.h"
#include "workloads/loader_run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    GError *error = NULL;
    g_autoptr(GString) notes = g_string_new(NULL);
    g_autofree char *input = g_strndup((const char *)data, size);
    OrrImport import = {
        .path = "fuzz.csv", .n_ranks = 16384, .window_ns = 54 * 86400e9, .notes = notes};
    g_autofree char *text = orr_import_failures_text(&import, input, strlen(input), &error);
    fuzz_check_error(text, &error);
    if (!text)
        return 0;
    g_auto(FuzzFile) file = fuzz_file(text, strlen(text));
    g_autoptr(OrrFailureSet) set = orr_workload_failures(file.path, NULL, 0, NULL, &error);
    if (!set)
        g_error("imported, but does not load: %s\n%s", error->message, text);
    return 0;
}
