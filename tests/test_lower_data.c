/* Data parallelism as lowered: volumes and moments of ZeRO 0 to 3 and of hybrid sharding against
 * closed forms (Rajbhandari et al. 2020, section 7; Zhao et al. 2023, sections 3 and 5). */
#include "tests/near.h"

#include "tests/step_helpers.h"

#include <glib.h>

#define TINY_PARAMS 5247232 /* workloads/models/tiny-8.ini */
#define TINY                                                                                       \
    "layout.vpp=1;schedule.name=1f1b;layout.sequence_parallel=no;precision.gradients=fp32;"        \
    "precision.reduce=fp32;framework.vocab_multiple=0;batch.micro=1 sequence;"

static OrrRecordComm data(const Step *s, OrrCommKind kind, OrrCollective collective) {
    return step_comm(s, kind, collective);
}

static Step *sharded(uint32_t m, const char *more) {
    g_autofree char *sets =
        g_strdup_printf(TINY "job.framework=pytorch-fsdp;layout.tp=1;layout.pp=1;layout.dp=8;"
                             "layout.zero_stage=3;batch.global=%u sequences;%s",
                        8 * m, more);
    return step_new("tiny-pipeline", sets, STEP_CHECKED);
}

/* Per micro-batch two gathers of every parameter, and one reduce-scatter in its own dtype. */
static void test_fsdp_moves_two_gathers_and_a_reduction_a_micro_batch(void **state) {
    (void)state;
    for (uint32_t m = 1; m <= 4; m++) {
        Step *s = sharded(m, "layout.reshard_after_forward=yes");
        OrrRecordComm gather = data(s, ORR_COMM_DP_PARAMETER, ORR_ALL_GATHER);
        OrrRecordComm reduce = data(s, ORR_COMM_DP_GRADIENT, ORR_REDUCE_SCATTER);
        assert_int_equal(gather.bytes, 2 * m * 2 * (int64_t)TINY_PARAMS);
        assert_int_equal(reduce.bytes, m * 4 * (int64_t)TINY_PARAMS);
        assert_int_equal(gather.count, 2 * m * 10); /* embedding, eight layers, head */
        assert_int_equal(reduce.count, m * 10);
        assert_int_equal(gather.group_size, 8);
        step_free(s);
    }
}

static void test_fsdp_without_resharding_gathers_once_a_step(void **state) {
    (void)state;
    for (uint32_t m = 1; m <= 4; m++) {
        Step *s = sharded(m, "layout.reshard_after_forward=no");
        assert_int_equal(data(s, ORR_COMM_DP_PARAMETER, ORR_ALL_GATHER).bytes,
                         2 * (int64_t)TINY_PARAMS);
        assert_int_equal(data(s, ORR_COMM_DP_GRADIENT, ORR_REDUCE_SCATTER).bytes,
                         m * 4 * (int64_t)TINY_PARAMS);
        step_free(s);
    }
}

static void test_fsdp_reduces_in_the_dtype_it_is_told(void **state) {
    (void)state;
    Step *s = sharded(1, "layout.reshard_after_forward=yes;precision.reduce=bf16");
    assert_int_equal(data(s, ORR_COMM_DP_GRADIENT, ORR_REDUCE_SCATTER).bytes,
                     2 * (int64_t)TINY_PARAMS);
    step_free(s);
}

/* Within a shard group all goes as under FSDP; then the shards are summed over the replicas. */
static void test_hybrid_sharding_sums_shards_over_replicas(void **state) {
    (void)state;
    Step *s = sharded(2, "layout.reshard_after_forward=yes;layout.hsdp_shard=2 ranks");
    OrrRecordComm gather = data(s, ORR_COMM_DP_PARAMETER, ORR_ALL_GATHER);
    OrrRecordComm reduce = data(s, ORR_COMM_DP_GRADIENT, ORR_REDUCE_SCATTER);
    OrrRecordComm sum = data(s, ORR_COMM_DP_GRADIENT, ORR_ALL_REDUCE);
    assert_int_equal(gather.group_size, 2);
    assert_int_equal(gather.bytes, 2 * 2 * 2 * (int64_t)TINY_PARAMS);
    assert_int_equal(reduce.group_size, 2);
    assert_int_equal(reduce.bytes, 2 * 4 * (int64_t)TINY_PARAMS);
    assert_int_equal(sum.group_size, 4);
    assert_int_equal(sum.bytes, 2 * 4 * (int64_t)TINY_PARAMS / 2);
    assert_int_equal(sum.count, reduce.count);
    step_free(s);
}

