/* Private to sim/schedule: how variants write an order down. */
#ifndef ORR_SCHEDULE_SCHEDULE_PRIV_H
#define ORR_SCHEDULE_SCHEDULE_PRIV_H

#include "sim/schedule/schedule.h"

/* An order with room for all passes (two a chunk and micro-batch, three if @splits_backward), chunk
 * c of stage s being virtual stage c * P + s. Stages are written one after another. */
OrrOrder *orr_schedule__order_new(const OrrPipeShape *shape, bool splits_backward);
void orr_schedule__add(OrrOrder *order, uint32_t stage, OrrPass pass, uint32_t chunk,
                       uint32_t micro_batch);

/* False with @error where a schedule of one chunk a stage is asked for several. */
bool orr_schedule__one_chunk(const char *name, const OrrPipeShape *shape, GError **error);

/* Interleaved 1F1B: forwards of stage @stage that come before its first backward. */
uint32_t orr_schedule__interleaved_warmup(const OrrPipeShape *shape, uint32_t stage);
/* Writes the interleaved order for M rounded up to a multiple of P, without the passes of the
 * micro-batches that do not exist. */
OrrOrder *orr_schedule__interleave(const OrrPipeShape *shape);

#endif
