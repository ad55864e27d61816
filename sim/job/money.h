/* What a run costs: rent or ownership, spares, checkpoints kept, energy and carbon. */
#ifndef ORR_JOB_MONEY_H
#define ORR_JOB_MONEY_H

#include "sim/facts/prices.h"
#include "sim/job/spec.h"
#include "sim/result/run_record.h"

/* What money is spent on. */
typedef struct {
    uint32_t n_gpus, n_nodes, n_spare_nodes; /* spares are paid for, too */
    double kept_bytes, final_bytes;          /* on stores that cost; taken away at the end */
    uint32_t n_causes;
} OrrRunSize;

/* An hour of one GPU without its electricity; NAN where the contract is not offered. */
double orr_price_gpu_h(const OrrPrices *p, OrrContract contract);
/* Names of the contracts that are offered: "none, on_demand or spot"; g_free. */
char *orr_price_offers(const OrrPrices *p);
/* Electricity of an hour of one busy GPU; 0 in rented contracts, where it is in the price. */
double orr_price_power_gpu_h(const OrrPrices *p, OrrContract contract);
/* Checkpoints kept for so long, and the last one taken away; 0 where the storage was bought with
 * the nodes. */
double orr_money_storage(const OrrPrices *p, OrrContract contract, const OrrRunSize *size,
                         int64_t wall_ns);
/* Fills cost_usd, energy_mwh and carbon_kg of @seed. The time in a queue is not paid. */
void orr_money_seed(const OrrPrices *p, OrrContract contract, const OrrRunSize *size,
                    OrrRunSeed *seed);
/* Hours of use after which buying is cheaper than renting at @contract; INFINITY: never. */
double orr_money_breakeven_h(const OrrPrices *p, OrrContract contract);

#endif
