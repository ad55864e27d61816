/* Random small jobs, folded and unfolded: layouts, schedules, clusters, profiles. */
#ifndef TESTS_FOLD_RANDOM_H
#define TESTS_FOLD_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

/* Draws @n jobs with seeds from @first on, with things that are not as they should be or without;
 * fails if one differs in anything but what was executed.
 */
void fold_compare_random(uint64_t first, uint32_t n, bool has_perturbs);

#endif
