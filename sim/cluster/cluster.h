/* The machine as an immutable graph of links: nodes, NVLink domains, NICs, switch tiers, routes.
 *
 * GPUs are numbered 0..n_gpus-1, node by node. Every link is directed and has a capacity. With
 * spread routing parallel equal links are one bundle whose capacity is their sum; with
 * ecmp-hash each is a link of its own and a flow takes one by a seeded hash. Links are numbered
 * densely; links of nodes come first. */
#ifndef ORR_CLUSTER_CLUSTER_H
#define ORR_CLUSTER_CLUSTER_H

#include "sim/base/error.h"
#include "sim/cluster/gpu.h"

typedef enum { ORR_NVLINK_NONE, ORR_NVLINK_MESH, ORR_NVLINK_SWITCH, ORR_N_NVLINKS } OrrNvlink;
typedef enum {
    ORR_NET_NONE,
    ORR_NET_IB,
    ORR_NET_ROCE,
    ORR_NET_ETHERNET /* sockets */,
    ORR_NET_EFA,
    ORR_NET_TCPXO /* GPUDirect over TCP */,
    ORR_N_NETS
} OrrNet;

typedef struct {
    char *name, *source;
    OrrGpu *gpu;
    uint32_t gpus; /* in one node (tray) */
    OrrNvlink nvlink;
    uint32_t domain_nodes; /* nodes of one NVLink domain: 1, or 18 for NVL72 */
    bool has_nvls;         /* NVLink SHARP in the switch */
    /* MESH: links between GPU i and j (DGX-1 cube mesh), gpus x gpus; NULL: all equal */
    uint8_t *mesh_links;
    double mesh_link_bytes_per_s; /* per direction */
    uint32_t nics;                /* compute NICs of a node */
    double nic_bytes_per_s;       /* each, per direction */
    OrrNet net;
    bool has_sharp;                /* in-network reduction in the fabric */
    double pcie_bytes_per_s;       /* GPU to its switch or CPU, per direction */
    double nic_pcie_bytes_per_s;   /* limit of the path from a GPU to its NIC; 0: none below both */
    double management_bytes_per_s; /* Ethernet that NCCL falls back to */
    double nvlink_latency_ns, pcie_latency_ns; /* one hop, hardware */
    double host_speed; /* relative single-thread speed of its CPU, 1 = the reference */
} OrrNode;

extern const char *const orr_nvlink_names[], *const orr_net_names[];
#define ORR_MAX_MESH_GPUS 8u /* in one node with nvlink = mesh */
void orr_node_free(OrrNode *node);

typedef enum { ORR_ROUTE_SPREAD, ORR_ROUTE_ECMP_HASH, ORR_N_ROUTINGS } OrrRouting;
typedef enum {
    ORR_FABRIC_NONE,
    ORR_FABRIC_RAIL,
    ORR_FABRIC_CLOS,
    ORR_FABRIC_FLAT,
    ORR_N_FABRICS
} OrrFabric;
extern const char *const orr_routing_names[], *const orr_fabric_names[];

typedef enum {
    ORR_LINK_NVLINK_OUT,
    ORR_LINK_NVLINK_IN,
    ORR_LINK_MESH,
    ORR_LINK_PCIE_OUT,
    ORR_LINK_PCIE_IN,
    ORR_LINK_NIC_OUT,
    ORR_LINK_NIC_IN,
    ORR_LINK_LEAF_UP,
    ORR_LINK_LEAF_DOWN,
    ORR_LINK_SPINE_UP,
    ORR_LINK_SPINE_DOWN,
    ORR_LINK_MGMT_OUT,
    ORR_LINK_MGMT_IN,
    ORR_N_LINK_KINDS
} OrrLinkKind;
extern const char *const orr_link_kind_names[];

typedef struct OrrCluster OrrCluster;
typedef struct {
    char *name, *source;
    OrrNode *node;     /* taken */
    uint32_t n_gpus;   /* in use */
    uint32_t max_gpus; /* of the real machine */
    OrrFabric fabric;
    uint32_t gpus_per_leaf; /* CLOS: 16 in Meta's racks; RAIL: per rail switch, so nodes */
    uint32_t gpus_per_pod;  /* tier below the core; 0: one pod */
    double leaf_oversubscription, pod_oversubscription; /* of each tier; 1 = none, 7 = 1:7 */
    uint32_t leaf_uplinks, pod_uplinks; /* parallel links of a leaf and a pod, for ecmp-hash */
    double hop_latency_ns;              /* a switch and its cable */
    double nic_latency_ns;              /* NIC to NIC through one switch, verbs level */
    OrrRouting routing;
    uint64_t seed;       /* of ecmp-hash */
    bool use_management; /* NCCL_IB_HCA left wrong: sockets over the management network */
} OrrClusterSpec;

