/* Published rows to jobs: names, defaults by written rules, reasons for skipping. */
#include "tests/near.h"

#include <string.h>

#include "sim/judge/mapping.h"
#include "topologies/loader.h"
#include "workloads/loader.h"

#define T(text) ((char *)(text)) /* facts own their texts; these are never freed */

static OrrPublishedNames *names;

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
    OrrJudgeCase c = {.names = names};
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
    OrrJudgeCase c = {.names = names};
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
    OrrJudgeCase c = {.names = names};
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
    row = sample(), row.gpu = T("A100 PCIe");
    skips_with(row, "GPU without a cluster file");
    row = sample(), row.is_recommended = false;
    skips_with(row, "not recommended by its table");
    row = sample(), row.tp = 5;
    skips_with(row, "gpus do not divide by tp x pp");
    row = sample(), row.step_time_ns = 0;
    skips_with(row, "no measured time or rate");
    row = sample(), row.micro_sequences = 0;
    skips_with(row, "micro_batch not stated");
    row = sample(), row.layers = 1000000;
    skips_with(row, "layers above 10,000");
    row = sample(), row.hidden = 100000000;
    skips_with(row, "hidden above 1,048,576");
    row = sample(), row.micro_sequences = 100000;
    skips_with(row, "micro_batch above 65,536");
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

/* Every file that the tables of words name is there. */
static void test_names_lead_to_files(void **state) {
    (void)state;
    for (guint i = 0; i < names->n_gpus; i++)
        if (names->gpus[i].gpu[0]) {
            OrrGpu *gpu = orr_topology_gpu(names->gpus[i].gpu, NULL, NULL);
            if (!gpu)
                fail_msg("no GPU %s", names->gpus[i].gpu);
            orr_gpu_free(gpu);
        }
    for (guint i = 0; i < names->n_clusters; i++) {
        const OrrClusterName *c = &names->clusters[i];
        g_autoptr(OrrCluster) cluster = orr_topology_cluster(c->cluster, NULL, NULL);
        if (!cluster)
            fail_msg("no cluster %s", c->cluster);
        /* the memory may be another: V100s of 16 GB */
        g_autofree char *begin = g_strndup(c->gpu, 3);
        assert_true(g_str_has_prefix(orr_cluster_spec(cluster)->node->gpu->name, begin));
    }
    for (guint i = 0; i < names->n_frameworks; i++) {
        const char *name = names->frameworks[i].profile;
        OrrFramework *f = orr_workload_framework(name, NULL, 0, NULL, NULL);
        if (!f)
            fail_msg("no profile %s", name);
        orr_framework_free(f);
    }
}

static void test_the_longer_word_wins(void **state) {
    (void)state;
    bool is_nearest, is_default;
    OrrPublishedRun row = sample();
    assert_string_equal(orr_judge_gpu(names, "H100-96GB"), "h100-hbm2e-96");
    assert_null(orr_judge_gpu(names, "GH200 480GB"));
    assert_string_equal(orr_judge_gpu(names, "A10 24GB"), "a10-24");
    row.framework = T("Megatron-LM");
    assert_string_equal(orr_judge_framework(names, &row, "a100-sxm-80", &is_nearest),
                        "megatron-2023");
    assert_string_equal(orr_judge_framework(names, &row, "h100-sxm-80", &is_nearest),
                        "megatron-core-2024");
    assert_true(is_nearest);
    row.source = T("Megatron-LM SC21, table 1");
    assert_string_equal(orr_judge_framework(names, &row, "a100-sxm-80", &is_nearest),
                        "megatron-2021");
    assert_false(is_nearest);
    assert_int_equal(orr_judge_family(names, "Llama3-8B", "", &is_default)->vocab, 128256);
    assert_string_equal(orr_judge_family(names, "unheard-of", "", &is_default)->words, "llama");
    assert_true(is_default);
    assert_int_equal(orr_judge_family(names, "gpt-1.5B", "Megatron-LM", &is_default)->vocab, 50257);
    const char *other = "Megatron-LM + zero bubble";
    assert_int_equal(orr_judge_family(names, "gpt-1.5B", other, &is_default)->vocab, 32000);
}

static int load_names(void **state) {
    (void)state;
    names = orr_published_names_load(NULL);
    return names ? 0 : -1;
}

static int free_names(void **state) {
    (void)state;
    orr_published_names_free(names);
    return 0;
}

