/* Machines made in memory, for the tests of clusters. */
#ifndef TESTS_CLUSTER_SAMPLES_H
#define TESTS_CLUSTER_SAMPLES_H

#include "tests/near.h"

#include "sim/cluster/cluster.h"

enum { GB = 1000000000 };

/* H100-like nodes of 8 with 8 NICs of 50 GB/s. */
static inline OrrNode *switch_node(void) {
    OrrNode *n = g_new0(OrrNode, 1);
    n->name = g_strdup("test-node");
    n->gpu = g_new0(OrrGpu, 1);
    n->gpu->name = g_strdup("test-gpu");
    n->gpu->nvlink_bytes_per_s = 450.0 * GB;
    n->gpu->nvlink_links = 18;
    n->gpus = 8;
    n->nvlink = ORR_NVLINK_SWITCH;
    n->domain_nodes = 1;
    n->nics = 8;
    n->nic_bytes_per_s = 50.0 * GB;
    n->net = ORR_NET_ROCE;
    n->pcie_bytes_per_s = 64.0 * GB;
    n->management_bytes_per_s = 12.5 * GB;
    n->nvlink_latency_ns = 500;
    n->pcie_latency_ns = 300;
    return n;
}

/* The shape of Meta's 24K cluster: racks of 16, pods of 3,072, 1:7 above. */
static inline OrrClusterSpec clos_spec(uint32_t n_gpus) {
    OrrClusterSpec s = {.n_gpus = n_gpus, .max_gpus = 1u << 20, .fabric = ORR_FABRIC_CLOS};
    s.name = g_strdup("test-clos");
    s.node = switch_node();
    s.gpus_per_leaf = 16;
    s.gpus_per_pod = 3072;
    s.leaf_oversubscription = 1;
    s.pod_oversubscription = 7;
    s.leaf_uplinks = 16;
    s.pod_uplinks = 439;
    s.hop_latency_ns = 1000;
    s.nic_latency_ns = 2000;
    return s;
}

static inline OrrClusterSpec rail_spec(uint32_t n_gpus) {
    OrrClusterSpec s = clos_spec(n_gpus);
    s.fabric = ORR_FABRIC_RAIL;
    s.gpus_per_leaf = 32;
    s.gpus_per_pod = 0;
    s.pod_oversubscription = 1;
    return s;
}

static inline OrrCluster *build(OrrClusterSpec s) {
    GError *error = NULL;
    OrrCluster *c = orr_cluster_new(&s, &error);
    if (error)
        fail_msg("%s", error->message);
    assert_non_null(c);
    return c;
}

#endif
