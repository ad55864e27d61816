/* The renewal equation M = F + F * dM as a Stieltjes sum over midpoints (Xie 1989, Communications
 * in Statistics 18: accurate though the density has no bound at 0). */
#include "sim/job/renewal.h"

#include <glib.h>
#include <math.h>

#define N 1000u   /* ours: to 0.1 % where F is smooth */
#define LONG 40.0 /* lives; beyond, one more each mean life (the elementary renewal theorem) */

static double life(double x, double shape) {
    double scale = 1 / tgamma(1 + 1 / shape); /* of mean 1 */
    return -expm1(-pow(x / scale, shape));
}

/* Sum over the steps of @m up to i - 1 of F at their midpoints. */
static double convolve(const double *mid, const double *m, uint32_t i) {
    double sum = 0;
    for (uint32_t j = 1; j < i; j++)
        sum += mid[i - j] * (m[j] - m[j - 1]);
    return sum;
}

static double endless(const double *whole, const double *mid) {
    double m[N + 1] = {0};
    for (uint32_t i = 1; i <= N; i++)
        m[i] = (whole[i] + convolve(mid, m, i) - mid[0] * m[i - 1]) / (1 - mid[0]);
    return m[N];
}

/* The first @most renewals one after another: each is the one before and a life. */
static double limited(const double *whole, const double *mid, uint32_t most) {
    double now[N + 1], next[N + 1] = {0}, sum = 0;
    for (uint32_t i = 0; i <= N; i++)
        now[i] = whole[i];
    for (uint32_t n = 0; n < most && now[N] > 1e-9; n++) {
        sum += now[N];
        for (uint32_t i = 1; i <= N; i++)
            next[i] = convolve(mid, now, i) + mid[0] * (now[i] - now[i - 1]);
        for (uint32_t i = 0; i <= N; i++)
            now[i] = next[i];
    }
    return sum;
}

double orr_renewal_count(double t, double shape, uint32_t most) {
    if (!(t > 0))
        return 0;
    if (shape == 1 && most == 0)
        return t;
    double end = fmin(t, LONG), step = end / N;
    double whole[N + 1], mid[N + 1];
    for (uint32_t i = 0; i <= N; i++) {
        whole[i] = life(i * step, shape);
        mid[i] = life((i + 0.5) * step, shape);
    }
    double all = endless(whole, mid) + (t - end);
    if (most == 0 || most > 4 * LONG)
        return most == 0 ? all : fmin(all, most);
    return t > LONG ? fmin(all, most) : limited(whole, mid, most);
}
