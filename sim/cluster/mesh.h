/* Rings through an NVLink mesh, as NCCL lays them. */
#ifndef ORR_CLUSTER_MESH_H
#define ORR_CLUSTER_MESH_H

#include "sim/cluster/cluster.h"

/**
 * orr_mesh_ring_bytes_per_s: what one GPU can send in one direction over all link-disjoint rings
 * through the members @locals [@n] of a node, of the mesh node @node.
 * Two members: the links between them. Where no ring closes, those that hand on through a
 * member between. Returns: bytes per second; 0 if there are none of either (PCIe must help) or n is
 * 1.
 */
double orr_mesh_ring_bytes_per_s(const OrrNode *node, const uint32_t *locals, uint32_t n);

#endif
