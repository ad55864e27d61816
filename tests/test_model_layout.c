/* Ranks, groups, refusals and splits. Oracles: enumeration by hand (Megatron-LM's order), the
 * refusals that issue and scenarios ask for (S23), Llama 3 section 3.3.2. */
#include "tests/model_samples.h"
#include "tests/near.h"

#include "sim/model/groups.h"

#include <string.h>

static void test_world_has_tp_fastest_then_dp_then_pp(void **state) {
    (void)state;
    OrrLayout l = sample_layout(2, 3, 4);
    assert_int_equal(orr_layout_world(&l), 24);
    OrrCoords c = orr_layout_coords(&l, 1 + 2 * (3 + 4 * 2));
    assert_int_equal(c.tp, 1);
    assert_int_equal(c.dp, 3);
    assert_int_equal(c.pp, 2);
    for (uint32_t r = 0; r < 24; r++)
        assert_int_equal(orr_layout_rank(&l, orr_layout_coords(&l, r)), r);
}

static void test_rank_order_pp_before_dp(void **state) {
    (void)state;
    OrrLayout l = sample_layout(2, 3, 4);
    l.rank_order[3] = ORR_DIM_PP;
    l.rank_order[4] = ORR_DIM_DP;
    OrrCoords c = orr_layout_coords(&l, 2 * 2);
    assert_int_equal(c.pp, 2);
    assert_int_equal(c.dp, 0);
}

/* Every rank is at the position that group_of says, in exactly one group of each kind. */
static void check_kind(const OrrLayout *l, OrrGroup kind) {
    uint32_t n = orr_layout_group_size(l, kind), n_groups = orr_layout_n_groups(l, kind);
    uint32_t world = (uint32_t)orr_layout_world(l), n_seen = 0;
    g_autofree uint32_t *members = g_new(uint32_t, n);
    g_autofree uint8_t *seen = g_malloc0(world);
    for (uint32_t g = 0; g < n_groups; g++) {
        orr_layout_members(l, kind, g, members);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t position;
            assert_true(members[i] < world);
            assert_int_equal(seen[members[i]]++, 0);
            assert_int_equal(orr_layout_group_of(l, kind, members[i], &position), g);
            assert_int_equal(position, i);
            n_seen++;
        }
    }
    for (uint32_t r = 0; r < world; r++) {
        uint32_t position;
        if (!seen[r])
            assert_int_equal(orr_layout_group_of(l, kind, r, &position), ORR_NONE);
    }
    assert_int_equal(n_seen, n * n_groups);
    if (kind != ORR_GROUP_EMBEDDING || l->pp <= 2)
        assert_int_equal(n_seen, world);
}

static void test_groups_partition_the_world(void **state) {
    (void)state;
    OrrLayout l = sample_layout(2, 3, 4);
    l.cp = 2;
    l.ep = 4;
    l.hsdp_shard = 2;
    for (int order = 0; order < 2; order++) {
        for (int kind = 0; kind < ORR_N_GROUPS; kind++)
            check_kind(&l, (OrrGroup)kind);
        l.rank_order[0] = ORR_DIM_DP;
        l.rank_order[3] = ORR_DIM_TP;
    }
}

static void test_embedding_group_is_first_and_last_stage(void **state) {
    (void)state;
    OrrLayout l = sample_layout(2, 4, 2);
    uint32_t members[2];
    orr_layout_members(&l, ORR_GROUP_EMBEDDING, 1, members);
    assert_int_equal(members[0], 1);
    assert_int_equal(members[1], 1 + 3 * 4);
    l.pp = 1;
    assert_int_equal(orr_layout_group_size(&l, ORR_GROUP_EMBEDDING), 1);
}

static void test_groups_of_pipeline_order_stages(void **state) {
    (void)state;
    OrrLayout l = sample_layout(2, 3, 2);
    uint32_t members[3];
    orr_layout_members(&l, ORR_GROUP_PP, 3, members);
    const uint32_t expected[3] = {3, 7, 11};
    assert_memory_equal(members, expected, sizeof expected);
    assert_int_equal(orr_layout_group_size(&l, ORR_GROUP_MODEL), 6);
    assert_int_equal(orr_layout_group_size(&l, ORR_GROUP_WORLD), 12);
}

