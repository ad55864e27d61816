/* Fluid links: completion times by hand, rates against a solve of everything after every event of
 * random histories (to the bit), conservation, folding, headroom. */
#include "sim/net/fluid.h"
#include "tests/naive_fluid.h"
#include "tests/near.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FLOWS = 64, MAX_LINKS = 24, MAX_USES = 6 };
#define NO_CAP UINT64_MAX
#define ONE ORR_COEF_ONE
#define GB UINT64_C(1000000000)
#define MS INT64_C(1000000)

typedef struct {
    OrrFlow flow;
    OrrUse uses[MAX_USES];
    uint32_t id;
    bool is_live;
    int64_t end_ns;
} Live;

/* A small event loop around the fluid: the flows of a history and their ends. */
typedef struct {
    OrrFluid *fluid;
    uint64_t capacity[MAX_LINKS];
    uint32_t n_links;
    Live flows[MAX_FLOWS];
    int64_t now_ns;
    uint32_t n_ended; /* told at now_ns */
} World;

static void open_world(World *w, const uint64_t *capacity, uint32_t n_links) {
    memset(w, 0, sizeof *w);
    memcpy(w->capacity, capacity, n_links * sizeof *capacity);
    w->n_links = n_links;
    w->fluid = orr_fluid_new(capacity, n_links);
    orr_fluid_count_bytes(w->fluid);
}

static void start_flow(World *w, uint32_t at, uint64_t bytes, uint64_t cap) {
    Live *x = &w->flows[at];
    x->flow.uses = x->uses;
    x->flow.weight = MAX(x->flow.weight, 1);
    x->flow.bytes = bytes;
    x->flow.cap_bytes_per_s = cap;
    x->flow.owner = at;
    x->is_live = true;
    x->end_ns = INT64_MIN;
    x->id = orr_fluid_start(w->fluid, w->now_ns, &x->flow);
}

static void set_use(World *w, uint32_t at, uint32_t link, uint32_t coef) {
    Live *x = &w->flows[at];
    x->uses[x->flow.n_uses++] = (OrrUse){link, coef, 1};
}

static void simple_flow(World *w, uint32_t at, uint32_t link, uint64_t bytes) {
    w->flows[at].flow.n_uses = 0;
    set_use(w, at, link, ONE);
    start_flow(w, at, bytes, NO_CAP);
}

/* Settles, and takes the ends over from the fluid. */
static void settle_rates(World *w) {
    int64_t next_ns = INT64_MAX;
    orr_fluid_settle(w->fluid, w->now_ns);
    for (uint32_t i = 0; i < MAX_FLOWS; i++)
        if (w->flows[i].is_live) {
            w->flows[i].end_ns = orr_fluid_end_ns(w->fluid, w->flows[i].id);
            assert_true(w->flows[i].end_ns >= w->now_ns);
            next_ns = MIN(next_ns, w->flows[i].end_ns);
        }
    assert_true(orr_fluid_next_end(w->fluid) == next_ns);
}

static void settle(World *w) {
    settle_rates(w);
    g_autofree char *flaw = orr_fluid_flaw(w->fluid);
    if (flaw != NULL)
        fail_msg("%s", flaw);
}

static uint32_t next_end(const World *w) {
    uint32_t best = MAX_FLOWS;
    for (uint32_t i = 0; i < MAX_FLOWS; i++)
        if (w->flows[i].is_live &&
            (best == MAX_FLOWS || w->flows[i].end_ns < w->flows[best].end_ns))
            best = i;
    return best;
}

static void ended(void *data, uint32_t activity, uint32_t owner) {
    World *w = data;
    assert_true(w->flows[owner].is_live);
    assert_int_equal(w->flows[owner].id, activity);
    assert_true(w->flows[owner].end_ns == w->now_ns);
    w->n_ended++;
}

