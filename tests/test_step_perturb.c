/* Perturbations: what they parse to, what they do to a step, who is named, what they cost. */
#include "tests/near.h"

#include "sim/api/step_priv.h"
#include "sim/base/random.h"
#include "tests/step_helpers.h"

#include <glib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void refused(const char *text, const char *says) {
    g_autoptr(OrrPerturbs) p = orr_perturbs_new();
    g_autoptr(GError) error = NULL;
    if (orr_perturbs_add(p, text, &error))
        fail_msg("%s was taken", text);
    assert_int_equal(error->code, ORR_ERROR_INPUT);
    if (!strstr(error->message, says))
        fail_msg("%s: \"%s\" does not say \"%s\"", text, error->message, says);
    assert_int_equal(p->n, 0);
}

static void test_texts_that_make_no_sense_are_refused_by_the_word(void **state) {
    (void)state;
    refused("gpu:17", "TARGET=VALUE");
    refused("cpu:17:speed=0.9", "gpu:RANK:speed");
    refused("gpu:x:speed=0.9", "'x' is no rank");
    refused("gpu:9-3:speed=0.9", "'9-3' is no rank");
    refused("gpu:1:clock=0.9", "'clock'");
    refused("gpu:1:speed=fast", "'fast' is no number");
    refused("gpu:1:speed=0", "0.001 to 4");
    refused("gpu:1:speed=nan", "'nan' is no number");
    refused("gpu:*:speed~normal(1,0.5)", "speeds from -3.5");
    refused("gpu:*:speed~normal(1)", "normal(1,0.01)");
    refused("gpu:*:speed~poisson(1,2)", "normal(1,0.01)");
    refused("gpu:*:speed~uniform(1,0.9)", "~uniform(1,0.9): uniform(0.9,1), the lower first");
    refused("link:leaf0/up:bandwidth=2", "0.001 to 1");
    refused("link:leaf0/up:bandwidth=0", "0.001 to 1");
    refused("link:leaf0/up:speed=0.5", "bandwidth would do");
    refused("link:leaf0/up:bandwidth~normal(1,0.01)", "only speeds of GPUs are drawn");
    refused("gpu:*:speed~normal(1,-0.01)", "'-0.01' is below 0");
    refused("nic:0:x:bandwidth=0.5", "'x' is no NIC");
    refused("nic:0:0:bandwidth=-1", "NIC that is missing");
}

#define SMALL                                                                                      \
    "job.cluster=clos:32 node:8 gpu:h100 leaf:16;layout.tp=2;layout.pp=2;layout.vpp=1;"            \
    "layout.dp=8;schedule.name=1f1b;batch.global=32 sequences;batch.micro=1 sequence;"             \
    "model.hidden=8192;model.ffn=32768;model.head_dim=128;"

static void test_what_is_not_there_is_refused(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"gpu:32:speed=0.9", "there is no rank 32"},
        {"gpu:30-99:speed=0.9", "there is no rank 99"},
        {"nic:4:0:bandwidth=0.5", "there is no node 4"},
        {"nic:0:8:bandwidth=0.5", "a node has 8 NICs"},
        {"link:leaf9/up:bandwidth=0.5",
         "there is no link leaf9/up; did you mean one of leaf0/up to leaf1/up?"},
        {"link:node1/nic8/out:bandwidth=0.5", "one of node0/nic0/out to node3/nic7/out?"},
        {"link:cable:bandwidth=0.5", "known are node0/gpu0/nvlink-out to node3/gpu7/nvlink-out"},
        {"gpu:*:speed=@no-such-file.csv", "no-such-file.csv"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *sets = g_strconcat(SMALL "perturb.a=", rows[i][0], NULL);
        assert_null(step_try("tiny-pipeline", sets, 0, &error));
        if (!strstr(error->message, rows[i][1]))
            fail_msg("%s: \"%s\"", rows[i][0], error->message);
    }
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) all = g_string_new(SMALL);
    for (int i = 0; i < 8; i++)
        g_string_append_printf(all, "perturb.n%d=nic:1:%d:bandwidth=0;", i, i);
    assert_null(step_try("tiny-pipeline", all->str, 0, &error));
    assert_non_null(strstr(error->message, "all NICs of the node of node1/nic"));
}

