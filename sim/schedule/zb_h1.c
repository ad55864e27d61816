/* Zero-bubble ZB-H1: the backward is split into its input half I and its weight half W; forwards
 * and input halves go as in 1F1B, and stage s runs W of a micro-batch s micro-batches after its I,
 * so that every stage holds the same P micro-batches and the late W fill the drain.
 * Source: Qi et al. 2023, Zero Bubble Pipeline Parallelism, section 2.1 and figure 3 top; bubble
 * (P - 1)(T_F + T_B - T_W) from table 1 (their B is our I). */
#include "sim/schedule/schedule_priv.h"

#include <glib.h>
#include <math.h>

static OrrOrder *zb_h1_order(const OrrPipeShape *shape, GError **error) {
    if (!orr_schedule__one_chunk("zb_h1", shape, error))
        return NULL;
    OrrOrder *order = orr_schedule__order_new(shape, true);
    uint32_t n = shape->n_micro_batches;
    for (uint32_t s = 0; s < shape->n_stages; s++) {
        uint32_t ahead = MIN(shape->n_stages - s - 1, n);
        for (uint32_t m = 0; m < ahead; m++)
            orr_schedule__add(order, s, ORR_F, 0, m);
        for (uint32_t m = 0; m < n; m++) {
            if (m + ahead < n)
                orr_schedule__add(order, s, ORR_F, 0, m + ahead);
            orr_schedule__add(order, s, ORR_I, 0, m);
            if (m >= s)
                orr_schedule__add(order, s, ORR_W, 0, m - s);
        }
        for (uint32_t m = n - MIN(s, n); m < n; m++)
            orr_schedule__add(order, s, ORR_W, 0, m);
    }
    return order;
}

/* With I = W = F: (P - 1) F of bubble over 3 M F of work. */
static double zb_h1_bubble(const OrrPipeShape *shape) {
    if (shape->n_micro_batches < shape->n_stages)
        return NAN;
    return (shape->n_stages - 1.0) / (3.0 * shape->n_micro_batches);
}

static uint32_t zb_h1_in_flight(const OrrPipeShape *shape, uint32_t stage) {
    (void)stage;
    return MIN(shape->n_stages, shape->n_micro_batches);
}

const OrrSchedule orr_schedule_zb_h1 = {
    .name = "zb_h1",
    .summary = "1F1B with the weight half of the backward put off into the drain",
    .source = "Qi et al. 2023 (Zero Bubble), section 2.1, table 1",
    .splits_backward = true,
    .order = zb_h1_order,
    .bubble = zb_h1_bubble,
    .in_flight = zb_h1_in_flight,
};