static Step *replicated(uint32_t zero, const char *more) {
    g_autofree char *sets =
        g_strdup_printf(TINY "layout.tp=1;layout.pp=2;layout.dp=4;layout.zero_stage=%u;"
                             "batch.global=32 sequences;%s",
                        zero, more);
    return step_new("tiny-pipeline", sets, STEP_CHECKED);
}

/* A mean stage has half of the parameters. ZeRO-1 and 2 gather what was updated once a step. */
static void test_zero_0_to_2_reduce_once_if_gradients_stay_whole(void **state) {
    (void)state;
    for (uint32_t zero = 0; zero <= 2; zero++) {
        Step *s = replicated(zero, "framework.reduce_when=at_end");
        OrrCollective kind = zero == 0 ? ORR_ALL_REDUCE : ORR_REDUCE_SCATTER;
        assert_int_equal(data(s, ORR_COMM_DP_GRADIENT, kind).bytes, 4 * (int64_t)TINY_PARAMS / 2);
        assert_int_equal(data(s, ORR_COMM_DP_PARAMETER, ORR_ALL_GATHER).bytes,
                         zero == 0 ? 0 : 2 * (int64_t)TINY_PARAMS / 2);
        step_free(s);
    }
}

/* An optimizer spread over two of four ranks: gradients are summed over the other two. */
static void test_zero_1_in_shard_groups_sums_over_replicas(void **state) {
    (void)state;
    Step *s = replicated(1, "layout.hsdp_shard=2 ranks"), *whole = replicated(1, "");
    OrrRecordComm reduce = data(s, ORR_COMM_DP_GRADIENT, ORR_REDUCE_SCATTER);
    OrrRecordComm sum = data(s, ORR_COMM_DP_GRADIENT, ORR_ALL_REDUCE);
    OrrRecordComm gather = data(s, ORR_COMM_DP_PARAMETER, ORR_ALL_GATHER);
    assert_int_equal(reduce.group_size, 2);
    assert_int_equal(reduce.bytes, 4 * (int64_t)TINY_PARAMS / 2);
    assert_int_equal(sum.group_size, 2);
    assert_int_equal(sum.bytes, reduce.bytes / 2);
    assert_int_equal(gather.group_size, 2);
    assert_int_equal(s->record->stages[1].mem_bytes[ORR_MEM_OPTIMIZER],
                     2 * whole->record->stages[1].mem_bytes[ORR_MEM_OPTIMIZER]);
    step_free(s);
    step_free(whole);
}

/* M = 8 on P = 2: each micro-batch, or four runs of two, moves the bytes again. */
static void test_zero_2_reduces_each_micro_batch_each_run_or_at_the_end(void **state) {
    (void)state;
    static const struct {
        const char *when;
        uint32_t n;
    } rows[] = {{"each_micro_batch", 8}, {"each_run", 4}, {"at_end", 1}};
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *sets = g_strdup_printf("framework.reduce_when=%s", rows[i].when);
        Step *s = replicated(2, sets);
        assert_int_equal(data(s, ORR_COMM_DP_GRADIENT, ORR_REDUCE_SCATTER).bytes,
                         rows[i].n * 4 * (int64_t)TINY_PARAMS / 2);
        assert_int_equal(data(s, ORR_COMM_DP_PARAMETER, ORR_ALL_GATHER).bytes,
                         2 * (int64_t)TINY_PARAMS / 2);
        step_free(s);
    }
}

static int64_t gradients(const char *sets) {
    Step *s = replicated(2, sets);
    int64_t bytes = s->record->stages[1].mem_bytes[ORR_MEM_GRADIENTS];
    step_free(s);
    return bytes;
}

/* Eight layers and two ends: the second stage has 4 layers, the last norm and the head. A sharded
 * buffer is a quarter, and the whole one beside it from the first backward to the end of the
 * reduction, whenever that is; it never piles up. */
