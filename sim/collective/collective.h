/* Collectives: which algorithm NCCL would take, and what it costs on an idle machine. Pure: no
 * clock. Two separate things, never one for the other: *choice* by NCCL's own tuner constants
 * (dated by version), *duration* by calibrated ones. */
#ifndef ORR_COLLECTIVE_COLLECTIVE_H
#define ORR_COLLECTIVE_COLLECTIVE_H

#include "sim/base/error.h"
#include "sim/cluster/cluster.h"
#include "sim/terms/terms.h"

/* Where the members of a group sit: all that a collective's cost depends on. */
typedef struct {
    uint32_t n_ranks;
    uint32_t n_domains; /* NVLink domains (nodes, for most machines) they span */
    uint32_t min_per_domain, max_per_domain;
    uint32_t n_nodes, max_per_node;
    OrrArch arch;
    OrrNvlink nvlink;
    bool has_nvls, has_sharp;
    double nvlink_bytes_per_s; /* one GPU, one direction; MESH: of the best ring(s) among the
                                  members */
    double pcie_bytes_per_s;   /* one GPU, one direction, where there is no NVLink */
    OrrNet net;                /* what carries traffic between domains */
    double nic_bytes_per_s;    /* one NIC, one direction */
    double nics_per_domain;    /* NICs that the members in one domain can use (their own ones) */
    uint32_t gpus_per_nic;     /* members in a domain that share one NIC, at least 1 */
    double net_latency_ns;     /* one way, NIC to NIC, mean over neighbours in the ring */
    double fabric_bytes_per_s; /* least share a NIC gets above it with all busy; 0: no limit */
} OrrCommPlace;

/* What the user forces: NCCL_ALGO, NCCL_PROTO, NCCL_NTHREADS, NCCL_MAX_NCHANNELS, ...; fields at
 * their N_ value or 0 mean unforced. */
typedef struct {
    OrrAlgo algo;   /* ORR_N_ALGOS: free */
    OrrProto proto; /* ORR_N_PROTOS: free */
    uint32_t n_threads, max_channels, min_channels;
    uint32_t version; /* 22706 = 2.27.6; 0: default */
    uint32_t sockets_per_thread, socket_threads;
    bool nvls_off, sharp_on; /* sharp_on: NCCL_COLLNET_ENABLE=1; NCCL leaves it off */
    bool p2p_off;            /* NCCL_P2P_DISABLE=1: through the host's memory, at PCIe's rate */
    uint32_t nics_per_node;  /* that NCCL_IB_HCA leaves; 0: all */
    /* Bits 1 << OrrAlgo and 1 << OrrProto that lists leave to each collective; 0: all. */
    uint32_t algos[ORR_N_COLLECTIVES], protos[ORR_N_COLLECTIVES];
    double buffer_bytes; /* NCCL_BUFFSIZE; 0: 4 MiB */
    bool use_sockets;    /* NCCL_IB_DISABLE=1, NCCL_NET=Socket or NCCL_IB_HCA that names no NIC */
    const struct OrrCollConstants *constants; /* measured constants; NULL: the shipped ones */
} OrrNcclForce;

/* How a collective's bytes lie on links, per byte of `size` that its activity moves. */
typedef enum {
    ORR_PATTERN_RING,   /* rank i to i+1, in group order, domain by domain */
    ORR_PATTERN_TREE,   /* double binary tree over domains, chain inside */
    ORR_PATTERN_SWITCH, /* NVLS: each rank to the switch and back */
    ORR_PATTERN_PAIRS,  /* every rank to every other */
    ORR_PATTERN_RAIL,   /* hierarchical: local part inside the domain, ring over domains by rail */
    ORR_PATTERN_ROOT,   /* from or to one rank */
    ORR_N_PATTERNS
} OrrPattern;

typedef struct {
    OrrAlgo algo;
    OrrProto proto;
    OrrPattern pattern;
    uint32_t n_channels; /* = SMs that its kernel occupies on every member */
    int64_t latency_ns;  /* until the last byte of an empty message */
    double bytes_per_s;  /* rate of `size` alone on the idle machine: time = latency + size/rate */
    /* bytes per byte of size ... */
    double nvlink_per_rank; /* out of (and into) the busiest rank over NVLink or PCIe */
    double nic_per_nic;     /* out of (and into) the busiest NIC; 0: never leaves the domain */
    /* The same by hops, for who moves it hop by hop (sim/detail): */
    double start_ns;           /* kernel and first synchronisation, network included */
    double hop_ns, net_hop_ns; /* a hop inside the domain; over the net, above its latency */
    double message_ns;         /* of each further message that a rank sends over the net */
    double inside_bytes_per_s; /* payload out of a rank inside its domain; 0: none */
    double net_bytes_per_s;    /* payload through a NIC; 0: never leaves the domain */
    double nics_per_domain;    /* that carry it */
} OrrCollPlan;

/**
 * orr_collective_plan: choice and cost of @kind over @place for @bytes (nccl-tests' `size`).
 * @force may be NULL. n_ranks = 1 costs nothing. Errors (ORR_ERROR_INPUT): a forced algorithm or
 * protocol that NCCL would refuse for this collective, by name.
 */
bool orr_collective_plan(OrrCollective kind, int64_t bytes, OrrDtype dtype,
                         const OrrCommPlace *place, const OrrNcclForce *force, OrrCollPlan *plan,
                         GError **error);
/* Idle time: latency + bytes / rate, rounded up; 1 ns at least if n_ranks > 1. */
int64_t orr_collective_ns(const OrrCollPlan *plan, int64_t bytes);
/* busbw / algbw: 2(n-1)/n for all-reduce, (n-1)/n for gather, scatter, all-to-all, 1 else. */
double orr_collective_bus_factor(OrrCollective kind, uint32_t n_ranks);
/* One send to one peer: @is_inside the domain, or over the net. */
void orr_collective_send_plan(int64_t bytes, const OrrCommPlace *place, bool is_inside,
                              const OrrNcclForce *force, OrrCollPlan *plan);

#endif
