/* Listings of machines: any bytes give a cluster file that loads or an error that says why. The
 * writer itself loads what it wrote. */
#include "tests/fuzz/fuzz.h"
#include "topologies/import_topology.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    GError *error = NULL;
    g_autoptr(GString) notes = g_string_new(NULL);
    OrrImport import = {.path = "fuzz.xml", .gpu = "a100-sxm-80", .nic = "200G", .notes = notes};
    g_autoptr(OrrFoundNode) found = orr_topology_find_in(&import, (const char *)data, size, &error);
    fuzz_check_error(found, &error);
    g_assert(g_utf8_validate(notes->str, -1, NULL));
    g_autofree char *text = found ? orr_topology_cluster_text(&import, found, &error) : NULL;
    if (found)
        fuzz_check_error(text, &error);
    return 0;
}
