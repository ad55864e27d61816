/* The event loop of detailed collectives: all events of an instant, then the links once. */
#include "sim/detail/detail_priv.h"

void orr_detail__clock_init(OrrClock *k, uint32_t n_senders, const uint64_t *capacity,
                            uint32_t n_links) {
    *k = (OrrClock){.fluid = n_links > 0 ? orr_fluid_new(capacity, n_links) : NULL};
    orr_queue_init(&k->queue);
    k->activity = g_new(uint32_t, n_senders);
}

void orr_detail__clock_clear(OrrClock *k) {
    orr_queue_clear(&k->queue);
    orr_fluid_free(k->fluid);
    g_free(k->activity);
}

/* It takes its turn among the events of this instant. */
static void flow_ended(void *data, uint32_t activity, uint32_t sender) {
    OrrClock *k = data;
    (void)activity;
    orr_queue_push(&k->queue, k->now_ns, ORR_DETAIL_END, 0, sender);
}

void orr_detail__begin(OrrClock *k, uint32_t sender, const OrrFlow *flow) {
    k->activity[sender] = orr_fluid_start(k->fluid, k->now_ns, flow);
    k->is_dirty = true;
    k->n_shared++;
}

/* On to the next instant, at which the queue has an event or a transfer is over. */
static bool advance(OrrClock *k) {
    if (k->is_dirty)
        orr_fluid_settle(k->fluid, k->now_ns);
    k->is_dirty = false;
    int64_t next_ns = k->queue.n > 0 ? k->queue.heap[0].time_ns : INT64_MAX;
    int64_t end_ns = k->fluid ? orr_fluid_next_end(k->fluid) : INT64_MAX;
    if (MIN(next_ns, end_ns) == INT64_MAX)
        return false;
    k->now_ns = MIN(next_ns, end_ns);
    if (end_ns <= next_ns)
        orr_fluid_take_ended(k->fluid, end_ns, flow_ended, k);
    return true;
}

void orr_detail__clock_run(OrrClock *k) {
    for (;;) {
        if ((k->queue.n == 0 || k->queue.heap[0].time_ns > k->now_ns) && !advance(k))
            return;
        OrrEvent e = orr_queue_pop(&k->queue);
        uint32_t class = orr_event_class(&e);
        k->n_events++;
        if (class == ORR_DETAIL_END) {
            orr_fluid_end(k->fluid, k->now_ns, k->activity[e.id]);
            k->is_dirty = true;
        }
        k->handle(k->data, class, e.id, orr_event_generation(&e));
    }
}
