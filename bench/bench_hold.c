/* What a hold costs on this machine: take the earliest entry of a queue, put one back later. A bare
 * 4-ary heap of 16-byte entries, and the executor's own queue; exponential increments, 10^4 and
 * 10^6 pending (the hold model of Jones 1986). The limits of bench/step.sh are scaled by the first.
 * Usage: bench_hold; prints "heap4|queue PENDING NANOSECONDS" a line. Not part of make check. */
#include "sim/core/queue.h"

#include <glib.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    int64_t time;
    uint64_t id;
} Entry;

static uint64_t state = 1;

static int64_t later(void) {
    uint64_t z = (state += UINT64_C(0x9e3779b97f4a7c15)); /* splitmix64 */
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (int64_t)(-log(((double)((z ^ z >> 31) >> 11) + 0.5) * 0x1p-53) * 1e6) + 1;
}

/* Moves @e down from the root of a heap of @n. */
static void sift_down(Entry *heap, uint32_t n, Entry e) {
    uint32_t at = 0;
    for (;;) {
        uint32_t first = 4 * at + 1, best = first;
        if (first >= n)
            break;
        for (uint32_t c = first + 1; c < MIN(first + 4, n); c++)
            if (heap[c].time < heap[best].time)
                best = c;
        if (heap[best].time >= e.time)
            break;
        heap[at] = heap[best];
        at = best;
    }
    heap[at] = e;
}

static void push(Entry *heap, uint32_t at, Entry e) {
    for (; at > 0 && heap[(at - 1) / 4].time > e.time; at = (at - 1) / 4)
        heap[at] = heap[(at - 1) / 4];
    heap[at] = e;
}

static double hold_heap(uint32_t n, uint32_t rounds) {
    g_autofree Entry *heap = g_new(Entry, n);
    for (uint32_t i = 0; i < n; i++)
        push(heap, i, (Entry){later(), i});
    gint64 begin = 0;
    for (uint32_t i = 0; i < 2 * rounds; i++) {
        if (i == rounds) /* the first half warms up */
            begin = g_get_monotonic_time();
        Entry e = heap[0];
        sift_down(heap, n - 1, heap[n - 1]);
        push(heap, n - 1, (Entry){e.time + later(), e.id});
    }
    return (double)(g_get_monotonic_time() - begin) * 1000 / rounds;
}

static double hold_queue(uint32_t n, uint32_t rounds) {
    OrrQueue queue;
    orr_queue_init(&queue);
    for (uint32_t i = 0; i < n; i++)
        orr_queue_push(&queue, later(), 0, 0, i);
    gint64 begin = 0;
    for (uint32_t i = 0; i < 2 * rounds; i++) {
        if (i == rounds)
            begin = g_get_monotonic_time();
        OrrEvent e = orr_queue_pop(&queue);
        orr_queue_push(&queue, e.time_ns + later(), 0, 0, e.id);
    }
    double ns = (double)(g_get_monotonic_time() - begin) * 1000 / rounds;
    orr_queue_clear(&queue);
    return ns;
}

static double draw_cost(uint32_t rounds) {
    int64_t sum = 0;
    gint64 begin = g_get_monotonic_time();
    for (uint32_t i = 0; i < rounds; i++)
        sum += later();
    double ns = (double)(g_get_monotonic_time() - begin) * 1000 / rounds;
    return sum > 0 ? ns : 0;
}

int main(void) {
    const uint32_t pending[] = {10000, 1000000}, rounds = 4000000;
    double draw = draw_cost(rounds); /* not the queue's */
    for (size_t i = 0; i < G_N_ELEMENTS(pending); i++) {
        printf("heap4 %" PRIu32 " %.1f\n", pending[i], hold_heap(pending[i], rounds) - draw);
        printf("queue %" PRIu32 " %.1f\n", pending[i], hold_queue(pending[i], rounds) - draw);
    }
    return 0;
}
