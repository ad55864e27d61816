/* The shortcuts of the executor (launches told ahead, transfers booked, islands, passes) change
 * nothing: random jobs with and without them. */
#include "tests/near.h"

#include "sim/api/step_priv.h"
#include "tests/fold_random.h"
#include "tests/step_helpers.h"

#include <glib.h>
#include <string.h>

static OrrExecResult *run(const OrrBound *b, bool is_plain) {
    g_autoptr(GError) error = NULL;
    OrrExecOptions options = {
        .self_check = true, .has_path = true, .has_launches = true, .is_plain = is_plain};
    OrrExecResult *x = orr_exec_run(b, &options, &error);
    if (!x)
        fail_msg("%s", error->message);
    return x;
}

static bool is_same(const OrrBound *b, const OrrExecResult *x, const OrrExecResult *y) {
    gsize colls = b->program->n_colls * sizeof *x->colls,
          p2ps = b->program->n_p2ps * sizeof *x->p2ps;
    gsize launches = (gsize)b->program->n_colls * b->n_ranks * sizeof(int64_t);
    gsize accounts = (gsize)b->n_ranks * ORR_N_OWNERS * sizeof(int64_t);
    return x->step_time_ns == y->step_time_ns && x->first_step_ns == y->first_step_ns &&
           x->n_steps == y->n_steps && x->is_periodic == y->is_periodic &&
           memcmp(x->account_ns, y->account_ns, sizeof x->account_ns) == 0 &&
           memcmp(x->path_ns, y->path_ns, sizeof x->path_ns) == 0 &&
           memcmp(x->rank_account_ns, y->rank_account_ns, accounts) == 0 &&
           memcmp(x->rank_end_ns, y->rank_end_ns, b->n_ranks * sizeof(int64_t)) == 0 &&
           memcmp(x->launch_ns, y->launch_ns, launches) == 0 &&
           memcmp(x->colls, y->colls, colls) == 0 && memcmp(x->p2ps, y->p2ps, p2ps) == 0;
}

static void show(const OrrBound *b, const OrrExecResult *x, const OrrExecResult *y) {
    print_message("  steps %u %u, step %" G_GINT64_FORMAT " %" G_GINT64_FORMAT "\n", x->n_steps,
                  y->n_steps, x->step_time_ns, y->step_time_ns);
    for (uint32_t o = 0; o < ORR_N_OWNERS; o++)
        if (x->account_ns[o] != y->account_ns[o])
            print_message("  owner %u: %" G_GINT64_FORMAT " %" G_GINT64_FORMAT "\n", o,
                          x->account_ns[o], y->account_ns[o]);
    for (uint32_t o = 0; o < ORR_N_PATH_OWNERS; o++)
        if (x->path_ns[o] != y->path_ns[o])
            print_message("  path %u: %" G_GINT64_FORMAT " %" G_GINT64_FORMAT "\n", o,
                          x->path_ns[o], y->path_ns[o]);
    for (uint32_t i = 0; i < b->program->n_colls; i++)
        if (memcmp(&x->colls[i], &y->colls[i], sizeof x->colls[i]) != 0)
            print_message("  coll %u %s: count %g %g, transfer %g %g, wait %g %g, exposed %g %g\n",
                          i, b->program->colls[i].label, x->colls[i].count, y->colls[i].count,
                          x->colls[i].transfer_ns, y->colls[i].transfer_ns, x->colls[i].wait_ns,
                          y->colls[i].wait_ns, x->colls[i].exposed_ns, y->colls[i].exposed_ns);
}

static bool compare(const char *sets, bool *has_run) {
    g_autoptr(GError) error = NULL;
    Step *s = step_try("tiny-pipeline", sets, STEP_UNFOLDED, &error);
    *has_run = s != NULL;
    if (!s)
        return true;
    const OrrBound *b = s->run->bound;
    g_autoptr(OrrExecResult) x = run(b, true), y = run(b, false);
    bool same = is_same(b, x, y);
    if (!same) {
        print_message("shortcuts differ: %s\n", sets);
        show(b, x, y);
    }
    step_free(s);
    return same;
}

static void compare_random(uint64_t first, uint32_t n, FoldKind kind) {
    uint32_t n_run = 0, n_different = 0;
    for (uint32_t i = 0; i < n; i++) {
        g_autofree char *job = fold_draw_job(first + i, kind);
        /* passes are taken as a whole where the host is ahead */
        g_autofree char *sets = g_strconcat(job,
                                            i % 4 ? ";framework.launch=0 ns;framework.comm=0 "
                                                    "ns;framework.layer=0 ns;framework.step=0 ns"
                                                  : "",
                                            NULL);
        bool has_run;
        n_different += !compare(sets, &has_run);
        n_run += has_run;
    }
    print_message("plain and quick: %u jobs compared, %u refused, %u differ\n", n_run, n - n_run,
                  n_different);
    assert_int_equal(n_different, 0);
    assert_true(n_run >= n / 3);
}

static void test_shortcuts_change_nothing(void **state) {
    (void)state;
    compare_random(20001, 150, FOLD_PLAIN);
}

static void test_shortcuts_change_nothing_where_machines_are_not_as_they_should_be(void **state) {
    (void)state;
    compare_random(30001, 250, FOLD_PERTURBED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shortcuts_change_nothing),
        cmocka_unit_test(test_shortcuts_change_nothing_where_machines_are_not_as_they_should_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
