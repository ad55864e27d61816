/* Small statistics. Arrays are not changed. */
#ifndef ORR_BASE_STATS_H
#define ORR_BASE_STATS_H

#include <stddef.h>

double orr_stats_mean(const double *x, size_t n);      /* NAN if n is 0 */
double orr_stats_deviation(const double *x, size_t n); /* of a sample, n - 1; NAN below 2 */
double orr_stats_median(const double *x, size_t n);    /* NAN if n is 0 */
/* Half-width of the 95 % interval of a mean of @n draws of that deviation: Student's quantile, to
 * 0.2 %; NAN below 2. */
double orr_stats_half_width95(double deviation, size_t n);
/* @frac 0..1, linear between order statistics (type 7 of Hyndman and Fan 1996); NAN if n is 0. */
double orr_stats_percentile(const double *x, size_t n, double frac);
/* Geometric mean of positive numbers; NAN if n is 0. */
double orr_stats_geomean(const double *x, size_t n);

#endif
