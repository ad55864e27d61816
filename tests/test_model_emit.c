/* Operations of a layer, embedding and head. Oracles: closed FLOP formulas (two a weight and token
 * forward, twice that backward), volumes of TP collectives (Megatron-LM; arXiv 2205.05198,
 * section 4.2), conservation of memory, and the order in which Megatron-LM overlaps. */
#include "tests/emit_probe.h"
#include "tests/near.h"

#include "sim/model/params.h"

#include <string.h>

static double matrix_flops(const Sums *s, OrrKernelPass pass) {
    return s->flops[ORR_K_GEMM][pass];
}

static double core_flops(const Sums *s, OrrKernelPass pass) {
    return s->flops[ORR_K_ATTENTION][pass] + s->flops[ORR_K_BATCHED_GEMM][pass];
}

/* Forward FLOPs of one layer's products, all ranks. */
static double expected_products(const Sample *s) {
    const OrrModel *m = &s->model;
    double d = m->head_dim, weights = (double)m->hidden * d * (2.0 * m->heads + 2.0 * m->kv_heads);
    weights += (double)m->hidden * m->ffn * (m->is_gated ? 3.0 : 2.0);
    return 2.0 * s->batch.micro_sequences * s->batch.sequence_tokens * weights;
}

static double expected_square(const Sample *s) {
    double seq = s->batch.sequence_tokens;
    return 4.0 * s->batch.micro_sequences * seq * seq * s->model.heads * s->model.head_dim;
}

static void check_layer_flops(Sample *s) {
    double t = s->layout.tp, products = expected_products(s), square = expected_square(s);
    bool is_fused = s->framework.attention == ORR_ATTENTION_FLASH;
    Sums f = emit_sums(s, PART_LAYER, RUN_F), b = emit_sums(s, PART_LAYER, RUN_B);
    assert_near(matrix_flops(&f, ORR_PASS_FORWARD) * t, products, 1e-12);
    assert_near(matrix_flops(&b, ORR_PASS_DGRAD) * t, products, 1e-12);
    assert_near(matrix_flops(&b, ORR_PASS_WGRAD) * t, products, 1e-12);
    assert_near(core_flops(&f, ORR_PASS_FORWARD) * t, is_fused ? square / 2 : square, 1e-12);
    assert_near(core_flops(&b, ORR_PASS_DGRAD) * t, is_fused ? square * 2.5 / 2 : square * 2,
                1e-12);
    Sums i = emit_sums(s, PART_LAYER, RUN_I), w = emit_sums(s, PART_LAYER, RUN_W);
    assert_near(matrix_flops(&i, ORR_PASS_DGRAD) * t, products, 1e-12);
    assert_near(matrix_flops(&w, ORR_PASS_WGRAD) * t, products, 1e-12);
    assert_true(matrix_flops(&i, ORR_PASS_WGRAD) == 0.0);
    assert_true(matrix_flops(&w, ORR_PASS_DGRAD) == 0.0 && core_flops(&w, ORR_PASS_DGRAD) == 0.0);
}

static void test_layer_flops_equal_the_closed_form(void **state) {
    (void)state;
    for (uint32_t tp = 1; tp <= 8; tp *= 2)
        for (int variant = 0; variant < 8; variant++) {
            Sample s;
            sample_init(&s, variant & 1 ? sample_llama_8b() : sample_gpt_22b(), tp,
                        tp > 1 && variant & 2);
            if (variant & 4) {
                s.framework.attention = ORR_ATTENTION_FLASH;
                s.framework.fused_qkv = s.framework.fused_gate_up = false;
                s.framework.tp_own_shard_first = s.framework.head_copies = true;
            }
            check_layer_flops(&s);
        }
}

static void test_full_recompute_runs_the_forward_again(void **state) {
    (void)state;
    Sample s;
    sample_init(&s, sample_gpt_22b(), 8, true);
    s.recompute.policy = ORR_RECOMPUTE_FULL;
    Sums f = emit_sums(&s, PART_LAYER_AGAIN, RUN_F), b = emit_sums(&s, PART_LAYER_AGAIN, RUN_B);
    assert_near(matrix_flops(&b, ORR_PASS_FORWARD), matrix_flops(&f, ORR_PASS_FORWARD), 1e-12);
    assert_near(core_flops(&b, ORR_PASS_FORWARD), core_flops(&f, ORR_PASS_FORWARD), 1e-12);
    assert_int_equal(b.n_colls[ORR_ALL_GATHER], f.n_colls[ORR_ALL_GATHER] + 4);
    assert_int_equal(b.n_colls[ORR_REDUCE_SCATTER], f.n_colls[ORR_REDUCE_SCATTER] + 2);
}

