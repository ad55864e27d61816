#include "sim/base/normal.h"

#include <math.h>

#define SQRT_2_PI 2.5066282746310002
#define FAR 9.0 /* beyond, the density is below 1e-17 */
#define N_POINTS 2048

static double density(double x) {
    return exp(-0.5 * x * x) / SQRT_2_PI;
}

static double below(double x) {
    return 0.5 * erfc(-x * M_SQRT1_2);
}

void orr_normal_largest(double n, double *mean, double *variance) {
    double sum = 0, first = 0, second = 0;
    for (int i = 0; i <= N_POINTS;
         i++) { /* trapezoids: the ends vanish, so they are exact enough */
        double x = -FAR + 2 * FAR * i / N_POINTS;
        double weight = n * density(x) * pow(below(x), n - 1);
        sum += weight;
        first += weight * x;
        second += weight * x * x;
    }
    *mean = first / sum;
    *variance = second / sum - *mean * *mean;
}

double orr_normal_larger(double a, double va, double b, double vb, double cov, double *variance,
                         double *share) {
    double theta = sqrt(fmax(va + vb - 2 * cov, 0)), base = fmax(a, b);
    a -= base; /* what is added up stays small */
    b -= base;
    if (theta <= 0 || fabs(a - b) > FAR * theta) {
        *share = a >= b ? 1 : 0;
        *variance = a >= b ? va : vb;
        return base;
    }
    double alpha = (a - b) / theta, first = below(alpha), bump = theta * density(alpha);
    double mean = a * first + b * (1 - first) + bump;
    double second = (va + a * a) * first + (vb + b * b) * (1 - first) + (a + b) * bump;
    *share = first;
    *variance = fmax(second - mean * mean, 0);
    return base + mean;
}
