/* The stress of bench/bench_net.c cut down: a two-tier tree, random pairs of hosts, uplinks by
 * hash, so that flows collide; each that ends is followed by another. All rates against the
 * reference, and the ends of flows against a loop that knows no queue. */
#include "sim/net/fluid.h"
#include "tests/naive_fluid.h"
#include "tests/near.h"

#include <glib.h>

enum { MAX_FLOWS = 160, PER_LEAF = 8 };

typedef struct {
    OrrFlow flow;
    OrrUse uses[4];
    uint32_t id;
    int64_t end_ns;
} Live;

typedef struct {
    OrrFluid *fluid;
    Live flows[MAX_FLOWS];
    uint64_t *capacity;
    uint32_t n_flows, hosts, uplinks, n_links;
    uint64_t random;
    int64_t now_ns;
} World;

static uint64_t draw(World *w, uint64_t below) {
    return naive_draw(&w->random, below);
}

static void start(World *w, uint32_t at) {
    Live *x = &w->flows[at];
    uint32_t from = (uint32_t)draw(w, w->hosts), to = (uint32_t)draw(w, w->hosts);
    uint32_t up = (uint32_t)draw(w, w->uplinks), leaves = w->hosts / PER_LEAF;
    uint32_t leaf_up = 2 * w->hosts, leaf_down = leaf_up + leaves * w->uplinks;
    x->uses[0] = (OrrUse){from, ORR_COEF_ONE, 1};
    x->uses[1] = (OrrUse){w->hosts + to, ORR_COEF_ONE, 1};
    x->uses[2] = (OrrUse){leaf_up + from / PER_LEAF * w->uplinks + up, ORR_COEF_ONE, 1};
    x->uses[3] = (OrrUse){leaf_down + to / PER_LEAF * w->uplinks + up, ORR_COEF_ONE, 1};
    x->flow = (OrrFlow){.uses = x->uses,
                        .n_uses = from / PER_LEAF == to / PER_LEAF ? 2 : 4,
                        .weight = 1,
                        .cap_bytes_per_s = UINT64_MAX,
                        .bytes = 1000000 + draw(w, 9000000),
                        .owner = at};
    x->id = orr_fluid_start(w->fluid, w->now_ns, &x->flow);
}

/* A group that goes over many links, as a ring has it. */
static void start_wide(World *w, uint32_t at, OrrUse *uses, uint32_t n) {
    uint32_t step = w->n_links / n;
    for (uint32_t u = 0; u < n; u++)
        uses[u] = (OrrUse){u * step + (uint32_t)draw(w, step), ORR_COEF_ONE, 1};
    w->flows[at].flow = (OrrFlow){.uses = uses,
                                  .n_uses = n,
                                  .weight = 1,
                                  .cap_bytes_per_s = UINT64_C(48000000000),
                                  .bytes = 100000000,
                                  .owner = at};
    w->flows[at].id = orr_fluid_start(w->fluid, w->now_ns, &w->flows[at].flow);
}

static void expect_reference_rates(const World *w) {
    const OrrFlow *flows[MAX_FLOWS];
    uint64_t rate[MAX_FLOWS];
    for (uint32_t i = 0; i < w->n_flows; i++)
        flows[i] = &w->flows[i].flow;
    naive_rates(flows, w->n_flows, w->capacity, w->n_links, rate);
    for (uint32_t i = 0; i < w->n_flows; i++)
        if (orr_fluid_rate(w->fluid, w->flows[i].id) != rate[i])
            fail_msg("flow %u at %g ns: %.17g bytes/s, the reference %.17g", i, (double)w->now_ns,
                     (double)orr_fluid_rate(w->fluid, w->flows[i].id), (double)rate[i]);
}

static void settle(World *w) {
    orr_fluid_settle(w->fluid, w->now_ns);
    for (uint32_t i = 0; i < w->n_flows; i++)
        w->flows[i].end_ns = orr_fluid_end_ns(w->fluid, w->flows[i].id);
}

static uint32_t first_to_end(const World *w) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < w->n_flows; i++)
        if (w->flows[i].end_ns < w->flows[best].end_ns)
            best = i;
    return best;
}

static void run(uint32_t hosts, uint32_t uplinks, uint32_t n_flows, uint32_t n_wide,
                uint32_t n_events) {
    enum { WIDE_USES = 24 };
    uint32_t leaves = hosts / PER_LEAF;
    World w = {.n_flows = n_flows,
               .hosts = hosts,
               .uplinks = uplinks,
               .n_links = 2 * hosts + 2 * leaves * uplinks,
               .random = hosts + uplinks};
    w.capacity = g_new(uint64_t, w.n_links);
    for (uint32_t l = 0; l < w.n_links; l++)
        w.capacity[l] = UINT64_C(50000000000); /* 400 Gb/s */
    w.fluid = orr_fluid_new(w.capacity, w.n_links);
    OrrUse(*wide)[WIDE_USES] = g_malloc_n(n_wide + 1, sizeof *wide);
    for (uint32_t i = 0; i < n_flows; i++) {
        if (i < n_wide)
            start_wide(&w, i, wide[i], WIDE_USES);
        else
            start(&w, i);
    }
    settle(&w);
    expect_reference_rates(&w);
    for (uint32_t e = 1; e <= n_events; e++) {
        uint32_t i = first_to_end(&w);
        w.now_ns = w.flows[i].end_ns;
        assert_true(orr_fluid_next_end(w.fluid) == w.now_ns);
        orr_fluid_end(w.fluid, w.now_ns, w.flows[i].id);
        if (i < n_wide)
            start_wide(&w, i, wide[i], WIDE_USES);
        else
            start(&w, i);
        settle(&w);
        if (e % 8 == 0)
            expect_reference_rates(&w);
    }
    g_autofree char *flaw = orr_fluid_flaw(w.fluid);
    if (flaw)
        fail_msg("%s", flaw);
    OrrFluidStats stats;
    orr_fluid_stats(w.fluid, &stats);
    assert_true(stats.solves > n_events / 2); /* they did collide */
    orr_fluid_free(w.fluid);
    g_free(w.capacity);
    g_free(wide);
}

static void test_colliding_flows_on_a_tree_have_the_reference_rates(void **state) {
    (void)state;
    run(64, 8, 160, 0, 400); /* without oversubscription */
    run(64, 2, 100, 0, 400); /* four to one */
    run(128, 4, 40, 0, 400);
}

static void test_flows_beside_wide_groups_have_the_reference_rates(void **state) {
    (void)state;
    run(64, 2, 60, 12, 600);
    run(64, 8, 40, 6, 600);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_colliding_flows_on_a_tree_have_the_reference_rates),
        cmocka_unit_test(test_flows_beside_wide_groups_have_the_reference_rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
