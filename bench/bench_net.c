/* What the fluid costs: a two-tier tree of 16,384 hosts, random pairs, paths by hash; as many flows
 * as asked for are kept alive, each that ends being followed by another.
 * Usage: bench_net [flows] [events] [uplinks a leaf, of 32]. Not part of make check. */
#include "sim/net/fluid.h"

#include <glib.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { HOSTS = 16384, PER_LEAF = 32, LEAVES = HOSTS / PER_LEAF };

typedef struct {
    int64_t end_ns;
    uint32_t id;
} Event;

typedef struct {
    OrrFluid *fluid;
    OrrUse (*uses)[4];
    Event *heap; /* stale entries stay; the live end of an id is in ends */
    size_t n_heap, cap_heap;
    int64_t *ends;
    uint32_t *activity_of; /* [flow] its activity */
    uint64_t random, n_retimes;
    uint32_t uplinks;
} Bench;

/* Of the process: other processes' turns do not count. */
static double cpu_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static uint64_t draw(Bench *b, uint64_t below) {
    uint64_t z = (b->random += UINT64_C(0x9e3779b97f4a7c15)); /* splitmix64 */
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % below;
}

static void push(Bench *b, Event e) {
    if (b->n_heap == b->cap_heap) {
        b->cap_heap = MAX(1024, 2 * b->cap_heap);
        b->heap = g_renew(Event, b->heap, b->cap_heap);
    }
    size_t at = b->n_heap++;
    for (; at > 0 && b->heap[(at - 1) / 2].end_ns > e.end_ns; at = (at - 1) / 2)
        b->heap[at] = b->heap[(at - 1) / 2];
    b->heap[at] = e;
}

static Event pop(Bench *b) {
    Event top = b->heap[0], e = b->heap[--b->n_heap];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < b->n_heap; at = child) {
        if (child + 1 < b->n_heap && b->heap[child + 1].end_ns < b->heap[child].end_ns)
            child++;
        if (b->heap[child].end_ns >= e.end_ns)
            break;
        b->heap[at] = b->heap[child];
    }
    b->heap[at] = e;
    return top;
}

static void retimed(void *data, uint32_t activity, uint32_t owner, int64_t end_ns) {
    Bench *b = data;
    b->ends[owner] = end_ns;
    b->n_retimes++;
    push(b, (Event){end_ns, owner});
    b->activity_of[owner] = activity;
}

static void start(Bench *b, uint32_t flow, int64_t now_ns) {
    uint32_t from = (uint32_t)draw(b, HOSTS), to = (uint32_t)draw(b, HOSTS);
    uint32_t up = (uint32_t)draw(b, b->uplinks);
    uint32_t leaf_up = 2 * HOSTS, leaf_down = leaf_up + LEAVES * b->uplinks;
    b->uses[flow][0] = (OrrUse){from, ORR_COEF_ONE, 1};
    b->uses[flow][1] = (OrrUse){HOSTS + to, ORR_COEF_ONE, 1};
    b->uses[flow][2] = (OrrUse){leaf_up + from / PER_LEAF * b->uplinks + up, ORR_COEF_ONE, 1};
    b->uses[flow][3] = (OrrUse){leaf_down + to / PER_LEAF * b->uplinks + up, ORR_COEF_ONE, 1};
    OrrFlow f = {.uses = b->uses[flow],
                 .n_uses = 4,
                 .weight = 1,
                 .cap_bytes_per_s = UINT64_MAX,
                 .bytes = 1000000 + draw(b, 9000000),
                 .owner = flow};
    orr_fluid_start(b->fluid, now_ns, &f);
}

int main(int argc, char **argv) {
    uint32_t n_flows = argc > 1 ? (uint32_t)atoi(argv[1]) : 100000;
    uint32_t n_events = argc > 2 ? (uint32_t)atoi(argv[2]) : 20000;
    Bench b = {.random = 1, .uplinks = argc > 3 ? (uint32_t)atoi(argv[3]) : 32};
    uint32_t n_links = 2 * HOSTS + 2 * LEAVES * b.uplinks;
    g_autofree uint64_t *capacity = g_new(uint64_t, n_links);
    for (uint32_t l = 0; l < n_links; l++)
        capacity[l] = UINT64_C(50000000000); /* 400 Gb/s */
    b.fluid = orr_fluid_new(capacity, n_links);
    b.uses = g_malloc_n(n_flows, sizeof *b.uses);
    b.ends = g_new0(int64_t, n_flows);
    b.activity_of = g_new0(uint32_t, n_flows);
    double t0 = cpu_us();
    for (uint32_t i = 0; i < n_flows; i++)
        start(&b, i, 0);
    double t1 = cpu_us();
    orr_fluid_settle(b.fluid, 0, retimed, &b);
    double t2 = cpu_us();
    OrrFluidStats first, stats;
    orr_fluid_stats(b.fluid, &first);
    printf("start: %.0f ns a flow; first settle: %.0f ns a flow\n", 1e3 * (t1 - t0) / n_flows,
           1e3 * (t2 - t1) / n_flows);
    b.n_retimes = 0;
    for (uint32_t i = 0; i < n_events;) {
        Event e = pop(&b);
        if (b.ends[e.id] != e.end_ns)
            continue;
        orr_fluid_end(b.fluid, e.end_ns, b.activity_of[e.id]);
        start(&b, e.id, e.end_ns);
        orr_fluid_settle(b.fluid, e.end_ns, retimed, &b);
        i++;
    }
    double t3 = cpu_us();
    orr_fluid_stats(b.fluid, &stats);
    double n_solves = (double)(stats.solves - first.solves);
    printf("%u flows, %u hosts: %.0f events/s, %.1f links set an event, %.1f flows on each, %.1f "
           "rates moved an event, %.1f %% started without a solve\n",
           n_flows, (uint32_t)HOSTS, 1e6 * n_events / (t3 - t2), n_solves / n_events,
           (double)(stats.solved_activities - first.solved_activities) / fmax(1, n_solves),
           (double)b.n_retimes / n_events,
           100.0 * (double)(stats.headroom - first.headroom) / n_events);
    orr_fluid_free(b.fluid);
    g_free(b.uses);
    g_free(b.heap);
    g_free(b.ends);
    g_free(b.activity_of);
    return 0;
}