/* Ends all that is due next; returns when. */
static int64_t run_to_next_end(World *w) {
    w->now_ns = w->flows[next_end(w)].end_ns;
    w->n_ended = 0;
    orr_fluid_take_ended(w->fluid, w->now_ns, ended, w);
    for (uint32_t i = 0; i < MAX_FLOWS; i++) {
        if (!w->flows[i].is_live || w->flows[i].end_ns != w->now_ns)
            continue;
        orr_fluid_end(w->fluid, w->now_ns, w->flows[i].id);
        w->flows[i].is_live = false;
        w->n_ended--;
    }
    assert_int_equal(w->n_ended, 0);
    settle(w);
    return w->now_ns;
}

static void test_two_flows_share_link_equally_then_one_has_it_all(void **state) {
    (void)state;
    World w;
    open_world(&w, (uint64_t[]){10 * GB}, 1);
    simple_flow(&w, 0, 0, 10000000); /* 10 MB */
    simple_flow(&w, 1, 0, 20000000);
    settle(&w);
    assert_int_equal(orr_fluid_rate(w.fluid, w.flows[0].id), 5 * GB);
    assert_int_equal(run_to_next_end(&w), 2 * MS); /* 10 MB at 5 GB/s */
    assert_int_equal(run_to_next_end(&w), 3 * MS); /* 10 MB left at 10 GB/s */
    assert_int_equal(orr_fluid_link_bytes(w.fluid, 0), 30000000);
    orr_fluid_free(w.fluid);
}

static void test_a_flow_that_comes_later_slows_the_first(void **state) {
    (void)state;
    World w;
    open_world(&w, (uint64_t[]){10 * GB}, 1);
    simple_flow(&w, 0, 0, 10000000);
    settle(&w);
    assert_int_equal(w.flows[0].end_ns, 1 * MS);
    w.now_ns = MS / 2;
    simple_flow(&w, 1, 0, 2500000);
    settle(&w);
    assert_int_equal(orr_fluid_link_bytes(w.fluid, 0), 5000000);
    assert_int_equal(w.flows[0].end_ns, 3 * MS / 2);
    assert_int_equal(run_to_next_end(&w), MS);
    assert_int_equal(run_to_next_end(&w), 5 * MS / 4);
    orr_fluid_free(w.fluid);
}

static void test_completion_is_rounded_up_and_no_byte_is_lost(void **state) {
    (void)state;
    World w;
    open_world(&w, (uint64_t[]){3 * GB}, 1);
    simple_flow(&w, 0, 0, 10); /* 3.33 ns */
    settle(&w);
    assert_int_equal(run_to_next_end(&w), 4);
    simple_flow(&w, 0, 0, 0); /* nothing to do: due at once */
    settle(&w);
    assert_int_equal(w.flows[0].end_ns, 4);
    assert_int_equal(run_to_next_end(&w), 4);
    orr_fluid_free(w.fluid);
}

static void test_degraded_and_dead_links_slow_and_stop(void **state) {
    (void)state;
    World w;
    open_world(&w, (uint64_t[]){10 * GB, 10 * GB}, 2);
    set_use(&w, 0, 0, ONE), set_use(&w, 0, 1, ONE);
    start_flow(&w, 0, 10000000, NO_CAP);
    simple_flow(&w, 1, 0, 40000000);
    settle(&w);
    w.now_ns = MS; /* 5 MB each are done */
    orr_fluid_capacity(w.fluid, w.now_ns, 1, 1 * GB);
    settle(&w);
    assert_int_equal(orr_fluid_rate(w.fluid, w.flows[0].id), 1 * GB);
    assert_int_equal(orr_fluid_rate(w.fluid, w.flows[1].id), 9 * GB);
    assert_int_equal(w.flows[0].end_ns, 6 * MS);
    w.now_ns = 2 * MS;
    orr_fluid_capacity(w.fluid, w.now_ns, 1, 0);
    settle(&w);
    assert_int_equal(orr_fluid_rate(w.fluid, w.flows[1].id), 10 * GB);
    assert_true(w.flows[0].end_ns == INT64_MAX);
    w.now_ns = 3 * MS;
    orr_fluid_capacity(w.fluid, w.now_ns, 1, 10 * GB);
    settle(&w);
    assert_int_equal(orr_fluid_rate(w.fluid, w.flows[0].id), 5 * GB);
    assert_int_equal(w.flows[0].end_ns, 3 * MS + 4 * MS / 5); /* 4 MB left */
    orr_fluid_free(w.fluid);
}

