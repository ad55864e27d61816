/* The solver against problems solved by hand, against a slow solver of another kind on random
 * problems, and against itself: order, multiplicity. */
#include "sim/net/solver.h"
#include "tests/near.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_N = 24, MAX_L = 12, MAX_USES = 6, N_RANDOM = 4000 };
#define NO_CAP UINT64_MAX
#define ONE ORR_COEF_ONE

typedef struct {
    OrrSolveActivity activities[4 * MAX_N];
    OrrUse uses[4 * MAX_N * MAX_USES];
    uint64_t capacity[MAX_L];
    uint32_t n, n_uses, n_links;
} Problem;

static void add(Problem *p, uint32_t weight, uint64_t cap) {
    p->activities[p->n++] = (OrrSolveActivity){p->n_uses, 0, weight, 0, cap};
}

static void use(Problem *p, uint32_t link, uint32_t coef, uint32_t count) {
    p->uses[p->n_uses++] = (OrrUse){link, coef, count};
    p->activities[p->n - 1].n_uses++;
}

static void solve(const Problem *p, uint64_t *rate) {
    OrrSolver *s = orr_solver_new();
    orr_solver_solve(s, p->activities, p->n, p->uses, p->capacity, p->n_links, rate);
    orr_solver_free(s);
}

static void test_the_first_problem_may_be_empty(void **state) {
    (void)state;
    Problem none = {0}, link = {.capacity = {1001}, .n_links = 1};
    uint64_t rate[1] = {77};
    solve(&none, rate);
    solve(&link, rate);
    assert_int_equal(rate[0], 77);
}

static void test_two_flows_share_a_link_equally(void **state) {
    (void)state;
    Problem p = {.capacity = {1001}, .n_links = 1};
    uint64_t rate[2];
    for (int i = 0; i < 2; i++)
        add(&p, 1, NO_CAP), use(&p, 0, ONE, 1);
    solve(&p, rate);
    assert_int_equal(rate[0], 500);
    assert_int_equal(rate[1], 500);
}

static void test_a_lone_flow_gets_exactly_its_slowest_link(void **state) {
    (void)state;
    for (uint64_t c = 1; c < UINT64_C(1) << 58; c = c * 3 + 1) {
        Problem p = {.capacity = {2 * c, c, 3 * c}, .n_links = 3};
        uint64_t rate[1];
        add(&p, 1, NO_CAP);
        for (uint32_t l = 0; l < 3; l++)
            use(&p, l, ONE, 1);
        solve(&p, rate);
        assert_true(rate[0] == c);
    }
}

static void test_weights_divide_and_caps_leave_the_rest(void **state) {
    (void)state;
    Problem p = {.capacity = {1000}, .n_links = 1};
    uint64_t rate[3];
    add(&p, 3, NO_CAP), use(&p, 0, ONE, 1);
    add(&p, 1, NO_CAP), use(&p, 0, ONE, 1);
    add(&p, 4, 200), use(&p, 0, ONE, 1);
    solve(&p, rate);
    assert_int_equal(rate[2], 200);
    assert_int_equal(rate[0], 600);
    assert_int_equal(rate[1], 200);
}

/* The parking lot: a long flow over three links, a short one on each; two on the last. */
static void test_a_long_flow_gets_the_share_of_its_fullest_link(void **state) {
    (void)state;
    Problem p = {.capacity = {900, 900, 900}, .n_links = 3};
    uint64_t rate[5];
    add(&p, 1, NO_CAP);
    for (uint32_t l = 0; l < 3; l++)
        use(&p, l, ONE, 1);
    for (uint32_t i = 0; i < 4; i++)
        add(&p, 1, NO_CAP), use(&p, MIN(i, 2), ONE, 1);
    solve(&p, rate);
    assert_int_equal(rate[0], 300);
    assert_int_equal(rate[1], 600);
    assert_int_equal(rate[2], 600);
    assert_int_equal(rate[3], 300);
    assert_int_equal(rate[4], 300);
}

/* A ring all-reduce over n ranks puts 2(n-1)/n of its bytes on each NIC; a send puts all. Both get
 * the same wire rate on the NIC that they share, x differs by the coefficient. */
