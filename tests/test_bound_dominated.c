/* Links that others stand before: which go, and that no rate changes by it. */
#include "sim/bound/dominated.h"
#include "tests/naive_fluid.h"
#include "tests/near.h"

#include <string.h>

enum { MAX_PAIRS = 24, MAX_LINKS = 16, MAX_USES = 8 };

typedef struct {
    OrrBound b;
    uint64_t capacity[MAX_LINKS];
    uint32_t first[MAX_PAIRS + 1];
    OrrUse uses[MAX_PAIRS * MAX_USES];
} World;

static void open_world(World *w, const uint64_t *capacity, uint32_t n_links) {
    memset(w, 0, sizeof *w);
    memcpy(w->capacity, capacity, n_links * sizeof *capacity);
    w->b.n_links = n_links;
    w->b.capacity = w->capacity;
    w->b.groups[0].n_groups = 1;
    w->b.groups[0].pair_loads = (OrrLoads){1, w->first, w->uses};
}

static void add_pair(World *w, const OrrUse *uses, uint32_t n) {
    OrrBoundGroup *g = &w->b.groups[0];
    memcpy(w->uses + w->first[g->n_pairs], uses, n * sizeof *uses);
    g->n_pairs++;
    w->first[g->n_pairs] = w->first[g->n_pairs - 1] + n;
}

static bool has_link(const World *w, uint32_t pair, uint32_t link) {
    for (uint32_t i = w->first[pair]; i < w->first[pair + 1]; i++)
        if (w->uses[i].constraint == link)
            return true;
    return false;
}

static void test_a_port_beside_its_nic_goes_and_a_shared_uplink_stays(void **state) {
    (void)state;
    enum { PORT_A, PORT_B, NIC_A, NIC_B, UPLINK };
    World w;
    open_world(&w, (uint64_t[]){63, 63, 50, 50, 50}, 5);
    OrrUse a[] = {{PORT_A, ORR_COEF_ONE, 1}, {NIC_A, ORR_COEF_ONE, 1}, {UPLINK, ORR_COEF_ONE, 1}};
    OrrUse b[] = {{PORT_B, ORR_COEF_ONE, 1}, {NIC_B, ORR_COEF_ONE, 1}, {UPLINK, ORR_COEF_ONE, 1}};
    add_pair(&w, a, 3);
    add_pair(&w, b, 3);
    orr_bound_drop_dominated(&w.b);
    assert_false(has_link(&w, 0, PORT_A) || has_link(&w, 1, PORT_B));
    assert_true(has_link(&w, 0, UPLINK) && has_link(&w, 1, UPLINK));
    assert_int_equal(w.b.n_links, 5);
}

static void test_a_port_that_others_use_without_the_nic_stays(void **state) {
    (void)state;
    World w;
    open_world(&w, (uint64_t[]){63, 50}, 2);
    OrrUse both[] = {{0, ORR_COEF_ONE, 1}, {1, ORR_COEF_ONE, 1}};
    OrrUse heavy[] = {{0, 2 * ORR_COEF_ONE, 1}, {1, ORR_COEF_ONE, 1}};
    add_pair(&w, both, 2);
    add_pair(&w, both, 1);
    orr_bound_drop_dominated(&w.b);
    assert_true(has_link(&w, 0, 0) && has_link(&w, 1, 0));
    open_world(&w, (uint64_t[]){63, 50}, 2);
    add_pair(&w, both, 2);
    add_pair(&w, heavy, 2); /* fills the port first */
    orr_bound_drop_dominated(&w.b);
    assert_true(has_link(&w, 0, 0) && has_link(&w, 1, 0));
    assert_true(has_link(&w, 0, 1));
}

static uint64_t draw(uint64_t *state, uint64_t below) { /* splitmix64 */
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % below;
}

static void rates_of(const World *w, uint64_t cap, uint64_t *rate) {
    OrrFlow flows[MAX_PAIRS];
    const OrrFlow *list[MAX_PAIRS];
    uint32_t n = w->b.groups[0].n_pairs;
    for (uint32_t i = 0; i < n; i++) {
        flows[i] = (OrrFlow){w->uses + w->first[i], w->first[i + 1] - w->first[i], 1, cap, 1, i};
        list[i] = &flows[i];
    }
    naive_rates(list, n, w->capacity, w->b.n_links, rate);
}

/* Links in runs that are used together, as ports, NICs and uplinks are. */
static void test_no_rate_changes_by_what_goes(void **state) {
    (void)state;
    uint32_t n_dropped = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        World w;
        uint64_t r = seed, capacity[MAX_LINKS], before[MAX_PAIRS], after[MAX_PAIRS];
        for (uint32_t l = 0; l < MAX_LINKS; l++)
            capacity[l] = 1000000 * (1 + draw(&r, 4)) + draw(&r, 2) * draw(&r, 99);
        open_world(&w, capacity, MAX_LINKS);
        for (uint32_t i = 0, n = 2 + (uint32_t)draw(&r, MAX_PAIRS - 1); i < n; i++) {
            OrrUse uses[MAX_USES];
            uint32_t n_uses = 0;
            for (uint32_t run = (uint32_t)draw(&r, 2); run < MAX_LINKS / 4 && n_uses < 5; run += 2)
                for (uint32_t k = 0, of = 1 + (uint32_t)draw(&r, 4); k < of && n_uses < MAX_USES;
                     k++)
                    uses[n_uses++] =
                        (OrrUse){4 * run + k, draw(&r, 6) ? ORR_COEF_ONE : ORR_COEF_ONE / 3,
                                 draw(&r, 6) ? 1 : 2};
            add_pair(&w, uses, n_uses);
        }
        uint32_t n_before = w.first[w.b.groups[0].n_pairs];
        rates_of(&w, 3500000, before);
        orr_bound_drop_dominated(&w.b);
        rates_of(&w, 3500000, after);
        n_dropped += n_before - w.first[w.b.groups[0].n_pairs];
        for (uint32_t i = 0; i < w.b.groups[0].n_pairs; i++)
            if (before[i] != after[i])
                fail_msg("seed %d: pair %u has %g, before %g", (int)seed, i, (double)after[i],
                         (double)before[i]);
    }
    assert_true(n_dropped > 400);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_port_beside_its_nic_goes_and_a_shared_uplink_stays),
        cmocka_unit_test(test_a_port_that_others_use_without_the_nic_stays),
        cmocka_unit_test(test_no_rate_changes_by_what_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