/* Frees what @spec holds; it may be zero. */
void orr_cluster_spec_clear(OrrClusterSpec *spec);
/* A deep copy: its node and GPU may be changed. */
OrrClusterSpec orr_cluster_spec_copy(const OrrClusterSpec *spec);
/* Takes @spec's contents, on errors too, and leaves it zero. Errors (ORR_ERROR_INPUT): more GPUs
 * than the machine has, a fabric that does not add up; all reasons at once, with their keys. */
OrrCluster *orr_cluster_new(OrrClusterSpec *spec, GError **error);
void orr_cluster_free(OrrCluster *cluster);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrCluster, orr_cluster_free)
const OrrClusterSpec *orr_cluster_spec(const OrrCluster *c);

uint32_t orr_cluster_n_links(const OrrCluster *c);
OrrLinkKind orr_cluster_link_kind(const OrrCluster *c, uint32_t link);
double orr_cluster_link_bytes_per_s(const OrrCluster *c, uint32_t link);
/* "node3/gpu2/nvlink-out", "node3/gpu0-gpu3/nvlink", "node3/nic1/out", "leaf5/up", with ecmp-hash
 * "leaf5/up12", "pod0/down"; g_free. */
char *orr_cluster_link_name(const OrrCluster *c, uint32_t link);
bool orr_cluster_link_find(const OrrCluster *c, const char *name, uint32_t *link);
/* What to add to a message about an unknown link @name: the first and the last of the kind that is
 * nearest to it, else of each kind that the cluster has; g_free. */
char *orr_cluster_link_hint(const OrrCluster *c, const char *name);
/* Node, leaf or pod that a link belongs to, and which GPU, NIC or parallel link of it. */
void orr_cluster_link_owner(const OrrCluster *c, uint32_t link, uint32_t *owner, uint32_t *index);

/* Link out of (or into) NIC @index of @node. */
uint32_t orr_cluster_nic_link(const OrrCluster *c, uint32_t node, uint32_t index, bool is_out);
/* The GPUs that a link serves: those of its node, leaf (with the other rails of its nodes) or pod;
 * the last one may reach beyond the GPUs in use. */
void orr_cluster_link_gpus(const OrrCluster *c, uint32_t link, uint32_t *first, uint32_t *n);
/* The link that is to the GPUs @shift further what @link is to its own; @shift: whole multiples of
 * what orr_cluster_link_gpus says. */
uint32_t orr_cluster_link_shift(const OrrCluster *c, uint32_t link, int64_t shift);

static inline uint32_t orr_node_of_gpu(const OrrClusterSpec *s, uint32_t gpu) {
    return gpu / s->node->gpus;
}
uint32_t orr_cluster_n_nodes(const OrrCluster *c);  /* in use, the last one perhaps in part */
uint32_t orr_cluster_n_leaves(const OrrCluster *c); /* 1 for FLAT, 0 without a fabric */
uint32_t orr_cluster_n_pods(const OrrCluster *c);
uint32_t orr_cluster_gpus_per_leaf(const OrrCluster *c); /* of all rails; 0: no tier of leaves */
uint32_t orr_cluster_domain_of_gpu(const OrrCluster *c,
                                   uint32_t gpu);                    /* NVLink domain, else node */
uint32_t orr_cluster_leaf_of_gpu(const OrrCluster *c, uint32_t gpu); /* of its first NIC */
uint32_t orr_cluster_pod_of_gpu(const OrrCluster *c, uint32_t gpu);
/* First NIC (in its node) of a GPU and how many it has to itself or shares: 1, or 2. */
uint32_t orr_cluster_nic_of_gpu(const OrrCluster *c, uint32_t gpu, uint32_t *n_nics);
/* Whether traffic between these two stays on NVLink or PCIe. */
bool orr_cluster_is_inside(const OrrCluster *c, uint32_t src_gpu, uint32_t dst_gpu);

/* A share of a flow on a link: frac 1 = all of its bytes. */
typedef struct {
    uint32_t link;
    float frac;
} OrrLinkShare;

#define ORR_MAX_ROUTE 16
/* Links that a flow from one GPU to another takes, NVLink inside a domain, else PCIe or NIC and
 * fabric; in rail fabrics first over NVLink to the neighbour on the receiver's rail (NCCL's PXN).
 * @flow distinguishes parallel flows of one pair under ecmp-hash. Returns the number, 0 for a GPU
 * to itself. No link comes twice. */
uint32_t orr_cluster_route(const OrrCluster *c, uint32_t src_gpu, uint32_t dst_gpu, uint64_t flow,
                           OrrLinkShare out[ORR_MAX_ROUTE]);
/* One-way latency of that route below NCCL: switch hops, NIC, PCIe; ns. */
double orr_cluster_route_latency_ns(const OrrCluster *c, uint32_t src_gpu, uint32_t dst_gpu);
/* Switch hops between two GPUs' NICs: 1 same leaf, 3 through spine, 5 through core; 0 same domain.
 */
uint32_t orr_cluster_hops(const OrrCluster *c, uint32_t src_gpu, uint32_t dst_gpu);

#endif