static void test_ring_and_send_on_one_nic_share_the_wire(void **state) {
    (void)state;
    uint32_t ring = 2 * 7 * ONE / 8; /* n = 8 */
    Problem p = {.capacity = {50000000000, 50000000000}, .n_links = 2};
    uint64_t rate[2];
    add(&p, 1, NO_CAP), use(&p, 0, ring, 1), use(&p, 1, ring, 1);
    add(&p, 1, NO_CAP), use(&p, 0, ONE, 1);
    solve(&p, rate);
    assert_near((double)rate[0] * 1.75, 25e9, 1e-9);
    assert_near((double)rate[1], 25e9, 1e-9);
}

/* Two rings on shared links, 4 and 16 ranks: each gets half of the wire, whatever its size. */
static void test_two_rings_of_unequal_size_share_the_wire(void **state) {
    (void)state;
    Problem p = {.capacity = {48000, 48000, 48000}, .n_links = 3};
    uint64_t rate[2];
    add(&p, 1, NO_CAP), use(&p, 0, 2 * 3 * ONE / 4, 1), use(&p, 1, 2 * 3 * ONE / 4, 1);
    add(&p, 1, NO_CAP), use(&p, 1, 2 * 15 * ONE / 16, 1), use(&p, 2, 2 * 15 * ONE / 16, 1);
    solve(&p, rate);
    assert_in_range(rate[0], 15999, 16000); /* 24000 / 1.5, rounded down */
    assert_in_range(rate[1], 12799, 12800); /* 24000 / 1.875 */
}

/* An all-to-all loads a spine link with 4 and each NIC with 1; a ring loads its NICs with 1. The
 * all-to-all is held by the spine; the ring takes what is left of the NIC. */
static void test_all_to_all_against_ring(void **state) {
    (void)state;
    Problem p = {.capacity = {1000, 2000}, .n_links = 2};
    uint64_t rate[2];
    add(&p, 1, NO_CAP), use(&p, 0, ONE, 1), use(&p, 1, 4 * ONE, 1);
    add(&p, 1, NO_CAP), use(&p, 0, ONE, 1);
    solve(&p, rate);
    /* scaled by the largest coefficient, the all-to-all rises at a quarter of the ring's pace: the
     * NIC fills at x = 200, y = 800, before the spine (4 x 200 = 800 of 2000). */
    assert_int_equal(rate[0], 200);
    assert_int_equal(rate[1], 800);
}

/* A random generator of the test's own: splitmix64. */
static uint64_t draw(uint64_t *state, uint64_t below) {
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % below;
}

static void random_problem(Problem *p, uint64_t seed) {
    uint64_t r = seed * 7919;
    memset(p, 0, sizeof *p);
    p->n_links = 1 + (uint32_t)draw(&r, MAX_L);
    for (uint32_t l = 0; l < p->n_links; l++)
        p->capacity[l] = 1000000 * (1 + draw(&r, 8)) + draw(&r, 2) * draw(&r, 999);
    uint32_t n = 1 + (uint32_t)draw(&r, MAX_N);
    for (uint32_t i = 0; i < n; i++) {
        add(p, draw(&r, 3) == 0 ? 1 + (uint32_t)draw(&r, 8) : 1,
            draw(&r, 3) == 0 ? 1 + draw(&r, 3000000) : NO_CAP);
        uint32_t n_uses = 1 + (uint32_t)draw(&r, MAX_USES);
        for (uint32_t u = 0; u < n_uses; u++)
            use(p, (uint32_t)draw(&r, p->n_links),
                draw(&r, 2) ? ONE : 1 + (uint32_t)draw(&r, 3 * ONE),
                draw(&r, 4) == 0 ? 1 + (uint32_t)draw(&r, 5) : 1);
    }
}

static long double pace(const Problem *p, uint32_t i) {
    uint32_t largest = 1;
    const OrrSolveActivity *a = &p->activities[i];
    for (uint32_t u = a->first_use; u < a->first_use + a->n_uses; u++)
        largest = MAX(largest, p->uses[u].coef);
    return (long double)a->weight * ONE / largest;
}

