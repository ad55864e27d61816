/* GPipe: all forwards, then all backwards, both in the order of the micro-batches (as in Narayanan
 * et al. 2021, figure 3; the GPipe paper draws the backwards in reverse, which takes as long).
 * Source: Huang et al. 2019, section 2.3; bubble: Narayanan et al. 2021, section 2.2.1. */
#include "sim/schedule/schedule_priv.h"

static OrrOrder *gpipe_order(const OrrPipeShape *shape, GError **error) {
    if (!orr_schedule__one_chunk("gpipe", shape, error))
        return NULL;
    OrrOrder *order = orr_schedule__order_new(shape, false);
    for (uint32_t s = 0; s < shape->n_stages; s++) {
        for (uint32_t m = 0; m < shape->n_micro_batches; m++)
            orr_schedule__add(order, s, ORR_F, 0, m);
        for (uint32_t m = 0; m < shape->n_micro_batches; m++)
            orr_schedule__add(order, s, ORR_B, 0, m);
    }
    return order;
}

static double gpipe_bubble(const OrrPipeShape *shape) {
    return (shape->n_stages - 1.0) / shape->n_micro_batches;
}

static uint32_t gpipe_in_flight(const OrrPipeShape *shape, uint32_t stage) {
    (void)stage;
    return shape->n_micro_batches;
}

const OrrSchedule orr_schedule_gpipe = {
    .name = "gpipe",
    .summary = "all forwards, then all backwards",
    .source = "Huang et al. 2019, section 2.3; Narayanan et al. 2021, figure 3",
    .order = gpipe_order,
    .bubble = gpipe_bubble,
    .in_flight = gpipe_in_flight,
};
