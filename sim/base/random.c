/* The mixer is the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), applied once a word
 * of input; the increments between words keep equal words in different places apart. */
#include "sim/base/random.h"

#include <math.h>

#define GOLDEN 0x9e3779b97f4a7c15ull /* SplitMix64: 2^64 over the golden ratio */

static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull; /* SplitMix64, variant 13 of Stafford */
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull; /* the same */
    return z ^ (z >> 31);
}

OrrRandom orr_random(uint64_t seed, const char *name) {
    uint64_t key = mix(seed + GOLDEN);
    for (; *name; name++)
        key = mix(key + GOLDEN + (unsigned char)*name);
    return (OrrRandom){key};
}

uint64_t orr_random_bits(OrrRandom r, uint64_t a, uint64_t b) {
    return mix(mix(mix(r.key + GOLDEN) + a + GOLDEN) + b + GOLDEN);
}

uint64_t orr_random_below(OrrRandom r, uint64_t a, uint64_t b, uint64_t n) {
    /* high half of the product (Lemire 2019, without rejection: bias below n / 2^64) */
    return (uint64_t)(((unsigned __int128)orr_random_bits(r, a, b) * n) >> 64);
}

double orr_random_uniform(OrrRandom r, uint64_t a, uint64_t b) {
    return ((double)(orr_random_bits(r, a, b) >> 12) + 0.5) * 0x1p-52; /* 52 bits, half a step in */
}

double orr_random_normal(OrrRandom r, uint64_t a, uint64_t b) {
    /* Box and Muller 1958; the second uniform comes from a key of its own */
    OrrRandom second = {mix(r.key ^ GOLDEN)};
    double u = orr_random_uniform(r, a, b), v = orr_random_uniform(second, a, b);
    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

double orr_random_exponential(OrrRandom r, uint64_t a, uint64_t b) {
    return -log(orr_random_uniform(r, a, b));
}

double orr_random_weibull(OrrRandom r, uint64_t a, uint64_t b, double shape) {
    return pow(orr_random_exponential(r, a, b), 1 / shape);
}

double orr_random_lognormal(OrrRandom r, uint64_t a, uint64_t b, double sigma) {
    return exp(sigma * orr_random_normal(r, a, b));
}
