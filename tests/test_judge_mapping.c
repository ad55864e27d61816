/* Published rows to jobs: names, defaults by written rules, reasons for skipping. */
#include "tests/near.h"

#include <string.h>

#include "sim/judge/mapping.h"

#define T(text) ((char *)(text)) /* facts own their texts; these are never freed */

static OrrPublishedRun sample(void) {
    return (OrrPublishedRun){.id = T("x"),
                             .source = T("a paper"),
                             .gpu = T("H100-80GB"),
                             .interconnect = T("NVLink4 + EFA"),
                             .model = T("llama3-8b"),
                             .framework = T("nanotron"),
                             .schedule = T("1F1B"),
                             .recompute = T("none"),
                             .precision = T("BF16"),
                             .zero = T("1"),
                             .note = T(""),
                             .gpus = 64,
                             .layers = 32,
                             .hidden = 4096,
                             .heads = 32,
                             .kv_heads = 8,
                             .ffn = 14336,
                             .vocab = 128256,
                             .sequence_tokens = 4096,
                             .global_sequences = 256,
                             .micro_sequences = 1,
                             .tp = 4,
                             .pp = 2,
                             .sp = 1,
                             .step_time_ns = 1e9,
                             .is_recommended = true};
}

static const OrrFramework profile = {.defaults = {.compute = ORR_BF16,
                                                  .parameters = ORR_AS_COMPUTE,
                                                  .gradients = ORR_FP32,
                                                  .reduce = ORR_FP32,
                                                  .gather = ORR_AS_COMPUTE,
                                                  .has_master = true,
                                                  .sequence_parallel = true,
                                                  .ends = ORR_ENDS_WITH_LAYERS}};

static void test_what_the_row_says_is_what_the_job_has(void **state) {
    (void)state;
    OrrPublishedRun row = sample();
    OrrJudgeCase c = {0};
    assert_null(orr_judge_begin(&row, false, &c));
    assert_string_equal(c.gpu, "h100-sxm-80");
    assert_string_equal(c.cluster_ref, "aws-p5:64");
    assert_string_equal(c.profile, "nanotron");
    assert_null(orr_judge_complete(&row, &profile, 8, &c));
    assert_int_equal(c.job->layout.dp, 8);
    assert_int_equal(c.job->layout.zero_stage, 1);
    assert_true(c.job->layout.sequence_parallel);
    assert_int_equal(c.model->kv_heads, 8);
    assert_true(c.model->is_gated && !c.model->is_tied);
    assert_string_equal(c.job->schedule_name, "1f1b");
    assert_false(c.rules & 1u << ORR_RULE_SP);
    assert_true(c.rules & 1u << ORR_RULE_DP);
    orr_judge_case_clear(&c);
}

static void test_what_is_open_takes_a_rule_and_says_so(void **state) {
    (void)state;
    OrrPublishedRun row = sample();
    row.sp = -1, row.zero = T(""), row.recompute = T(""), row.layers = 31, row.kv_heads = 0;
    OrrJudgeCase c = {0};
    assert_null(orr_judge_begin(&row, false, &c));
    assert_null(orr_judge_complete(&row, &profile, 8, &c));
    uint32_t wanted = 1u << ORR_RULE_SP | 1u << ORR_RULE_ZERO | 1u << ORR_RULE_RECOMPUTE |
                      1u << ORR_RULE_SPLIT | 1u << ORR_RULE_KV_HEADS;
    assert_int_equal(c.rules & wanted, wanted);
    assert_int_equal(c.job->layout.n_stage_layers, 2);
    assert_int_equal(c.job->layout.stage_layers[0], 16);
    assert_int_equal(c.job->layout.stage_layers[1], 15);
    orr_judge_case_clear(&c);
}

static void skips_with(OrrPublishedRun row, const char *reason) {
    OrrJudgeCase c = {0};
    const char *why = orr_judge_begin(&row, false, &c);
    if (!why)
        why = orr_judge_complete(&row, &profile, 8, &c);
    assert_non_null(why);
    assert_string_equal(why, reason);
    orr_judge_case_clear(&c);
}

static void test_rows_that_cannot_be_expressed_give_their_reason(void **state) {
    (void)state;
    OrrPublishedRun row = sample();
    row.experts = 8;
    skips_with(row, "mixture of experts");
    row = sample(), row.cp = 2;
    skips_with(row, "context parallelism");
    row = sample(), row.precision = T("MXFP8");
    skips_with(row, "FP8");
    row = sample(), row.schedule = T("ZB-2p");
    skips_with(row, "zero-bubble schedule");
    row = sample(), row.gpu = T("MI250X");
    skips_with(row, "GPU without a file");
    row = sample(), row.is_recommended = false;
    skips_with(row, "not recommended by its table");
    row = sample(), row.tp = 5;
    skips_with(row, "gpus do not divide by tp x pp");
    row = sample(), row.step_time_ns = 0;
    skips_with(row, "no measured time or rate");
    row = sample(), row.micro_sequences = 0;
    skips_with(row, "micro_batch not stated");
}

static void test_measured_time_comes_from_tokens_or_flops_where_it_must(void **state) {
    (void)state;
    OrrPublishedRun row = sample();
    OrrJudgeCase c = {.measure = ORR_MEASURED_TOKENS};
    row.tokens_per_gpu_per_s = 8192; /* 256 x 4096 tokens over 64 GPUs: 16,384 each */
    assert_near(orr_judge_measured_ns(&row, &c, 1e9, 100), 2e9, 1e-12);
    c.measure = ORR_MEASURED_TFLOPS;
    row.tflops_per_gpu = 400;
    assert_near(orr_judge_measured_ns(&row, &c, 1e9, 100), 0.25e9, 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_the_row_says_is_what_the_job_has),
        cmocka_unit_test(test_what_is_open_takes_a_rule_and_says_so),
        cmocka_unit_test(test_rows_that_cannot_be_expressed_give_their_reason),
        cmocka_unit_test(test_measured_time_comes_from_tokens_or_flops_where_it_must),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
