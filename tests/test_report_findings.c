/* Findings: each rule speaks when its condition holds and is silent otherwise. */
#include "sim/report/findings.h"
#include "tests/record_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static const OrrRecordFinding *find(const OrrRecord *r, const char *code) {
    for (uint32_t i = 0; i < r->n_findings; i++)
        if (strcmp(r->findings[i].code, code) == 0)
            return &r->findings[i];
    return NULL;
}

static const OrrRecordFinding *apply(OrrRecord *r, const char *code) {
    static const OrrFindingContext nothing;
    orr_findings_add(r, &nothing);
    return find(r, code);
}

static void give(OrrRecord *r, uint32_t owner, double frac) {
    int64_t ns = (int64_t)(frac * (double)r->step_time_ns);
    r->time_account_ns[owner] += ns;
    r->time_account_ns[ORR_K_GEMM] -= ns;
}

/* A link is known by its name; a spare machine is no advice. Jitter is not to be mended. */
static void test_slow_links_are_to_be_mended_by_name(void **state) {
    (void)state;
    g_autoptr(OrrRecord) r = fixture_record();
    r->sound_step_time_ns = r->step_time_ns / 10 * 9;
    orr_record_add_perturb(r, "jitter", "0.02");
    assert_null(apply(r, "straggler"));
    orr_record_add_perturb(r, "nic:3:1:bandwidth", "0.25");
    const OrrRecordFinding *f = apply(r, "straggler");
    assert_non_null(f);
    assert_non_null(strstr(f->advice, "Mend nic:3:1:bandwidth:"));
    assert_null(strstr(f->advice, "jitter"));
    assert_null(strstr(f->evidence, "rank"));
}

/* What several parts cost is not what a spare for one of them gives back. */
static void test_one_slow_gpu_is_told_from_several(void **state) {
    (void)state;
    static const struct {
        const char *what[2];
        bool is_one;
    } cases[] = {
        {{"gpu:17:speed", NULL}, true},           {{"gpu:17:speed", "jitter"}, true},
        {{"gpu:0-7:speed", NULL}, false},         {{"gpu:*:speed", NULL}, false},
        {{"gpu:17:speed", "gpu:3:speed"}, false}, {{"gpu:17:speed", "nic:0:0:bandwidth"}, false},
    };
    const OrrRecordStraggler slow = {.rank = 17, .waited_for_ns = 1000, .cost_ns = 1000};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(OrrRecord) r = fixture_record();
        r->sound_step_time_ns = r->step_time_ns / 10 * 9;
        orr_record_add_straggler(r, &slow);
        for (int k = 0; k < 2 && cases[i].what[k]; k++)
            orr_record_add_perturb(r, cases[i].what[k], "0.5");
        const OrrRecordFinding *f = apply(r, "straggler");
        assert_non_null(f);
        assert_int_equal(strstr(f->advice, "A spare in its place") != NULL, cases[i].is_one);
    }
}

static void test_quiet_run_has_no_time_finding_but_its_own(void **state) {
    (void)state;
    g_autoptr(OrrRecord) r = fixture_record();
    r->mfu[0].mfu_frac = 0.4;
    r->bubble_of_step_frac = 0.05;
    assert_null(apply(r, "mfu_low"));
    assert_null(find(r, "few_micro_batches"));
    assert_null(find(r, "host_bound"));
    assert_null(find(r, "stage_does_not_fit"));
    assert_null(find(r, "tp_across_nodes"));
    assert_null(find(r, "network_sockets"));
    assert_non_null(find(r, "exposed_communication")); /* 12 % exposed TP */
}

static void test_mfu_below_a_third_names_peak_and_largest_loss(void **state) {
    (void)state;
    g_autoptr(OrrRecord) r = fixture_record();
    const OrrRecordFinding *f = apply(r, "mfu_low");
    assert_non_null(f);
    assert_non_null(strstr(f->evidence, "989.4 TFLOP/s"));
    assert_non_null(strstr(f->evidence, "pipeline bubble"));
}

static void test_few_micro_batches_says_how_many_would_do(void **state) {
    (void)state;
    g_autoptr(OrrRecord) r = fixture_record();
    r->layout.pp = 8, r->layout.micro_batches = 8, r->bubble_of_step_frac = 7.0 / 15;
    const OrrRecordFinding *f = apply(r, "few_micro_batches");
    assert_non_null(f);
    assert_non_null(strstr(f->evidence, "46.7 %"));
    assert_non_null(strstr(f->advice, "M = 133"));
}

static void test_stage_that_does_not_fit_is_named_with_its_largest_part(void **state) {
    (void)state;
    g_autoptr(OrrRecord) r = fixture_record();
    r->capacity_bytes = INT64_C(65000000000);
    r->verdict = ORR_DOES_NOT_FIT;
    for (uint32_t s = 0; s < 4; s++)
        r->stages[s].verdict = orr_verdict(r->stages[s].peak_bytes, r->capacity_bytes);
    const OrrRecordFinding *f = apply(r, "stage_does_not_fit");
    assert_non_null(f);
    assert_non_null(strstr(f->evidence, "1 of 4 stages do not fit"));
    assert_non_null(strstr(f->evidence, "stage 0"));
    assert_non_null(strstr(f->evidence, "activations"));
    assert_non_null(strstr(f->advice, "recompute"));
    assert_null(find(r, "memory_tight"));
}

