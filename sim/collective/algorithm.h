/* An algorithm of collectives: the type that ring.c, tree.c, ... each fill once. */
#ifndef ORR_COLLECTIVE_ALGORITHM_H
#define ORR_COLLECTIVE_ALGORITHM_H

#include "sim/collective/collective_priv.h"

typedef struct {
    OrrAlgo id;
    const char *name;
    const char *summary; /* one sentence for `orrery list` */
    const char *source;
    unsigned collectives; /* bit 1 << OrrCollective: what it can do */
    unsigned protos;      /* bit 1 << OrrProto */
    bool is_nccl;         /* NCCL may take it by itself or by NCCL_ALGO */
    OrrPattern pattern;
    /* NULL, or why it cannot run here: a sentence's end ("needs NVLink SHARP in the switch"). */
    const char *(*refuse)(const OrrCollCase *c);
    /* Fills @plan: latency_ns, bytes_per_s, nvlink_per_rank, nic_per_nic, n_channels. */
    void (*cost)(const OrrCollCase *c, OrrProto proto, OrrCollPlan *plan);
} OrrAlgorithm;

#define ORR_BIT(x) (1u << (x))

#endif
