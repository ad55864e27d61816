/* Training logs as measured runs: small texts of each framework. */
#include "tests/near.h"

#include <math.h>
#include <string.h>

#include "calibrate/run_log.h"

static OrrMeasuredRun *parse(const char *text, GString *notes) {
    g_autoptr(GError) error = NULL;
    OrrImport import = {.path = "own.log", .notes = notes};
    OrrMeasuredRun *run = orr_run_log_parse(&import, text, strlen(text), &error);
    if (error)
        print_error("%s\n", error->message);
    return run;
}

#define STEP(i, ms)                                                                                \
    " iteration " #i "/ 1000 | elapsed time per iteration (ms): " #ms                              \
    " | global batch size:    16 | number of skipped iterations:   0 |\n"

static void test_warm_up_is_dropped_and_the_median_taken(void **state) {
    (void)state;
    g_autoptr(GString) notes = g_string_new(NULL);
    g_autoptr(OrrMeasuredRun) run =
        parse("using world size: 8, data-parallel-size: 2, tensor-model-parallel size: 4, "
              "pipeline-model-parallel size: 1\n" STEP(1, 9000.0) STEP(2, 4000.0) STEP(3, 1000.0)
                  STEP(4, 1010.0) STEP(5, 1020.0) STEP(6, 5000.0),
              notes);
    assert_non_null(run);
    assert_string_equal(run->framework, "Megatron");
    assert_int_equal(run->n_gpus, 8);
    assert_int_equal(run->tp, 4);
    assert_int_equal(run->global_batch, 16);
    assert_int_equal(run->n_steps, 6);
    assert_int_equal(run->n_used, 4); /* a late slow step is spread, not warm-up */
    assert_near(run->step_time_ns, 1.015e9, 1e-9);
}

static void test_lines_of_other_ranks_count_once(void **state) {
    (void)state;
    g_autoptr(GString) notes = g_string_new(NULL);
    g_autoptr(OrrMeasuredRun) run = parse(
        "0: 2025-03-04 00:44:44,441 - step: 10  memory: 68.57GiB(86%)  tps: 6,785  mfu: 39.73%\n"
        "1: 2025-03-04 00:44:44,441 - step: 10  memory: 68.57GiB(86%)  tps: 6,785  mfu: 39.73%\n"
        "0: 2025-03-04 00:44:54,441 - step: 20  memory: 68.57GiB(86%)  tps: 6,795  mfu: 39.73%\n",
        notes);
    assert_non_null(run);
    assert_string_equal(run->framework, "torchtitan");
    assert_int_equal(run->n_steps, 2);
    assert_near(run->step_time_ns, 1e9, 1e-9); /* ten steps in ten seconds */
    assert_near(run->tokens_per_gpu_per_s, 6790, 1e-9);
    assert_near(run->mfu_frac, 0.3973, 1e-9);
    assert_near(run->memory_bytes, 68.57 * 1073741824, 1e-9);
}

static void test_deepspeed_time_is_batch_over_rate(void **state) {
    (void)state;
    g_autoptr(GString) notes = g_string_new(NULL);
    g_autoptr(OrrMeasuredRun) run =
        parse("[2023-04-18 01:46:50,000] [INFO]   train_batch_size ............. 64\n"
              "[2023-04-18 01:46:59,171] [INFO] [timer.py:199:stop] epoch=0/micro_step=10/"
              "global_step=10, RunningAvgSamplesPerSec=30, CurrSamplesPerSec=32, "
              "MemAllocated=3.96GB, MaxMemAllocated=22.95GB\n",
              notes);
    assert_non_null(run);
    assert_string_equal(run->framework, "DeepSpeed");
    assert_near(run->step_time_ns, 2e9, 1e-9);
    assert_near(run->memory_bytes, 22.95 * 1073741824, 1e-9);
}

