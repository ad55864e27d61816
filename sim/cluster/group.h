/* Where the members of a communication group sit on the machine: all that the cost of a collective
 * over them depends on, besides bytes. */
#ifndef ORR_CLUSTER_GROUP_H
#define ORR_CLUSTER_GROUP_H

#include "sim/cluster/cluster.h"

typedef struct {
    uint32_t n_gpus;
    uint32_t n_domains;                      /* NVLink domains, else nodes */
    uint32_t min_per_domain, max_per_domain; /* members */
    uint32_t n_nodes, max_per_node;
    double
        nics_per_domain;   /* distinct NICs that the members in a domain have, the least; 0: none */
    uint32_t gpus_per_nic; /* members that share one NIC, the most; at least 1 */
    /* Over the ring of domains in the order of first members; 0 if there is one domain: */
    double net_latency_ns;                        /* mean one-way latency to the next domain */
    double leaf_crossing_frac, pod_crossing_frac; /* of those hops that leave the leaf, the pod */
    /* Least rate that a NIC gets above its leaf if every NIC of the cluster runs such a ring and
     * the fabric spreads it evenly; 0: the NIC itself is the limit. */
    double fabric_bytes_per_s;
    /* MESH: bytes per second out of a GPU on the rings that fit among the members of one node, all
     * rings together; SWITCH: a GPU's NVLink; NONE: 0. */
    double nvlink_bytes_per_s;
} OrrGroupShape;

/**
 * orr_cluster_group_shape: measures the group of @gpus [@n], at least one, all different, in group
 * order. Time and memory O(n). Errors: none.
 * @repeat: [n], or NULL for once each. A GPU that stands for that many like it, in domains of their
 * own that follow each other on the ring; equal for all members in a domain. The hop from one to
 * the next is then like that from the last of them to the next member.
 */
void orr_cluster_group_shape(const OrrCluster *c, const uint32_t *gpus, const uint32_t *repeat,
                             uint32_t n, OrrGroupShape *shape);

#endif