/* Perturbation "gpu:@ranks:speed=@table.csv" with @rows under the header. */
static void table_refused(const char *ranks, const char *rows, const char *says) {
    g_autoptr(GError) error = NULL;
    g_autoptr(OrrPerturbs) p = orr_perturbs_new();
    g_autofree char *text = g_strdup_printf("gpu:%s:speed=@table.csv", ranks);
    g_autofree char *table = g_strconcat("rank,speed\n", rows, NULL);
    assert_true(orr_perturbs_add(p, text, &error));
    if (orr_step__parse_speeds(&p->items[0], table, strlen(table), 32, &error))
        fail_msg("%s of \"%s\" is read", text, rows);
    if (!strstr(error->message, says))
        fail_msg("\"%s\" does not say \"%s\"", error->message, says);
}

static void test_tables_that_make_no_sense_are_refused_by_the_line(void **state) {
    (void)state;
    table_refused("*", "", "table.csv: has no rows");
    table_refused("*", "3,0.9\n4,0.9\n3,0.8\n", "table.csv:4: rank = 3: comes twice");
    table_refused("*", "3,0.9\n32,0.9\n", "table.csv:3: rank = 32: is out of range; 0 to 31");
    table_refused("4-7", "3,0.9\n", "table.csv:2: rank = 3: is out of range; 4 to 7");
    table_refused("*", "3,0\n", "table.csv:2: speed = 0: is out of range");
    table_refused("*", "3,fast\n", "table.csv:2: speed = fast: is not a number");
    table_refused("*", "3\n", "table.csv:2: a row of 1 cells");
}

static void test_one_slow_gpu_is_named_and_priced(void **state) {
    (void)state;
    for (uint32_t rank = 0; rank < 32; rank += 9) {
        g_autofree char *sets = g_strdup_printf(SMALL "perturb.a=gpu:%u:speed=0.5", rank);
        Step *s = step_new("tiny-pipeline", sets, STEP_CHECKED);
        Step *sound = step_new("tiny-pipeline", SMALL, STEP_CHECKED);
        const OrrRecord *r = s->record;
        assert_int_equal(r->sound_step_time_ns, sound->record->step_time_ns);
        assert_int_equal(r->n_perturbs, 1);
        assert_true(r->n_stragglers >= 1);
        assert_int_equal(r->stragglers[0].rank, rank);
        assert_int_equal(r->stragglers[0].cost_ns, r->step_time_ns - r->sound_step_time_ns);
        assert_true(r->stragglers[0].cost_ns > 0);
        assert_true(r->simulation.representatives > sound->record->simulation.representatives);
        assert_int_equal(sound->record->n_stragglers, 0);
        step_free(sound);
        step_free(s);
    }
}

/* Rows of one meeting: in order of time, then of rank, counted from the first, bounded. */
static uint32_t check_meeting(const OrrRecordArrival *a, uint32_t n) {
    uint32_t end = 1;
    assert_int_equal(a->order, 0);
    assert_int_equal(a->late_ns, 0);
    for (; end < n && a[end].order > 0; end++) {
        const OrrRecordArrival *x = &a[end - 1], *y = &a[end];
        assert_string_equal(x->what, y->what);
        assert_true(x->late_ns < y->late_ns || (x->late_ns == y->late_ns && x->rank < y->rank));
        if (a->group_size <= 64)
            assert_int_equal(y->order, end);
    }
    assert_int_equal(end, MIN(a->group_size, 64));
    assert_int_equal(a[end - 1].order, a->group_size - 1);
    assert_true(a[end - 1].late_ns > 0);
    return end;
}