static void test_nemo_both_forms(void **state) {
    (void)state;
    g_autoptr(GString) notes = g_string_new(NULL);
    g_autoptr(OrrMeasuredRun) two =
        parse("Training epoch 0, iteration 4/99 | lr: 1e-05 | global_batch_size: 128 | "
              "global_step: 4 | train_step_timing in s: 4.56 | consumed_samples: 640\n",
              notes);
    assert_non_null(two);
    assert_string_equal(two->framework, "NeMo");
    assert_int_equal(two->global_batch, 128);
    assert_near(two->step_time_ns, 4.56e9, 1e-9);
    g_autoptr(OrrMeasuredRun) one =
        parse("Epoch 0:  9/100 [00:10<01:00, global_step=8.000, consumed_samples=1152.0, "
              "train_step_timing in s=4.000]\rEpoch 0:  10/100 [00:10<01:00, global_step=9.000, "
              "consumed_samples=1280.0, train_step_timing in s=4.000]\n",
              notes);
    assert_non_null(one);
    assert_near(one->step_time_ns, 4e9, 1e-9);
}

static void test_torchtitan_in_colours_with_its_batch_and_spread(void **state) {
    (void)state;
    g_autoptr(GString) notes = g_string_new(NULL);
    GString *text = g_string_new(
        "[rank0]:[titan] 2025-10-01 10:00:00,000 - root - INFO - CUDA capacity: NVIDIA H100 80GB "
        "HBM3 with 79.11GiB memory\n"
        "[rank0]:[titan] 2025-10-01 10:00:00,100 - root - INFO - Trainer is initialized with local "
        "batch size 2, global batch size 16, gradient accumulation steps 1, sequence length 8192, "
        "total steps 100 (warmup 20)\n");
    static const int rates[] = {900, 5000, 6000, 6100, 5900, 6000, 6050, 3000, 6000};
    for (guint i = 0; i < G_N_ELEMENTS(rates); i++)
        g_string_append_printf(text,
                               "[rank0]:[titan] 2025-10-01 10:00:%02u,000 - root - INFO - "
                               "\033[31mstep: %2u  \033[32mloss: 12.25  \033[38;2;180;60;0m"
                               "grad_norm:  1.4  \033[33mmemory: 47.88GiB(60.53%%)  "
                               "\033[34mtps: %u,%03u  \033[36mtflops: 300.5  "
                               "\033[35mmfu: 30.38%%\033[39m\n",
                               3 * i + 3, i + 1, rates[i] / 1000, rates[i] % 1000);
    g_autoptr(OrrMeasuredRun) run = parse(text->str, notes);
    g_string_free(text, TRUE);
    assert_non_null(run);
    assert_string_equal(run->gpu, "NVIDIA H100 80GB HBM3");
    assert_int_equal(run->global_batch, 16);
    assert_int_equal(run->sequence_tokens, 8192);
    assert_int_equal(run->n_steps, 9);
    assert_int_equal(run->n_used, 8); /* without the first */
    assert_near(run->step_time_ns, 3e9, 1e-9);
    assert_near(run->tokens_per_gpu_per_s, 6000, 1e-9);
    assert_near(run->tflops_per_gpu, 300.5, 1e-9);
    g_autofree char *out = orr_run_log_format(run);
    assert_non_null(strstr(out, "steps_used = 8\n"));
    assert_non_null(strstr(out, "step_time_p90 = "));
}

static void test_log_without_steps_is_refused(void **state) {
    (void)state;
    g_autoptr(GString) notes = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    OrrImport import = {.path = "own.log", .notes = notes};
    assert_null(orr_run_log_parse(&import, "nothing\nhere\n", 13, &error));
    assert_int_equal(error->code, ORR_ERROR_INPUT);
    assert_non_null(strstr(error->message, "own.log: 2 lines, but none reports a step"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_warm_up_is_dropped_and_the_median_taken),
        cmocka_unit_test(test_lines_of_other_ranks_count_once),
        cmocka_unit_test(test_deepspeed_time_is_batch_over_rate),
        cmocka_unit_test(test_nemo_both_forms),
        cmocka_unit_test(test_torchtitan_in_colours_with_its_batch_and_spread),
        cmocka_unit_test(test_log_without_steps_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
