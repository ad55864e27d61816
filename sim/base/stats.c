#include "sim/base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

/* Neumaier's compensated sum (1974): the order of the terms does not show. */
static double sum(const double *x, size_t n) {
    double total = 0, lost = 0;
    for (size_t i = 0; i < n; i++) {
        double t = total + x[i];
        lost += fabs(total) >= fabs(x[i]) ? (total - t) + x[i] : (x[i] - t) + total;
        total = t;
    }
    return total + lost;
}

double orr_stats_mean(const double *x, size_t n) {
    return n > 0 ? sum(x, n) / (double)n : NAN;
}

double orr_stats_deviation(const double *x, size_t n) {
    if (n < 2)
        return NAN;
    double mean = orr_stats_mean(x, n), squares = 0;
    for (size_t i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    return sqrt(squares / (double)(n - 1));
}

/* Quantile 0.975 of Student's distribution: closed forms, then the expansion of Abramowitz and
 * Stegun 1964, 26.7.5. */
static double student(double freedom) {
    const double z = 1.959963984540054; /* of the normal distribution */
    if (freedom < 1.5)
        return 12.706204736432095; /* tan(0.475 pi) */
    if (freedom < 2.5)
        return 4.302652729911275; /* 0.95 sqrt(2 / (1 - 0.95^2)) */
    double z2 = z * z, f = freedom;
    double g1 = z * (z2 + 1) / 4, g2 = z * ((5 * z2 + 16) * z2 + 3) / 96;
    double g3 = z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384;
    double g4 = z * ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160;
    return z + (g1 + (g2 + (g3 + g4 / f) / f) / f) / f;
}

double orr_stats_half_width95(double deviation, size_t n) {
    return n > 1 ? student((double)n - 1) * deviation / sqrt((double)n) : NAN;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double orr_stats_percentile(const double *x, size_t n, double frac) {
    if (n == 0)
        return NAN;
    g_autofree double *sorted = g_new(double, n);
    memcpy(sorted, x, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_value);
    double place = frac * (double)(n - 1);
    size_t below = (size_t)place;
    if (below + 1 >= n)
        return sorted[n - 1];
    return sorted[below] + (place - (double)below) * (sorted[below + 1] - sorted[below]);
}

double orr_stats_median(const double *x, size_t n) {
    return orr_stats_percentile(x, n, 0.5);
}

double orr_stats_geomean(const double *x, size_t n) {
    double total = 0;
    for (size_t i = 0; i < n; i++)
        total += log(x[i]);
    return n > 0 ? exp(total / (double)n) : NAN;
}
