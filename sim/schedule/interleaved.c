/* Interleaved 1F1B as Megatron runs it: V chunks a stage, chunk c of stage s being virtual stage
 * c P + s; forwards go by groups of P micro-batches, a group through all chunks before the next;
 * stage s runs 2 (P - s - 1) + (V - 1) P forwards ahead. Source: Narayanan et al. 2021, section
 * 2.2.2 and figure 4 bottom; Megatron core, schedules.py, pipelining with interleaving (schedule
 * table, warm-up count, refusals), with its default group of P micro-batches. Releases of Megatron
 * before core 0.9 run all forwards first when M = P: as long, with V M chunks in flight everywhere.
 */
#include "sim/schedule/schedule_priv.h"

#include <glib.h>
#include <math.h>

uint32_t orr_schedule__interleaved_warmup(const OrrPipeShape *shape, uint32_t stage) {
    uint64_t ahead = 2 * ((uint64_t)shape->n_stages - stage - 1) +
                     (uint64_t)(shape->n_chunks - 1) * shape->n_stages;
    uint64_t all = (uint64_t)shape->n_chunks * shape->n_micro_batches;
    return (uint32_t)MIN(ahead, all);
}

/* The k-th forward (backward) of a stage: which chunk of which micro-batch. False: left out. */
static bool add_kth(OrrOrder *order, uint32_t stage, OrrPass pass, uint32_t k) {
    uint32_t n_stages = order->shape.n_stages, n_chunks = order->shape.n_chunks;
    uint32_t group = k / (n_stages * n_chunks), in_group = k % (n_stages * n_chunks);
    uint32_t chunk = in_group / n_stages;
    uint32_t micro_batch = group * n_stages + in_group % n_stages;
    if (micro_batch >= order->shape.n_micro_batches)
        return false;
    orr_schedule__add(order, stage, pass, pass == ORR_F ? chunk : n_chunks - 1 - chunk,
                      micro_batch);
    return true;
}

OrrOrder *orr_schedule__interleave(const OrrPipeShape *shape) {
    OrrPipeShape padded = *shape;
    uint32_t n_groups = (shape->n_micro_batches + shape->n_stages - 1) / shape->n_stages;
    padded.n_micro_batches = n_groups * shape->n_stages;
    uint32_t n = padded.n_micro_batches * shape->n_chunks;
    OrrOrder *order = orr_schedule__order_new(shape, false);
    for (uint32_t s = 0; s < shape->n_stages; s++) {
        uint32_t ahead = orr_schedule__interleaved_warmup(&padded, s);
        for (uint32_t k = 0; k < ahead; k++)
            add_kth(order, s, ORR_F, k);
        for (uint32_t k = 0; k < n; k++) {
            bool has_forward = k + ahead < n && add_kth(order, s, ORR_F, k + ahead);
            if (add_kth(order, s, ORR_B, k))
                order->slots[order->first[s + 1] - 1].shares_batch = has_forward;
        }
    }
    return order;
}

static OrrOrder *interleaved_order(const OrrPipeShape *shape, GError **error) {
    if (shape->n_stages < 2)
        orr_fail_input(error,
                       "schedule interleaved needs pp of 2 or more, and pp is %u: without "
                       "stages there is nothing to interleave; set vpp to 1",
                       shape->n_stages);
    else if (shape->n_chunks < 2)
        orr_fail_input(error,
                       "schedule interleaved needs vpp of 2 or more, and vpp is %u: take "
                       "schedule 1f1b",
                       shape->n_chunks);
    else if (shape->n_micro_batches % shape->n_stages != 0)
        orr_fail_input(error,
                       "schedule interleaved needs a number of micro-batches that pp divides "
                       "(Megatron's rule for the interleaved schedule), and %u is not a "
                       "multiple of %u: take %u micro-batches, or schedule "
                       "interleaved_padded",
                       shape->n_micro_batches, shape->n_stages,
                       (shape->n_micro_batches / shape->n_stages + 1) * shape->n_stages);
    else
        return orr_schedule__interleave(shape);
    return NULL;
}

/* Narayanan et al. 2021, section 2.2.2: (P - 1) / (V M). */
static double interleaved_bubble(const OrrPipeShape *shape) {
    if (shape->n_micro_batches % shape->n_stages != 0)
        return NAN;
    return (shape->n_stages - 1.0) / ((double)shape->n_chunks * shape->n_micro_batches);
}

static uint32_t interleaved_in_flight(const OrrPipeShape *shape, uint32_t stage) {
    uint64_t held = (uint64_t)orr_schedule__interleaved_warmup(shape, stage) + 1;
    return (uint32_t)MIN(held, (uint64_t)shape->n_chunks * shape->n_micro_batches);
}

const OrrSchedule orr_schedule_interleaved = {
    .name = "interleaved",
    .summary = "1F1B over V chunks a stage, as Megatron orders it; P must divide M",
    .source = "Narayanan et al. 2021, section 2.2.2; Megatron core schedules.py",
    .needs_chunks = true,
    .order = interleaved_order,
    .bubble = interleaved_bubble,
    .in_flight = interleaved_in_flight,
};
