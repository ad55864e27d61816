/* Slow parts and shared networks of whole runs: priced by the step simulator. */
#include "tests/near.h"
#include "tests/run_with.h"

#include "sim/api/run.h"
#include "sim/api/step.h"
#include "sim/job/checkpoint.h"

/* The step of `orrery step --perturb`. */
static double perturbed_ns(const char *job, const char *perturbation) {
    OrrOverride o[] = {{"perturb", "one", perturbation}, {"batch", "global", "16 sequences"}};
    OrrStepRequest q = {.job = job, .overrides = o, .n_overrides = 2};
    g_autoptr(OrrStepRun) step = orr_step_prepare(&q, NULL);
    assert_true(step && orr_step_execute(step, NULL, NULL, 0, NULL));
    return (double)orr_step_record(step)->step_time_ns;
}

/* Eight stages of eight ranks: eight colours, each as the step simulator has it with one slow part
 * there, whichever rank of the colour it is. */
static void test_slow_parts_are_priced_by_the_step(void **state) {
    (void)state;
    OrrRunRequest q;
    const char *const sets[] = {"run.steps=30000",
                                "run.failures=stragglers",
                                "run.failure_scale=1200",
                                "batch.global=16",
                                "throttled_gpu.slow_part=gpu:any:speed=0.8",
                                NULL};
    g_autoptr(OrrRun) run = run_with(&q, "gpt3-175b-64", 5, sets);
    const OrrRunSpec *s = orr_run_spec(run);
    double nominal = (double)s->phases[0].step_ns[0];
    const OrrFailureKind *gpu = &s->kinds[0], *hbm = &s->kinds[1], *link = &s->kinds[2];
    assert_int_equal(gpu->n_classes, 8);
    assert_int_equal(hbm->n_classes, 8);
    assert_int_equal(link->n_classes, 8);
    for (uint32_t c = 0; c < 8; c++) {
        g_autofree char *slow = g_strdup_printf("gpu:%u:speed=0.8", 8 * c + 5);
        g_autofree char *flaps = g_strdup_printf("nic:%u:3:bandwidth=0.25", c);
        assert_near(gpu->class_factor[c], perturbed_ns("gpt3-175b-64", slow) / nominal, 1e-12);
        assert_near(link->class_factor[c], perturbed_ns("gpt3-175b-64", flaps) / nominal, 1e-12);
        assert_near(gpu->class_share[c], 1.0 / 8, 1e-12);
        assert_true(hbm->class_factor[c] >= 1 && hbm->class_factor[c] < gpu->class_factor[c]);
    }
    assert_true(gpu->slow_factor > 1.02 && gpu->slow_factor < 1.25);
    assert_true(cause(run, "throttled_gpu")->mean_count > 0);
    assert_true(cause(run, "flapping_link")->mean_count > 0);
    assert_true(cause(run, "link_retry")->mean_count > 0);
}

/* A store on the training's network takes half of each NIC while it is written; the step is then
 * that of NICs half as wide. On a network of its own it takes nothing. */
