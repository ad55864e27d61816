/* Maxima of normal variables. */
#ifndef ORR_BASE_NORMAL_H
#define ORR_BASE_NORMAL_H

/* Mean and variance of the largest of @n (1 or more, need not be whole) independent standard normal
 * variables, within 1e-6. By integration of the density n f(x) F(x)^(n-1). */
void orr_normal_largest(double n, double *mean, double *variance);

/* Mean of the larger of two normal variables with means @a and @b, variances @va and @vb and
 * covariance @cov; @variance: its variance; @share: probability that the first is the larger.
 * Source: Clark 1961, Operations Research 9(2), equations 2 to 4. */
double orr_normal_larger(double a, double va, double b, double vb, double cov, double *variance,
                         double *share);

#endif
