/* Pipelines as lowered: activations in flight by schedule and stage, orders that hang, layouts that
 * are illegal, through the whole path from job and overrides. */
#include "tests/near.h"

#include "tests/step_helpers.h"

#include "sim/schedule/schedules.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static Step *piped(const char *schedule, uint32_t p, uint32_t v, uint32_t m, const char *more) {
    g_autofree char *sets = g_strdup_printf(
        "job.cluster=fat_tree:%u node:1 gpu:h100;layout.tp=1;layout.dp=1;layout.pp=%u;"
        "layout.vpp=%u;layout.zero_stage=0;layout.sequence_parallel=no;model.layers=%u;"
        "schedule.name=%s;batch.micro=1 sequence;batch.global=%u sequences;%s",
        p, p, v, 12 * p, schedule, m, more);
    return step_new("tiny-pipeline", sets, STEP_CHECKED);
}

static int64_t activations(const Step *s, uint32_t stage) {
    return s->record->stages[stage].mem_bytes[ORR_MEM_ACTIVATIONS];
}

/* GPipe holds what it is given: the yardstick for the others. [M - 1][stage] */
static void measure_gpipe(uint32_t p, uint32_t m_max, int64_t bytes[][4]) {
    for (uint32_t m = 1; m <= m_max; m++) {
        Step *s = piped("gpipe", p, 1, m, "");
        for (uint32_t i = 0; i < p; i++)
            bytes[m - 1][i] = activations(s, i);
        step_free(s);
    }
}

static void test_gpipe_holds_every_micro_batch(void **state) {
    (void)state;
    int64_t bytes[6][4];
    measure_gpipe(4, 6, bytes);
    for (uint32_t stage = 1; stage < 3; stage++)
        for (uint32_t m = 2; m < 6; m++) {
            assert_true(bytes[1][stage] > bytes[0][stage]);
            assert_int_equal(bytes[m][stage] - bytes[m - 1][stage],
                             bytes[1][stage] - bytes[0][stage]);
        }
}

/* S38: as much as min(P - s, M) micro-batches, however many there are. */
static void test_1f1b_holds_no_more_micro_batches_than_stages_follow(void **state) {
    (void)state;
    int64_t bytes[4][4];
    measure_gpipe(4, 4, bytes);
    static const uint32_t ms[] = {1, 2, 3, 4, 5, 8, 32};
    for (size_t i = 0; i < G_N_ELEMENTS(ms); i++) {
        Step *s = piped("1f1b", 4, 1, ms[i], "");
        for (uint32_t stage = 0; stage < 4; stage++)
            assert_int_equal(activations(s, stage), bytes[MIN(4 - stage, ms[i]) - 1][stage]);
        step_free(s);
    }
}

/* Chunks in flight: those of the warm-up and one. A chunk holds 1/V of what a stage does. */
static void test_interleaved_holds_its_warm_up_and_one_chunk(void **state) {
    (void)state;
    int64_t bytes[2][4];
    measure_gpipe(4, 2, bytes);
    for (uint32_t v = 2; v <= 4; v++)
        for (uint32_t m = 4; m <= 16; m += 4) {
            OrrPipeShape shape = {4, v, m};
            Step *s = piped("interleaved", 4, v, m, "");
            for (uint32_t stage = 1; stage < 3; stage++) {
                uint32_t warm_up = 2 * (4 - stage - 1) + (v - 1) * 4;
                uint32_t n = MIN(warm_up + 1, v * m);
                int64_t of_stage = bytes[1][stage] - bytes[0][stage];
                assert_int_equal(n,
                                 orr_schedule_find("interleaved", NULL)->in_flight(&shape, stage));
                assert_int_equal(activations(s, stage),
                                 bytes[0][stage] + of_stage * n / v - of_stage);
            }
            step_free(s);
        }
}

/* Fewer micro-batches than stages run, and the report warns. */
static void test_few_micro_batches_run_with_a_warning(void **state) {
    (void)state;
    static const char *const names[] = {"naive", "gpipe", "1f1b"};
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        Step *s = piped(names[i], 4, 1, 2, "");
        bool is_warned = false;
        for (uint32_t k = 0; k < s->record->n_warnings; k++)
            is_warned |= strcmp(s->record->warnings[k].code, "few_micro_batches") == 0;
        assert_true(is_warned);
        assert_true(s->record->is_periodic);
        step_free(s);
    }
}

/* Blocking sends and receives, several chunks: no shape hangs. */
static void test_batched_sends_of_interleaved_schedules_never_hang(void **state) {
    (void)state;
    for (uint32_t p = 2; p <= 5; p++)
        for (uint32_t v = 2; v <= 3; v++)
            for (uint32_t m = 1; m <= 11; m++) {
                const char *own = "job.framework=megatron-2022";
                step_free(piped("interleaved_padded", p, v, m, own));
                if (m % p == 0)
                    step_free(piped("interleaved", p, v, m, own));
            }
}

static char *refusal(const char *job, const char *sets) {
    g_autoptr(GError) error = NULL;
    Step *s = step_try(job, sets, 0, &error);
    if (s)
        fail_msg("%s with %s is not refused", job, sets);
    assert_true(g_error_matches(error, ORR_ERROR, ORR_ERROR_INPUT));
    return g_strdup(error->message);
}

static void check_refusal(const char *job, const char *sets, const char *const *parts) {
    g_autofree char *text = refusal(job, sets);
    for (uint32_t i = 0; parts[i]; i++)
        if (!strstr(text, parts[i]))
            fail_msg("\"%s\" is not in: %s", parts[i], text);
}

