/* A cluster in one line, for quick questions: "fat_tree:256 node:8 gpu:h100".
 *
 * First KIND:GPUS, then in any order:
 *   node:N          GPUs in a node (8)
 *   gpu:NAME        a GPU file or alias (h100)
 *   nvlink:switch   or mesh (all pairs), none (as the GPU has it)
 *   domain:N        nodes of one NVLink domain (1)
 *   nics:N          NICs of a node (one a GPU)
 *   nic:400G        rate of one NIC in Gb/s (as the GPU's own DGX has it)
 *   net:ib          or roce, ethernet (by kind)
 *   leaf:N          rail: nodes under one rail switch (32); clos: GPUs under one leaf (32)
 *   pod:N           GPUs of a pod below the core (all)
 *   oversub:X       at the leaves (1)      pod_oversub:X  at the pods (1)
 *   routing:spread  or ecmp-hash           seed:N
 * KIND is fat_tree or rail (rail-optimised fat tree, InfiniBand), clos (leaves by rack, RoCE), flat
 * (one big switch, RoCE) or ethernet (one big switch, sockets). */
#ifndef TOPOLOGIES_SHAPES_H
#define TOPOLOGIES_SHAPES_H

#include "topologies/loader.h"

/* Whether @ref is meant as a shape: it has a space, or starts with a known kind and ':'. */
bool orr_shape_is(const char *ref);
/* The cluster of a shape; errors (ORR_ERROR_INPUT) name the token and what would do. Overrides
 * of cluster, node and gpu apply on top of it. */
OrrCluster *orr_shape_cluster(const char *shape, const OrrTopologyOptions *options, GError **error);

#endif