static void test_flows_with_room_are_admitted_without_a_solve(void **state) {
    (void)state;
    World w;
    OrrFluidStats stats;
    uint64_t capacity[9];
    for (uint32_t l = 0; l < 9; l++)
        capacity[l] = l < 8 ? 50 * GB : 400 * GB; /* eight NICs under a leaf without blocking */
    open_world(&w, capacity, 9);
    for (uint32_t i = 0; i < 8; i++) {
        set_use(&w, i, i, ONE), set_use(&w, i, 8, ONE);
        start_flow(&w, i, 1000000, NO_CAP);
    }
    settle(&w);
    orr_fluid_stats(w.fluid, &stats);
    assert_int_equal(stats.headroom, 8);
    assert_int_equal(stats.solves, 0);
    assert_int_equal(stats.moves, 0);
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(orr_fluid_rate(w.fluid, w.flows[i].id), 50 * GB);
    orr_fluid_free(w.fluid);
}

static void test_a_flow_has_its_share_though_its_roomy_link_is_held_apart(void **state) {
    (void)state;
    const uint64_t capacity[3] = {50 * GB, 50 * GB, 30 * GB}; /* two NICs, an uplink */
    OrrUse uses[2][2];
    uint32_t ids[2];
    OrrFluid *f = orr_fluid_new(capacity, 3);
    for (uint32_t i = 0; i < 2; i++) {
        uses[i][0] = (OrrUse){i, ONE, 1};
        uses[i][1] = (OrrUse){2, ONE / 2, 1}; /* half of it goes there */
    }
    OrrReserve nic = {uses[1], 1, 50 * GB, orr_fluid_scale(1, uses[1], 2), 0};
    assert_true(orr_fluid_reserve(f, &nic));
    OrrFlow flow = {uses[0], 2, 1, NO_CAP, 1000000, 0, 0, 0, 0};
    ids[0] = orr_fluid_start(f, 0, &flow);
    flow = (OrrFlow){&uses[1][1], 1, 1, 50 * GB, 1000000, 0, 1, 0, ONE};
    ids[1] = orr_fluid_start(f, 0, &flow);
    orr_fluid_settle(f, 0);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(orr_fluid_rate(f, ids[i]), 30 * GB);
    assert_null(orr_fluid_flaw(f));
    orr_fluid_free(f);
}

static void test_a_change_elsewhere_moves_nobody(void **state) {
    (void)state;
    World w;
    open_world(&w, (uint64_t[]){10 * GB, 10 * GB}, 2);
    for (uint32_t i = 0; i < 4; i++)
        simple_flow(&w, i, i / 2, 10000000);
    settle(&w);
    OrrFluidStats before, stats;
    orr_fluid_stats(w.fluid, &before);
    w.now_ns = 10;
    simple_flow(&w, 4, 1, 10000000);
    settle(&w);
    orr_fluid_stats(w.fluid, &stats);
    assert_int_equal(stats.moves - before.moves, 1); /* three alike are one */
    orr_fluid_free(w.fluid);
}

/* splitmix64 */
static uint64_t draw(uint64_t *state, uint64_t below) {
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % below;
}

