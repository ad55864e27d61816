/* Parameters and FLOPs to the unit. Oracles: counts of the model cards, published/README.md ("how
 * each source counts"), scenarios S01, S07, S09, S12. */
#include "tests/model_samples.h"
#include "tests/near.h"

#include "sim/model/params.h"

#include <string.h>

static uint64_t total_of(const OrrModel *m) {
    OrrParams p;
    orr_params_count(m, &p);
    return p.total;
}

static void test_llama_counts_are_exact(void **state) {
    (void)state;
    const struct {
        uint32_t layers, hidden, heads, kv, ffn, vocab;
        uint64_t total;
    } rows[] = {
        {32, 4096, 32, 32, 11008, 32000, 6738415616},      /* Llama 2 7B */
        {40, 5120, 40, 40, 13824, 32000, 13015864320},     /* 13B */
        {80, 8192, 64, 8, 28672, 32000, 68976648192},      /* 70B */
        {32, 4096, 32, 8, 14336, 128256, 8030261248},      /* Llama 3 8B */
        {80, 8192, 64, 8, 28672, 128256, 70553706496},     /* 3.1 70B */
        {126, 16384, 128, 8, 53248, 128256, 405853388800}, /* 3.1 405B */
        {32, 4096, 32, 8, 14336, 32768, 7248023552},       /* Mistral 7B v0.3 */
    };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        OrrModel m = sample_llama(rows[i].layers, rows[i].hidden, rows[i].heads, rows[i].kv,
                                  rows[i].ffn, rows[i].vocab);
        assert_int_equal(total_of(&m), rows[i].total);
    }
}

static void test_qwen_counts_are_exact(void **state) {
    (void)state;
    const struct {
        uint32_t layers, hidden, heads, kv, head_dim, ffn, vocab;
        bool is_tied, is_qwen3;
        uint64_t total;
    } rows[] = {
        {24, 896, 14, 2, 64, 4864, 151936, true, false, 494032768},
        {28, 1536, 12, 2, 128, 8960, 151936, true, false, 1543714304},
        {36, 2048, 16, 2, 128, 11008, 151936, true, false, 3085938688},
        {28, 3584, 28, 4, 128, 18944, 152064, false, false, 7615616512},
        {48, 5120, 40, 8, 128, 13824, 152064, false, false, 14770033664},
        {64, 5120, 40, 8, 128, 27648, 152064, false, false, 32763876352},
        {80, 8192, 64, 8, 128, 29568, 152064, false, false, 72706203648},
        {28, 1024, 16, 8, 128, 3072, 151936, true, true, 596049920},
        {28, 2048, 16, 8, 128, 6144, 151936, true, true, 1720574976},
        {36, 2560, 32, 8, 128, 9728, 151936, true, true, 4022468096},
        {36, 4096, 32, 8, 128, 12288, 151936, false, true, 8190735360},
        {40, 5120, 40, 8, 128, 17408, 151936, false, true, 14768307200},
        {64, 5120, 64, 8, 128, 25600, 151936, false, true, 32762123264},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        OrrModel m = sample_llama(rows[i].layers, rows[i].hidden, rows[i].heads, rows[i].kv,
                                  rows[i].ffn, rows[i].vocab);
        m.head_dim = rows[i].head_dim;
        m.is_tied = rows[i].is_tied;
        m.qkv_bias = !rows[i].is_qwen3;
        m.has_qk_norm = rows[i].is_qwen3;
        assert_int_equal(total_of(&m), rows[i].total);
    }
}

static OrrModel bloom(void) {
    OrrModel m = sample_gpt(70, 14336, 112, 250880, 0);
    m.position = ORR_POS_ALIBI;
    m.has_embedding_norm = true;
    return m;
}

