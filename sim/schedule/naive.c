/* Naive model parallelism: one micro-batch at a time goes forward through all stages and back;
 * every stage but one is idle. Source: Huang et al. 2019 (GPipe), figure 2(b), "naive model
 * parallelism strategy leads to severe under-utilization". */
#include "sim/schedule/schedule_priv.h"

static OrrOrder *naive_order(const OrrPipeShape *shape, GError **error) {
    if (!orr_schedule__one_chunk("naive", shape, error))
        return NULL;
    OrrOrder *order = orr_schedule__order_new(shape, false);
    for (uint32_t s = 0; s < shape->n_stages; s++) {
        for (uint32_t m = 0; m < shape->n_micro_batches; m++) {
            orr_schedule__add(order, s, ORR_F, 0, m);
            orr_schedule__add(order, s, ORR_B, 0, m);
        }
    }
    return order;
}

/* The step is M P (F + B), of which a stage works M (F + B). */
static double naive_bubble(const OrrPipeShape *shape) {
    return shape->n_stages - 1;
}

static uint32_t naive_in_flight(const OrrPipeShape *shape, uint32_t stage) {
    (void)shape, (void)stage;
    return 1;
}

const OrrSchedule orr_schedule_naive = {
    .name = "naive",
    .summary = "one micro-batch at a time through all stages and back",
    .source = "Huang et al. 2019 (GPipe), figure 2(b)",
    .order = naive_order,
    .bubble = naive_bubble,
    .in_flight = naive_in_flight,
};
