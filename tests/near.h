/* Comparison of doubles with a stated tolerance. */
#ifndef TESTS_NEAR_H
#define TESTS_NEAR_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* |a - b| <= frac * |b|, or both within frac of zero. */
#define assert_near(a, b, frac)                                                                    \
    do {                                                                                           \
        double near_a_ = (a), near_b_ = (b);                                                       \
        if (!(fabs(near_a_ - near_b_) <= (frac)*fmax(fabs(near_b_), 1e-300)))                      \
            fail_msg("%s = %.9g, expected %.9g within %g", #a, near_a_, near_b_, (double)(frac));  \
    } while (0)

#endif
