/* How long a step of the jobs of a shared cluster takes, by how far apart its nodes lie: the step
 * simulator is asked once for each job file and spread, with the ranks on such nodes of the whole
 * cluster. */
#ifndef ORR_API_SHARE_PRICE_H
#define ORR_API_SHARE_PRICE_H

#include "sim/job/share.h"
#include "workloads/loader.h"

typedef struct OrrSharePrices OrrSharePrices;

/**
 * orr_share_prices_new: loads the job files that @spec names and fills work, steps, step times and
 * GPUs of their jobs. @overrides: of cluster, node and gpu, for all. NULL with @error, which names
 * the line of the table.
 */
OrrSharePrices *orr_share_prices_new(OrrShareSpec *spec, const OrrOverride *overrides,
                                     uint32_t n_overrides, const char *calibration,
                                     OrrSources *sources, GError **error);
void orr_share_prices_free(OrrSharePrices *prices);

/* As OrrSharePricer wants it: data is the prices. From any thread. What goes wrong is kept for
 * orr_share_prices_failed, and the closest place's time returned. */
int64_t orr_share_prices_step_ns(void *prices, uint32_t job, uint32_t racks, uint32_t blocks);
/* Moves the first error to @error; false if there was one. */
bool orr_share_prices_sound(OrrSharePrices *prices, GError **error);
/* Calls @each for all that were priced, by job file, racks and blocks. */
void orr_share_prices_each(const OrrSharePrices *prices,
                           void (*each)(void *data, uint32_t job, uint32_t racks, uint32_t blocks,
                                        int64_t step_ns),
                           void *data);

#endif
