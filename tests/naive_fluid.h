/* The reference for rates: all flows raised together, by loops over all flows and all links. */
#ifndef TESTS_NAIVE_FLUID_H
#define TESTS_NAIVE_FLUID_H

#include "sim/net/fluid.h"

/* Rates of @flows [@n] on links of @capacity [@n_links] bytes per second, as sim/net/fluid.h
 * defines them, into @rate. Flows have uses, links or caps that end them. */
void naive_rates(const OrrFlow *const *flows, uint32_t n, const uint64_t *capacity,
                 uint32_t n_links, uint64_t *rate);

/* The same by one run of the solver: quick enough for hundreds of flows after every event. */
void solved_rates(const OrrFlow *const *flows, uint32_t n, const uint64_t *capacity,
                  uint32_t n_links, uint64_t *rate);

#endif
