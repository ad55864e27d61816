/* Rings in a point-to-point NVLink mesh. */
#ifndef ORR_COLLECTIVE_MESH_H
#define ORR_COLLECTIVE_MESH_H

#include <stdint.h>

#define ORR_MESH_MAX 16

/**
 * orr_mesh_rings: how many edge-disjoint rings pass all @n GPUs of @members (numbers inside the
 * node), each link used once; every ring runs both ways, so it counts twice the link's rate.
 * @links: node_gpus x node_gpus numbers of links. 2 <= @n <= ORR_MESH_MAX. With two GPUs: half
 * of the links between them, since a ring of two uses one link both ways twice.
 */
double orr_mesh_rings(const uint8_t *links, uint32_t node_gpus, const uint32_t *members,
                      uint32_t n);

#endif