static void expect_refusal(const OrrModel *m, const OrrLayout *l, const OrrBatch *b,
                           uint32_t n_gpus, const char *text) {
    OrrFramework f = sample_megatron();
    g_autoptr(GError) error = NULL;
    assert_false(orr_layout_check(m, l, b, &f, n_gpus, &error));
    assert_int_equal(error->code, ORR_ERROR_INPUT);
    if (!strstr(error->message, text))
        fail_msg("\"%s\" does not say \"%s\"", error->message, text);
}

static void test_check_says_every_reason_world_first(void **state) {
    (void)state;
    OrrModel m = sample_llama(28, 3584, 28, 4, 18944, 152064);
    OrrLayout l = sample_layout(8, 8, 128);
    OrrBatch b = {2000, 3, 4096};
    OrrFramework f = sample_megatron();
    g_autoptr(GError) error = NULL;
    assert_false(orr_layout_check(&m, &l, &b, &f, 16384, &error));
    g_auto(GStrv) lines = g_strsplit(error->message, "\n", -1);
    assert_int_equal(g_strv_length(lines), 4);
    assert_non_null(strstr(lines[0], "TP 8 x PP 8 x DP 128 is 8,192 ranks and not 16,384"));
    assert_non_null(strstr(lines[1], "28 heads do not divide by TP 8"));
    assert_non_null(strstr(lines[2], "GBS 2000 does not divide by MBS 3 x DP 128 = 384"));
    assert_non_null(strstr(lines[3], "28 layers do not divide over 8 x 1 stages"));
}

static void test_check_refuses_each_by_name(void **state) {
    (void)state;
    OrrModel m = sample_llama(32, 4096, 32, 8, 14336, 128256);
    OrrBatch b = {64, 1, 8192};
    OrrLayout l = sample_layout(4, 2, 2);
    l.cp = 2;
    expect_refusal(&m, &l, &b, 0, "context parallelism is not modelled yet");
    l = sample_layout(4, 2, 2);
    l.ep = 2;
    expect_refusal(&m, &l, &b, 0, "expert parallelism is not modelled yet");
    l = sample_layout(1, 2, 2);
    l.sequence_parallel = true;
    expect_refusal(&m, &l, &b, 0, "sequence_parallel: yes needs tp above 1");
    l = sample_layout(1, 1, 2);
    l.vpp = 2;
    expect_refusal(&m, &l, &b, 0, "need pp above 1");
    l = sample_layout(1, 1, 2);
    l.rank_order[0] = ORR_DIM_PP;
    expect_refusal(&m, &l, &b, 0, "rank_order");
    l = sample_layout(1, 0, 2);
    expect_refusal(&m, &l, &b, 0, "[layout] pp: 0; 1 or more would do");
    l = sample_layout(1, 1, 2);
    l.zero_stage = 4;
    expect_refusal(&m, &l, &b, 0, "zero_stage: 4");
    l = sample_layout(4, 1, 2);
    m.kv_heads = 6;
    expect_refusal(&m, &l, &b, 0, "6 key-value heads and TP 4: neither divides the other");
}

static void test_check_allows_replicated_key_value_heads(void **state) {
    (void)state;
    OrrModel m = sample_llama(32, 4096, 32, 4, 14336, 128256);
    OrrLayout l = sample_layout(8, 2, 2);
    OrrBatch b = {64, 1, 8192};
    OrrFramework f = sample_megatron();
    assert_true(orr_layout_check(&m, &l, &b, &f, 32, NULL));
    assert_int_equal(orr_layout_micro_batches(&l, &b), 32);
}

static void test_split_never_drops_a_layer(void **state) {
    (void)state;
    OrrModel m = sample_llama(30, 4096, 32, 8, 14336, 128256);
    OrrLayout l = sample_layout(1, 4, 1);
    OrrStagePart parts[4];
    g_autoptr(GError) error = NULL;
    assert_false(orr_layout_split(&m, &l, parts, &error));
    assert_non_null(strstr(error->message, "30 layers do not divide"));
    assert_non_null(strstr(error->message, "stage_layers = 8,8,7,7"));
    assert_non_null(strstr(error->message, "ends = one_layer_less"));
    uint32_t explicit_layers[4] = {8, 8, 7, 7};
    l.stage_layers = explicit_layers;
    l.n_stage_layers = 4;
    assert_true(orr_layout_split(&m, &l, parts, NULL));
    assert_int_equal(parts[3].first_layer, 23);
    assert_int_equal(parts[3].n_layers, 7);
    assert_true(parts[0].has_embedding && parts[3].has_head && !parts[1].has_head);
    explicit_layers[3] = 5;
    g_clear_error(&error);
    assert_false(orr_layout_split(&m, &l, parts, &error));
    assert_non_null(strstr(error->message, "they add up to 28 and the model has 30 layers"));
}

