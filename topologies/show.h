/* A cluster as people look at it: a page of text, and a picture. */
#ifndef TOPOLOGIES_SHOW_H
#define TOPOLOGIES_SHOW_H

#include "sim/cluster/cluster.h"

/* Appends a page: GPU, node, network with its tiers as a tree, bisection, latencies, sources. */
void orr_topology_show_text(const OrrCluster *c, GString *out);
/* Appends an SVG picture: the tiers of the network from the core down to one node opened up. Where
 * there are too many of a thing the first few and the last are drawn. */
void orr_topology_show_svg(const OrrCluster *c, GString *out);

#endif
