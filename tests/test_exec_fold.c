/* Folded and unfolded results are identical (DESIGN, section 5): a fixed set of random jobs, and
 * slow GPUs and links that split colours. */
#include "tests/near.h"

#include "sim/api/step_priv.h"
#include "sim/base/random.h"
#include "tests/fold_random.h"
#include "tests/step_helpers.h"

#include <glib.h>
#include <string.h>

static void test_fold_changes_nothing_but_what_is_executed(void **state) {
    (void)state;
    fold_compare_random(1, 200, FOLD_PLAIN);
}

static OrrExecResult *run(const OrrBound *b) {
    g_autoptr(GError) error = NULL;
    OrrExecOptions options = {.self_check = true, .has_path = true};
    g_autofree char *flaw = orr_bound_flaw(b);
    if (flaw)
        fail_msg("%s", flaw);
    OrrExecResult *x = orr_exec_run(b, &options, &error);
    if (!x)
        fail_msg("%s", error->message);
    return x;
}

static void compare(const OrrBound *b, uint32_t *n_colors) {
    g_autoptr(OrrBound) folded = orr_fold(b);
    g_autoptr(OrrExecResult) x = run(b), y = run(folded);
    *n_colors = folded->n_ranks;
    assert_int_equal(x->step_time_ns, y->step_time_ns);
    assert_int_equal(x->first_step_ns, y->first_step_ns);
    assert_int_equal(x->n_steps, y->n_steps);
    assert_memory_equal(x->account_ns, y->account_ns, sizeof x->account_ns);
    assert_memory_equal(x->path_ns, y->path_ns, sizeof x->path_ns);
    for (uint32_t r = 0; r < b->n_ranks; r++) {
        uint32_t c = folded->rep_of[r];
        assert_int_equal(x->rank_end_ns[r], y->rank_end_ns[c]);
        assert_memory_equal(x->rank_account_ns + (gsize)r * ORR_N_OWNERS,
                            y->rank_account_ns + (gsize)c * ORR_N_OWNERS,
                            ORR_N_OWNERS * sizeof(int64_t));
    }
}

#define WORLD 64u
#define LAYOUTS                                                                                    \
    "model.hidden=1024;model.ffn=4096;model.head_dim=128;batch.micro=1 sequence;"                  \
    "job.cluster=clos:64 node:4 gpu:h100 nics:1 nic:25G leaf:8 oversub:2;"                         \
    "layout.vpp=1;schedule.name=1f1b;batch.global=64 sequences;layout.tp=2;"

/* @slow ranks at a random speed, @bad links at a random part of their capacity. */
static void perturb(OrrBound *b, uint64_t seed, uint32_t slow, uint32_t bad) {
    OrrRandom draws = orr_random(seed, "perturb");
    g_autofree uint32_t *speed = g_new(uint32_t, b->n_ranks);
    for (uint32_t r = 0; r < b->n_ranks; r++)
        speed[r] = ORR_RATE_ONE;
    for (uint32_t i = 0; i < slow; i++)
        speed[orr_random_below(draws, 0, i, b->n_ranks)] =
            ORR_RATE_ONE / 2 + (uint32_t)orr_random_below(draws, 1, i, ORR_RATE_ONE / 2);
    if (slow > 0)
        orr_bound_set_speeds(b, speed);
    for (uint32_t i = 0; i < bad && b->n_links > 0; i++)
        b->capacity[orr_random_below(draws, 2, i, b->n_links)] /=
            2 + orr_random_below(draws, 3, i, 4);
}

static void check_perturbed(const char *layout, uint32_t slow, uint32_t bad) {
    uint32_t colors = 0, plain = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        g_autofree char *sets = g_strconcat(LAYOUTS, layout, NULL);
        Step *s = step_new("tiny-pipeline", sets, STEP_UNFOLDED);
        assert_int_equal(s->record->world_size, WORLD);
        compare(s->run->bound, &plain);
        perturb(s->run->bound, seed, slow, bad);
        compare(s->run->bound, &colors);
        assert_true(colors >= plain);
        if (slow > 0)
            assert_true(colors > plain);
        step_free(s);
    }
}

static const char *const layouts[] = {
    "layout.pp=1;layout.dp=32;layout.zero_stage=1",
    "layout.pp=4;layout.dp=8;layout.zero_stage=0",
    "layout.pp=4;layout.dp=8;layout.zero_stage=1;layout.rank_order=tp-cp-ep-pp-dp",
    "job.framework=pytorch-fsdp;layout.pp=1;layout.dp=32;layout.zero_stage=3",
};

static void test_slow_gpus_split_colours_and_nothing_else(void **state) {
    (void)state;
    for (size_t i = 0; i < G_N_ELEMENTS(layouts); i++)
        check_perturbed(layouts[i], 1 + i, 0);
}

