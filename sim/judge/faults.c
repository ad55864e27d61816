/* Priors are ours: the order in which such reports turn up in NVIDIA/nccl and NVIDIA/nccl-tests
 * issues, not a count. Levels are grids over what is possible. Faults of the fabric stand first:
 * they are shares of a sound NIC. */
#include "sim/judge/faults.h"

#include <math.h>
#include <string.h>

static bool sockets(OrrCommPlace *p, OrrNcclForce *f, double level, double management) {
    if (management <= 0 || p->net == ORR_NET_ETHERNET || f->use_sockets)
        return false;
    f->use_sockets = true;
    f->sockets_per_thread = (uint32_t)level;
    p->net = ORR_NET_ETHERNET;
    p->nic_bytes_per_s = management;
    p->nics_per_domain = 1;
    p->gpus_per_nic = p->max_per_domain;
    return true;
}

static bool share_nics(OrrCommPlace *p, double nics) {
    if (p->nics_per_domain <= nics)
        return false;
    p->gpus_per_nic = (uint32_t)fmax(1, ceil(p->max_per_domain / nics));
    p->nics_per_domain = nics;
    return true;
}

static bool one_nic(OrrCommPlace *p, OrrNcclForce *f, double level, double management) {
    (void)f, (void)level, (void)management;
    return share_nics(p, 1);
}

static bool some_nics(OrrCommPlace *p, OrrNcclForce *f, double level, double management) {
    (void)f, (void)management;
    double nics = floor(p->nics_per_domain / level);
    return nics >= 2 && share_nics(p, nics);
}

static bool across_sockets(OrrCommPlace *p, OrrNcclForce *f, double level, double management) {
    (void)f, (void)management;
    if (p->nic_bytes_per_s <= level || p->net == ORR_NET_ETHERNET)
        return false;
    p->nic_bytes_per_s = level;
    return true;
}

static bool slow_nic(OrrCommPlace *p, OrrNcclForce *f, double level, double management) {
    (void)f, (void)management;
    p->nic_bytes_per_s /= level; /* a ring waits for its slowest link */
    return true;
}

static bool thin_fabric(OrrCommPlace *p, OrrNcclForce *f, double level, double management) {
    (void)f, (void)management;
    double share = p->nic_bytes_per_s / level;
    if (p->fabric_bytes_per_s > 0 && p->fabric_bytes_per_s <= share)
        return false;
    p->fabric_bytes_per_s = share;
    return true;
}

static bool nvls_off(OrrCommPlace *p, OrrNcclForce *f, double level, double management) {
    (void)level, (void)management;
    if (!p->has_nvls || f->nvls_off)
        return false;
    f->nvls_off = true;
    return true;
}

static bool no_p2p(OrrCommPlace *p, OrrNcclForce *f, double level, double management) {
    (void)level, (void)management;
    if (p->nvlink == ORR_NVLINK_NONE || p->max_per_domain < 2 || f->p2p_off)
        return false;
    f->p2p_off = true;
    f->nvls_off = true; /* it needs peer-to-peer */
    return true;
}

static bool force_proto(OrrNcclForce *f, OrrProto proto) {
    if (f->proto != ORR_N_PROTOS)
        return false;
    f->proto = proto;
    return true;
}

static bool only_ll(OrrCommPlace *p, OrrNcclForce *f, double level, double management) {
    (void)p, (void)level, (void)management;
    return force_proto(f, ORR_PROTO_LL);
}

static bool only_ll128(OrrCommPlace *p, OrrNcclForce *f, double level, double management) {
    (void)p, (void)level, (void)management;
    return force_proto(f, ORR_PROTO_LL128);
}

static bool only_simple(OrrCommPlace *p, OrrNcclForce *f, double level, double management) {
    (void)p, (void)level, (void)management;
    return force_proto(f, ORR_PROTO_SIMPLE);
}

static bool force_algo(OrrNcclForce *f, OrrAlgo algo) {
    if (f->algo != ORR_N_ALGOS)
        return false;
    f->algo = algo;
    return true;
}

static bool only_ring(OrrCommPlace *p, OrrNcclForce *f, double level, double management) {
    (void)p, (void)level, (void)management;
    return force_algo(f, ORR_ALGO_RING);
}

static bool only_tree(OrrCommPlace *p, OrrNcclForce *f, double level, double management) {
    (void)p, (void)level, (void)management;
    return force_algo(f, ORR_ALGO_TREE);
}

