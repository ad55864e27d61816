/* The partition of labelled graphs: against a slow reference that compares whole neighbourhoods in
 * rounds, on random graphs, and on graphs whose partition is known. */
#include "tests/near.h"

#include "sim/base/random.h"
#include "sim/exec/refine.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NODES 60u

typedef struct {
    uint32_t n;
    uint32_t times[MAX_NODES][MAX_NODES]; /* 0: no edge */
    uint64_t label[MAX_NODES][MAX_NODES];
} Matrix;

static OrrSightGraph graph_of(const Matrix *m) {
    OrrSightGraph g = {m->n, g_new0(uint64_t, m->n + 1), g_new(OrrSight, MAX_NODES * MAX_NODES)};
    for (uint32_t i = 0; i < m->n; i++) {
        g.first[i + 1] = g.first[i];
        for (uint32_t j = 0; j < m->n; j++)
            if (m->times[i][j] > 0)
                g.sights[g.first[i + 1]++] = (OrrSight){m->label[i][j], j, m->times[i][j]};
    }
    return g;
}

/* How often node @i sees class @class over edges of @label. */
static uint64_t count(const Matrix *m, const uint32_t *class, uint32_t i, uint64_t label,
                      uint32_t seen) {
    uint64_t n = 0;
    for (uint32_t j = 0; j < m->n; j++)
        if (m->times[i][j] > 0 && m->label[i][j] == label && class[j] == seen)
            n += m->times[i][j];
    return n;
}

static bool sees_alike(const Matrix *m, const uint32_t *class, uint32_t a, uint32_t b) {
    for (uint32_t j = 0; j < m->n; j++)
        for (int k = 0; k < 2; k++) {
            uint32_t i = k == 0 ? a : b;
            uint64_t label = m->label[i][j];
            if (m->times[i][j] > 0 &&
                count(m, class, a, label, class[j]) != count(m, class, b, label, class[j]))
                return false;
        }
    return true;
}

/* Rounds until nothing splits; classes are named by their first node. */
static void reference(const Matrix *m, uint32_t *class) {
    for (bool has_split = true; has_split;) {
        uint32_t next[MAX_NODES];
        has_split = false;
        for (uint32_t i = 0; i < m->n; i++) {
            next[i] = i;
            for (uint32_t j = 0; j < i; j++)
                if (class[j] == class[i] && next[j] == j && sees_alike(m, class, i, j)) {
                    next[i] = j;
                    break;
                }
        }
        for (uint32_t i = 0; i < m->n; i++)
            for (uint32_t j = 0; j < i; j++)
                has_split |= class[i] == class[j] && next[i] != next[j];
        memcpy(class, next, m->n * sizeof *class);
    }
}

static void check(const Matrix *m, const uint32_t *given, uint32_t n_given) {
    uint32_t fast[MAX_NODES], slow[MAX_NODES], n_slow = 0;
    OrrSightGraph g = graph_of(m);
    memcpy(fast, given, sizeof fast);
    memcpy(slow, given, sizeof slow);
    uint32_t n_fast = orr_refine(&g, fast, n_given);
    reference(m, slow);
    for (uint32_t i = 0; i < m->n; i++) {
        n_slow += slow[i] == i;
        for (uint32_t j = 0; j < i; j++)
            assert_int_equal(fast[i] == fast[j], slow[i] == slow[j]);
    }
    assert_int_equal(n_fast, n_slow);
    g_free(g.first);
    g_free(g.sights);
}

static void set_edge(Matrix *m, uint32_t a, uint32_t b, uint64_t label, uint32_t a_sees,
                     uint32_t b_sees) {
    m->times[a][b] = a_sees;
    m->times[b][a] = b_sees;
    m->label[a][b] = m->label[b][a] = label;
}

static void test_refine_is_the_coarsest_partition_of_random_graphs(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        OrrRandom draws = orr_random(seed, "refine");
        g_autofree Matrix *m = g_new0(Matrix, 1);
        uint32_t given[MAX_NODES], n_given = 1 + (uint32_t)(seed % 3), drawn = 0;
        m->n = 4 + (uint32_t)orr_random_below(draws, 0, drawn++, MAX_NODES - 4);
        uint32_t period = 1 + (uint32_t)orr_random_below(draws, 0, drawn++, 8);
        for (uint32_t i = 0; i < m->n; i++)
            given[i] = i < n_given ? i : (uint32_t)orr_random_below(draws, 1, i, n_given);
        for (uint32_t k = 0; k < m->n; k++) { /* regular parts, and what disturbs them */
            uint32_t a = k, b = (k + period) % m->n;
            if (orr_random_below(draws, 2, k, 8) == 0)
                b = (uint32_t)orr_random_below(draws, 3, k, m->n);
            if (a != b)
                set_edge(m, a, b, orr_random_below(draws, 4, k, 2), 1 + k % 2, 1);
        }
        check(m, given, n_given);
    }
}

static void test_refine_keeps_a_ring_whole_and_splits_a_path_by_distance(void **state) {
    (void)state;
    for (uint32_t n = 3; n <= MAX_NODES; n += 19) {
        g_autofree Matrix *m = g_new0(Matrix, 1);
        uint32_t class[MAX_NODES] = {0};
        m->n = n;
        for (uint32_t i = 0; i + 1 < n; i++)
            set_edge(m, i, i + 1, 7, 1, 1);
        OrrSightGraph path = graph_of(m);
        assert_int_equal(orr_refine(&path, class, 1), (n + 1) / 2);
        g_free(path.first);
        g_free(path.sights);
        set_edge(m, n - 1, 0, 7, 1, 1);
        OrrSightGraph ring = graph_of(m);
        memset(class, 0, sizeof class);
        assert_int_equal(orr_refine(&ring, class, 1), 1);
        g_free(ring.first);
        g_free(ring.sights);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refine_is_the_coarsest_partition_of_random_graphs),
        cmocka_unit_test(test_refine_keeps_a_ring_whole_and_splits_a_path_by_distance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