static void test_gpt_like_counts_are_exact(void **state) {
    (void)state;
    OrrModel gpt2 = sample_gpt(12, 768, 12, 50257, 1024);
    assert_int_equal(total_of(&gpt2), 124439808);
    OrrModel b = bloom();
    assert_int_equal(total_of(&b), 176247271424);
    OrrModel neox = sample_gpt(44, 6144, 64, 50432, 0);
    neox.position = ORR_POS_ROPE;
    neox.is_tied = false;
    neox.is_parallel = true; /* two norms all the same */
    assert_int_equal(total_of(&neox), 20554567680);
    OrrModel mpt = sample_gpt(32, 4096, 32, 50432, 0);
    mpt.position = ORR_POS_ALIBI;
    mpt.qkv_bias = mpt.out_bias = mpt.mlp_bias = mpt.norm_bias = false;
    assert_int_equal(total_of(&mpt), 6649286656);
    OrrModel falcon = sample_gpt(60, 8192, 128, 65024, 0);
    falcon.position = ORR_POS_ROPE;
    falcon.kv_heads = 8;
    falcon.is_parallel = true;
    falcon.qkv_bias = falcon.out_bias = falcon.mlp_bias = false;
    assert_int_equal(total_of(&falcon), 41303293952);
    OrrModel gemma = sample_llama(26, 2304, 8, 4, 9216, 256000);
    gemma.head_dim = 256;
    gemma.is_tied = gemma.has_post_norms = true;
    assert_int_equal(total_of(&gemma), 2614341888);
}

/* SC21 equation 2: P = 12 L h^2 (1 + 13/(12 h) + (V + s)/(12 L h)); final norm apart. */
static void test_sc21_family_equals_its_equation(void **state) {
    (void)state;
    const uint32_t rows[][3] = {{24, 2304, 24},   {36, 4096, 32},  {48, 8192, 64},
                                {80, 12288, 96},  {96, 12288, 96}, {105, 20480, 128},
                                {128, 25600, 160}};
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        uint64_t layers = rows[i][0], h = rows[i][1];
        OrrModel m = sample_gpt(rows[i][0], rows[i][1], rows[i][2], 51200, 2048);
        uint64_t equation = 12 * layers * h * h + 13 * layers * h + (51200 + 2048) * h;
        assert_int_equal(total_of(&m), equation + 2 * h);
    }
}

static void test_local_parameters_add_up_over_tp(void **state) {
    (void)state;
    OrrModel m = sample_gpt(96, 12288, 96, 51200, 2048);
    OrrFramework f = sample_megatron();
    OrrParams whole;
    orr_params_count(&m, &whole);
    for (uint32_t t = 1; t <= 8; t *= 2) {
        OrrLayout l = sample_layout(t, 1, 1);
        OrrLocalParams local;
        orr_params_local(&m, &l, &f, &local);
        assert_int_equal((local.layer - local.layer_norms) * t + local.layer_norms, whole.layer);
        assert_int_equal(local.layer_norms,
                         6 * 12288); /* 2 norms with bias, 2 row-parallel biases */
        assert_int_equal(local.layer_tensors, 12);
        assert_int_equal(local.head, 2 * 12288); /* tied, one stage: no copy */
    }
}

/* Megatron-Bridge pull request 5077: 8 layers as [1, 2, 2, 3] on 4 stages. Its sizes follow from
 * its two numbers: hidden 16, vocabulary 32, products without biases, norms with. */
static void test_heaviest_stage_is_not_the_average(void **state) { /* S25 */
    (void)state;
    OrrModel m = sample_gpt(8, 16, 4, 32, 0);
    m.position = ORR_POS_ROPE;
    m.qkv_bias = m.out_bias = m.mlp_bias = m.is_tied = false;
    OrrFramework f = {0};
    OrrLayout l = sample_layout(1, 4, 1);
    uint32_t layers[4] = {1, 2, 2, 3};
    l.stage_layers = layers;
    l.n_stage_layers = 4;
    OrrStagePart parts[4];
    OrrLocalParams local;
    assert_true(orr_layout_split(&m, &l, parts, NULL));
    orr_params_local(&m, &l, &f, &local);
    uint64_t last = parts[3].n_layers * local.layer + local.head;
    assert_int_equal(last, 9952);
    uint64_t norm = 2 * 16; /* averaged with the layers there */
    assert_int_equal((8 * local.layer + norm) / 4 + local.embedding, 6792);
}