static bool few_channels(OrrCommPlace *p, OrrNcclForce *f, double level, double management) {
    (void)p, (void)management;
    if (f->max_channels > 0)
        return false;
    f->max_channels = (uint32_t)level;
    return true;
}

const OrrFault orr_faults[] = {
    {.code = "oversubscription",
     .words = "the fabric above the NICs is oversubscribed, or shared with other jobs",
     .advice = "compare a run on nodes of one leaf with one across leaves, and at a quiet time",
     .level_words = "%s:1",
     .prior = 0.10,
     .parts = ORR_FAULT_FABRIC,
     .is_above_nodes = true,
     .levels = {1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8},
     .apply = thin_fabric},
    {.code = "ecmp_collisions",
     .words = "flows collide on uplinks that a hash picks (ECMP)",
     .advice = "repeat the run: collisions change with ports and hosts; more queue pairs a flow "
               "(NCCL_IB_QPS_PER_CONNECTION), adaptive routing",
     .level_words = "the fullest uplink has %s times its share",
     .prior = 0.10,
     .parts = ORR_FAULT_FABRIC,
     .is_above_nodes = true,
     /* fullest of 8 uplinks under 8 flows: 2 to 4 in 98 % of draws, the slowest's share averages
      * 1 / 2.44 (balls in bins); less where several queue pairs carry a flow */
     .levels = {1.25, 1.5, 1.75, 2, 2.44, 3, 4},
     .apply = thin_fabric},
    {.code = "sockets",
     .words = "traffic between nodes goes over sockets on the management network instead of the "
              "fast NICs",
     .advice = "run with NCCL_DEBUG=INFO and look for NET/Socket; then NCCL_IB_HCA, "
               "NCCL_IB_DISABLE, NCCL_NET and whether the NIC's plugin and driver are there",
     .level_words = "%s socket(s) a thread",
     .prior = 0.15,
     .parts = ORR_FAULT_NICS | ORR_FAULT_RATE | ORR_FAULT_FABRIC,
     .is_above_nodes = true,
     .levels = {1, 4},
     .marks = {"NET/Socket", "Using network Socket", "NCCL_IB_DISABLE=1", "NCCL_NET=Socket"},
     .apply = sockets},
    {.code = "one_nic",
     .words = "all GPUs of a node share one NIC",
     .advice = "compare the list behind NET/IB : Using with the NICs of the node; NCCL_IB_HCA may "
               "name one only",
     .prior = 0.12,
     .parts = ORR_FAULT_NICS,
     .is_above_nodes = true,
     .apply = one_nic},
    {.code = "half_of_the_nics",
     .words = "a part of the NICs is used: several GPUs share one",
     .advice = "compare the list behind NET/IB : Using with the NICs of the node; ports that are "
               "down, NCCL_IB_HCA, containers that see some devices only",
     .level_words = "one of %s NICs used",
     .prior = 0.10,
     .parts = ORR_FAULT_NICS,
     .is_above_nodes = true,
     .levels = {2, 4},
     .apply = some_nics},
    {.code = "nic_across_the_socket",
     .words = "the NICs in use sit behind the other CPU, or GPUDirect RDMA is off",
     .advice = "nvidia-smi topo -m should show PIX or PXB between a GPU and its NIC, not SYS; look "
               "for GDRDMA in NCCL_DEBUG=INFO; nvidia-peermem loaded, ACS and IOMMU off",
     .level_words = "%s GB/s a NIC",
     .prior = 0.10,
     .parts = ORR_FAULT_RATE,
     .is_above_nodes = true,
     /* reads of a GPU's memory across the CPUs' link: 10 to 15 GB/s on hosts with PCIe 4 and 5
      * (public reports, as NVIDIA/nccl issue 1357) */
     .levels = {9.5e9, 12e9, 15e9},
     .marks = {"GPU Direct RDMA Disabled", "NCCL_NET_GDR_LEVEL=0"},
     .apply = across_sockets},
    {.code = "slow_nic",
     .words = "a NIC or its PCIe slot runs below its rate, and all wait for it",
     .advice = "ibstat or ethtool for each port's rate, lspci -vv for LnkSta against LnkCap; test "
               "nodes in pairs to find it",
     .level_words = "at one part in %s of its rate",
     .prior = 0.06,
     .parts = ORR_FAULT_RATE,
     .is_above_nodes = true,
     .levels = {2, 4}, /* half width or one generation less; both */
     .apply = slow_nic},
    {.code = "nvls_off",
     .words = "reduction in the NVLink switch (NVLS) is off",
     .advice = "look for NVLS in NCCL_DEBUG=INFO; NCCL_NVLS_ENABLE, fabric manager, containers "
               "without the IMEX or multicast devices",
     .prior = 0.08,
     .parts = ORR_FAULT_NODE,
     .marks = {"NVLS multicast support is not available", "NCCL_NVLS_ENABLE=0"},
     .apply = nvls_off},
    {.code = "no_p2p",
     .words = "GPUs of a node do not reach each other by NVLink (peer-to-peer is off)",
     .advice = "look for via SHM in NCCL_DEBUG=INFO; NCCL_P2P_DISABLE, fabric manager, nvidia-smi "
               "nvlink -s",
     .prior = 0.06,
     .parts = ORR_FAULT_NODE,
     .marks = {"NCCL_P2P_DISABLE=1", "via SHM"},
     .apply = no_p2p},
    {.code = "protocol_ll",
     .words = "the LL protocol is forced, which halves the payload",
     .advice = "unset NCCL_PROTO (also /etc/nccl.conf) and tuner plugins",
     .prior = 0.04,
     .parts = ORR_FAULT_CHOICE,
     .marks = {"NCCL_PROTO=LL"},
     .apply = only_ll},
    {.code = "protocol_ll128",
     .words = "the LL128 protocol is forced",
     .advice = "unset NCCL_PROTO (also /etc/nccl.conf) and tuner plugins",
     .prior = 0.02,
     .parts = ORR_FAULT_CHOICE,
     .marks = {"NCCL_PROTO=LL128"},
     .apply = only_ll128},
    {.code = "protocol_simple",
     .words = "the Simple protocol is forced, which costs small messages dear",
     .advice = "unset NCCL_PROTO (also /etc/nccl.conf) and tuner plugins",
     .prior = 0.02,
     .parts = ORR_FAULT_CHOICE,
     .marks = {"NCCL_PROTO=Simple", "NCCL_PROTO=SIMPLE"},
     .apply = only_simple},
    {.code = "algorithm_ring",
     .words = "rings are forced, whose latency grows with the ranks",
     .advice = "unset NCCL_ALGO (also /etc/nccl.conf) and tuner plugins",
     .prior = 0.03,
     .parts = ORR_FAULT_CHOICE,
     .marks = {"NCCL_ALGO=Ring", "NCCL_ALGO=RING"},
     .apply = only_ring},
    {.code = "algorithm_tree",
     .words = "trees are forced, also where rings or the switch are faster",
     .advice = "unset NCCL_ALGO (also /etc/nccl.conf) and tuner plugins",
     .prior = 0.03,
     .parts = ORR_FAULT_CHOICE,
     .marks = {"NCCL_ALGO=Tree", "NCCL_ALGO=TREE"},
     .apply = only_tree},
    {.code = "few_channels",
     .words = "NCCL has too few channels",
     .advice = "NCCL_MAX_NCHANNELS, NCCL_MAX_CTAS; a topology file that hides NVLinks",
     .level_words = "%s channels",
     .prior = 0.05,
     .parts = ORR_FAULT_CHANNELS,
     .levels = {1, 2, 4, 8},
     .marks = {"NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS"},
     .apply = few_channels},
};
const uint32_t orr_n_faults = G_N_ELEMENTS(orr_faults);
G_STATIC_ASSERT(G_N_ELEMENTS(orr_faults) <= ORR_MAX_FAULTS);

uint32_t orr_fault_levels(const OrrFault *fault) {
    uint32_t n = 0;
    while (n < ORR_MAX_FAULT_LEVELS && fault->levels[n] > 0)
        n++;
    return n > 0 ? n : 1;
}

/* A word of @log that begins like @mark must end with it: LL is not LL128. "A=B" also stands for
 * what NCCL prints: "A set by environment to B". */
static bool holds(const char *log, const char *mark) {
    size_t n = strlen(mark);
    for (const char *at = strstr(log, mark); at; at = strstr(at + 1, mark))
        if (!g_ascii_isalnum(at[n]))
            return true;
    const char *equals = strchr(mark, '=');
    if (!equals)
        return false;
    g_autofree char *printed =
        g_strdup_printf("%.*s set by environment to %s", (int)(equals - mark), mark, equals + 1);
    return holds(log, printed);
}

const char *orr_fault_mark(const OrrFault *fault, const char *log) {
    for (int i = 0; log && i < ORR_MAX_FAULT_MARKS && fault->marks[i]; i++)
        if (holds(log, fault->marks[i]))
            return fault->marks[i];
    return NULL;
}