static void test_slow_links_split_colours_and_nothing_else(void **state) {
    (void)state;
    for (size_t i = 0; i < G_N_ELEMENTS(layouts); i++)
        check_perturbed(layouts[i], 0, 1 + 2 * i);
}

/* Without perturbation there are about as many colours as stages, whatever DP is. */
static void test_folding_does_not_grow_with_data_parallelism(void **state) {
    (void)state;
    uint64_t colors[2];
    static const char *const sizes[] = {
        "layout.dp=8;batch.global=128 sequences;job.cluster=meta-24k-roce:1024",
        "layout.dp=128;batch.global=2048 sequences;job.cluster=meta-24k-roce:16384"};
    for (int i = 0; i < 2; i++) {
        Step *s = step_new("llama3-405b-16k", sizes[i], 0);
        colors[i] = s->record->simulation.representatives;
        step_free(s);
    }
    assert_int_equal(colors[0], 16);
    assert_true(colors[1] <= 2 * 16);
}

static void test_many_ranks_that_all_differ_have_a_critical_path(void **state) {
    (void)state;
    Step *s = step_new("llama3-405b-16k",
                       "layout.dp=16;layout.vpp=1;schedule.name=1f1b;batch.global=64 sequences;"
                       "job.cluster=meta-24k-roce:2048;"
                       "perturb.all=gpu:*:speed~normal(1,0.01)",
                       0);
    const OrrRecord *r = s->record;
    assert_int_equal(r->simulation.representatives, 2048);
    int64_t sum = 0;
    for (uint32_t o = 0; o < ORR_N_PATH_OWNERS; o++)
        sum += r->critical_path_ns[o];
    assert_int_equal(sum, r->step_time_ns);
    assert_true(r->critical_path_ns[ORR_K_GEMM] > sum / 4);
    assert_true(r->critical_path_ns[ORR_PATH_TRANSFER_FIRST + ORR_COMM_TP] > 0);
    step_free(s);
}

/* Rings of every micro-batch come and go beside sends over the uplinks of two pods: what a solver
 * that takes links or sends for alike must get right. */
#define CROWDED                                                                                    \
    "job.model=tiny-8;model.layers=14;model.hidden=2048;model.heads=16;model.ffn=4096;"            \
    "model.vocab=128000;job.cluster=meta-24k-roce:128;cluster.gpus_per_leaf=8;"                    \
    "cluster.gpus_per_pod=64;layout.tp=8;layout.pp=2;layout.dp=8;layout.vpp=4;"                    \
    "layout.stage_layers=2,2,2,2,2,2,1,1;batch.global=16 sequences;"                               \
    "schedule.name=interleaved_padded;framework.overlap_grad_reduce=yes;"                          \
    "framework.reduce_when=each_micro_batch;framework.bucket=1 MiB;"                               \
    "framework.overlap_param_gather=no;framework.scatter_gather=no;"

static const char *const crowded[] = {
    CROWDED "cluster.pod_oversubscription=2;perturb.all=gpu:*:speed~normal(1,0.01)",
    CROWDED "cluster.pod_oversubscription=7;perturb.all=gpu:*:speed~uniform(0.8,1)",
};

static void test_no_link_is_overfull_where_rings_come_and_go_beside_sends(void **state) {
    (void)state;
    for (size_t i = 0; i < G_N_ELEMENTS(crowded); i++) {
        uint32_t colors;
        Step *s = step_new("llama3-405b-16k", crowded[i], STEP_CHECKED | STEP_UNFOLDED);
        compare(s->run->bound, &colors);
        assert_int_equal(colors, 128);
        step_free(s);
    }
}

static void test_fold_changes_nothing_where_machines_are_not_as_they_should_be(void **state) {
    (void)state;
    fold_compare_random(5001, 200, FOLD_PERTURBED);
}

static void test_fold_changes_nothing_where_runs_of_replicas_are_left_out(void **state) {
    (void)state;
    fold_compare_random(9001, 60, FOLD_WIDE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fold_changes_nothing_but_what_is_executed),
        cmocka_unit_test(test_slow_gpus_split_colours_and_nothing_else),
        cmocka_unit_test(test_slow_links_split_colours_and_nothing_else),
        cmocka_unit_test(test_folding_does_not_grow_with_data_parallelism),
        cmocka_unit_test(test_many_ranks_that_all_differ_have_a_critical_path),
        cmocka_unit_test(test_no_link_is_overfull_where_rings_come_and_go_beside_sends),
        cmocka_unit_test(test_fold_changes_nothing_where_machines_are_not_as_they_should_be),
        cmocka_unit_test(test_fold_changes_nothing_where_runs_of_replicas_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