static void test_illegal_layouts_are_refused_with_every_reason(void **state) {
    (void)state;
    static const struct {
        const char *job, *sets, *parts[4];
    } rows[] = {
        {"llama3-405b-16k", "layout.pp=8", {"TP 8 x PP 8 x DP 128 is 8,192 ranks and not 16,384"}},
        {"llama3-405b-16k",
         "layout.pp=8;batch.global=2000 sequences",
         {"is 8,192 ranks and not 16,384", "[batch] global"}},
        {"tiny-pipeline",
         "model.heads=28;model.kv_heads=4;layout.tp=8;layout.dp=1;layout.pp=1;"
         "layout.vpp=1;schedule.name=1f1b",
         {"28", "heads", "TP 8"}},
        {"tiny-pipeline", "batch.global=15 sequences", {"[batch] global", "15"}},
        {"tiny-pipeline",
         "model.layers=30;layout.pp=4;layout.dp=1;layout.vpp=1;schedule.name=1f1b",
         {"30 layers", "8,8,7,7"}},
        {"tiny-pipeline",
         "batch.global=12 sequences;layout.dp=2;schedule.name=interleaved;"
         "batch.micro=2 sequences",
         {"3", "multiple of 2", "interleaved_padded"}},
        {"tiny-pipeline", "layout.zero_stage=1;layout.hsdp_shard=1 ranks", {"hsdp_shard"}},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        check_refusal(rows[i].job, rows[i].sets, rows[i].parts);
}

/* S23: no layer is dropped: the split that the refusal names runs all 30. */
static void test_thirty_layers_on_four_stages_stay_thirty(void **state) {
    (void)state;
    Step *s = step_new("tiny-pipeline",
                       "model.layers=30;layout.pp=4;layout.dp=1;layout.vpp=1;schedule.name=1f1b;"
                       "layout.stage_layers=8,8,7,7",
                       STEP_CHECKED);
    static const uint32_t layers[] = {8, 8, 7, 7};
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(s->record->stages[i].layers, layers[i]);
    step_free(s);
}

static char *write_order(const char *text) {
    g_autoptr(GError) error = NULL;
    char *path = NULL;
    int fd = g_file_open_tmp("order-XXXXXX.csv", &path, &error);
    assert_true(fd >= 0);
    close(fd);
    assert_true(g_file_set_contents(path, text, -1, &error));
    return path;
}

static const char custom_sets[] =
    "layout.tp=1;layout.pp=2;layout.vpp=1;layout.dp=1;layout.sequence_parallel=no;"
    "job.cluster=h100-ib:2;batch.global=2 sequences;schedule.name=";

/* Stage 0 wants the gradient of micro-batch 0 before it sends micro-batch 1; stage 1 wants that
 * one first. */
static void test_custom_order_that_hangs_is_refused_with_its_cycle(void **state) {
    (void)state;
    g_autofree char *path = write_order("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n");
    g_autofree char *sets = g_strconcat(custom_sets, path, NULL);
    static const char *const parts[] = {"hangs", "stage 0 waits before 0B0",
                                        "stage 1 waits before 1F1", NULL};
    check_refusal("tiny-pipeline", sets, parts);
    remove(path);
}

static void test_custom_order_equal_to_1f1b_gives_its_step(void **state) {
    (void)state;
    g_autofree char *path = write_order("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
    g_autofree char *sets = g_strconcat(custom_sets, path, NULL);
    g_autofree char *known = g_strconcat(custom_sets, "1f1b", NULL);
    Step *a = step_new("tiny-pipeline", sets, STEP_CHECKED);
    Step *b = step_new("tiny-pipeline", known, STEP_CHECKED);
    assert_int_equal(a->record->step_time_ns, b->record->step_time_ns);
    assert_memory_equal(a->record->time_account_ns, b->record->time_account_ns,
                        sizeof a->record->time_account_ns);
    step_free(a);
    step_free(b);
    remove(path);
}

/* The sample of a framework that writes its own orders: two chunks, split backwards. */
static void test_custom_order_of_a_framework_runs(void **state) {
    (void)state;
    const char *shared = g_getenv("ORRERY_SHARED"), *source = g_getenv("top_srcdir");
    g_autofree char *beside = g_strdup_printf("%s/../shared", source ? source : "..");
    g_autofree char *path =
        g_build_filename(shared && *shared ? shared : beside, "files", "train-configs",
                         "torchtitan-custom_schedule.csv", NULL);
    if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
        g_clear_pointer(&path, g_free); /* skip() jumps over what frees */
        g_clear_pointer(&beside, g_free);
        skip();
        return;
    }
    g_autofree char *sets = g_strdup_printf(
        "layout.tp=1;layout.pp=2;layout.vpp=2;layout.dp=1;layout.sequence_parallel=no;"
        "job.cluster=h100-ib:2;batch.global=8 sequences;schedule.name=%s",
        path);
    Step *s = step_new("tiny-pipeline", sets, STEP_CHECKED);
    assert_int_equal(s->record->n_stages, 2);
    assert_true(s->record->bubble_of_step_frac > 0);
    step_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpipe_holds_every_micro_batch),
        cmocka_unit_test(test_1f1b_holds_no_more_micro_batches_than_stages_follow),
        cmocka_unit_test(test_interleaved_holds_its_warm_up_and_one_chunk),
        cmocka_unit_test(test_few_micro_batches_run_with_a_warning),
        cmocka_unit_test(test_batched_sends_of_interleaved_schedules_never_hang),
        cmocka_unit_test(test_illegal_layouts_are_refused_with_every_reason),
        cmocka_unit_test(test_thirty_layers_on_four_stages_stay_thirty),
        cmocka_unit_test(test_custom_order_that_hangs_is_refused_with_its_cycle),
        cmocka_unit_test(test_custom_order_of_a_framework_runs),
        cmocka_unit_test(test_custom_order_equal_to_1f1b_gives_its_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
