/* Links that are alike in all that counts, for which the fluid has one stand. */
#include "sim/net/fluid.h"
#include "tests/fluid_world.h"
#include "tests/near.h"

#include <glib.h>

#ifndef N_SEEDS
#define N_SEEDS 20u /* make check-long takes more */
#endif

static const uint32_t pod_shares[] = {2, 3, 4, 6, 8, 12};

static void test_links_that_another_stands_for_have_the_rates_of_each_by_itself(void **state) {
    (void)state;
    WorldCounts n = {0};
    for (uint64_t seed = 1; seed <= N_SEEDS; seed++)
        for (uint32_t i = 0; i < G_N_ELEMENTS(pod_shares); i++)
            world_run(seed, WORLD_SPARSE, pod_shares[i], 120, &n);
    print_message("links that another stood for: %u\n", (uint32_t)n.n_twins);
    assert_true(n.n_twins > 500 * N_SEEDS);
}

/* Sends of one top beside a ring, on NICs that the ring takes more of, or that have less. */
static void test_links_that_differ_leave_sends_what_each_has(void **state) {
    (void)state;
    enum { N = 24 };
    World *w = g_new0(World, 1);
    w->random = 3;
    for (uint32_t l = 0; l < N_LINKS; l++)
        w->capacity[l] = l % 4 == 1 ? NIC / 10 * 9 : NIC;
    w->fluid = orr_fluid_new(w->capacity, N_LINKS);
    for (uint32_t i = 0; i <= N; i++) {
        Live *x = &w->flows[i];
        x->uses = i == 0 ? w->ring_uses : w->uses + i * 8;
        for (uint32_t u = 0; i == 0 && u < N; u++)
            world_use(w, x, u, u % 4 == 2 ? ORR_COEF_ONE / 2 : ORR_COEF_ONE, 1);
        if (i > 0)
            world_use(w, x, i - 1, ORR_COEF_ONE, 1);
        world_start(w, i, 100000);
        x->flow.cap_bytes_per_s = i == 0 ? UINT64_MAX : NIC / 5 * 4;
        x->id = orr_fluid_start(w->fluid, 0, &x->flow);
        world_settle(w);
    }
    OrrFluidStats stats;
    orr_fluid_stats(w->fluid, &stats);
    assert_true(stats.twins >= N - 3); /* of three kinds */
    orr_fluid_free(w->fluid);
    g_free(w);
}

/* A ring over many NICs, each beside a send over one uplink: the NICs leave the ring the same,
 * whatever sends come and go, so one stands for all, and the sends move as one. They have sizes of
 * their own; rates and ends against those of each by itself. */
static void test_sends_beside_a_ring_over_one_uplink_move_as_one(void **state) {
    (void)state;
    enum { N = 90, LAST = FIRST_POD };
    World *w = g_new0(World, 1);
    w->random = 7;
    for (uint32_t l = 0; l < N_LINKS; l++)
        w->capacity[l] = l == LAST ? NIC * N / 3 : NIC;
    w->fluid = orr_fluid_new(w->capacity, N_LINKS);
    w->flows[0] = (Live){.uses = w->ring_uses};
    for (uint32_t u = 0; u < N; u++)
        world_use(w, &w->flows[0], u, ORR_COEF_ONE, 1);
    world_start(w, 0, 1000000000);
    w->flows[0].flow.cap_bytes_per_s = UINT64_MAX;
    w->flows[0].id = orr_fluid_start(w->fluid, 0, &w->flows[0].flow);
    OrrFluidStats before = {0}, after;
    for (uint32_t e = 0; e < 4 * N; e++) {
        uint32_t at = MAX_RINGS + e % N;
        if (e == N)
            orr_fluid_stats(w->fluid, &before);
        if (e >= N) {
            world_advance(w, w->next_ns);
            world_end_due(w);
            world_settle(w);
        }
        if (w->flows[at].is_live)
            continue;
        w->flows[at] = (Live){.uses = w->uses + at * 8};
        world_use(w, &w->flows[at], at - MAX_RINGS, ORR_COEF_ONE, 1);
        world_use(w, &w->flows[at], LAST, ORR_COEF_ONE, 1);
        world_start(w, at, 10000 + naive_draw(&w->random, 20000));
        w->flows[at].flow.cap_bytes_per_s = UINT64_MAX;
        w->flows[at].id = orr_fluid_start(w->fluid, w->now_ns, &w->flows[at].flow);
        world_settle(w);
    }
    orr_fluid_stats(w->fluid, &after);
    /* an event: the ring, the sends, the one that has come */
    assert_true(after.moves - before.moves <= 3 * N);
    assert_true(after.solves - before.solves <= 6 * N);
    orr_fluid_free(w->fluid);
    g_free(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_links_that_another_stands_for_have_the_rates_of_each_by_itself),
        cmocka_unit_test(test_links_that_differ_leave_sends_what_each_has),
        cmocka_unit_test(test_sends_beside_a_ring_over_one_uplink_move_as_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
