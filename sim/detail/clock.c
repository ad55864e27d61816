/* The event loop of detailed collectives: all events of an instant, then the links once. */
#include "sim/detail/detail_priv.h"

void orr_detail__clock_init(OrrClock *k, uint32_t n_senders, const uint64_t *capacity,
                            uint32_t n_links) {
    *k = (OrrClock){.fluid = n_links > 0 ? orr_fluid_new(capacity, n_links) : NULL};
    orr_queue_init(&k->queue);
    k->generation = g_new0(uint32_t, n_senders);
    k->activity = g_new(uint32_t, n_senders);
}

void orr_detail__clock_clear(OrrClock *k) {
    orr_queue_clear(&k->queue);
    orr_fluid_free(k->fluid);
    g_free(k->generation);
    g_free(k->activity);
}

static void retime(void *data, uint32_t activity, uint32_t sender, int64_t end_ns) {
    OrrClock *k = data;
    (void)activity;
    k->generation[sender] = (k->generation[sender] + 1) & ORR_GENERATION_MASK;
    orr_queue_push(&k->queue, end_ns, ORR_DETAIL_END, k->generation[sender], sender);
}

void orr_detail__begin(OrrClock *k, uint32_t sender, const OrrFlow *flow) {
    k->activity[sender] = orr_fluid_start(k->fluid, k->now_ns, flow);
    k->is_dirty = true;
    k->n_shared++;
}

static void settle(OrrClock *k) {
    k->is_dirty = false;
    orr_fluid_settle(k->fluid, k->now_ns, retime, k);
}

void orr_detail__clock_run(OrrClock *k) {
    for (;;) {
        if (k->is_dirty && (k->queue.n == 0 || k->queue.heap[0].time_ns > k->now_ns))
            settle(k);
        if (k->queue.n == 0)
            return;
        OrrEvent e = orr_queue_pop(&k->queue);
        uint32_t class = orr_event_class(&e), tag = orr_event_generation(&e);
        if (class == ORR_DETAIL_END && tag != k->generation[e.id])
            continue;
        k->now_ns = e.time_ns;
        k->n_events++;
        if (class == ORR_DETAIL_END) {
            orr_fluid_end(k->fluid, k->now_ns, k->activity[e.id]);
            k->is_dirty = true;
        }
        k->handle(k->data, class, e.id, tag);
    }
}
