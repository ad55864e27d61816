/* What a checkpoint on its way to its store gets of the links that it shares: with the traffic of
 * the training, with other checkpoints of the same moment, with the other nodes. */
#ifndef ORR_JOB_TRAFFIC_H
#define ORR_JOB_TRAFFIC_H

#include "sim/job/spec.h"

/* One node that writes (or reads) of many equal ones; bytes per second, 0: no limit. */
typedef struct {
    double nics;  /* those that the training uses */
    double leaf;  /* its share of the links above its leaf switch */
    double front; /* its link to a network of the stores' own */
    bool has_job; /* the training has something to send all the time */
    uint32_t n;
    struct {
        OrrStoreNetwork network;
        double cap; /* of the store and of the node's writers: this node's share; above 0 */
    } flows[ORR_MAX_TIERS];
} OrrTraffic;

/**
 * orr_traffic_share: max-min fair rates, a node, of the flows and of the training (NULL: not asked;
 * 0 if it has nothing to send).
 */
void orr_traffic_share(const OrrTraffic *traffic, double rate[ORR_MAX_TIERS], double *job);

#endif