/* What a framework did by then, and what a run switched on, is told by source and note. */
static void test_profiles_go_by_source_and_note_too(void **state) {
    (void)state;
    static const struct {
        const char *framework, *source, *note, *profile;
    } cases[] = {
        {"torchtitan (FSDP2)", "torchtitan benchmarks 2024-12", "torch.compile", "torchtitan"},
        {"torchtitan (FSDP2)", "torchtitan benchmarks 2024-12", "compile + float8", "torchtitan"},
        {"torchtitan (FSDP2)", "torchtitan benchmarks 2024-12", "", "torchtitan-eager"},
        {"DeepSpeed ZeRO-3", "Megatron-LM SC21 Table 2", "", "deepspeed-2021"},
        {"DeepSpeed ZeRO-3", "a paper", "", "deepspeed-zero3"},
        {"Megatron-LM", "SimuMax v1.2 B200 measured", "", "megatron-core-plain"},
        {"nanotron", "", "grad_accum=4; AR intra-node check 424.2 GB/s", "nanotron-debug"},
        {"nanotron", "", "grad_accum=4; AR intra-node check 434.99 GB/s", "nanotron-debug"},
        {"nanotron", "", "grad_accum=4; AR intra-node check 435 GB/s", "nanotron"},
        {"nanotron", "", "grad_accum=4; AR intra-node check GB/s", "nanotron"},
        {"nanotron", "", "grad_accum=4; AR intra-node check 44.9 GB/s", "nanotron"},
        {"nanotron", "", "", "nanotron"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        bool is_nearest = true;
        OrrPublishedRun row = sample();
        row.framework = T(cases[i].framework);
        row.source = T(cases[i].source);
        row.note = T(cases[i].note);
        assert_string_equal(orr_judge_framework(names, &row, "b200-sxm", &is_nearest),
                            cases[i].profile);
        assert_false(is_nearest);
    }
}

/* Of trials the table says no more than the model, the layout and what fix they came after. */
static void test_trials_with_pipelines_or_late_ran_in_debug_mode(void **state) {
    (void)state;
    static const struct {
        uint32_t pp;
        const char *after, *profile;
    } cases[] = {{1, "False", "nanotron"},
                 {1, "True", "nanotron-debug"},
                 {2, "False", "nanotron-debug"},
                 {1, "", "nanotron"}};
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        OrrPublishedRun row = sample();
        row.is_trial = true;
        row.framework = T("");
        row.model = T("llama-like 1.34B (nanotron)");
        row.pp = cases[i].pp;
        row.after_pp_fix = T(cases[i].after);
        OrrJudgeCase c = {.names = names};
        assert_null(orr_judge_begin(&row, false, &c));
        assert_string_equal(c.profile, cases[i].profile);
        orr_judge_case_clear(&c);
    }
}

static void test_per_op_is_a_recompute_of_its_own(void **state) {
    (void)state;
    static const struct {
        const char *text;
        OrrRecompute policy;
    } cases[] = {{"selective (per-op)", ORR_RECOMPUTE_PER_OP},
                 {"selective (attention core)", ORR_RECOMPUTE_SELECTIVE},
                 {"full", ORR_RECOMPUTE_FULL},
                 {"none", ORR_RECOMPUTE_NONE}};
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        OrrPublishedRun row = sample();
        OrrJudgeCase c = {.names = names};
        row.recompute = T(cases[i].text);
        assert_null(orr_judge_begin(&row, false, &c));
        assert_null(orr_judge_complete(&row, &profile, 8, &c));
        assert_int_equal(c.job->recompute.policy, cases[i].policy);
        orr_judge_case_clear(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_the_row_says_is_what_the_job_has),
        cmocka_unit_test(test_what_is_open_takes_a_rule_and_says_so),
        cmocka_unit_test(test_rows_that_cannot_be_expressed_give_their_reason),
        cmocka_unit_test(test_measured_time_comes_from_tokens_or_flops_where_it_must),
        cmocka_unit_test(test_names_lead_to_files),
        cmocka_unit_test(test_the_longer_word_wins),
        cmocka_unit_test(test_profiles_go_by_source_and_note_too),
        cmocka_unit_test(test_trials_with_pipelines_or_late_ran_in_debug_mode),
        cmocka_unit_test(test_per_op_is_a_recompute_of_its_own),
    };
    return cmocka_run_group_tests(tests, load_names, free_names);
}
