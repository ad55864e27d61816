/* The shortcuts of the executor (launches told ahead, transfers booked, islands, passes) change
 * nothing: random jobs with and without them. */
#include "tests/near.h"

#include "sim/api/step_priv.h"
#include "sim/base/random.h"
#include "tests/fold_random.h"
#include "tests/step_helpers.h"

#include <glib.h>
#include <string.h>

/* Words of the path: eight times what any of these jobs leaves. All are reserved at once, and a
 * sanitizer marks each of them. */
#define PLENTY (1u << 22)

static OrrExecResult *run(const OrrBound *b, bool is_plain) {
    g_autoptr(GError) error = NULL;
    /* the quick one often drops what the path cannot come by any more, the plain one never */
    OrrExecOptions options = {.self_check = true,
                              .has_path = true,
                              .path_words = is_plain ? PLENTY : 256,
                              .has_launches = true,
                              .is_plain = is_plain};
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

static bool compare(const char *sets, bool *has_run, uint64_t n_events[2]) {
    g_autoptr(GError) error = NULL;
    Step *s = step_try("tiny-pipeline", sets, STEP_UNFOLDED, &error);
    *has_run = s != NULL;
    if (!s) {
        assert_null(strstr(error->message, "execution stopped"));
        return true;
    }
    const OrrBound *b = s->run->bound;
    g_autoptr(OrrExecResult) x = run(b, true), y = run(b, false);
    bool same = is_same(b, x, y);
    n_events[0] += x->n_events;
    n_events[1] += y->n_events;
    if (!same) {
        print_message("shortcuts differ: %s\n", sets);
        show(b, x, y);
    }
    step_free(s);
    return same;
}

typedef struct {
    uint64_t seed;
    uint32_t drawn;
} Draws;

static uint32_t draw(Draws *d, uint32_t n) {
    return (uint32_t)orr_random_below(orr_random(d->seed, "beside"), d->drawn++, 0, n);
}

#define PICK(d, ...)                                                                               \
    (const char *const[]){__VA_ARGS__}[draw(d, G_N_ELEMENTS(((const char *const[]){__VA_ARGS__})))]

#define NO_HOST                                                                                    \
    ";framework.launch=0 ns;framework.comm=0 ns;framework.layer=0 ns;framework.step=0 ns"

/* A job whose gradients are reduced and parameters gathered beside its passes, in buckets of all
 * sizes, on links so slow that a call may last over many passes, or so quick that several come and
 * go in one; members of a group begin and end apart. */
static char *draw_beside(uint64_t seed) {
    Draws d = {.seed = seed};
    uint32_t tp = 1u << draw(&d, 3), pp = 1 + draw(&d, 3), dp = 2 + draw(&d, 4);
    uint32_t zero = draw(&d, 4), vpp = 1 + draw(&d, 2), mbs = 1 + draw(&d, 2);
    zero = zero == 3 && pp > 1 ? 1 : zero;
    vpp = pp > 1 ? vpp : 1;
    uint32_t m = pp * (1 + draw(&d, 3));
    uint32_t node = draw(&d, 2) ? tp : tp * dp, n = tp * pp * dp;
    g_autoptr(GString) s = g_string_new(NULL);
    g_string_printf(s,
                    "job.cluster=%s:%u node:%u gpu:%s nics:1 nic:%s oversub:%s routing:%s seed:%u;"
                    "job.framework=%s;layout.tp=%u;layout.pp=%u;layout.vpp=%u;layout.dp=%u;"
                    "layout.zero_stage=%u;layout.sequence_parallel=%s;schedule.name=%s;"
                    "batch.global=%u sequences;batch.micro=%u sequences;layout.ends=with_layers;"
                    "model.layers=%u;model.tied=%s;recompute.policy=%s",
                    PICK(&d, "fat_tree", "clos"), n, node, PICK(&d, "h100", "a100"),
                    PICK(&d, "1G", "10G", "25G", "100G"), PICK(&d, "1", "2", "7"),
                    PICK(&d, "spread", "ecmp-hash"), draw(&d, 5),
                    PICK(&d, "megatron-core-2024", "meta-llama3", "pytorch-fsdp"), tp, pp, vpp, dp,
                    zero, tp > 1 && draw(&d, 2) ? "yes" : "no", vpp > 1 ? "interleaved" : "1f1b",
                    m * mbs * dp, mbs, pp * vpp * (1 + draw(&d, 3)), draw(&d, 2) ? "yes" : "no",
                    PICK(&d, "none", "selective", "full"));
    g_string_append_printf(s,
                           ";framework.overlap_grad_reduce=yes;framework.overlap_param_gather=yes;"
                           "framework.bucket=%s;framework.param_bucket=%s",
                           PICK(&d, "0 B", "50 kB", "400 kB", "1 TB"), PICK(&d, "0 B", "1 TB"));
    if (zero == 2)
        g_string_append_printf(s, ";framework.reduce_when=%s",
                               PICK(&d, "at_end", "each_micro_batch", "each_run"));
    if (zero == 3 && dp % 2 == 0 && draw(&d, 2))
        g_string_append(s, ";layout.hsdp_shard=2 ranks");
    if (draw(&d, 2))
        g_string_append_printf(s,
                               ";framework.compute_dp_gradient=%s;framework.memory_dp_gradient=%s;"
                               "framework.compute_dp_parameter=%s;framework.compute_pp=%s",
                               PICK(&d, "33 %", "57 %", "90 %"), PICK(&d, "29 %", "84 %", "100 %"),
                               PICK(&d, "57 %", "71 %"), PICK(&d, "100 %", "100 %", "93 %"));
    if (draw(&d, 3))
        g_string_append_printf(s, ";perturb.p0=gpu:*:speed~normal(1,%s)",
                               PICK(&d, "0.002", "0.02", "0.1"));
    if (draw(&d, 4) == 0)
        g_string_append_printf(s, ";network.placement=random;network.seed=%u", draw(&d, 100));
    if (draw(&d, 4)) /* passes are taken as a whole where the host is ahead */
        g_string_append(s, NO_HOST);
    return g_string_free(g_steal_pointer(&s), FALSE);
}

static char *draw_plain(uint64_t seed) {
    g_autofree char *job = fold_draw_job(seed, FOLD_PLAIN);
    return g_strconcat(job, seed % 4 != 1 ? NO_HOST : "", NULL);
}

static char *draw_perturbed(uint64_t seed) {
    g_autofree char *job = fold_draw_job(seed, FOLD_PERTURBED);
    return g_strconcat(job, seed % 4 != 1 ? NO_HOST : "", NULL);
}

static void compare_random(uint64_t first, uint32_t n, char *(*draw_job)(uint64_t)) {
    uint32_t n_run = 0, n_different = 0;
    uint64_t n_events[2] = {0};
    for (uint32_t i = 0; i < n; i++) {
        g_autofree char *sets = draw_job(first + i);
        bool has_run;
        n_different += !compare(sets, &has_run, n_events);
        n_run += has_run;
    }
    print_message("plain and quick: %u jobs compared, %u refused, %u differ; %" G_GUINT64_FORMAT
                  " and %" G_GUINT64_FORMAT " events\n",
                  n_run, n - n_run, n_different, n_events[0], n_events[1]);
    assert_int_equal(n_different, 0);
    assert_true(n_run >= n / 3);
    assert_true(n_events[1] < n_events[0]);
}

static void test_shortcuts_change_nothing(void **state) {
    (void)state;
    compare_random(20001, 150, draw_plain);
}

static void test_shortcuts_change_nothing_where_machines_are_not_as_they_should_be(void **state) {
    (void)state;
    compare_random(30001, 250, draw_perturbed);
}

static void test_passes_beside_communication_that_slows_kernels_change_nothing(void **state) {
    (void)state;
    compare_random(40001, 120, draw_beside);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shortcuts_change_nothing),
        cmocka_unit_test(test_shortcuts_change_nothing_where_machines_are_not_as_they_should_be),
        cmocka_unit_test(test_passes_beside_communication_that_slows_kernels_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
