/* The random data of all buffers: element i of the buffer with that seed is a whole number of steps
 * in [-1, 1), exactly so in every type, so that host and GPU know the same data without a copy. For
 * C and CUDA both. */
#ifndef ORR_CALIBRATE_FILL_H
#define ORR_CALIBRATE_FILL_H

#include <stdint.h>

#ifdef __CUDACC__
#define ORR_FILL_FUNCTION static __host__ __device__ inline
#else
#define ORR_FILL_FUNCTION static inline
#endif

/* Steps from 0 to 1: BF16 has 8 bits of mantissa, E4M3 4. */
#define ORR_FILL_STEPS 128
#define ORR_FILL_STEPS_FP8 8

/* Finaliser of MurmurHash3 (Appleby 2011, public domain), over the place and the seed. */
ORR_FILL_FUNCTION uint64_t orr_fill_hash(uint64_t seed, uint64_t i) {
    uint64_t x = i + seed * 0x9e3779b97f4a7c15ull; /* golden ratio, 64 bits */
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull; /* constants of the finaliser */
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    x ^= x >> 33;
    return x;
}

ORR_FILL_FUNCTION float orr_fill_value(uint64_t seed, uint64_t i, int steps) {
    int level = (int)(orr_fill_hash(seed, i) % (uint64_t)(2 * steps)) - steps;
    return (float)level / (float)steps;
}

#endif
