/* What both drawings say. */
#ifndef TOPOLOGIES_SHOW_PRIV_H
#define TOPOLOGIES_SHOW_PRIV_H

#include "topologies/show.h"

/* Network rates in bits as their vendors state them, "400 Gb/s"; g_free. */
char *orr_show__bits(double bytes_per_s);
char *orr_show__count(uint32_t n);
/* "full bisection" or "oversubscribed 1:7"; g_free. */
char *orr_show__oversubscription(double ratio);
/* Rate of all traffic that can cross from one half of the GPUs in use to the other, one way. */
double orr_show__bisection_bytes_per_s(const OrrCluster *c);
/* Of the links up from one leaf and one pod together, one way; 0 where there is nothing above. */
double orr_show__leaf_up_bytes_per_s(const OrrCluster *c);
double orr_show__pod_up_bytes_per_s(const OrrCluster *c);
/* Nodes under one leaf (for rail fabrics: one set of leaves) and in one pod, of those in use. */
uint32_t orr_show__nodes_per_leaf(const OrrCluster *c);
uint32_t orr_show__nodes_per_pod(const OrrCluster *c);
/* Whether the fabric is reached at all. */
bool orr_show__has_fabric(const OrrCluster *c);

#endif
