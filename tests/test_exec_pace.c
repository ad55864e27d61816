/* Step times told without an execution are those of one: random jobs, whole and folded, whose ranks
 * are alike or drawn, with and without jitter, on links that are shared or not. */
#include "tests/near.h"

#include "sim/api/step_priv.h"
#include "tests/fold_random.h"
#include "tests/step_helpers.h"

#include <glib.h>

#define JITTER_SEED 7

typedef struct {
    uint32_t n_run, n_told, n_with_links, n_different;
} Tally;

static void compare(const OrrBound *b, double jitter_frac, const char *sets, Tally *t) {
    g_autoptr(GError) error = NULL;
    OrrExecOptions options = {
        .jitter_frac = jitter_frac, .is_jitter_sampled = true, .jitter_seed = JITTER_SEED};
    g_autoptr(OrrPace) pace = orr_pace_new(b);
    int64_t step_time_ns;
    t->n_run++;
    if (!pace || !orr_pace_run(pace, b, &options, &step_time_ns))
        return;
    g_autoptr(OrrExecResult) x = orr_exec_run(b, &options, &error);
    if (!x)
        fail_msg("%s", error->message);
    t->n_told++;
    t->n_with_links += b->n_links > 0;
    if (x->step_time_ns == step_time_ns)
        return;
    t->n_different++;
    print_message("told %" G_GINT64_FORMAT " ns, executed %" G_GINT64_FORMAT ": %s\n", step_time_ns,
                  x->step_time_ns, sets);
}

static void compare_random(uint64_t first, uint32_t n, FoldKind kind, double jitter_frac) {
    Tally t = {0};
    for (uint32_t i = 0; i < n; i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *sets = fold_draw_job(first + i, kind);
        Step *s = step_try("tiny-pipeline", sets, STEP_UNFOLDED, &error);
        if (!s)
            continue;
        compare(s->run->bound, jitter_frac, sets, &t);
        if (jitter_frac == 0) {
            g_autoptr(OrrBound) folded = orr_fold(s->run->bound);
            compare(folded, 0, sets, &t);
        }
        step_free(s);
    }
    print_message("pace: %u of %u told, %u with links, %u differ\n", t.n_told, t.n_run,
                  t.n_with_links, t.n_different);
    assert_int_equal(t.n_different, 0);
    assert_true(t.n_told >= t.n_run / 6);
    assert_true(t.n_with_links > 0);
}

static void test_pace_is_that_of_the_execution(void **state) {
    (void)state;
    compare_random(61001, 150, FOLD_PLAIN, 0);
}

static void test_pace_of_machines_that_are_not_as_they_should_be(void **state) {
    (void)state;
    compare_random(62001, 150, FOLD_PERTURBED, 0);
}

static void test_pace_with_drawn_jitter(void **state) {
    (void)state;
    compare_random(63001, 150, FOLD_PERTURBED, 0.03);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pace_is_that_of_the_execution),
        cmocka_unit_test(test_pace_of_machines_that_are_not_as_they_should_be),
        cmocka_unit_test(test_pace_with_drawn_jitter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
