/* Independent pieces of work on all cores. */
#ifndef ORR_BASE_PARALLEL_H
#define ORR_BASE_PARALLEL_H

#include <stdint.h>

/* Done pieces are told on the caller's thread, in the order in which they end. */
typedef struct {
    void (*told)(void *data, uint64_t done); /* NULL: nobody */
    void *data;
} OrrParallelProgress;

/**
 * orr_parallel: calls @piece with each of 0..@n-1, once, on @n_threads threads (0: as many as there
 * are processors), and returns when all are done. Who does which, and when, is open: a piece must
 * write only what is its own. @progress: may be NULL.
 */
void orr_parallel(uint32_t n, uint32_t n_threads, void (*piece)(void *data, uint32_t i), void *data,
                  const OrrParallelProgress *progress);

#endif