/* PyTorch's non-reentrant checkpoint: all but the down product, unless a dropout mask is needed. */
static void test_recompute_that_stops_early_spares_the_down_product(void **state) {
    (void)state;
    Sample s;
    sample_init(&s, sample_gpt_22b(), 1, false);
    s.recompute.policy = ORR_RECOMPUTE_FULL;
    s.framework.recompute_early_stop = true;
    Sums f = emit_sums(&s, PART_LAYER_AGAIN, RUN_F), b = emit_sums(&s, PART_LAYER_AGAIN, RUN_B);
    double forward = matrix_flops(&f, ORR_PASS_FORWARD);
    assert_near(matrix_flops(&b, ORR_PASS_FORWARD), forward, 1e-12);
    s.framework.dropout = 0.0;
    b = emit_sums(&s, PART_LAYER_AGAIN, RUN_B);
    assert_near(matrix_flops(&b, ORR_PASS_FORWARD), forward * 8 / 12, 1e-12);
}

static void test_selective_recompute_runs_the_core_again(void **state) {
    (void)state;
    Sample s;
    sample_init(&s, sample_gpt_22b(), 8, true);
    s.recompute.policy = ORR_RECOMPUTE_SELECTIVE;
    Sums f = emit_sums(&s, PART_LAYER, RUN_F), b = emit_sums(&s, PART_LAYER, RUN_B);
    assert_near(core_flops(&b, ORR_PASS_FORWARD), core_flops(&f, ORR_PASS_FORWARD), 1e-12);
    assert_true(matrix_flops(&b, ORR_PASS_FORWARD) == 0.0);
}

/* torchtitan's policy: of q, k, v, out, gate, up and down it makes k, out and up again. */
static void test_per_op_recompute_runs_every_second_product_again(void **state) {
    (void)state;
    Sample s;
    sample_init(&s, sample_llama_8b(), 1, false);
    s.framework.attention = ORR_ATTENTION_FLASH;
    s.framework.fused_qkv = s.framework.fused_gate_up = false;
    s.recompute.policy = ORR_RECOMPUTE_PER_OP;
    Sums b = emit_sums(&s, PART_LAYER, RUN_B);
    const OrrModel *m = &s.model;
    double again = (double)m->hidden * (m->kv_heads * m->head_dim + m->hidden + m->ffn);
    double tokens = (double)s.batch.micro_sequences * s.batch.sequence_tokens;
    assert_near(matrix_flops(&b, ORR_PASS_FORWARD), 2.0 * tokens * again, 1e-12);
    assert_true(core_flops(&b, ORR_PASS_FORWARD) == 0.0);
}

static void test_tp_moves_four_all_reduces_a_layer(void **state) {
    (void)state;
    Sample s;
    sample_init(&s, sample_gpt_22b(), 8, false);
    int64_t sbh = (int64_t)2048 * 2 * 6144 * 2;
    Sums f = emit_sums(&s, PART_LAYER, RUN_F), b = emit_sums(&s, PART_LAYER, RUN_B);
    assert_int_equal(f.n_colls[ORR_ALL_REDUCE], 2);
    assert_int_equal(b.n_colls[ORR_ALL_REDUCE], 2);
    assert_int_equal(f.coll_bytes[ORR_ALL_REDUCE] + b.coll_bytes[ORR_ALL_REDUCE], 4 * sbh);
    assert_int_equal(f.n_colls[ORR_ALL_GATHER] + f.n_colls[ORR_REDUCE_SCATTER], 0);
}

