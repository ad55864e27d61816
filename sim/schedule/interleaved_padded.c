/* Interleaved 1F1B for any number of micro-batches: our own. The order is Megatron's for M rounded
 * up to a multiple of P, with the passes of the added micro-batches left out. It cannot hang where
 * Megatron's order does not: passes depend only on passes of the same micro-batch, so a run of the
 * padded order with some micro-batches taken out is a run of this one. */
#include "sim/schedule/schedule_priv.h"

#include <glib.h>
#include <math.h>

static OrrOrder *padded_order(const OrrPipeShape *shape, GError **error) {
    if (shape->n_chunks < 2 || shape->n_stages < 2) {
        orr_fail_input(error,
                       "schedule interleaved_padded needs pp and vpp of 2 or more, and they "
                       "are %u and %u: take schedule 1f1b",
                       shape->n_stages, shape->n_chunks);
        return NULL;
    }
    return orr_schedule__interleave(shape);
}

static double padded_bubble(const OrrPipeShape *shape) {
    if (shape->n_micro_batches % shape->n_stages != 0)
        return NAN;
    return (shape->n_stages - 1.0) / ((double)shape->n_chunks * shape->n_micro_batches);
}

static uint32_t padded_in_flight(const OrrPipeShape *shape, uint32_t stage) {
    if (shape->n_micro_batches % shape->n_stages != 0)
        return 0;
    uint64_t held = (uint64_t)orr_schedule__interleaved_warmup(shape, stage) + 1;
    return (uint32_t)MIN(held, (uint64_t)shape->n_chunks * shape->n_micro_batches);
}

const OrrSchedule orr_schedule_interleaved_padded = {
    .name = "interleaved_padded",
    .summary = "interleaved for any M: the last group of micro-batches is smaller",
    .source = "ours, after Narayanan et al. 2021, section 2.2.2",
    .needs_chunks = true,
    .order = padded_order,
    .bubble = padded_bubble,
    .in_flight = padded_in_flight,
};
