/* What the fluid costs: a two-tier tree of 16,384 hosts, random pairs, paths by hash; as many flows
 * as asked for are kept alive, each that ends being followed by another. With rings: all flows over
 * the uplinks of two pods, and rings of 500 links beside them.
 * Usage: bench_net [flows] [events] [uplinks a leaf, of 32] [rings]. Not part of make check. */
#include "sim/net/fluid.h"

#include <glib.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { HOSTS = 16384, PER_LEAF = 32, LEAVES = HOSTS / PER_LEAF, RING_USES = 500 };
#define NIC UINT64_C(50000000000) /* 400 Gb/s */

typedef struct {
    OrrFluid *fluid;
    OrrUse (*uses)[4];
    uint32_t *activity_of; /* [flow] its activity */
    uint32_t *due;         /* flows that are over, and are followed by others */
    uint32_t n_due, uplinks;
    uint32_t pod; /* hosts of a pod; 0: a tree */
    uint64_t random;
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

static void ended(void *data, uint32_t activity, uint32_t flow) {
    Bench *b = data;
    (void)activity;
    b->due[b->n_due++] = flow;
}

static void start(Bench *b, uint32_t flow, int64_t now_ns) {
    uint32_t from = (uint32_t)draw(b, HOSTS), to = (uint32_t)draw(b, HOSTS);
    uint32_t up = b->pod ? 0 : (uint32_t)draw(b, b->uplinks);
    uint32_t leaf_up = 2 * HOSTS, leaf_down = leaf_up + LEAVES * b->uplinks;
    b->uses[flow][0] = (OrrUse){from, ORR_COEF_ONE, 1};
    b->uses[flow][1] = (OrrUse){HOSTS + to, ORR_COEF_ONE, 1};
    b->uses[flow][2] = (OrrUse){leaf_up + from / PER_LEAF * b->uplinks + up, ORR_COEF_ONE, 1};
    b->uses[flow][3] = (OrrUse){leaf_down + to / PER_LEAF * b->uplinks + up, ORR_COEF_ONE, 1};
    if (b->pod) {
        b->uses[flow][2].constraint = 2 * HOSTS + from / b->pod;
        b->uses[flow][3].constraint = 2 * HOSTS + 2 + to / b->pod;
    }
    OrrFlow f = {.uses = b->uses[flow],
                 .n_uses = 4,
                 .weight = 1,
                 .cap_bytes_per_s = UINT64_MAX,
                 .bytes = 1000000 + draw(b, 9000000),
                 .owner = flow};
    b->activity_of[flow] = orr_fluid_start(b->fluid, now_ns, &f);
}

static void print_events(const OrrFluidStats *first, const OrrFluidStats *stats, uint32_t n,
                         double us) {
    double n_solves = (double)(stats->solves - first->solves);
    printf("%.0f events/s, %.1f links set an event, %.1f bundles on each, %.1f bundles moved an "
           "event, %.1f %% started at their tops\n",
           1e6 * n / us, n_solves / n,
           (double)(stats->solved_activities - first->solved_activities) / fmax(1, n_solves),
           (double)(stats->moves - first->moves) / n,
           100.0 * (double)(stats->headroom - first->headroom) / n);
}

/* Each that is over is followed by another; returns the processor time. */
static double run_events(Bench *b, uint32_t n_events, OrrFluidStats *first, OrrFluidStats *stats) {
    orr_fluid_stats(b->fluid, first);
    double t0 = cpu_us();
    for (uint32_t i = 0; i < n_events;) {
        int64_t now_ns = orr_fluid_next_end(b->fluid);
        b->n_due = 0;
        orr_fluid_take_ended(b->fluid, now_ns, ended, b);
        for (uint32_t k = 0; k < b->n_due; k++, i++) {
            orr_fluid_end(b->fluid, now_ns, b->activity_of[b->due[k]]);
            start(b, b->due[k], now_ns);
        }
        orr_fluid_settle(b->fluid, now_ns);
    }
    orr_fluid_stats(b->fluid, stats);
    return cpu_us() - t0;
}

static void bench_new(Bench *b, const uint64_t *capacity, uint32_t n_links, uint32_t n_flows) {
    b->fluid = orr_fluid_new(capacity, n_links);
    b->uses = g_malloc_n(n_flows, sizeof *b->uses);
    b->activity_of = g_new0(uint32_t, n_flows);
    b->due = g_new(uint32_t, n_flows);
}

static void bench_clear(Bench *b) {
    orr_fluid_free(b->fluid);
    g_free(b->uses);
    g_free(b->activity_of);
    g_free(b->due);
}

static void run_tree(uint32_t n_flows, uint32_t n_events, uint32_t uplinks) {
    Bench b = {.random = 1, .uplinks = uplinks};
    uint32_t n_links = 2 * HOSTS + 2 * LEAVES * b.uplinks;
    g_autofree uint64_t *capacity = g_new(uint64_t, n_links);
    for (uint32_t l = 0; l < n_links; l++)
        capacity[l] = NIC;
    bench_new(&b, capacity, n_links, n_flows);
    double t0 = cpu_us();
    for (uint32_t i = 0; i < n_flows; i++)
        start(&b, i, 0);
    double t1 = cpu_us();
    orr_fluid_settle(b.fluid, 0);
    double t2 = cpu_us();
    OrrFluidStats first, stats;
    printf("start: %.0f ns a flow; first settle: %.0f ns a flow\n", 1e3 * (t1 - t0) / n_flows,
           1e3 * (t2 - t1) / n_flows);
    double us = run_events(&b, n_events, &first, &stats);
    printf("%u flows, %u hosts: ", n_flows, (uint32_t)HOSTS);
    print_events(&first, &stats, n_events, us);
    bench_clear(&b);
}

/* Random pairs of hosts over the uplinks of two pods (one link each way), which hold a seventh of
 * what the hosts could send; rings over all hosts of a pod beside them, which outlast them. */
static void run_pods(uint32_t n_flows, uint32_t n_rings, uint32_t n_events) {
    Bench b = {.random = 1};
    uint32_t n_links = 2 * HOSTS + 4, pod = HOSTS / 2;
    g_autofree uint64_t *capacity = g_new(uint64_t, n_links);
    for (uint32_t l = 0; l < n_links; l++)
        capacity[l] = l < 2 * HOSTS ? NIC : NIC * n_flows / 14;
    bench_new(&b, capacity, n_links, n_flows);
    OrrUse(*rings)[RING_USES] = g_malloc_n(n_rings + 1, sizeof *rings);
    for (uint32_t i = 0; i < n_rings; i++) {
        for (uint32_t u = 0; u < RING_USES; u++)
            rings[i][u] = (OrrUse){(uint32_t)draw(&b, 2 * HOSTS), ORR_COEF_ONE, 1};
        orr_fluid_start(b.fluid, 0,
                        &(OrrFlow){.uses = rings[i],
                                   .n_uses = RING_USES,
                                   .weight = 1,
                                   .cap_bytes_per_s = UINT64_MAX,
                                   .bytes = UINT64_C(1) << 50});
    }
    b.pod = pod;
    for (uint32_t i = 0; i < n_flows; i++)
        start(&b, i, 0);
    orr_fluid_settle(b.fluid, 0);
    OrrFluidStats first, stats;
    double us = run_events(&b, n_events, &first, &stats);
    printf("%u flows over 2 pods, %u rings of %u links: ", n_flows, n_rings, (uint32_t)RING_USES);
    print_events(&first, &stats, n_events, us);
    bench_clear(&b);
    g_free(rings);
}

int main(int argc, char **argv) {
    uint32_t n_flows = argc > 1 ? (uint32_t)atoi(argv[1]) : 100000;
    uint32_t n_events = argc > 2 ? (uint32_t)atoi(argv[2]) : 20000;
    if (argc > 4)
        run_pods(n_flows, (uint32_t)atoi(argv[4]), n_events);
    else
        run_tree(n_flows, n_events, argc > 3 ? (uint32_t)atoi(argv[3]) : 32);
    return 0;
}
