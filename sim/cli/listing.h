/* A cluster from a listing of another program, where a command takes a cluster. */
#ifndef ORR_CLI_LISTING_H
#define ORR_CLI_LISTING_H

#include "sim/cluster/cluster.h"
#include "sim/io/importer.h"

/* Whether @ref is a file that is no cluster file: NCCL XML, nvidia-smi topo -m, hwloc, ... */
bool orr_cli_is_listing(const char *ref);
/**
 * orr_cli_listing_cluster: import->path as `orrery import topology` reads it, as many such nodes as
 * @n_ranks GPUs need (or import->n_nodes). Notes go to import->notes. NULL with @error: the listing
 * is broken or says too little (--gpu, --nic), or no temporary file can be written.
 */
OrrCluster *orr_cli_listing_cluster(const OrrImport *import, uint32_t n_ranks, GError **error);

#endif