/* Where the slow rank is in the group it comes last, and the others together. */
/* Pods of a third of a stage and a core of 1:7: the sends of all replicas meet there, and the step
 * moves either way when some come later (doc/models/perturbations.md). */
#define CROWDED                                                                                    \
    "layout.dp=16;batch.global=256 sequences;job.cluster=clos-roce-1m:2048;"                       \
    "cluster.gpus_per_pod=96 GPUs;cluster.pod_uplinks=13 links;"

static void test_a_slow_gpu_is_named_even_where_the_step_gets_no_longer(void **state) {
    (void)state;
    static const char *const speeds[] = {"0.98", "0.96"};
    for (size_t i = 0; i < G_N_ELEMENTS(speeds); i++) {
        g_autofree char *sets = g_strdup_printf(CROWDED "perturb.a=gpu:999:speed=%s", speeds[i]);
        Step *s = step_new("llama3-405b-16k", sets, 0);
        const OrrRecord *r = s->record;
        assert_true(r->n_stragglers >= 1);
        assert_int_equal(r->stragglers[0].rank, 999);
        step_free(s);
    }
}

static void test_the_slow_rank_comes_last_to_its_meetings(void **state) {
    (void)state;
    static const char *const kinds[] = {"perturb.a=gpu:13:speed=0.5",
                                        "layout.tp=1;layout.dp=16;perturb.a=gpu:13:speed=0.5"};
    for (size_t k = 0; k < G_N_ELEMENTS(kinds); k++) {
        g_autofree char *sets = g_strconcat(SMALL, kinds[k], NULL);
        Step *s = step_new("tiny-pipeline", sets, STEP_CHECKED);
        const OrrRecord *r = s->record;
        bool has_gradients = false;
        assert_true(r->n_arrivals > 0);
        for (uint32_t i = 0; i < r->n_arrivals;) {
            const OrrRecordArrival *a = &r->arrivals[i];
            uint32_t n = check_meeting(a, r->n_arrivals - i);
            i += n;
            if (a->group != ORR_GROUP_DP_CP || strcmp(a->what, "grads") != 0)
                continue;
            has_gradients = true;
            assert_int_equal(a[n - 1].rank, 13);
            assert_int_equal(a[n - 2].late_ns, 0);
        }
        assert_true(has_gradients);
        step_free(s);
    }
    Step *sound = step_new("tiny-pipeline", SMALL, 0);
    assert_int_equal(sound->record->n_arrivals, 0);
    step_free(sound);
}

static void test_arrivals_of_large_groups_are_those_at_either_end(void **state) {
    (void)state;
    static const char wide[] = "job.cluster=clos:128 node:8 gpu:h100 leaf:16;layout.tp=1;"
                               "layout.pp=1;layout.vpp=1;layout.dp=128;schedule.name=1f1b;"
                               "batch.global=128 sequences;batch.micro=1 sequence;"
                               "perturb.a=gpu:77:speed=0.5";
    Step *folded = step_new("tiny-pipeline", wide, 0);
    Step *unfolded = step_new("tiny-pipeline", wide, STEP_UNFOLDED);
    const OrrRecord *r = folded->record, *u = unfolded->record;
    assert_int_equal(r->n_arrivals, u->n_arrivals);
    for (uint32_t i = 0; i < r->n_arrivals; i++) {
        assert_int_equal(r->arrivals[i].rank, u->arrivals[i].rank);
        assert_int_equal(r->arrivals[i].late_ns, u->arrivals[i].late_ns);
    }
    for (uint32_t i = 0; i < r->n_arrivals;)
        i += check_meeting(&r->arrivals[i], r->n_arrivals - i);
    assert_int_equal(r->arrivals[31].order, 31);
    assert_int_equal(r->arrivals[32].order, 96);
    assert_int_equal(r->arrivals[63].rank, 77);
    step_free(folded);
    step_free(unfolded);
}

