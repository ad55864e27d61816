/* What layers store and what parameters cost. Oracles: activation formulas of arXiv 2205.05198 and
 * its published table, ZeRO's table (S27), measured unfused attention (S29), conservation. */
#include "tests/emit_probe.h"
#include "tests/near.h"

#define GIB (1024.0 * 1024.0 * 1024.0)

/* sbh of the sample's micro-batch. */
static double sbh(const Sample *s) {
    return (double)s->batch.sequence_tokens * s->batch.micro_sequences * s->model.hidden;
}

static void test_layer_stores_what_the_paper_says(void **state) {
    (void)state;
    for (uint32_t t = 1; t <= 8; t *= 2) {
        Sample s;
        sample_init(&s, sample_gpt_22b(), t, false);
        double core = 5.0 * 64 * 2048 / 6144;
        assert_near((double)orr_emit_layer_stored_bytes(&s.emit, false),
                    sbh(&s) * (10 + 24.0 / t + core / t), 1e-12);
        assert_near((double)orr_emit_layer_stored_bytes(&s.emit, true), sbh(&s) * 2, 1e-12);
        s.recompute.policy = ORR_RECOMPUTE_SELECTIVE;
        assert_near((double)orr_emit_layer_stored_bytes(&s.emit, false), sbh(&s) * (10 + 24.0 / t),
                    1e-12);
        s.layout.sequence_parallel = true;
        assert_near((double)orr_emit_layer_stored_bytes(&s.emit, false), sbh(&s) * 34.0 / t, 1e-12);
        s.recompute.policy = ORR_RECOMPUTE_NONE;
        assert_near((double)orr_emit_layer_stored_bytes(&s.emit, false),
                    sbh(&s) * (34.0 + core) / t, 1e-12);
    }
}

/* Layers' worth of activations on the first stage: L (1 + (p-1)/(p m)) interleaved. */
static double stage_gib(Sample *s, double layers) {
    return (double)orr_emit_layer_stored_bytes(&s->emit, false) * layers / GIB;
}

static void test_first_stages_of_the_paper(void **state) { /* B_memory: BM1, BM4, BM6 */
    (void)state;
    Sample s;
    sample_init(&s, sample_gpt_22b(), 8, false);
    s.batch.micro_sequences = 4;
    assert_near(stage_gib(&s, 48), 59.25, 1e-9);
    s.layout.sequence_parallel = true;
    s.recompute.policy = ORR_RECOMPUTE_SELECTIVE;
    assert_near(stage_gib(&s, 48), 9.5625, 1e-9);
    sample_init(&s, sample_gpt(96, 12288, 96, 51200, 2048), 8, false);
    s.batch.micro_sequences = 1;
    assert_near(stage_gib(&s, 96 * (1 + 7.0 / (8 * 3))), 66.84375, 1e-9);
}

/* Shares of the TP baseline: BM3, BM5, BM12, BM13, BM15 (read off a figure: within 1.5 %). */
static void test_shares_of_the_paper(void **state) {
    (void)state;
    const struct {
        uint32_t hidden, heads, micro;
        bool is_sp;
        OrrRecompute policy;
        double percent;
    } rows[] = {
        {6144, 64, 4, false, ORR_RECOMPUTE_SELECTIVE, 49.42},
        {6144, 64, 4, false, ORR_RECOMPUTE_FULL, 7.64},
        {20480, 128, 1, true, ORR_RECOMPUTE_NONE, 58.31},
        {20480, 128, 1, false, ORR_RECOMPUTE_SELECTIVE, 62.04},
        {20480, 128, 1, false, ORR_RECOMPUTE_FULL, 9.42},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        Sample s;
        sample_init(&s, sample_gpt(8, rows[i].hidden, rows[i].heads, 51200, 2048), 8, false);
        s.batch.micro_sequences = rows[i].micro;
        double baseline = (double)orr_emit_layer_stored_bytes(&s.emit, false);
        s.layout.sequence_parallel = rows[i].is_sp;
        s.recompute.policy = rows[i].policy;
        double stored =
            (double)orr_emit_layer_stored_bytes(&s.emit, rows[i].policy == ORR_RECOMPUTE_FULL);
        assert_near(100 * stored / baseline, rows[i].percent, 0.015);
    }
}