static void test_checkpoints_share_the_network_of_the_training(void **state) {
    (void)state;
    OrrRunRequest q;
    const char *const sets[] = {"run.steps=300",
                                "checkpoint.stores=disk",
                                "checkpoint.interval_steps=20",
                                "checkpoint.asynchronous=yes",
                                "disk.bandwidth=100 TB/s",
                                "batch.global=16",
                                "disk.network=compute",
                                NULL};
    g_autoptr(OrrRun) run = run_with(&q, "gpt3-175b-64", 2, sets);
    const OrrTier *t = &orr_run_spec(run)->checkpoint.tiers[0];
    OrrOverride o[9] = {{"batch", "global", "16 sequences"}};
    char texts[8][2][32];
    for (int k = 0; k < 8; k++) {
        g_snprintf(texts[k][0], sizeof texts[k][0], "n%d", k);
        g_snprintf(texts[k][1], sizeof texts[k][1], "nic:*:%d:bandwidth=0.5", k);
        o[1 + k] = (OrrOverride){"perturb", texts[k][0], texts[k][1]};
    }
    OrrStepRequest half_q = {.job = "gpt3-175b-64", .overrides = o, .n_overrides = 9};
    g_autoptr(OrrStepRun) half = orr_step_prepare(&half_q, NULL);
    assert_true(half && orr_step_execute(half, NULL, NULL, 0, NULL));
    double nominal = (double)orr_run_spec(run)->phases[0].step_ns[0];
    double slow = (double)orr_step_record(half)->step_time_ns / nominal - 1;
    assert_true(slow > 0);
    assert_near(t->write_slow_frac, slow, 1e-9);
    /* between half of 8 nodes' NICs and all of them; loading nothing is in the way */
    const OrrNode *node = orr_step_node(half);
    double least_s = t->bytes / (8 * node->nics * node->nic_bytes_per_s), most_s = 2 * least_s;
    assert_true((double)t->write_ns / 1e9 > least_s && (double)t->write_ns / 1e9 < most_s);
    assert_near((double)t->load_ns / 1e9, least_s, 1e-6);
    assert_true(orr_run_record(run)->seeds[0].lost_ns[ORR_CAUSE_CHECKPOINT * ORR_N_LOSSES +
                                                      ORR_LOSS_SAVE_SLOW] > 0);
    const OrrOverride bad[] = {{"tectonic", "network", "compute"},
                               {"run", "step_time", "6 s"},
                               {"run", "job", ""},
                               {"run", "gpus", "64 GPUs"},
                               {"run", "tokens_per_step", "1 tokens"},
                               {"checkpoint", "bytes", "1 GB"},
                               {"checkpoint", "copy", "1 GB/s"}};
    OrrRunRequest bad_q = {
        .run = "llama3-405b-54d", .n_seeds = 1, .overrides = bad, .n_overrides = 7};
    g_autoptr(GError) error = NULL;
    assert_null(orr_run_prepare(&bad_q, &error));
    assert_non_null(strstr(error->message, "needs a job to simulate; network = own"));
}

/* One slow GPU is not a whole cluster of them, and what cannot be priced is told. */
static void test_one_slow_part_costs_less_than_all(void **state) {
    (void)state;
    OrrRunRequest q;
    const char *sets[] = {"run.steps=30",
                          "run.failures=stragglers",
                          "slow_hbm.slow_part=gpu:any:memory_bandwidth=1000 GB/s",
                          "throttled_gpu.slow_set=gpu.memory_bandwidth=1000 GB/s",
                          "throttled_gpu.slow_part=",
                          NULL};
    g_autoptr(OrrRun) run = run_with(&q, "gpt3-175b-64", 1, sets);
    const OrrRunSpec *s = orr_run_spec(run);
    assert_true(s->kinds[1].slow_factor > 1.001);
    assert_true(s->kinds[1].slow_factor < s->kinds[0].slow_factor);
    static const char *const bad[][2] = {
        {"fan:any:speed=0.5", "'fan' is no part; gpu:any:speed"},
        {"gpu:any:speed=0", "a speed of 0; 0.001 to 4"},
        {"gpu:any:sped=0.5", "sped"},
        {"gpu:999:speed=0.5", "there is no rank 999"},
        {"nic:any:speed=0.5", "of a link, bandwidth would do"},
        {"gpu", "TARGET=VALUE would do"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        const OrrOverride all[] = {{"run", "steps", "30"},
                                   {"run", "failures", "stragglers"},
                                   {"batch", "global", "16 sequences"},
                                   {"throttled_gpu", "slow_part", bad[i][0]}};
        OrrRunRequest bad_q = {
            .run = "gpt3-175b-64", .n_seeds = 1, .overrides = all, .n_overrides = 4};
        g_autoptr(GError) error = NULL;
        assert_null(orr_run_prepare(&bad_q, &error));
        if (!strstr(error->message, bad[i][1]) || !strstr(error->message, "throttled_gpu"))
            fail_msg("%s: %s", bad[i][0], error->message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow_parts_are_priced_by_the_step),
        cmocka_unit_test(test_checkpoints_share_the_network_of_the_training),
        cmocka_unit_test(test_one_slow_part_costs_less_than_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
