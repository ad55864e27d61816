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
#include <time.h>

#define REPEATS 5

typedef struct {
    int64_t time;
    uint64_t id;
} Entry;

static uint64_t state = 1;

/* Of the process: other processes' turns do not count, though their use of the caches does. */
static double cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

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
    double begin = 0;
    for (uint32_t i = 0; i < 2 * rounds; i++) {
        if (i == rounds) /* the first half warms up */
            begin = cpu_ns();
        Entry e = heap[0];
        sift_down(heap, n - 1, heap[n - 1]);
        push(heap, n - 1, (Entry){e.time + later(), e.id});
    }
    return (cpu_ns() - begin) / rounds;
}

static double hold_queue(uint32_t n, uint32_t rounds) {
    OrrQueue queue;
    orr_queue_init(&queue);
    for (uint32_t i = 0; i < n; i++)
        orr_queue_push(&queue, later(), 0, 0, i);
    double begin = 0;
    for (uint32_t i = 0; i < 2 * rounds; i++) {
        if (i == rounds)
            begin = cpu_ns();
        OrrEvent e = orr_queue_pop(&queue);
        orr_queue_push(&queue, e.time_ns + later(), 0, 0, e.id);
    }
    double ns = (cpu_ns() - begin) / rounds;
    orr_queue_clear(&queue);
    return ns;
}

static double draw_cost(uint32_t rounds) {
    int64_t sum = 0;
    double begin = cpu_ns();
    for (uint32_t i = 0; i < rounds; i++)
        sum += later();
    double ns = (cpu_ns() - begin) / rounds;
    return sum > 0 ? ns : 0;
}

int main(void) {
    const uint32_t pending[] = {10000, 1000000}, rounds = 1000000;
    double draw = INFINITY; /* not the queue's */
    for (int k = 0; k < REPEATS; k++)
        draw = fmin(draw, draw_cost(rounds));
    for (size_t i = 0; i < G_N_ELEMENTS(pending); i++) {
        double heap = INFINITY, queue = INFINITY; /* the least of turns about, for both alike */
        for (int k = 0; k < REPEATS; k++) {
            heap = fmin(heap, hold_heap(pending[i], rounds) - draw);
            queue = fmin(queue, hold_queue(pending[i], rounds) - draw);
        }
        printf("heap4 %" PRIu32 " %.1f\n", pending[i], heap);
        printf("queue %" PRIu32 " %.1f\n", pending[i], queue);
    }
    return 0;
}