/* Forward 2 gathers and 2 reduce-scatters, backward the same mirrored and the input twice again. */
static void test_sp_gathers_the_input_again_for_the_weights(void **state) {
    (void)state;
    Sample s;
    sample_init(&s, sample_llama_8b(), 8, true);
    int64_t sbh = (int64_t)2048 * 2 * 4096 * 2;
    for (int overlap = 0; overlap < 2; overlap++) {
        s.framework.tp_overlap_frac = overlap ? 0.5 : 0.0;
        Sums f = emit_sums(&s, PART_LAYER, RUN_F), b = emit_sums(&s, PART_LAYER, RUN_B);
        assert_int_equal(f.coll_bytes[ORR_ALL_GATHER], 2 * sbh);
        assert_int_equal(f.coll_bytes[ORR_REDUCE_SCATTER], 2 * sbh);
        /* pipelined, a collective is two: beside its product and before it */
        assert_int_equal(b.n_colls[ORR_ALL_GATHER], overlap ? 6 : 4);
        assert_int_equal(b.coll_bytes[ORR_ALL_GATHER], 4 * sbh);
        assert_int_equal(b.coll_bytes[ORR_REDUCE_SCATTER], 2 * sbh);
        Sums i = emit_sums(&s, PART_LAYER, RUN_I), w = emit_sums(&s, PART_LAYER, RUN_W);
        assert_int_equal(i.coll_bytes[ORR_ALL_GATHER], 2 * sbh);
        assert_int_equal(w.coll_bytes[ORR_ALL_GATHER], 2 * sbh);
        assert_int_equal(i.n_colls[ORR_REDUCE_SCATTER], 2);
    }
}

static void test_parallel_block_reduces_once(void **state) {
    (void)state;
    Sample s;
    sample_init(&s, sample_gpt_22b(), 8, false);
    s.model.is_parallel = true;
    for (int shares = 0; shares < 2; shares++) {
        s.model.shares_norm = shares;
        Sums f = emit_sums(&s, PART_LAYER, RUN_F);
        assert_int_equal(f.n_colls[ORR_ALL_REDUCE], 1);
        check_layer_flops(&s);
    }
}

static bool waits_for_coll(const OrrProgram *p, const OrrOp *op) {
    for (uint32_t i = 0; i < op->n_waits; i++)
        if (p->ops[op->wait[i]].kind == ORR_OP_COLL)
            return true;
    return false;
}

/* Without overlap the reduction stands behind the weight gradient; with it, before. */
static void test_input_gradient_is_reduced_beside_the_weight_gradient(void **state) {
    (void)state;
    for (int is_async = 0; is_async < 2; is_async++) {
        Sample s;
        sample_init(&s, sample_gpt_22b(), 8, false);
        s.framework.tp_async_wgrad = is_async;
        g_autoptr(OrrProgram) p = emit_run(&s, PART_LAYER, RUN_B);
        uint32_t reduced = ORR_NONE, weights = ORR_NONE;
        for (uint32_t i = 0; i < p->n_ops; i++) {
            const OrrOp *op = &p->ops[i];
            if (op->kind == ORR_OP_COLL && strcmp(p->colls[op->what].label, "ffn1") == 0)
                reduced = i;
            if (op->kind != ORR_OP_KERNEL)
                continue;
            const OrrKernel *k = &p->kernels[op->what];
            if (k->pass == ORR_PASS_WGRAD && k->kind == ORR_K_GEMM) {
                assert_false(waits_for_coll(p, op));
                if (strcmp(k->label, "ffn1") == 0)
                    weights = i;
            }
            if (strcmp(k->label, "norm2") == 0)
                assert_true(waits_for_coll(p, op));
        }
        assert_int_equal(is_async, reduced < weights);
    }
}

static void test_backward_ends_with_the_first_norm(void **state) {
    (void)state;
    Sample s;
    sample_init(&s, sample_llama_8b(), 4, true);
    g_autoptr(OrrProgram) p = emit_run(&s, PART_LAYER, RUN_B);
    const OrrOp *last = &p->ops[p->n_ops - 1];
    assert_int_equal(last->kind, ORR_OP_KERNEL);
    assert_string_equal(p->kernels[last->what].label, "residual_grad");
}

static void test_head_flops_are_of_the_padded_vocabulary(void **state) {
    (void)state;
    Sample s;
    sample_init(&s, sample_gpt(12, 768, 12, 50257, 2048), 8, false);
    Sums f = emit_sums(&s, PART_HEAD, RUN_F), b = emit_sums(&s, PART_HEAD, RUN_B);
    double forward = 2.0 * 4096 * 768 * 51200;
    assert_near(matrix_flops(&f, ORR_PASS_FORWARD) * 8, forward, 1e-12);
    assert_near(matrix_flops(&b, ORR_PASS_DGRAD) * 8, forward, 1e-12);
    assert_near(matrix_flops(&b, ORR_PASS_WGRAD) * 8, forward, 1e-12);
    /* FP32 a token: maximum, predicted logit, sum; fused, the last two as one */
    assert_int_equal(f.n_colls[ORR_ALL_REDUCE], 3);
    assert_int_equal(f.coll_bytes[ORR_ALL_REDUCE], 3 * 4 * 4096);
    s.framework.fused_cross_entropy = true;
    f = emit_sums(&s, PART_HEAD, RUN_F);
    assert_int_equal(f.n_colls[ORR_ALL_REDUCE], 2);
    assert_int_equal(f.coll_bytes[ORR_ALL_REDUCE], 3 * 4 * 4096);
}