static void test_tp_across_nodes_and_sockets(void **state) {
    (void)state;
    g_autoptr(OrrRecord) r = fixture_record();
    r->groups[0].nodes = r->groups[0].domains = 2;
    orr_record_set(&r->groups[0].network, "sockets");
    assert_non_null(apply(r, "tp_across_nodes"));
    assert_non_null(find(r, "network_sockets"));
}

static void test_losses_speak_from_five_percent(void **state) {
    (void)state;
    static const struct {
        uint32_t owner;
        const char *code;
    } cases[] = {{ORR_OWN_HOST, "host_bound"},
                 {ORR_OWN_DATA, "input_starved"},
                 {ORR_OWN_INTERFERENCE, "interference"}};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(OrrRecord) below = fixture_record();
        below->time_account_ns[cases[i].owner] = 0;
        give(below, cases[i].owner, 0.04);
        assert_null(apply(below, cases[i].code));
        g_autoptr(OrrRecord) above = fixture_record();
        give(above, cases[i].owner, 0.06);
        assert_non_null(apply(above, cases[i].code));
    }
}

static void test_communication_above_compute(void **state) {
    (void)state;
    g_autoptr(OrrRecord) r = fixture_record();
    assert_null(apply(r, "communication_above_compute"));
    g_autoptr(OrrRecord) slow = fixture_record();
    slow->comms[0].transfer_ns = 900000000;
    assert_non_null(apply(slow, "communication_above_compute"));
}

static void test_heaviest_stage_is_named(void **state) {
    (void)state;
    g_autoptr(OrrRecord) r = fixture_record();
    r->stages[3].busy_ns = 900000000;
    const OrrRecordFinding *f = apply(r, "uneven_stages");
    assert_non_null(f);
    assert_non_null(strstr(f->evidence, "stage 3 (8 layers, head)"));
}

/* S12: claimed 7B, is 124 M: the parameter count and the low intensity are shown. */
static void test_small_model_on_large_gpu_is_called_small(void **state) {
    (void)state;
    g_autoptr(OrrRecord) r = fixture_record();
    r->parameters_total = 124439808;
    r->layout.tp = 1, r->layout.micro_batch = 4;
    OrrGpu gpu = {.name = (char *)"h100-sxm-80", .hbm_bytes_per_s = 3.35e12};
    gpu.peak_flops_per_s[ORR_BF16] = 989.4e12;
    OrrNode node = {.gpu = &gpu, .gpus = 8};
    OrrClusterSpec cluster = {.node = &node};
    OrrJob job = {.precision = {.compute = ORR_BF16}};
    OrrModel model = {.layers = 12,
                      .hidden = 768,
                      .heads = 12,
                      .kv_heads = 12,
                      .head_dim = 64,
                      .ffn = 3072,
                      .vocab = 50368};
    OrrFindingContext c = {.model = &model, .job = &job, .cluster = &cluster};
    orr_findings_add(r, &c);
    const OrrRecordFinding *f = find(r, "small_products");
    assert_non_null(f);
    assert_non_null(strstr(f->evidence, "124,439,808 parameters"));
    assert_non_null(strstr(f->evidence, "vocabulary of 50368"));
    g_autoptr(OrrRecord) large = fixture_record();
    model.hidden = 16384, model.ffn = 53248, model.vocab = 128256, model.layers = 126;
    large->layout.sequence_length = 8192;
    orr_findings_add(large, &c);
    assert_null(find(large, "small_products"));
}

static void test_recompute_cost_counts_what_mfu_does_not(void **state) {
    (void)state;
    g_autoptr(OrrRecord) r = fixture_record();
    orr_record_set(&r->recompute, "full");
    const OrrRecordFinding *f = apply(r, "recompute_cost");
    assert_non_null(f);
    assert_non_null(strstr(f->evidence, "33.3 % more FLOPs"));
}

static void test_every_kind_has_words_and_source(void **state) {
    (void)state;
    uint32_t n = 0;
    for (; orr_finding_kind(n); n++) {
        assert_true(strlen(orr_finding_kind(n)->summary) > 10);
        assert_true(strlen(orr_finding_kind(n)->source) > 5);
    }
    assert_true(n >= 12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow_links_are_to_be_mended_by_name),
        cmocka_unit_test(test_one_slow_gpu_is_told_from_several),
        cmocka_unit_test(test_quiet_run_has_no_time_finding_but_its_own),
        cmocka_unit_test(test_mfu_below_a_third_names_peak_and_largest_loss),
        cmocka_unit_test(test_few_micro_batches_says_how_many_would_do),
        cmocka_unit_test(test_stage_that_does_not_fit_is_named_with_its_largest_part),
        cmocka_unit_test(test_tp_across_nodes_and_sockets),
        cmocka_unit_test(test_losses_speak_from_five_percent),
        cmocka_unit_test(test_communication_above_compute),
        cmocka_unit_test(test_heaviest_stage_is_named),
        cmocka_unit_test(test_small_model_on_large_gpu_is_called_small),
        cmocka_unit_test(test_recompute_cost_counts_what_mfu_does_not),
        cmocka_unit_test(test_every_kind_has_words_and_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
