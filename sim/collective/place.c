#include "sim/collective/place.h"

#include <math.h>

#include "sim/cluster/group.h"

void orr_comm_place_from_cluster(const OrrCluster *c, const uint32_t *gpus, uint32_t n,
                                 OrrCommPlace *out) {
    orr_comm_place_repeated(c, gpus, NULL, n, out);
}

void orr_comm_place_repeated(const OrrCluster *c, const uint32_t *gpus, const uint32_t *repeat,
                             uint32_t n, OrrCommPlace *out) {
    const OrrClusterSpec *s = orr_cluster_spec(c);
    const OrrNode *node = s->node;
    OrrGroupShape shape;
    orr_cluster_group_shape(c, gpus, repeat, n, &shape);
    double nic = s->use_management ? node->management_bytes_per_s : node->nic_bytes_per_s;
    if (!s->use_management && node->nic_pcie_bytes_per_s > 0)
        nic = fmin(nic, node->nic_pcie_bytes_per_s);
    *out = (OrrCommPlace){.n_ranks = shape.n_gpus,
                          .n_domains = shape.n_domains,
                          .min_per_domain = shape.min_per_domain,
                          .max_per_domain = shape.max_per_domain,
                          .n_nodes = shape.n_nodes,
                          .max_per_node = shape.max_per_node,
                          .arch = node->gpu->arch,
                          .nvlink = node->nvlink,
                          .has_nvls = node->has_nvls,
                          .has_sharp = node->has_sharp,
                          .nvlink_bytes_per_s = shape.nvlink_bytes_per_s,
                          .pcie_bytes_per_s = node->pcie_bytes_per_s,
                          .net = s->use_management ? ORR_NET_ETHERNET : node->net,
                          .nic_bytes_per_s = nic,
                          .nics_per_domain = shape.nics_per_domain,
                          .gpus_per_nic = shape.gpus_per_nic,
                          .net_latency_ns = shape.net_latency_ns,
                          .fabric_bytes_per_s = shape.fabric_bytes_per_s};
}