static double streamed_bytes(Sample *s, Part part, Run run, OrrKernelKind kind) {
    g_autoptr(OrrProgram) p = emit_run(s, part, run);
    double bytes = 0.0;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const OrrKernel *k = &p->kernels[p->ops[i].what];
        if (p->ops[i].kind == ORR_OP_KERNEL && k->kind == kind)
            bytes += k->bytes_read + k->bytes_written;
    }
    return bytes;
}

/* Megatron-LM's loss is one chain at any TP; PyTorch's and fused ones move less. */
static void test_a_sharded_loss_is_the_chain_on_one_rank_too(void **state) {
    (void)state;
    Sample s;
    sample_init(&s, sample_gpt_22b(), 1, false);
    double n = (double)s.batch.micro_sequences * s.batch.sequence_tokens *
               (double)orr_params_padded_vocab(&s.model, &s.layout, &s.framework);
    double alone = streamed_bytes(&s, PART_HEAD, RUN_F, ORR_K_CROSS_ENTROPY);
    s.framework.sharded_loss = true;
    double chain = streamed_bytes(&s, PART_HEAD, RUN_F, ORR_K_CROSS_ENTROPY);
    assert_near(alone / n, 2 + 8 + 8, 1e-9);
    assert_near(chain / n, (2 + 4 + 4) + (4 + 4) + (8 + 4) + (4 + 4), 1e-9);
}

/* Composer: two cross-entropies behind the backward; InternEvo: with the loss, in FP32. */
static void test_metrics_read_the_logits_once_a_micro_batch(void **state) {
    (void)state;
    Sample s;
    sample_init(&s, sample_gpt_22b(), 1, false);
    double n = (double)s.batch.micro_sequences * s.batch.sequence_tokens *
               (double)orr_params_padded_vocab(&s.model, &s.layout, &s.framework);
    double none[2], loss[2];
    for (int run = 0; run < 2; run++)
        none[run] = streamed_bytes(&s, run ? PART_EMBEDDING : PART_HEAD, run ? RUN_B : RUN_F,
                                   ORR_K_CROSS_ENTROPY);
    s.framework.metrics = ORR_METRICS_CROSS_ENTROPIES;
    loss[1] = streamed_bytes(&s, PART_EMBEDDING, RUN_B, ORR_K_CROSS_ENTROPY);
    assert_near((loss[1] - none[1]) / n, 2 * (2 + 8 + 8), 1e-9);
    assert_near(streamed_bytes(&s, PART_HEAD, RUN_F, ORR_K_CROSS_ENTROPY), none[0], 1e-9);
    s.framework.metrics = ORR_METRICS_ACC_PERPLEX;
    loss[0] = streamed_bytes(&s, PART_HEAD, RUN_F, ORR_K_CROSS_ENTROPY);
    assert_near((loss[0] - none[0]) / n, 4 * (1 + 3 + 2 + 3), 1e-9);
}

/* InternLM: a cast to FP32 before each norm and one back, and the norm again in the backward. */
static void test_norms_in_fp32_cost_their_casts(void **state) {
    (void)state;
    Sample s;
    sample_init(&s, sample_llama_8b(), 1, false);
    s.framework.fused_norm = true;
    double n = (double)s.batch.micro_sequences * s.batch.sequence_tokens * s.model.hidden;
    assert_near(streamed_bytes(&s, PART_LAYER, RUN_F, ORR_K_CAST), 0.0, 1e-9);
    s.framework.fp32_norms = true;
    assert_near(streamed_bytes(&s, PART_LAYER, RUN_F, ORR_K_CAST) / n, 2 * (2 + 4), 1e-9);
    assert_near(streamed_bytes(&s, PART_LAYER, RUN_B, ORR_K_CAST) / n, 2 * (4 + 2), 1e-9);
    double once = streamed_bytes(&s, PART_LAYER, RUN_B, ORR_K_NORM);
    s.framework.norms_again = true;
    double again = streamed_bytes(&s, PART_LAYER, RUN_B, ORR_K_NORM);
    assert_near((again - once) / n, 2 * (4 + 2), 1e-9);
    assert_near(streamed_bytes(&s, PART_LAYER, RUN_B, ORR_K_CAST) / n, 4 * (4 + 2), 1e-9);
}

