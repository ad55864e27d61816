/* What a cluster costs under the contracts that exist for it: a dated file of workloads/prices. A
 * price of NAN is not offered. */
#ifndef ORR_FACTS_PRICES_H
#define ORR_FACTS_PRICES_H

#include "sim/base/error.h"

typedef enum {
    ORR_CONTRACT_NONE,
    ORR_CONTRACT_ON_DEMAND,
    ORR_CONTRACT_RESERVED,
    ORR_CONTRACT_SPOT,
    ORR_CONTRACT_ON_PREMISE,
    ORR_N_CONTRACTS
} OrrContract;
extern const char *const orr_contract_names[]; /* NULL-terminated */

typedef struct {
    char *name, *summary, *source, *date;
    double usd_per_gpu_h[ORR_N_CONTRACTS]; /* of the rented ones */
    /* on premise: a node of node_gpus GPUs */
    double node_gpus;
    double node_usd, network_usd, storage_usd,
        facility_usd;                               /* a node's share each, over the life */
    double life_h, residual_frac, utilisation_frac; /* hours that somebody uses it */
    double people_usd_per_h;                        /* a node's share of the staff */
    double usd_per_kwh;
    /* energy */
    double node_watts, idle_frac, pue; /* with GPUs busy; share of it when they wait */
    double carbon_kg_per_kwh;
    /* storage and leaving */
    double usd_per_byte_h, egress_usd_per_byte;
    /* spot: how often the provider takes a node back, and what then */
    double reclaim_node_h; /* mean hours of a node between two; 0: never */
    int64_t reclaim_notice_ns, reclaim_wait_ns;
} OrrPrices;
OrrPrices *orr_prices_new(void);
void orr_prices_free(OrrPrices *prices);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrPrices, orr_prices_free)

#endif