/* Drawn jitter has an order; its mean has none. */
static void test_arrivals_under_jitter_are_those_that_were_drawn(void **state) {
    (void)state;
    Step *mean = step_new("tiny-pipeline", SMALL "perturb.a=jitter=0.05", 0);
    Step *drawn = step_new("tiny-pipeline", SMALL "perturb.a=jitter=0.05", STEP_UNFOLDED);
    const OrrRecord *r = drawn->record;
    assert_int_equal(mean->record->n_arrivals, 0);
    assert_true(r->n_arrivals > 0);
    for (uint32_t i = 0; i < r->n_arrivals;)
        i += check_meeting(&r->arrivals[i], r->n_arrivals - i);
    step_free(mean);
    step_free(drawn);
}

static void test_all_gpus_at_half_speed_take_twice_the_kernel_time(void **state) {
    (void)state;
    Step *s = step_new("tiny-pipeline", SMALL "perturb.a=gpu:*:speed=0.5", STEP_CHECKED);
    Step *sound = step_new("tiny-pipeline", SMALL, STEP_CHECKED);
    const int64_t *account = s->record->time_account_ns, *whole = sound->record->time_account_ns;
    for (int k = 0; k < ORR_N_KERNEL_KINDS; k++) /* the remainder of the means goes to one */
        assert_true(llabs(account[k] - 2 * whole[k]) <= ORR_N_OWNERS);
    assert_int_equal(s->record->simulation.representatives,
                     sound->record->simulation.representatives);
    step_free(sound);
    step_free(s);
}

#define RAIL                                                                                       \
    "job.cluster=fat_tree:16 node:8 gpu:h100 nics:8 nic:25G;layout.tp=1;layout.pp=1;"              \
    "layout.vpp=1;layout.dp=16;schedule.name=1f1b;batch.global=16 sequences;"                      \
    "batch.micro=1 sequence;model.hidden=2048;model.ffn=8192;model.head_dim=128;"

static int64_t step_ns(const char *sets) {
    Step *s = step_new("tiny-pipeline", sets, STEP_CHECKED);
    int64_t ns = s->record->step_time_ns;
    step_free(s);
    return ns;
}

static void test_a_missing_nic_costs_as_much_as_its_neighbour_at_half(void **state) {
    (void)state;
    int64_t sound = step_ns(RAIL), half = step_ns(RAIL "perturb.a=nic:0:3:bandwidth=0.5");
    int64_t missing = step_ns(RAIL "perturb.a=nic:0:3:bandwidth=0");
    assert_true(half > sound);
    assert_near((double)missing, (double)half, 0.01);
}

static void test_a_link_and_its_nic_are_the_same(void **state) {
    (void)state;
    int64_t nic = step_ns(RAIL "perturb.a=nic:1:0:bandwidth=0.25");
    int64_t links = step_ns(RAIL "perturb.a=link:node1/nic0/out:bandwidth=0.25;"
                                 "perturb.b=link:node1/nic0/in:bandwidth=0.25");
    assert_int_equal(nic, links);
}

static void test_draws_are_normal_and_depend_on_seed_and_rank_only(void **state) {
    (void)state;
    g_autoptr(OrrPerturbs) p = orr_perturbs_new();
    assert_true(orr_perturbs_add(p, "gpu:*:speed~normal(1,0.01)", NULL));
    const uint32_t n = 20000;
    double sum = 0, squares = 0;
    for (uint32_t r = 0; r < n; r++) {
        double x = orr_perturbs_speed(p, r, 7) - 1;
        sum += x, squares += x * x;
    }
    assert_true(fabs(sum / n) < 4 * 0.01 / sqrt(n));
    assert_near(sqrt(squares / n), 0.01, 4 / sqrt(2.0 * n));
    assert_true(orr_perturbs_speed(p, 5, 7) == orr_perturbs_speed(p, 5, 7));
    assert_true(orr_perturbs_speed(p, 5, 7) != orr_perturbs_speed(p, 5, 8));
    assert_true(orr_perturbs_are_drawn(p));
}

