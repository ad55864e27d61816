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

/* A number below @below; splitmix64. */
static inline uint64_t naive_draw(uint64_t *state, uint64_t below) {
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % below;
}

#endif
