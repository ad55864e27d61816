/* Shape of a group in a cluster: domains, NICs, neighbours' latency, and what the tiers above the
 * NICs leave to a ring that has the machine to itself. */
#include "sim/collective/place.h"

#include <math.h>
#include <string.h>

#include "sim/collective/mesh.h"

/* What one pass over the sorted members finds. */
typedef struct {
    uint32_t domains, nodes, min_domain, max_domain, max_node, min_nics, max_per_nic;
} Census;

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static uint32_t nic_of(const OrrClusterSpec *s, uint32_t gpu)
{
    const OrrNode *node = s->node;
    uint32_t per_node = s->use_management ? 1 : MAX(1, node->nics);
    uint32_t local = gpu % node->gpus;
    return orr_node_of_gpu(s, gpu) * per_node +
           (per_node < node->gpus ? local * per_node / node->gpus : local * (per_node / node->gpus));
}

/* Members are sorted, so equal domains, nodes and NICs lie together. */
static Census take_census(const OrrCluster *c, const uint32_t *sorted, uint32_t n)
{
    const OrrClusterSpec *s = orr_cluster_spec(c);
    Census out = {.min_domain = UINT32_MAX, .min_nics = UINT32_MAX};
    uint32_t in_domain = 0, in_node = 0, on_nic = 0, nics = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool first = i == 0;
        bool new_node = first || orr_node_of_gpu(s, sorted[i]) != orr_node_of_gpu(s, sorted[i - 1]);
        bool new_domain = first || orr_cluster_domain_of_gpu(c, sorted[i]) !=
                                       orr_cluster_domain_of_gpu(c, sorted[i - 1]);
        bool new_nic = first || nic_of(s, sorted[i]) != nic_of(s, sorted[i - 1]);
        if (new_domain && !first) {
            out.min_domain = MIN(out.min_domain, in_domain);
            out.min_nics = MIN(out.min_nics, nics);
        }
        in_domain = new_domain ? 1 : in_domain + 1;
        nics = new_domain ? 1 : nics + new_nic;
        in_node = new_node ? 1 : in_node + 1;
        on_nic = new_nic ? 1 : on_nic + 1;
        out.domains += new_domain;
        out.nodes += new_node;
        out.max_domain = MAX(out.max_domain, in_domain);
        out.max_node = MAX(out.max_node, in_node);
        out.max_per_nic = MAX(out.max_per_nic, on_nic);
    }
    out.min_domain = MIN(out.min_domain, in_domain);
    out.min_nics = MIN(out.min_nics, nics);
    return out;
}

/* Rate of the best rings over the members of the first domain in a mesh. */
static double mesh_bytes_per_s(const OrrClusterSpec *s, const uint32_t *sorted, uint32_t n)
{
    const OrrNode *node = s->node;
    uint32_t members[ORR_MESH_MAX];
    if (n < 2 || n > ORR_MESH_MAX)
        return 0;
    for (uint32_t i = 0; i < n; i++)
        members[i] = sorted[i] % node->gpus;
    return 2 * orr_mesh_rings(node->mesh_links, node->gpus, members, n) *
           node->mesh_link_bytes_per_s;
}

static double nvlink_bytes_per_s(const OrrClusterSpec *s, const uint32_t *sorted,
                                 const Census *census)
{
    const OrrNode *node = s->node;
    if (node->nvlink == ORR_NVLINK_NONE)
        return 0;
    if (node->nvlink == ORR_NVLINK_MESH && node->mesh_links)
        return mesh_bytes_per_s(s, sorted, census->max_domain);
    return node->gpu->nvlink_bytes_per_s;
}

/* What a NIC gets above its leaf and above its pod, if a ring in @gpus' order is alone there: the
 * ring's flows out of one leaf or pod share its uplinks. */
static double fabric_bytes_per_s(const OrrCluster *c, const uint32_t *gpus, uint32_t n,
                                 const OrrCommPlace *p)
{
    const OrrClusterSpec *s = orr_cluster_spec(c);
    double nics_per_gpu = (double)s->node->nics / s->node->gpus, least = INFINITY;
    for (int tier = 0; tier < 2; tier++) {
        double over = s->leaf_oversubscription * (tier ? s->pod_oversubscription : 1);
        uint32_t size = tier ? s->gpus_per_pod : s->gpus_per_leaf;
        if (s->fabric != ORR_FABRIC_CLOS || over <= 1 || size == 0)
            continue;
        uint32_t(*group)(const OrrCluster *, uint32_t) = tier ? orr_cluster_pod_of_gpu
                                                              : orr_cluster_leaf_of_gpu;
        g_autoptr(GHashTable) out = g_hash_table_new(NULL, NULL);
        guint most = 0;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t from = group(c, gpus[i]);
            if (from == group(c, gpus[(i + 1) % n]))
                continue;
            guint count = GPOINTER_TO_UINT(g_hash_table_lookup(out, GUINT_TO_POINTER(from))) + 1;
            g_hash_table_insert(out, GUINT_TO_POINTER(from), GUINT_TO_POINTER(count));
            most = MAX(most, count);
        }
        double uplinks = size * nics_per_gpu / over; /* in NICs' worth */
        if (most > 0)
            least = fmin(least, uplinks / (most * p->nics_per_domain));
    }
    return least < 1 ? least * p->nic_bytes_per_s : 0;
}

/* Mean one-way latency over the ring's edges that leave a domain. */
static double net_latency_ns(const OrrCluster *c, const uint32_t *gpus, uint32_t n)
{
    double sum = 0;
    uint32_t edges = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t next = gpus[(i + 1) % n];
        if (orr_cluster_domain_of_gpu(c, gpus[i]) == orr_cluster_domain_of_gpu(c, next))
            continue;
        sum += orr_cluster_route_latency_ns(c, gpus[i], next);
        edges++;
    }
    return edges ? sum / edges : 0;
}

void orr_comm_place_from_cluster(const OrrCluster *c, const uint32_t *gpus, uint32_t n,
                                 OrrCommPlace *out)
{
    const OrrClusterSpec *s = orr_cluster_spec(c);
    const OrrNode *node = s->node;
    g_assert(n > 0);
    g_autofree uint32_t *sorted = g_memdup2(gpus, n * sizeof(*gpus));
    qsort(sorted, n, sizeof(*sorted), by_number);
    Census census = take_census(c, sorted, n);
    double nic = s->use_management ? node->management_bytes_per_s : node->nic_bytes_per_s;
    if (!s->use_management && node->nic_pcie_bytes_per_s > 0)
        nic = fmin(nic, node->nic_pcie_bytes_per_s);
    *out = (OrrCommPlace){.n_ranks = n,
                          .n_domains = census.domains,
                          .min_per_domain = census.min_domain,
                          .max_per_domain = census.max_domain,
                          .n_nodes = census.nodes,
                          .max_per_node = census.max_node,
                          .arch = node->gpu->arch,
                          .nvlink = node->nvlink,
                          .has_nvls = node->has_nvls,
                          .has_sharp = node->has_sharp,
                          .nvlink_bytes_per_s = nvlink_bytes_per_s(s, sorted, &census),
                          .pcie_bytes_per_s = node->pcie_bytes_per_s,
                          .net = s->use_management ? ORR_NET_ETHERNET : node->net,
                          .nic_bytes_per_s = nic,
                          .nics_per_domain = census.min_nics,
                          .gpus_per_nic = census.max_per_nic};
    if (census.domains > 1) {
        out->net_latency_ns = net_latency_ns(c, gpus, n);
        out->fabric_bytes_per_s = fabric_bytes_per_s(c, gpus, n, out);
    }
}