static void test_a_table_is_what_its_rows_say(void **state) {
    (void)state;
    g_autofree char *path = g_build_filename(g_get_tmp_dir(), "orrery-speeds-XXXXXX", NULL);
    int fd = g_mkstemp(path);
    assert_true(fd >= 0);
    const char *text = "rank,speed\n3,0.5\n11,0.75\n";
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    g_autofree char *by_table = g_strdup_printf(SMALL "perturb.a=gpu:*:speed=@%s", path);
    assert_int_equal(step_ns(by_table),
                     step_ns(SMALL "perturb.a=gpu:3:speed=0.5;perturb.b=gpu:11:speed=0.75"));
    remove(path);
}

static void percentiles(const char *sets, uint32_t n_threads, OrrRecordPercentiles *out) {
    g_autoptr(GError) error = NULL;
    Step *s = step_new("tiny-pipeline", sets, 0);
    if (!orr_step_run_seeds(s->run, &(OrrStepSeeds){.n_seeds = 12, .n_threads = n_threads}, &error))
        fail_msg("%s", error->message);
    *out = s->record->percentiles;
    step_free(s);
}

static void test_seeds_do_not_depend_on_threads_and_agree_with_single_runs(void **state) {
    (void)state;
    static const char *const rows[] = {
        SMALL "perturb.a=gpu:*:speed~normal(1,0.02)",
        SMALL "perturb.a=gpu:*:speed~normal(1,0.02);network.placement=random",
    };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        OrrRecordPercentiles one, three;
        percentiles(rows[i], 1, &one);
        percentiles(rows[i], 3, &three);
        assert_memory_equal(&one, &three, sizeof one);
        int64_t sum = 0;
        for (int seed = 0; seed < 12; seed++) {
            g_autofree char *sets = g_strdup_printf("%s;network.seed=%d", rows[i], seed);
            sum += step_ns(sets);
        }
        assert_true(llabs(one.mean_ns - sum / 12) <= 1);
        assert_true(one.p5_ns <= one.p50_ns && one.p50_ns <= one.p95_ns);
        assert_true(one.p5_ns < one.p95_ns && one.ci95_ns > 0);
    }
}

static void test_seeds_without_a_draw_are_refused(void **state) {
    (void)state;
    g_autoptr(GError) error = NULL;
    Step *s = step_new("tiny-pipeline", SMALL, 0);
    assert_false(orr_step_run_seeds(s->run, &(OrrStepSeeds){.n_seeds = 4, .n_threads = 1}, &error));
    assert_int_equal(error->code, ORR_ERROR_USAGE);
    step_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts_that_make_no_sense_are_refused_by_the_word),
        cmocka_unit_test(test_what_is_not_there_is_refused),
        cmocka_unit_test(test_tables_that_make_no_sense_are_refused_by_the_line),
        cmocka_unit_test(test_one_slow_gpu_is_named_and_priced),
        cmocka_unit_test(test_a_slow_gpu_is_named_even_where_the_step_gets_no_longer),
        cmocka_unit_test(test_the_slow_rank_comes_last_to_its_meetings),
        cmocka_unit_test(test_arrivals_of_large_groups_are_those_at_either_end),
        cmocka_unit_test(test_arrivals_under_jitter_are_those_that_were_drawn),
        cmocka_unit_test(test_all_gpus_at_half_speed_take_twice_the_kernel_time),
        cmocka_unit_test(test_a_missing_nic_costs_as_much_as_its_neighbour_at_half),
        cmocka_unit_test(test_a_link_and_its_nic_are_the_same),
        cmocka_unit_test(test_draws_are_normal_and_depend_on_seed_and_rank_only),
        cmocka_unit_test(test_a_table_is_what_its_rows_say),
        cmocka_unit_test(test_seeds_do_not_depend_on_threads_and_agree_with_single_runs),
        cmocka_unit_test(test_seeds_without_a_draw_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