static void test_sliding_window_cuts_attention_flops(void **state) {
    (void)state;
    Sample s;
    sample_init(&s, sample_llama_8b(), 1, false);
    s.framework.attention = ORR_ATTENTION_FLASH;
    double whole = emit_sums(&s, PART_LAYER, RUN_F).flops[ORR_K_ATTENTION][ORR_PASS_FORWARD];
    s.model.window = 512;
    s.model.window_every = 1;
    double cut = emit_sums(&s, PART_LAYER, RUN_F).flops[ORR_K_ATTENTION][ORR_PASS_FORWARD];
    assert_near(cut / whole, (512.0 * 2048 - 512.0 * 512 / 2) / (2048.0 * 2048 / 2), 1e-12);
}

static void test_one_device_has_no_collectives(void **state) {
    (void)state;
    Sample s;
    sample_init(&s, sample_gpt_22b(), 1, false);
    for (int part = 0; part < N_PARTS; part++) {
        Sums sums = emit_sums(&s, (Part)part, RUN_F_B);
        for (int kind = 0; kind < ORR_N_COLLECTIVES; kind++)
            assert_int_equal(sums.n_colls[kind], 0);
    }
}

static void test_host_works_once_a_layer_and_pass(void **state) {
    (void)state;
    Sample s;
    sample_init(&s, sample_gpt_22b(), 1, false);
    assert_int_equal(emit_sums(&s, PART_LAYER, RUN_F_B).n_host, 2);
    assert_int_equal(emit_sums(&s, PART_LAYER_AGAIN, RUN_F_B).n_host, 3);
    s.framework.cuda_graphs = true;
    assert_int_equal(emit_sums(&s, PART_LAYER, RUN_F_B).n_host, 0);
}

static void test_fewer_kernels_with_fusion(void **state) {
    (void)state;
    Sample s;
    sample_init(&s, sample_llama_8b(), 1, false);
    OrrFramework eager = {.attention = ORR_ATTENTION_FLASH,
                          .store_norm_output = true,
                          .store_activation_output = true};
    s.framework = eager;
    double launches[2];
    for (int is_compiled = 0; is_compiled < 2; is_compiled++) {
        s.framework.compiled = is_compiled;
        g_autoptr(OrrProgram) p = emit_run(&s, PART_LAYER, RUN_F);
        launches[is_compiled] = 0;
        for (uint32_t i = 0; i < p->n_ops; i++)
            if (p->ops[i].kind == ORR_OP_KERNEL)
                launches[is_compiled] += p->kernels[p->ops[i].what].launches;
    }
    /* products, attention, rotary, swiglu, norm, residual with norm, residual */
    assert_near(launches[1], 7 + 1 + 1 + 1 + 3, 1e-12);
    assert_true(launches[0] > 2 * launches[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layer_flops_equal_the_closed_form),
        cmocka_unit_test(test_full_recompute_runs_the_forward_again),
        cmocka_unit_test(test_recompute_that_stops_early_spares_the_down_product),
        cmocka_unit_test(test_selective_recompute_runs_the_core_again),
        cmocka_unit_test(test_per_op_recompute_runs_every_second_product_again),
        cmocka_unit_test(test_tp_moves_four_all_reduces_a_layer),
        cmocka_unit_test(test_sp_gathers_the_input_again_for_the_weights),
        cmocka_unit_test(test_parallel_block_reduces_once),
        cmocka_unit_test(test_input_gradient_is_reduced_beside_the_weight_gradient),
        cmocka_unit_test(test_backward_ends_with_the_first_norm),
        cmocka_unit_test(test_head_flops_are_of_the_padded_vocabulary),
        cmocka_unit_test(test_sliding_window_cuts_attention_flops),
        cmocka_unit_test(test_a_sharded_loss_is_the_chain_on_one_rank_too),
        cmocka_unit_test(test_metrics_read_the_logits_once_a_micro_batch),
        cmocka_unit_test(test_norms_in_fp32_cost_their_casts),
        cmocka_unit_test(test_one_device_has_no_collectives),
        cmocka_unit_test(test_host_works_once_a_layer_and_pass),
        cmocka_unit_test(test_fewer_kernels_with_fusion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
