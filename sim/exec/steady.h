/* When steps repeat: two successive ones agree in length and in the relative ends of all ranks. */
#ifndef ORR_EXEC_STEADY_H
#define ORR_EXEC_STEADY_H

#include <stdbool.h>
#include <stdint.h>

#define ORR_STEADY_MAX_STEPS 8u /* simulated at most, unless options say otherwise */

/* Whether step @k is like the one before it; @end_ns [(k + 1) * n_ranks] are the ends of the steps
 * of each rank. Its length, from the end of the step before on its last rank, in @length. */
bool orr_steady_is_reached(const int64_t *end_ns, uint32_t n_ranks, uint32_t k, int64_t *length);
/* The time of a step, told by the first @k + 1: their last, or if that is not like the one before
 * it the mean of all but the first. */
int64_t orr_steady_step_time_ns(const int64_t *end_ns, uint32_t n_ranks, uint32_t k);

#endif