static void test_split_gives_405b_its_own_chunks(void **state) {
    (void)state;
    OrrModel m = sample_llama(126, 16384, 128, 8, 53248, 128256);
    OrrLayout l = sample_layout(8, 16, 128);
    OrrStagePart parts[128];
    l.vpp = 8;
    l.ends = ORR_ENDS_OWN_CHUNK;
    assert_true(orr_layout_split(&m, &l, parts, NULL));
    assert_int_equal(parts[0].n_layers, 0);
    assert_true(parts[0].has_embedding);
    assert_int_equal(parts[1].first_layer, 0);
    assert_int_equal(parts[126].first_layer, 125);
    assert_int_equal(parts[127].n_layers, 0);
    assert_true(parts[127].has_head);
}

static void test_split_one_layer_less_on_the_ends(void **state) {
    (void)state;
    OrrModel m = sample_llama(126, 16384, 128, 8, 53248, 128256);
    OrrLayout l = sample_layout(8, 16, 128);
    OrrStagePart parts[16];
    l.ends = ORR_ENDS_ONE_LAYER_LESS;
    assert_true(orr_layout_split(&m, &l, parts, NULL));
    assert_int_equal(parts[0].n_layers, 7);
    assert_int_equal(parts[1].n_layers, 8);
    assert_int_equal(parts[15].n_layers, 7);
    assert_int_equal(parts[15].first_layer, 119);
}

static void test_split_as_layers_counts_the_ends(void **state) {
    (void)state;
    OrrModel m = sample_llama(70, 14336, 112, 112, 57344, 250880); /* BLOOM: 5 + 10 x 6 + 5 */
    OrrLayout l = sample_layout(4, 12, 8);
    OrrStagePart parts[12];
    l.ends = ORR_ENDS_AS_LAYERS;
    assert_true(orr_layout_split(&m, &l, parts, NULL));
    assert_int_equal(parts[0].n_layers, 5);
    assert_int_equal(parts[1].n_layers, 6);
    assert_int_equal(parts[11].n_layers, 5);
    m.layers = 72; /* 74 blocks on 12 stages: two of seven, ten of six */
    assert_true(orr_layout_split(&m, &l, parts, NULL));
    assert_int_equal(parts[0].n_layers, 6);
    assert_int_equal(parts[1].n_layers, 7);
    assert_int_equal(parts[2].n_layers, 6);
    assert_int_equal(parts[11].n_layers, 5);
}

/* Llama 3 8B over 8 stages: the printed example of nanotron's documentation. */
static void test_split_by_cost_gives_the_head_its_share(void **state) {
    (void)state;
    OrrModel m = sample_llama(32, 4096, 32, 8, 14336, 128256);
    OrrLayout l = sample_layout(1, 8, 1);
    OrrStagePart parts[8];
    const uint32_t want[8] = {5, 4, 4, 5, 4, 4, 4, 2};
    l.ends = ORR_ENDS_BY_COST;
    assert_true(orr_layout_split(&m, &l, parts, NULL));
    for (int v = 0; v < 8; v++)
        assert_int_equal(parts[v].n_layers, want[v]);
    assert_true(parts[7].has_head);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_world_has_tp_fastest_then_dp_then_pp),
        cmocka_unit_test(test_rank_order_pp_before_dp),
        cmocka_unit_test(test_groups_partition_the_world),
        cmocka_unit_test(test_embedding_group_is_first_and_last_stage),
        cmocka_unit_test(test_groups_of_pipeline_order_stages),
        cmocka_unit_test(test_check_says_every_reason_world_first),
        cmocka_unit_test(test_check_refuses_each_by_name),
        cmocka_unit_test(test_check_allows_replicated_key_value_heads),
        cmocka_unit_test(test_split_never_drops_a_layer),
        cmocka_unit_test(test_split_gives_405b_its_own_chunks),
        cmocka_unit_test(test_split_one_layer_less_on_the_ends),
        cmocka_unit_test(test_split_as_layers_counts_the_ends),
        cmocka_unit_test(test_split_by_cost_gives_the_head_its_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
