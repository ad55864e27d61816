/* How often a part that is renewed after each failure fails in a given time, where it is not
 * exponential: new parts fail more often (infant mortality) or less (wear-out) than in the long
 * run.
 */
#ifndef ORR_JOB_RENEWAL_H
#define ORR_JOB_RENEWAL_H

#include <stdint.h>

/**
 * orr_renewal_count: mean number of renewals of a Weibull life of mean 1 and that shape by the time
 * @t, at most @most of one unit (0: no end). Cost: some milliseconds. To a per cent.
 */
double orr_renewal_count(double t, double shape, uint32_t most);

#endif
