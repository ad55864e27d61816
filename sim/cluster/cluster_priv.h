/* The graph as arithmetic: no link is stored, its number, kind and capacity follow from offsets.
 *
 * Links of node n are n * node_links + offset, in the order NVLink (out of each GPU, then into
 * each; or one a connected pair of a mesh), PCIe out and in, NIC out and in, management out and
 * in. Then come the leaves (up, down), then the pods (up, down), `width` links each way. */
#ifndef ORR_CLUSTER_CLUSTER_PRIV_H
#define ORR_CLUSTER_CLUSTER_PRIV_H

#include "sim/base/random.h"
#include "sim/cluster/cluster.h"

typedef struct {
    uint32_t n; /* leaves or pods */
    uint32_t first_link;
    uint32_t width;     /* links each way: 1 bundle, or all the parallel ones under ecmp-hash */
    double bytes_per_s; /* of one of them */
    bool has_links;     /* false if nothing lies above: a single leaf or pod */
} OrrTier;

/* Where a switch hashes; each with its own salt, as switches of one fabric must have. */
typedef enum { ORR_HASH_LEAF_UP, ORR_HASH_POD_UP, ORR_HASH_LEAF_DOWN, ORR_N_HASHES } OrrHashStage;

struct OrrCluster {
    OrrClusterSpec spec;
    uint32_t n_nodes, n_links, node_links;
    uint32_t at_pcie, at_nic, at_mgmt;      /* offsets in a node */
    uint32_t n_mesh;                        /* directed links of a mesh */
    uint16_t *mesh_link;                    /* [gpus x gpus]: offset + 1; 0: none */
    uint16_t *mesh_pair;                    /* [n_mesh]: src * gpus + dst */
    uint16_t *mesh_via;                     /* [gpus x gpus]: GPU between + 1; 0: none */
    uint32_t nodes_per_leaf, nodes_per_pod; /* 0 pods: all nodes */
    OrrTier leaf, pod;
    OrrRandom hash[ORR_N_HASHES];
};

#endif
