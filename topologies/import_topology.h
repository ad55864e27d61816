/* Listings of machines by other programs as cluster files: NCCL and RCCL topology XML
 * (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE), `nvidia-smi topo -m` and `rocm-smi --showtopotype` tables,
 * hwloc XML, ibnetdiscover in both forms. Which one it is the text itself tells.
 *
 * A listing of one node gives a cluster of one node (or of import->n_nodes); ibnetdiscover gives
 * the fabric and takes the node from the NICs of a host. What a listing does not say must be said
 * (--gpu, --nic) or is assumed with a note. Left out: CPUs, NUMA distances, storage.
 *
 * Source: NCCL src/graph/xml.cc and topo.cc; nvidia-smi(1); hwloc 2 XML; ibnetdiscover(8). */
#ifndef TOPOLOGIES_IMPORT_TOPOLOGY_H
#define TOPOLOGIES_IMPORT_TOPOLOGY_H

#include "sim/facts/found.h"
#include "sim/io/importer.h"

/* What the listing at import->path shows, free with orr_found_node_free; NULL with @error. */
OrrFoundNode *orr_topology_find(const OrrImport *import, GError **error);
/* As orr_topology_find, from memory; import->path stands for the file. */
OrrFoundNode *orr_topology_find_in(const OrrImport *import, const char *text, gsize length,
                                   GError **error);
/* The cluster file, with its node in it; g_free. NULL with @error if the listing says too little:
 * the GPU is not among ours (--gpu), NICs have no rate (--nic). */
char *orr_topology_cluster_text(const OrrImport *import, const OrrFoundNode *found, GError **error);

extern const OrrImporter orr_importer_topology;

#endif
