#include "sim/cli/listing.h"

#include <glib/gstdio.h>
#include <unistd.h>

#include "topologies/import_topology.h"
#include "topologies/loader.h"

bool orr_cli_is_listing(const char *ref) {
    return !g_str_has_suffix(ref, ".ini") && g_file_test(ref, G_FILE_TEST_IS_REGULAR);
}

/* The loader reads files: what the importer wrote goes through one that is gone behind it. */
static OrrCluster *load_text(const char *text, GError **error) {
    g_autofree char *path = NULL;
    g_autoptr(GError) flaw = NULL;
    int file = g_file_open_tmp(NULL, &path, &flaw);
    if (file < 0 || close(file) != 0 || !g_file_set_contents(path, text, -1, &flaw)) {
        g_set_error(error, ORR_ERROR, ORR_ERROR_ENV, "no temporary file: %s",
                    flaw ? flaw->message : "it cannot be closed");
        return NULL;
    }
    OrrCluster *cluster = orr_topology_cluster(path, NULL, error);
    g_unlink(path);
    return cluster;
}

OrrCluster *orr_cli_listing_cluster(const OrrImport *import, uint32_t n_ranks, GError **error) {
    OrrFoundNode *found = orr_topology_find(import, error);
    if (!found)
        return NULL;
    OrrImport whole = *import;
    if (whole.n_nodes == 0 && found->n_gpus > 0)
        whole.n_nodes = (n_ranks + found->n_gpus - 1) / found->n_gpus;
    g_autofree char *text = orr_topology_cluster_text(&whole, found, error);
    orr_found_node_free(found);
    return text ? load_text(text, error) : NULL;
}