/* llm-foundry issue 1706: "a 7B" with d_model 768, 12 layers, 12 heads. */
static void test_claimed_7b_has_124_million_parameters(void **state) { /* S12 */
    (void)state;
    OrrModel m = sample_gpt(12, 768, 12, 50368, 0);
    m.position = ORR_POS_ALIBI;
    m.qkv_bias = m.out_bias = m.mlp_bias = m.norm_bias = false;
    assert_near((double)total_of(&m), 124e6, 0.01);
}

static void test_vocabulary_pads_to_multiple_times_tp(void **state) {
    (void)state;
    OrrModel m = sample_gpt(12, 768, 12, 50257, 1024);
    OrrFramework f = sample_megatron();
    OrrLayout l = sample_layout(8, 1, 1);
    assert_int_equal(orr_params_padded_vocab(&m, &l, &f), 51200);
    l.tp = 1;
    assert_int_equal(orr_params_padded_vocab(&m, &l, &f), 50304);
    f.vocab_multiple = 0;
    assert_int_equal(orr_params_padded_vocab(&m, &l, &f), 50257);
}

static void test_bloom_step_prints_149_tflops(void **state) { /* S01 */
    (void)state;
    OrrModel m = bloom();
    OrrBatch b = {2048, 2, 2048};
    double flops;
    assert_true(orr_flops_model("sc21", &m, &b, &flops, NULL));
    double rate = flops / 105.22 / 384.0;
    assert_near(rate / 1e12, 149.02, 1e-4);
    assert_near(rate / 312e12, 0.478, 2e-3);
    assert_near(rate * orr_flops_model_share("sc21") / 312e12, 0.358, 1e-3);
    double h = 14336, s = 2048, layers = 70;
    double equation =
        96.0 * 2048 * s * layers * h * h * (1 + s / (6 * h) + 250880.0 / (16 * layers * h));
    assert_near(flops, equation, 1e-12);
}

static void test_three_ways_to_count_a_7b(void **state) { /* S07 */
    (void)state;
    OrrModel m = sample_llama(32, 4096, 32, 32, 11008, 32000);
    OrrBatch b = {1, 1, 4096};
    const struct {
        const char *formula;
        double mfu;
    } rows[] = {{"6n", 0.392}, {"palm-causal", 0.423}, {"palm", 0.455}};
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        double flops;
        assert_true(orr_flops_model(rows[i].formula, &m, &b, &flops, NULL));
        assert_near(flops / 4096 * 9600 / 989.5e12, rows[i].mfu, 1.3e-3);
    }
}

static void test_torchtitan_prints_39_73_percent(void **state) { /* S09 */
    (void)state;
    OrrModel m = sample_llama(32, 4096, 32, 8, 14336, 128256);
    OrrBatch b = {1, 1, 8192};
    double flops;
    assert_true(orr_flops_model("torchtitan", &m, &b, &flops, NULL));
    assert_near(flops / 8192, 57.913e9, 5e-5);
    assert_near(flops / 8192 * 6785 / 989e12 * 100, 39.73, 1e-4);
    assert_near(flops / 8192 * 7865 / 989e12 * 100, 46.06, 1e-4);
}