/* Solves for all live flows from nothing, as fluid.h defines the rates, and compares. */
static void expect_rates_of_a_full_solve(const World *w, uint64_t seed) {
    const OrrFlow *flows[MAX_FLOWS];
    uint64_t rate[MAX_FLOWS];
    uint32_t of[MAX_FLOWS], n = 0;
    for (uint32_t i = 0; i < MAX_FLOWS; i++)
        if (w->flows[i].is_live) {
            flows[n] = &w->flows[i].flow;
            of[n++] = i;
        }
    solved_rates(flows, n, w->capacity, w->n_links, rate);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t own = orr_fluid_rate(w->fluid, w->flows[of[i]].id);
        if (own != rate[i])
            fail_msg("seed %d at %g ns: flow %u has %.17g, full solve %.17g", (int)seed,
                     (double)w->now_ns, of[i], (double)own, (double)rate[i]);
    }
}

static void random_flow(World *w, uint32_t at, uint64_t *r, bool is_wild) {
    Live *x = &w->flows[at];
    memset(x, 0, sizeof *x);
    uint32_t n_uses = (uint32_t)draw(r, MAX_USES + 1);
    x->flow.weight = is_wild && draw(r, 3) == 0 ? 1 + (uint32_t)draw(r, 8) : 1;
    for (uint32_t u = 0; u < MAX(n_uses, 1); u++) {
        set_use(w, at, (uint32_t)draw(r, w->n_links),
                is_wild && draw(r, 2) ? 1 + (uint32_t)draw(r, 3 * ONE) : ONE);
        if (is_wild && draw(r, 4) == 0)
            x->uses[u].count = 1 + (uint32_t)draw(r, 5);
    }
    uint64_t cap = draw(r, 4) == 0 ? 1 + draw(r, 10000000) : NO_CAP;
    start_flow(w, at, draw(r, 50) == 0 ? 0 : 1 + draw(r, 20000), cap);
}

static void random_event(World *w, uint64_t *r, bool is_wild) {
    uint32_t due = next_end(w);
    int64_t later = w->now_ns + (int64_t)draw(r, 400000);
    if (due < MAX_FLOWS && (w->flows[due].end_ns <= later || draw(r, 8) == 0)) {
        if (w->flows[due].end_ns == INT64_MAX)
            return;
        w->now_ns = w->flows[due].end_ns;
        orr_fluid_end(w->fluid, w->now_ns, w->flows[due].id);
        w->flows[due].is_live = false;
    } else {
        w->now_ns = later;
    }
    if (draw(r, 40) == 0) {
        uint32_t link = (uint32_t)draw(r, w->n_links);
        w->capacity[link] = 1000000 * (1 + draw(r, 8));
        orr_fluid_capacity(w->fluid, w->now_ns, link, w->capacity[link]);
    }
    for (uint64_t n = draw(r, 4); n > 0; n--) {
        uint32_t at = (uint32_t)draw(r, MAX_FLOWS);
        if (!w->flows[at].is_live)
            random_flow(w, at, r, is_wild);
    }
}

static void test_rates_are_those_of_a_full_solve_whatever_the_history(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        World w;
        uint64_t r = seed, capacity[MAX_LINKS];
        uint32_t n_links = 2 + (uint32_t)draw(&r, MAX_LINKS - 1);
        for (uint32_t l = 0; l < n_links; l++)
            capacity[l] = 1000000 * (1 + draw(&r, 8)) + draw(&r, 2) * draw(&r, 999);
        open_world(&w, capacity, n_links);
        for (int event = 0; event < 400; event++) {
            random_event(&w, &r, seed % 2);
            settle_rates(&w);
            expect_rates_of_a_full_solve(&w, seed);
            settle(&w);
        }
        orr_fluid_free(w.fluid);
    }
}

