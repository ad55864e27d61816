/* Links with hundreds of sends and rings over hundreds of links, which the fluid moves in bundles
 * and watches as far as they can bind; equal sends that go as one. */
#include "sim/net/fluid.h"
#include "tests/fluid_world.h"
#include "tests/near.h"

#include <glib.h>

static void test_big_links_and_long_rings_have_the_rates_and_ends_of_each_by_itself(void **state) {
    (void)state;
    WorldCounts n = {0};
    for (uint64_t seed = 1; seed <= 10; seed++) {
        world_run(seed, WORLD_CROWDED, 7, 150, &n); /* pods bind */
        world_run(seed, WORLD_CROWDED, 1, 100, &n); /* NICs do */
        world_run(seed, WORLD_CROWDED, 50, 100, &n);
        world_run(seed, WORLD_LIGHT, 2, 400, &n);
    }
    print_message("went as one: %u; could not, for a link of one of them: %u; split: %u; had room "
                  "as one: %u; parted: %u; joined again: %u\n",
                  n.n_joint, n.n_refused, n.n_split, n.n_held, n.n_parted, n.n_joined);
    assert_true(n.n_joint > 200 && n.n_refused > 50 && n.n_split > 100 && n.n_held > 50 &&
                n.n_parted > 50 && n.n_joined > 10);
}

/* Hundreds of sends over one link, alike but for their sizes and ends: one bundle. */
static void test_a_thousand_sends_on_a_link_move_as_one(void **state) {
    (void)state;
    enum { N = 1000 };
    OrrUse uses[N][3];
    uint32_t id[N + 1];
    g_autofree uint64_t *capacity = g_new(uint64_t, 2 * N + 1);
    for (uint32_t l = 0; l <= 2 * N; l++)
        capacity[l] = NIC;
    OrrFluid *f = orr_fluid_new(capacity, 2 * N + 1);
    for (uint32_t i = 0; i < N; i++) {
        for (uint32_t u = 0; u < 3; u++)
            uses[i][u] = (OrrUse){u < 2 ? 1 + 2 * i + u : 0, ORR_COEF_ONE, 1};
        OrrFlow flow = {.uses = uses[i],
                        .n_uses = 3,
                        .weight = 1,
                        .cap_bytes_per_s = UINT64_MAX,
                        .bytes = 1000 + i % 7};
        id[i] = orr_fluid_start(f, 0, &flow);
        orr_fluid_settle(f, 0);
    }
    OrrFluidStats before, after;
    orr_fluid_stats(f, &before);
    OrrFlow one = {.uses = uses[0], .n_uses = 3, .weight = 1, .cap_bytes_per_s = 1, .bytes = 9};
    id[N] = orr_fluid_start(f, 1000, &one);
    orr_fluid_settle(f, 1000);
    orr_fluid_stats(f, &after);
    assert_true(after.moves - before.moves <= 3); /* the many, the new one, who shares its NICs */
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(orr_fluid_rate(f, id[i]), (NIC - 1) / N);
    orr_fluid_free(f);
}

/* @at over @n NICs from @first on, at most @cap. */
static void add(World *w, uint32_t at, uint32_t first, uint32_t n, uint64_t cap) {
    w->flows[at] = (Live){.uses = w->uses + at * 8};
    for (uint32_t l = first; l < first + n; l++)
        world_use(w, &w->flows[at], l, ORR_COEF_ONE, 1);
    world_start(w, at, at == 0 ? 1000 : 1000000);
    w->flows[at].flow.cap_bytes_per_s = cap;
    w->flows[at].flow.weight = cap < UINT64_MAX ? 9 : 1; /* it has its cap */
    w->flows[at].id = orr_fluid_start(w->fluid, w->now_ns, &w->flows[at].flow);
    world_settle(w);
}

/* Link 1 leaves its send what link 0 does, to the byte. When link 0 leaves one byte more, of which
 * that send would have half, it still stops it, and the other has the byte. */
static void test_a_link_that_is_just_full_hears_of_less_than_a_byte_per_second(void **state) {
    (void)state;
    World *w = g_new0(World, 1);
    for (uint32_t l = 0; l < N_LINKS; l++)
        w->capacity[l] = NIC;
    w->fluid = orr_fluid_new(w->capacity, N_LINKS);
    for (uint32_t i = 0; i < 40; i++) /* so many that not all is solved for a few */
        add(w, 10 + i, 2 + i / 2, 1, UINT64_MAX);
    add(w, 0, 0, 1, NIC / 2);
    add(w, 1, 0, 1, UINT64_MAX);
    add(w, 2, 0, 2, UINT64_MAX);
    add(w, 3, 1, 1, NIC / 4);
    add(w, 4, 1, 1, NIC / 2);
    assert_int_equal(w->rate[1], NIC / 4);
    assert_int_equal(w->rate[2], NIC / 4);
    world_advance(w, w->next_ns);
    world_end_due(w); /* the first */
    add(w, 0, 0, 1, NIC / 2 - 1);
    assert_int_equal(w->rate[1], NIC / 4 + 1);
    assert_int_equal(w->rate[2], NIC / 4);
    orr_fluid_free(w->fluid);
    g_free(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_big_links_and_long_rings_have_the_rates_and_ends_of_each_by_itself),
        cmocka_unit_test(test_a_thousand_sends_on_a_link_move_as_one),
        cmocka_unit_test(test_a_link_that_is_just_full_hears_of_less_than_a_byte_per_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