/* 72 B s L h^2 (1 + s/6h + V/12Lh), and what each way of recompute adds (arXiv 2205.05198). */
static void test_model_and_hardware_flops_of_the_recompute_paper(void **state) {
    (void)state;
    OrrModel m = sample_gpt(96, 12288, 96, 51200, 2048);
    OrrBatch b = {64, 1, 2048};
    OrrLayout l = sample_layout(8, 8, 1);
    double h = 12288, s = 2048, layers = 96, vocab = 51200, flops;
    double base = 72.0 * 64 * s * layers * h * h;
    assert_true(orr_flops_model("megatron-full", &m, &b, &flops, NULL));
    assert_near(flops, base * (1 + s / (6 * h) + vocab / (12 * layers * h)), 1e-12);
    OrrRecomputeSpec full = {ORR_RECOMPUTE_FULL, ORR_RECOMPUTE_UNIFORM, 1};
    assert_true(orr_flops_hardware("megatron-full", &m, &l, &b, &full, &flops, NULL));
    assert_near(flops, base * (4.0 / 3 * (1 + s / (6 * h)) + vocab / (12 * layers * h)), 1e-12);
    OrrRecomputeSpec selective = {ORR_RECOMPUTE_SELECTIVE, ORR_RECOMPUTE_UNIFORM, 1};
    assert_true(orr_flops_hardware("megatron-full", &m, &l, &b, &selective, &flops, NULL));
    assert_near(flops, base * (1 + s / (6 * h) * 4 / 3 + vocab / (12 * layers * h)), 1e-12);
    OrrRecomputeSpec per_op = {ORR_RECOMPUTE_PER_OP, ORR_RECOMPUTE_UNIFORM, 1};
    assert_true(orr_flops_hardware("megatron-full", &m, &l, &b, &per_op, &flops, NULL));
    /* k and out of 12 h^2 a layer: 2 / 12 of a forward */
    assert_near(flops, base * (1 + s / (6 * h) + vocab / (12 * layers * h) + 2.0 / 12 / 3), 1e-12);
    OrrRecomputeSpec block = {ORR_RECOMPUTE_FULL, ORR_RECOMPUTE_BLOCK, 3}; /* of 12 a stage */
    assert_true(orr_flops_hardware("megatron-full", &m, &l, &b, &block, &flops, NULL));
    assert_near(flops, base * (13.0 / 12 * (1 + s / (6 * h)) + vocab / (12 * layers * h)), 1e-12);
}

static void test_mpt_counts_8n_with_checkpointing(void **state) {
    (void)state;
    OrrModel m = sample_gpt(32, 4096, 32, 50432, 0);
    m.position = ORR_POS_ALIBI;
    OrrBatch b = {1, 1, 2048};
    OrrLayout l = sample_layout(1, 1, 1);
    OrrRecomputeSpec full = {ORR_RECOMPUTE_FULL, ORR_RECOMPUTE_UNIFORM, 1};
    double model, hardware;
    assert_true(orr_flops_model("mpt", &m, &b, &model, NULL));
    assert_true(orr_flops_hardware("mpt", &m, &l, &b, &full, &hardware, NULL));
    double n = (double)total_of(&m);
    assert_near(model, 2048 * (6 * n + 12.0 * 32 * 4096 * 2048), 1e-12);
    assert_near(hardware, model * 4 / 3, 1e-12);
}

static void test_unknown_formula_is_refused_with_the_known(void **state) {
    (void)state;
    OrrModel m = sample_gpt(12, 768, 12, 50257, 1024);
    OrrBatch b = {1, 1, 1024};
    double flops;
    g_autoptr(GError) error = NULL;
    assert_false(orr_flops_model("7n", &m, &b, &flops, &error));
    assert_int_equal(error->code, ORR_ERROR_INPUT);
    assert_non_null(strstr(error->message, "torchtitan"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_llama_counts_are_exact),
        cmocka_unit_test(test_qwen_counts_are_exact),
        cmocka_unit_test(test_gpt_like_counts_are_exact),
        cmocka_unit_test(test_sc21_family_equals_its_equation),
        cmocka_unit_test(test_local_parameters_add_up_over_tp),
        cmocka_unit_test(test_heaviest_stage_is_not_the_average),
        cmocka_unit_test(test_claimed_7b_has_124_million_parameters),
        cmocka_unit_test(test_vocabulary_pads_to_multiple_times_tp),
        cmocka_unit_test(test_bloom_step_prints_149_tflops),
        cmocka_unit_test(test_three_ways_to_count_a_7b),
        cmocka_unit_test(test_torchtitan_prints_39_73_percent),
        cmocka_unit_test(test_model_and_hardware_flops_of_the_recompute_paper),
        cmocka_unit_test(test_mpt_counts_8n_with_checkpointing),
        cmocka_unit_test(test_unknown_formula_is_refused_with_the_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
