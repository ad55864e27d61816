/* 1F1B with a flush (PipeDream-flush): stage s runs P - s - 1 forwards ahead, then one forward and
 * one backward in turn, then the backwards that are left. Source: Narayanan et al. 2021, section
 * 2.2.1 and figure 4 top; Megatron core, schedules.py, pipelining without interleaving. */
#include "sim/schedule/schedule_priv.h"

#include <glib.h>

static uint32_t warmup(const OrrPipeShape *shape, uint32_t stage) {
    return MIN(shape->n_stages - stage - 1, shape->n_micro_batches);
}

static OrrOrder *one_f_one_b_order(const OrrPipeShape *shape, GError **error) {
    if (!orr_schedule__one_chunk("1f1b", shape, error))
        return NULL;
    OrrOrder *order = orr_schedule__order_new(shape, false);
    for (uint32_t s = 0; s < shape->n_stages; s++) {
        uint32_t ahead = warmup(shape, s), n = shape->n_micro_batches;
        for (uint32_t m = 0; m < ahead; m++)
            orr_schedule__add(order, s, ORR_F, 0, m);
        for (uint32_t m = 0; m < n; m++) {
            if (m + ahead < n)
                orr_schedule__add(order, s, ORR_F, 0, m + ahead);
            orr_schedule__add(order, s, ORR_B, 0, m);
        }
    }
    return order;
}

static double one_f_one_b_bubble(const OrrPipeShape *shape) {
    return (shape->n_stages - 1.0) / shape->n_micro_batches;
}

static uint32_t one_f_one_b_in_flight(const OrrPipeShape *shape, uint32_t stage) {
    return MIN(shape->n_stages - stage, shape->n_micro_batches);
}

const OrrSchedule orr_schedule_1f1b = {
    .name = "1f1b",
    .summary = "one forward, one backward in turn after a warm-up of P - s - 1 forwards",
    .source = "Narayanan et al. 2021 (PipeDream-flush), section 2.2.1",
    .order = one_f_one_b_order,
    .bubble = one_f_one_b_bubble,
    .in_flight = one_f_one_b_in_flight,
};
