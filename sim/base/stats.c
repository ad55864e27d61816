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
