/* A node as another program's listing shows it: GPUs, their links, NICs and how far each is. */
#ifndef ORR_FACTS_FOUND_H
#define ORR_FACTS_FOUND_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* How a GPU reaches a NIC, nearest first, in nvidia-smi's words. */
typedef enum {
    ORR_NEAR_PIX, /* one PCIe switch */
    ORR_NEAR_PXB, /* several */
    ORR_NEAR_PHB, /* the CPU's own root */
    ORR_NEAR_NODE,
    ORR_NEAR_SYS, /* across the sockets */
    ORR_NEAR_UNKNOWN
} OrrNear;

typedef struct {
    char *id;                /* PCI address or "GPU3" */
    char *model;             /* "10de:2330" or a name; NULL: not in the listing */
    double pcie_bytes_per_s; /* of its own slot, per direction; 0: not known */
    uint32_t switch_links;   /* NVLinks that end at an NVSwitch */
    uint32_t line;
} OrrFoundGpu;

typedef struct {
    char *id;
    char *model;
    double bytes_per_s; /* per direction; 0: not known */
    uint32_t line;
} OrrFoundNic;

/* 0 and NULL: not known. */
typedef struct {
    char *source; /* "NCCL topology XML", ... */
    OrrFoundGpu *gpus;
    OrrFoundNic *nics;
    uint32_t n_gpus, n_nics;
    uint32_t *links;          /* n_gpus x n_gpus: direct NVLink or xGMI links */
    OrrNear *near;            /* n_gpus x n_nics */
    double *path_bytes_per_s; /* n_gpus x n_nics: slowest PCIe link between; 0: not known */
    bool has_links;           /* the listing would show NVLink if there were any */
    bool is_switch_outside;   /* the NVSwitch is not in the node: the domain spans nodes */
    const char *net;          /* a name of orr_net_names, static; NULL */
    /* Of a fabric, where the listing shows one. */
    uint32_t n_nodes, nodes_per_leaf;
    double leaf_oversubscription; /* 0: no tier above the leaves */
    bool is_rail;
} OrrFoundNode;

void orr_found_node_free(OrrFoundNode *node);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrFoundNode, orr_found_node_free)

#endif