/* Megatron-LM issue 965: 2048, 1024, 1536 MiB at scores, softmax, dropout; none when fused. */
static void test_unfused_attention_allocates_what_was_measured(void **state) { /* S29 */
    (void)state;
    Sample s;
    sample_init(&s, sample_gpt(1, 3072, 32, 32064, 4096), 1, false);
    s.batch = (OrrBatch){1, 1, 4096};
    int64_t fused_softmax = orr_emit_layer_stored_bytes(&s.emit, false);
    s.framework.fused_softmax = false;
    int64_t eager = orr_emit_layer_stored_bytes(&s.emit, false);
    assert_int_equal(eager - fused_softmax, 2048LL << 20);
    s.framework.attention_dropout = 0.0;
    int64_t no_dropout = orr_emit_layer_stored_bytes(&s.emit, false);
    assert_int_equal(eager - no_dropout, 1536LL << 20);
    s.framework.attention = ORR_ATTENTION_FLASH;
    int64_t lse = 4LL * 32 * 4096;
    assert_int_equal(no_dropout - (orr_emit_layer_stored_bytes(&s.emit, false) - lse),
                     3072LL << 20);
}

/* Llama 3 8B, fused attention and norms, no dropout, e = 2 bytes: norms' inputs and outputs 8 h;
 * q, k, v 2 (h + 2 h k/a); context 2 h; gate and up 4 f, their product 2 f; log-sum-exp 4 a. */
static void test_llama_layer_stores_its_own_table(void **state) {
    (void)state;
    Sample s;
    sample_init(&s, sample_llama_8b(), 1, false);
    s.framework.attention = ORR_ATTENTION_FLASH;
    s.framework.dropout = s.framework.attention_dropout = 0.0;
    int64_t token = 8 * 4096 + 2 * (4096 + 2 * 1024) + 2 * 4096 + 6 * 14336 + 4 * 32;
    assert_int_equal(orr_emit_layer_stored_bytes(&s.emit, false), 2 * 2048 * token);
    s.framework.store_norm_output = s.framework.store_activation_output = false;
    assert_int_equal(orr_emit_layer_stored_bytes(&s.emit, false),
                     2 * 2048 * (token - 4 * 4096 - 2 * 14336));
}

static void zero_sample(Sample *s, uint32_t stage, uint32_t dp) {
    sample_init(s, sample_llama_8b(), 1, false);
    s->layout.dp = dp;
    s->layout.zero_stage = stage;
    s->framework.shard_gradient_buffer = true;
    s->framework.grads_as_parameters = true;
}

static double state_gb(const Sample *s, uint64_t n) {
    int64_t by_kind[ORR_N_MEM_KINDS], sum = 0;
    orr_state_bytes(&s->emit, n, by_kind);
    for (int k = 0; k < ORR_N_MEM_KINDS; k++)
        sum += by_kind[k];
    return (double)sum / 1e9;
}

static void test_zero_stages_cost_what_the_paper_says(void **state) { /* S27 */
    (void)state;
    const double gb[2][4] = {{112, 38.5, 26.25, 14.0}, {112, 29.3, 15.5, 1.75}};
    const uint32_t dp[2] = {8, 64};
    for (int row = 0; row < 2; row++)
        for (uint32_t stage = 0; stage < 4; stage++) {
            Sample s;
            zero_sample(&s, stage, dp[row]);
            assert_near(state_gb(&s, 7000000000), gb[row][stage], 2.5e-3);
        }
}

/* Megatron-LM's distributed optimizer with FP32 gradients: 18 bytes become 6 + 12/d. */
static void test_distributed_optimizer_costs_6_and_12_over_d(void **state) {
    (void)state;
    Sample s;
    zero_sample(&s, 0, 8);
    s.framework.grads_as_parameters = false;
    assert_near(state_gb(&s, 1000000000), 18.0, 1e-12);
    s.layout.zero_stage = 1;
    assert_near(state_gb(&s, 1000000000), 6 + 12.0 / 8, 1e-12);
    s.layout.hsdp_shard = 4;
    assert_near(state_gb(&s, 1000000000), 6 + 12.0 / 4, 1e-12);
}

static void check_balance(const Sample *s) {
    for (int part = 0; part < N_PARTS; part++)
        for (int run = RUN_F_B; run <= RUN_F_I_W; run++) {
            if (part == PART_LAYER_AGAIN && s->recompute.policy != ORR_RECOMPUTE_FULL)
                continue;
            Sums sums = emit_sums(s, (Part)part, (Run)run);
            if (sums.end_bytes != 0)
                fail_msg("part %d run %d ends with %lld bytes", part, run,
                         (long long)sums.end_bytes);
            assert_true(sums.low_bytes >= 0);
        }
    for (int again = 0; again < 2; again++) {
        if (again && s->recompute.policy != ORR_RECOMPUTE_FULL)
            continue;
        Sums f = emit_sums(s, again ? PART_LAYER_AGAIN : PART_LAYER, RUN_F);
        assert_int_equal(f.end_bytes, orr_emit_layer_stored_bytes(&s->emit, again));
    }
}