/* The slow solver: raise all in real numbers, by bisection find how far, stop who is stuck. */
static bool fits(const Problem *p, const long double *x) {
    for (uint32_t l = 0; l < p->n_links; l++) {
        long double load = 0;
        for (uint32_t i = 0; i < p->n; i++) {
            const OrrSolveActivity *a = &p->activities[i];
            for (uint32_t u = a->first_use; u < a->first_use + a->n_uses; u++)
                if (p->uses[u].constraint == l)
                    load += x[i] * p->uses[u].coef / ONE * p->uses[u].count;
        }
        if (load > (long double)p->capacity[l] * (1 + 1e-15L))
            return false;
    }
    return true;
}

static void slow_solve(const Problem *p, long double *x) {
    bool is_stopped[4 * MAX_N] = {false};
    uint32_t n_left = p->n;
    memset(x, 0, p->n * sizeof *x);
    while (n_left > 0) {
        long double low = 0, high = 1e8L, trial[4 * MAX_N];
        for (int step = 0; step < 90; step++) {
            long double level = (low + high) / 2;
            for (uint32_t i = 0; i < p->n; i++)
                trial[i] = is_stopped[i]
                               ? x[i]
                               : MIN(level * pace(p, i), (long double)p->activities[i].cap);
            if (fits(p, trial))
                low = level;
            else
                high = level;
        }
        for (uint32_t i = 0; i < p->n; i++)
            if (!is_stopped[i])
                x[i] = MIN(low * pace(p, i), (long double)p->activities[i].cap);
        uint32_t before = n_left;
        for (uint32_t i = 0; i < p->n; i++) { /* stuck: no room for a little more */
            if (is_stopped[i])
                continue;
            memcpy(trial, x, p->n * sizeof *x);
            trial[i] *= 1 + 1e-9L;
            if (x[i] >= (long double)p->activities[i].cap * (1 - 1e-12L) || !fits(p, trial)) {
                is_stopped[i] = true;
                n_left--;
            }
        }
        assert_true(n_left < before);
    }
}

/* What rounding rates down by less than 1 byte/s may move: the sum of coefficients on a link over
 * the smallest of them, at the worst link, as what is left at one goes to others. */
static long double rounding(const Problem *p) {
    long double sum[MAX_L] = {0}, most = 0;
    for (uint32_t u = 0; u < p->n_uses; u++)
        sum[p->uses[u].constraint] += (long double)p->uses[u].coef * p->uses[u].count;
    for (uint32_t u = 0; u < p->n_uses; u++)
        most = MAX(most, sum[p->uses[u].constraint] / p->uses[u].coef);
    return 2 * most;
}

static void test_random_problems_agree_with_a_slow_solver(void **state) {
    (void)state;
    static Problem p;
    OrrSolver *s = orr_solver_new();
    for (uint64_t seed = 1; seed <= N_RANDOM / 2; seed++) {
        uint64_t rate[MAX_N];
        long double expected[MAX_N];
        random_problem(&p, seed);
        orr_solver_solve(s, p.activities, p.n, p.uses, p.capacity, p.n_links, rate);
        slow_solve(&p, expected);
        for (uint32_t i = 0; i < p.n; i++)
            if (fabsl((long double)rate[i] - expected[i]) > rounding(&p) + 1e-8L * expected[i])
                fail_msg("seed %d activity %u: %.12g, slow solver %.12g", (int)seed, i,
                         (double)rate[i], (double)expected[i]);
    }
    orr_solver_free(s);
}

static void test_no_constraint_is_exceeded_and_everyone_is_stopped_by_something(void **state) {
    (void)state;
    static Problem p;
    OrrSolver *s = orr_solver_new();
    for (uint64_t seed = 1; seed <= N_RANDOM; seed++) {
        uint64_t rate[MAX_N];
        uint32_t by[MAX_N];
        OrrWide capacity[MAX_L], load[MAX_L] = {0}, slack[MAX_L] = {0};
        random_problem(&p, seed);
        for (uint32_t l = 0; l < p.n_links; l++)
            capacity[l] = (OrrWide)p.capacity[l] * ONE;
        orr_solver_run(
            s, &(OrrSolveProblem){p.activities, p.n, p.uses, capacity, p.n_links, rate, by});
        for (uint32_t i = 0; i < p.n; i++) {
            for (uint32_t u = 0; u < p.activities[i].n_uses; u++) {
                const OrrUse *x = &p.uses[p.activities[i].first_use + u];
                load[x->constraint] += (OrrWide)rate[i] * x->coef * x->count;
                slack[x->constraint] += (OrrWide)x->coef * x->count; /* 1 byte/s each */
            }
        }
        for (uint32_t l = 0; l < p.n_links; l++)
            assert_true(load[l] <= capacity[l]);
        for (uint32_t i = 0; i < p.n; i++) {
            if (by[i] == ORR_BY_CAP)
                assert_true(rate[i] == p.activities[i].cap);
            else
                assert_true(load[by[i]] + 2 * slack[by[i]] >= capacity[by[i]]);
        }
    }
    orr_solver_free(s);
}

