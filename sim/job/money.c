#include "sim/job/money.h"

#include <math.h>

#include "sim/base/words.h"

/* Of a node over its life, less what it sells for. */
static double bought_usd(const OrrPrices *p) {
    return p->node_usd * (1 - p->residual_frac) + p->network_usd + p->storage_usd + p->facility_usd;
}

double orr_price_gpu_h(const OrrPrices *p, OrrContract contract) {
    if (contract == ORR_CONTRACT_NONE)
        return 0;
    if (contract != ORR_CONTRACT_ON_PREMISE)
        return p->usd_per_gpu_h[contract];
    if (!(p->node_usd > 0))
        return NAN;
    double spent = bought_usd(p);
    double node_h = spent / (p->life_h * p->utilisation_frac) + p->people_usd_per_h;
    return node_h / p->node_gpus;
}

char *orr_price_offers(const OrrPrices *p) {
    const char *names[ORR_N_CONTRACTS + 1] = {NULL};
    for (uint32_t c = 0, n = 0; c < ORR_N_CONTRACTS; c++)
        if (orr_price_gpu_h(p, (OrrContract)c) >= 0)
            names[n++] = orr_contract_names[c];
    return orr_words_list(names);
}

double orr_price_power_gpu_h(const OrrPrices *p, OrrContract contract) {
    if (contract != ORR_CONTRACT_ON_PREMISE)
        return 0;
    return p->node_watts / 1000 * p->pue * p->usd_per_kwh / p->node_gpus;
}

static double hours(int64_t ns) {
    return (double)ns / 3600e9;
}

double orr_money_storage(const OrrPrices *p, OrrContract contract, const OrrRunSize *size,
                         int64_t wall_ns) {
    bool has_own = contract == ORR_CONTRACT_ON_PREMISE && p->storage_usd > 0;
    if (contract == ORR_CONTRACT_NONE || has_own)
        return 0;
    return size->kept_bytes * p->usd_per_byte_h * hours(wall_ns) +
           size->final_bytes * p->egress_usd_per_byte;
}

void orr_money_seed(const OrrPrices *p, OrrContract contract, const OrrRunSize *size,
                    OrrRunSeed *seed) {
    int64_t queued = 0, idle = 0;
    for (uint32_t c = 0; c < size->n_causes; c++)
        for (uint32_t l = 0; l < ORR_N_LOSSES; l++) {
            int64_t ns = seed->lost_ns[c * ORR_N_LOSSES + l];
            queued += orr_loss_is_queued((OrrLoss)l) ? ns : 0;
            idle += orr_loss_is_idle((OrrLoss)l) ? ns : 0;
        }
    double held = hours(seed->wall_ns - queued), busy = held - hours(idle);
    double per_node = (double)size->n_gpus / MAX(size->n_nodes, 1);
    double gpus = size->n_gpus + per_node * size->n_spare_nodes;
    double node_h = busy * size->n_nodes +
                    p->idle_frac * (hours(idle) * size->n_nodes + held * size->n_spare_nodes);
    double kwh = node_h * p->node_watts / 1000 * p->pue * (per_node / p->node_gpus);
    double price = orr_price_gpu_h(p, contract);
    double power = contract == ORR_CONTRACT_ON_PREMISE ? kwh * p->usd_per_kwh : 0;
    seed->cost_usd =
        contract == ORR_CONTRACT_NONE
            ? 0
            : gpus * held * price + power + orr_money_storage(p, contract, size, seed->wall_ns);
    seed->energy_mwh = kwh / 1000;
    seed->carbon_kg = kwh * p->carbon_kg_per_kwh;
}

double orr_money_breakeven_h(const OrrPrices *p, OrrContract contract) {
    double bought = bought_usd(p) / p->node_gpus;
    double running =
        p->people_usd_per_h / p->node_gpus + orr_price_power_gpu_h(p, ORR_CONTRACT_ON_PREMISE);
    double saved = p->usd_per_gpu_h[contract] - running;
    return saved > 0 && bought > 0 ? bought / saved : INFINITY;
}