static void test_zero_2_holds_gradients_whole_or_sharded(void **state) {
    (void)state;
    int64_t whole = gradients("framework.shard_gradient_buffer=no");
    assert_near((double)whole, 4.0 * TINY_PARAMS / 2, 1e-3);
    static const char *const when[] = {"each_micro_batch", "each_run", "at_end"};
    for (size_t i = 0; i < G_N_ELEMENTS(when); i++)
        for (int overlap = 0; overlap < 2; overlap++) {
            g_autofree char *sets =
                g_strdup_printf("framework.shard_gradient_buffer=yes;framework.reduce_when=%s;"
                                "framework.overlap_grad_reduce=%s",
                                when[i], overlap ? "yes" : "no");
            int64_t sharded_bytes = gradients(sets);
            assert_true(sharded_bytes == whole / 4 || sharded_bytes == whole / 4 + whole);
        }
}

/* One rank has nobody to share with: its gradients are there once. */
static void test_zero_2_on_one_rank_holds_gradients_once(void **state) {
    (void)state;
    Step *s = step_new("tiny-pipeline",
                       TINY "job.framework=meta-llama3;layout.ends=with_layers;layout.tp=1;"
                            "layout.pp=2;layout.dp=1;layout.zero_stage=2;"
                            "job.cluster=h100-ib:2;batch.global=4 sequences",
                       STEP_CHECKED);
    assert_near((double)s->record->stages[1].mem_bytes[ORR_MEM_GRADIENTS], 4.0 * TINY_PARAMS / 2,
                1e-3);
    assert_int_equal(data(s, ORR_COMM_DP_GRADIENT, ORR_REDUCE_SCATTER).count, 0);
    step_free(s);
}

/* The two published shapes: all-gathers of (n-1)/n of 2 bytes a parameter twice a micro-batch, one
 * reduce-scatter in its own dtype; beside the compute of 70 B or 13 B parameters both hide. */
static void test_fsdp_jobs_move_the_closed_form_and_hide_it(void **state) {
    (void)state;
    /* norms are whole on each TP rank: 81 of 5,120 */
    const double mpt = 64862437376.0, llama = (13015864320.0 + 7 * 81 * 5120.0) / 8;
    const struct {
        const char *job;
        double gather, reduce;
        uint32_t group;
    } rows[] = {{"mpt-70b-fsdp-512", 2 * 2 * mpt, 4 * mpt, 512},
                {"llama2-13b-64", 32 * 2 * 2 * llama, 32 * 2 * llama, 8}};
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        Step *s = step_new(rows[i].job, "", STEP_CHECKED);
        OrrRecordComm gather = data(s, ORR_COMM_DP_PARAMETER, ORR_ALL_GATHER);
        OrrRecordComm reduce = data(s, ORR_COMM_DP_GRADIENT, ORR_REDUCE_SCATTER);
        assert_near((double)gather.bytes, rows[i].gather, 1e-6);
        assert_near((double)reduce.bytes, rows[i].reduce, 1e-6);
        assert_int_equal(gather.group_size, rows[i].group);
        assert_true(gather.exposed_ns < gather.transfer_ns / 10);
        assert_true(reduce.exposed_ns < reduce.transfer_ns / 10);
        const int64_t *account = s->record->time_account_ns;
        assert_true(account[ORR_OWN_EXPOSED_FIRST + ORR_COMM_DP_PARAMETER] >=
                    gather.exposed_ns - gather.wait_ns - 1);
        assert_true(account[ORR_OWN_EXPOSED_FIRST + ORR_COMM_DP_GRADIENT] >=
                    reduce.exposed_ns - reduce.wait_ns - 1);
        step_free(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fsdp_moves_two_gathers_and_a_reduction_a_micro_batch),
        cmocka_unit_test(test_fsdp_without_resharding_gathers_once_a_step),
        cmocka_unit_test(test_fsdp_reduces_in_the_dtype_it_is_told),
        cmocka_unit_test(test_hybrid_sharding_sums_shards_over_replicas),
        cmocka_unit_test(test_zero_1_in_shard_groups_sums_over_replicas),
        cmocka_unit_test(test_zero_0_to_2_reduce_once_if_gradients_stay_whole),
        cmocka_unit_test(test_zero_2_reduces_each_micro_batch_each_run_or_at_the_end),
        cmocka_unit_test(test_zero_2_holds_gradients_whole_or_sharded),
        cmocka_unit_test(test_fsdp_jobs_move_the_closed_form_and_hide_it),
        cmocka_unit_test(test_zero_2_on_one_rank_holds_gradients_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
