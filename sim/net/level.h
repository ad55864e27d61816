/* Private to sim/net: the fixed point of levels, which the solver of everything (solver.c) and the
 * one of changes (settle.c) must share to the bit.
 *
 * x = scale * level / 2^LEVEL_BITS with scale = weight * ORR_COEF_ONE / largest coef *
 * 2^SCALE_BITS, all rounded down: the relative weight of an activity is right to 2^-32 or its
 * coef's share of that, and no constraint is exceeded. */
#ifndef ORR_NET_LEVEL_H
#define ORR_NET_LEVEL_H

#include "sim/net/solver.h"

#define ORR_LEVEL_BITS                                                                             \
    36                    /* x is right to scale / 2^36: below 1 byte/s for coef of 1/16 and more  \
                           */
#define ORR_SCALE_BITS 32 /* keeps the slope of 2^14 flows in 64 bits, where division is fast */
#define ORR_LEVEL_NONE UINT64_MAX /* of a constraint that stops nobody */

static inline uint64_t orr_level__scale(uint32_t weight, uint32_t largest_coef) {
    OrrWide scale = ((OrrWide)weight * ORR_COEF_ONE << ORR_SCALE_BITS) / largest_coef;
    return scale >> 63 != 0 ? UINT64_C(1) << 63 : scale == 0 ? 1 : (uint64_t)scale;
}

static inline uint64_t orr_level__rate(uint64_t scale, uint64_t level) {
    return (uint64_t)((OrrWide)scale * level >> ORR_LEVEL_BITS);
}

/* Lowest level at which scale * level reaches the cap. */
static inline uint64_t orr_level__of_cap(uint64_t cap, uint64_t scale) {
    OrrWide level = (((OrrWide)cap << ORR_LEVEL_BITS) + scale - 1) / scale;
    return level >> 64 != 0 ? ORR_LEVEL_NONE : (uint64_t)level;
}

/* Highest level that a constraint holds: @left for activities of @slope in all, above 0. */
static inline uint64_t orr_level__of_constraint(OrrWide left, OrrWide slope) {
    OrrWide high = left << ORR_LEVEL_BITS, level;
    if (slope >> 64 == 0) {
        int shift = __builtin_ctzll((uint64_t)slope); /* k alike: k times a power of two */
        high >>= shift;
        uint64_t low = (uint64_t)slope >> shift;
        level = high >> 64 == 0 ? (uint64_t)high / low : high / low; /* 64-bit division is fast */
    } else {
        level = high / slope;
    }
    return level >> 64 != 0 ? ORR_LEVEL_NONE : (uint64_t)level;
}

#endif