static void test_order_of_activities_and_links_is_no_matter(void **state) {
    (void)state;
    static Problem p, q;
    for (uint64_t seed = 1; seed <= N_RANDOM / 4; seed++) {
        uint64_t a[MAX_N], b[MAX_N];
        random_problem(&p, seed);
        memset(&q, 0, sizeof q);
        q.n_links = p.n_links;
        for (uint32_t l = 0; l < p.n_links; l++)
            q.capacity[p.n_links - 1 - l] = p.capacity[l];
        for (uint32_t i = p.n; i > 0; i--) {
            const OrrSolveActivity *x = &p.activities[i - 1];
            add(&q, x->weight, x->cap);
            for (uint32_t u = x->n_uses; u > 0; u--)
                use(&q, p.n_links - 1 - p.uses[x->first_use + u - 1].constraint,
                    p.uses[x->first_use + u - 1].coef, p.uses[x->first_use + u - 1].count);
        }
        solve(&p, a);
        solve(&q, b);
        for (uint32_t i = 0; i < p.n; i++)
            assert_true(a[i] == b[p.n - 1 - i]);
    }
}

static void test_k_equal_activities_are_one_of_count_k(void **state) {
    (void)state;
    static Problem p, q;
    for (uint64_t seed = 1; seed <= N_RANDOM / 4; seed++) {
        uint64_t folded[MAX_N], unfolded[4 * MAX_N], r = seed;
        uint32_t k[MAX_N];
        random_problem(&p, seed);
        memset(&q, 0, sizeof q);
        q.n_links = p.n_links;
        memcpy(q.capacity, p.capacity, sizeof q.capacity);
        for (uint32_t i = 0; i < p.n; i++) {
            const OrrSolveActivity *x = &p.activities[i];
            k[i] = 1 + (uint32_t)draw(&r, 4);
            for (uint32_t copy = 0; copy < k[i]; copy++) {
                add(&q, x->weight, x->cap);
                for (uint32_t u = x->first_use; u < x->first_use + x->n_uses; u++)
                    use(&q, p.uses[u].constraint, p.uses[u].coef, p.uses[u].count);
            }
        }
        for (uint32_t i = 0; i < p.n; i++)
            for (uint32_t u = 0; u < p.activities[i].n_uses; u++)
                p.uses[p.activities[i].first_use + u].count *= k[i];
        solve(&p, folded);
        solve(&q, unfolded);
        for (uint32_t i = 0, at = 0; i < p.n; i++)
            for (uint32_t copy = 0; copy < k[i]; copy++)
                assert_true(unfolded[at++] == folded[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_problem_may_be_empty),
        cmocka_unit_test(test_two_flows_share_a_link_equally),
        cmocka_unit_test(test_a_lone_flow_gets_exactly_its_slowest_link),
        cmocka_unit_test(test_weights_divide_and_caps_leave_the_rest),
        cmocka_unit_test(test_a_long_flow_gets_the_share_of_its_fullest_link),
        cmocka_unit_test(test_ring_and_send_on_one_nic_share_the_wire),
        cmocka_unit_test(test_two_rings_of_unequal_size_share_the_wire),
        cmocka_unit_test(test_all_to_all_against_ring),
        cmocka_unit_test(test_random_problems_agree_with_a_slow_solver),
        cmocka_unit_test(test_no_constraint_is_exceeded_and_everyone_is_stopped_by_something),
        cmocka_unit_test(test_order_of_activities_and_links_is_no_matter),
        cmocka_unit_test(test_k_equal_activities_are_one_of_count_k),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