/* Every switch that changes what is stored, in every combination. */
static void test_forward_and_backward_balance(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits < 1u << 15; bits++) {
        Sample s;
        bool is_llama = bits & 1;
        sample_init(&s, is_llama ? sample_llama_8b() : sample_gpt_22b(), bits & 2 ? 4 : 1, false);
        s.layout.sequence_parallel = s.layout.tp > 1 && bits & 4;
        s.framework.attention = bits & 8 ? ORR_ATTENTION_FLASH : ORR_ATTENTION_UNFUSED;
        s.recompute.policy = bits & 16      ? ORR_RECOMPUTE_FULL
                             : bits & 32    ? ORR_RECOMPUTE_SELECTIVE
                             : bits & 16384 ? ORR_RECOMPUTE_PER_OP
                                            : ORR_RECOMPUTE_NONE;
        s.framework.dropout = s.framework.attention_dropout = bits & 64 ? 0.1 : 0.0;
        s.framework.store_norm_output = bits & 128;
        s.framework.store_activation_output = bits & 256;
        s.framework.fused_norm = s.framework.fused_softmax = s.framework.fused_bias_gelu =
            s.framework.fused_qkv = s.framework.tp_async_wgrad = bits & 512;
        s.model.is_parallel = bits & 1024;
        s.model.shares_norm = s.model.has_qk_norm = s.model.has_embedding_norm = bits & 2048;
        s.model.has_post_norms = is_llama && bits & 2048;
        s.framework.compiled = bits & 4096;
        s.framework.recompute_early_stop = bits & 8192;
        s.framework.tp_own_shard_first = s.framework.head_copies = bits & 8192;
        s.framework.fused_cross_entropy = bits & 512;
        s.framework.gather_buffers = bits & 16384;
        s.framework.loss_in_place = bits & 128;
        s.framework.records_streams = bits & 4096;
        s.framework.sharded_loss = bits & 1024;
        s.framework.fp32_logits = s.framework.fp32_norms = s.framework.norms_again = bits & 2048;
        s.framework.metrics = (OrrMetrics)(bits % 3);
        check_balance(&s);
    }
}

/* Full recompute peaks at one layer's activations while it runs backward. */
static void test_recompute_peaks_at_one_layer(void **state) {
    (void)state;
    Sample s;
    sample_init(&s, sample_gpt_22b(), 8, true);
    s.recompute.policy = ORR_RECOMPUTE_FULL;
    Sums sums = emit_sums(&s, PART_LAYER_AGAIN, RUN_F_B);
    s.recompute.policy = ORR_RECOMPUTE_NONE;
    int64_t stored = orr_emit_layer_stored_bytes(&s.emit, false);
    assert_true(sums.peak_bytes >= stored);
    assert_true(sums.peak_bytes <= 2 * stored);
}

static void test_boundary_bytes(void **state) {
    (void)state;
    Sample s;
    sample_init(&s, sample_gpt_22b(), 8, false);
    int64_t whole = 2 * 2048 * 6144 * 2;
    assert_int_equal(orr_emit_boundary_bytes(&s.emit), whole);
    s.framework.scatter_gather = true;
    assert_int_equal(orr_emit_boundary_bytes(&s.emit), whole / 8);
    s.layout.sequence_parallel = true;
    assert_int_equal(orr_emit_boundary_bytes(&s.emit), whole / 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layer_stores_what_the_paper_says),
        cmocka_unit_test(test_first_stages_of_the_paper),
        cmocka_unit_test(test_shares_of_the_paper),
        cmocka_unit_test(test_unfused_attention_allocates_what_was_measured),
        cmocka_unit_test(test_llama_layer_stores_its_own_table),
        cmocka_unit_test(test_zero_stages_cost_what_the_paper_says),
        cmocka_unit_test(test_distributed_optimizer_costs_6_and_12_over_d),
        cmocka_unit_test(test_forward_and_backward_balance),
        cmocka_unit_test(test_recompute_peaks_at_one_layer),
        cmocka_unit_test(test_boundary_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
