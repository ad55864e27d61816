/* A counter-based hash of four words: the mixer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014),
 * applied once a word. */
#ifndef ORR_CLUSTER_HASH_H
#define ORR_CLUSTER_HASH_H

#include <stdint.h>

static inline uint64_t orr_cluster_hash(uint64_t seed, uint64_t a, uint64_t b, uint64_t c)
{
    const uint64_t words[] = {seed, a, b, c};
    uint64_t x = 0;
    for (int i = 0; i < 4; i++) {
        x = (x ^ words[i]) + 0x9e3779b97f4a7c15u; /* golden ratio, SplitMix64's increment */
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;  /* multipliers and shifts: SplitMix64 */
        x = (x ^ x >> 27) * 0x94d049bb133111ebu;
        x ^= x >> 31;
    }
    return x;
}

#endif
