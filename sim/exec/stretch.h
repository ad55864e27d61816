/* How long kernels take at a rate: the same integers wherever blocks are walked. */
#ifndef ORR_EXEC_STRETCH_H
#define ORR_EXEC_STRETCH_H

#include "sim/bound/bound.h"

/* Time of a kernel of @ns in a stretch that jitter makes @factor / ORR_RATE_ONE as long. */
static inline int64_t orr_stretch_drawn_ns(int64_t ns, uint32_t factor) {
    if (factor == ORR_RATE_ONE)
        return ns;
    return MAX((int64_t)(((unsigned __int128)ns * factor + ORR_RATE_ONE / 2) / ORR_RATE_ONE), 1);
}

/* Nanoseconds for @left (nanoseconds << 16 at rate 1), rounded up. */
static inline int64_t orr_stretch_takes_ns(uint64_t left, uint64_t rate) {
    /* a division by a constant is a shift */
    return (int64_t)(rate == ORR_RATE_ONE ? (left + ORR_RATE_ONE - 1) / ORR_RATE_ONE
                                          : (left + rate - 1) / rate);
}

#endif
