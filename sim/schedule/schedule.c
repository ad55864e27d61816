/* Orders: their memory, and what all variants share in writing them. */
#include "sim/schedule/schedule.h"

#include "sim/schedule/schedule_priv.h"

#include <glib.h>

void orr_order_free(OrrOrder *order) {
    if (order == NULL)
        return;
    g_free(order->slots);
    g_free(order->first);
    g_free(order->virtual_stage);
    g_free(order);
}

OrrOrder *orr_schedule__order_new(const OrrPipeShape *shape, bool splits_backward) {
    OrrOrder *order = g_new0(OrrOrder, 1);
    size_t n_chunks = (size_t)shape->n_stages * shape->n_chunks;
    g_assert(n_chunks > 0 && shape->n_micro_batches > 0);
    order->shape = *shape;
    order->slots = g_new0(OrrSlot, n_chunks * shape->n_micro_batches * (splits_backward ? 3 : 2));
    order->first = g_new0(uint32_t, shape->n_stages + 1);
    order->virtual_stage = g_new0(uint32_t, n_chunks);
    for (uint32_t s = 0; s < shape->n_stages; s++)
        for (uint32_t c = 0; c < shape->n_chunks; c++)
            order->virtual_stage[s * shape->n_chunks + c] = c * shape->n_stages + s;
    return order;
}

void orr_schedule__add(OrrOrder *order, uint32_t stage, OrrPass pass, uint32_t chunk,
                       uint32_t micro_batch) {
    if (order->first[stage + 1] == 0)
        order->first[stage + 1] = order->first[stage];
    OrrSlot *slot = &order->slots[order->first[stage + 1]++];
    slot->pass = (uint8_t)pass;
    slot->chunk = (uint16_t)chunk;
    slot->micro_batch = micro_batch;
}

bool orr_schedule__one_chunk(const char *name, const OrrPipeShape *shape, GError **error) {
    if (shape->n_chunks == 1)
        return true;
    return orr_fail_input(
        error,
        "schedule %s runs one chunk a stage, and vpp is %u: set vpp to 1, or take "
        "schedule interleaved",
        name, shape->n_chunks);
}