static void test_every_byte_crosses_every_link_of_its_flow(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        World w;
        uint64_t r = seed, capacity[6];
        OrrWide expected[6] = {0};
        for (uint32_t l = 0; l < 6; l++)
            capacity[l] = 1000000 * (1 + draw(&r, 8));
        open_world(&w, capacity, 6);
        for (uint32_t i = 0; i < MAX_FLOWS; i++) {
            w.now_ns += (int64_t)draw(&r, 100000);
            while (next_end(&w) < MAX_FLOWS && w.flows[next_end(&w)].end_ns < w.now_ns) {
                int64_t now_ns = w.now_ns;
                run_to_next_end(&w);
                w.now_ns = now_ns;
            }
            random_flow(&w, i, &r, true);
            settle(&w);
            for (uint32_t u = 0; u < w.flows[i].flow.n_uses; u++)
                expected[w.flows[i].uses[u].constraint] += (OrrWide)w.flows[i].flow.bytes *
                                                           w.flows[i].uses[u].coef *
                                                           w.flows[i].uses[u].count;
        }
        while (next_end(&w) < MAX_FLOWS)
            run_to_next_end(&w);
        for (uint32_t l = 0; l < 6; l++)
            assert_true(orr_fluid_link_bytes(w.fluid, l) == (uint64_t)(expected[l] / ONE));
        orr_fluid_free(w.fluid);
    }
}

/* Four equal flows, or one whose uses count four: the same ends to the nanosecond. */
static void test_folded_flows_end_when_unfolded_ones_do(void **state) {
    (void)state;
    World w[2];
    for (int is_folded = 0; is_folded < 2; is_folded++) {
        World *x = &w[is_folded];
        open_world(x, (uint64_t[]){7 * GB + 1, 3 * GB + 2}, 2);
        for (uint32_t i = 0; i < (is_folded ? 1 : 4); i++) {
            set_use(x, i, 0, ONE * 7 / 4), set_use(x, i, 1, ONE / 3);
            x->flows[i].uses[0].count = x->flows[i].uses[1].count = is_folded ? 4 : 1;
            start_flow(x, i, 12345678, NO_CAP);
        }
        settle(x);
        x->now_ns = 1000;
        simple_flow(x, 10, 0, 1000003);
        simple_flow(x, 11, 1, 10000019);
        settle(x);
        while (next_end(x) < MAX_FLOWS)
            run_to_next_end(x);
    }
    assert_true(w[0].flows[0].end_ns == w[1].flows[0].end_ns);
    assert_true(w[0].flows[10].end_ns == w[1].flows[10].end_ns);
    assert_true(w[0].flows[11].end_ns == w[1].flows[11].end_ns);
    for (uint32_t l = 0; l < 2; l++)
        assert_true(orr_fluid_link_bytes(w[0].fluid, l) == orr_fluid_link_bytes(w[1].fluid, l));
    orr_fluid_free(w[0].fluid);
    orr_fluid_free(w[1].fluid);
}

static void test_flaw_tells_of_bytes_that_were_cut_off(void **state) {
    (void)state;
    World w;
    open_world(&w, (uint64_t[]){GB}, 1);
    simple_flow(&w, 0, 0, 1000);
    settle(&w);
    orr_fluid_end(w.fluid, 400, w.flows[0].id);
    g_autofree char *flaw = orr_fluid_flaw(w.fluid);
    assert_non_null(flaw);
    assert_non_null(strstr(flaw, "600 bytes are lost"));
    orr_fluid_free(w.fluid);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_flows_share_link_equally_then_one_has_it_all),
        cmocka_unit_test(test_a_flow_that_comes_later_slows_the_first),
        cmocka_unit_test(test_completion_is_rounded_up_and_no_byte_is_lost),
        cmocka_unit_test(test_degraded_and_dead_links_slow_and_stop),
        cmocka_unit_test(test_flows_with_room_are_admitted_without_a_solve),
        cmocka_unit_test(test_a_flow_has_its_share_though_its_roomy_link_is_held_apart),
        cmocka_unit_test(test_a_change_elsewhere_moves_nobody),
        cmocka_unit_test(test_rates_are_those_of_a_full_solve_whatever_the_history),
        cmocka_unit_test(test_every_byte_crosses_every_link_of_its_flow),
        cmocka_unit_test(test_folded_flows_end_when_unfolded_ones_do),
        cmocka_unit_test(test_flaw_tells_of_bytes_that_were_cut_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
