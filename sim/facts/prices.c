#include "sim/facts/prices.h"

#include <math.h>

const char *const orr_contract_names[] = {"none", "on_demand",  "reserved",
                                          "spot", "on_premise", NULL};

OrrPrices *orr_prices_new(void) {
    OrrPrices *p = g_new0(OrrPrices, 1);
    for (int c = 0; c < ORR_N_CONTRACTS; c++)
        p->usd_per_gpu_h[c] = NAN;
    return p;
}

void orr_prices_free(OrrPrices *p) {
    if (!p)
        return;
    g_free(p->name), g_free(p->summary), g_free(p->source), g_free(p->date);
    g_free(p);
}
