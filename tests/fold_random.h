/* Random small jobs, folded and unfolded: layouts, schedules, clusters, profiles. */
#ifndef TESTS_FOLD_RANDOM_H
#define TESTS_FOLD_RANDOM_H

#include <stdint.h>

typedef enum {
    FOLD_PLAIN,
    FOLD_PERTURBED, /* with things that are not as they should be */
    FOLD_WIDE       /* the same with so many replicas that runs of them are not even bound */
} FoldKind;

/* A random job as settings for tiny-pipeline; g_free. */
char *fold_draw_job(uint64_t seed, FoldKind kind);

/* Draws @n jobs with seeds from @first on; fails if one differs in anything but what was executed.
 */
void fold_compare_random(uint64_t first, uint32_t n, FoldKind kind);

#endif
