/* Random draws without a sequence: a hash of (seed, name, a, b), so that no draw depends on
 * another, on the order of asking or on the number of threads. */
#ifndef ORR_BASE_RANDOM_H
#define ORR_BASE_RANDOM_H

#include <stdint.h>

/* A stream of draws of one purpose; by value. */
typedef struct {
    uint64_t key;
} OrrRandom;

/* @name says what is drawn, "ecmp", "failure"; different names are independent. */
OrrRandom orr_random(uint64_t seed, const char *name);

/* @a and @b are what the draw belongs to: rank and step, for instance. */
uint64_t orr_random_bits(OrrRandom r, uint64_t a, uint64_t b);
uint64_t orr_random_below(OrrRandom r, uint64_t a, uint64_t b, uint64_t n); /* 0..n-1, n above 0 */
double orr_random_uniform(OrrRandom r, uint64_t a, uint64_t b); /* inside (0, 1), ends excluded */
double orr_random_normal(OrrRandom r, uint64_t a, uint64_t b);  /* mean 0, deviation 1 */
double orr_random_exponential(OrrRandom r, uint64_t a, uint64_t b); /* mean 1 */
/* Weibull with scale 1; @shape 1 is exponential, below 1 is infant mortality. */
double orr_random_weibull(OrrRandom r, uint64_t a, uint64_t b, double shape);
/* Logarithm normal: median 1, deviation of the logarithm @sigma. */
double orr_random_lognormal(OrrRandom r, uint64_t a, uint64_t b, double sigma);

#endif
