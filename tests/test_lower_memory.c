/* What a rank holds, against what published runs printed: the ultra-scale benchmark of nanotron
 * (allocated outside of the passes, to two digits behind the point, is a count of tensors; reserved
 * is what the caching allocator makes of them) and torchtitan's table. */
#include "tests/near.h"

#include "tests/step_helpers.h"

#define GIB 0x1p30
#define WORKSPACE_GIB 0.07 /* two of 32 MiB for cuBLAS, and small tensors: the same in all rows */
#define ULTRA                                                                                      \
    "job.framework=nanotron;batch.sequence=4096 "                                                  \
    "tokens;recompute.policy=none;precision.compute=bf16;"

static Step *ultra(const char *model, const char *cluster, const char *more) {
    g_autofree char *sets =
        g_strdup_printf(ULTRA "job.model=%s;job.cluster=%s;%s", model, cluster, more);
    return step_new("llama3-8b-8", sets, 0);
}

static int64_t kind(const Step *s, uint32_t stage, OrrMemKind m) {
    return s->record->stages[stage].mem_bytes[m];
}

static double state_gib(const Step *s, uint32_t stage) {
    return (double)(kind(s, stage, ORR_MEM_WEIGHTS) + kind(s, stage, ORR_MEM_GRADIENTS) +
                    kind(s, stage, ORR_MEM_OPTIMIZER)) /
           GIB;
}

static double reserved_gib(const Step *s, uint32_t stage) {
    return (double)(s->record->stages[stage].peak_bytes - kind(s, stage, ORR_MEM_CONTEXT) -
                    kind(s, stage, ORR_MEM_COMM_BUFFERS)) /
           GIB;
}

/* 2 + 4 + 12 bytes a parameter, and 2 for the buckets of DistributedDataParallel. */
static void test_ddp_holds_20_bytes_a_parameter(void **state) { /* HFM00001, 2 */
    (void)state;
    Step *s = ultra("nanotron-1b", "h100-ib:8",
                    "layout.zero_stage=0;batch.global=256;batch.micro=1 sequence");
    assert_near(state_gib(s, 0) + WORKSPACE_GIB, 25.07, 1e-3);
    assert_near(reserved_gib(s, 0), 36.67, 0.04);
    step_free(s);
}

/* Stages by cost, the embedding tied but on both ends: what the first rank printed. */
static void test_first_stages_hold_what_was_printed(void **state) { /* HFM00007, 16, 780 */
    (void)state;
    static const struct {
        const char *model, *cluster, *layout;
        double gib;
    } rows[] = {
        {"nanotron-1b", "h100-ib:8", "layout.pp=2;layout.dp=4", 17.57},
        {"nanotron-1b", "h100-ib:8", "layout.pp=4;layout.dp=2", 11.32},
        {"nanotron-3b", "h100-ib:16", "layout.pp=2;layout.dp=8", 41.33},
        {"nanotron-3b", "h100-ib:8", "layout.pp=8;layout.dp=1", 14.41},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *sets = g_strdup_printf(
            "%s;layout.zero_stage=0;batch.global=256;batch.micro=1 sequence", rows[i].layout);
        Step *s = ultra(rows[i].model, rows[i].cluster, sets);
        /* at the peak of a pass narrow gradients of its backward may be there besides */
        double narrow = (double)kind(s, 0, ORR_MEM_WEIGHTS) / GIB;
        assert_true(state_gib(s, 0) + WORKSPACE_GIB >= rows[i].gib * (1 - 1e-3));
        assert_true(state_gib(s, 0) + WORKSPACE_GIB <= rows[i].gib * (1 + 1e-3) + narrow);
        step_free(s);
    }
}

/* ZeRO-1 without buckets; its update gathers whole parameters flat, twice, from a list. */
static void test_zero_1_keeps_no_buckets(void **state) { /* HFM00003, 9 */
    (void)state;
    Step *s = ultra("nanotron-1b", "h100-ib:8",
                    "layout.zero_stage=1;batch.global=256;batch.micro=1 sequence");
    double parameters = (double)kind(s, 0, ORR_MEM_WEIGHTS) / 2 / GIB;
    assert_near(state_gib(s, 0), (6 + 12.0 / 8) * parameters, 1e-3);
    assert_near(reserved_gib(s, 0), 24.24, 0.12);
    step_free(s);
}

/* With TP in one node the outputs of row-parallel products pile up while the host is ahead. */
static void test_tp_piles_up_what_its_collectives_read(void **state) { /* HFM00314, HFM00069 */
    (void)state;
    Step *s = ultra("nanotron-3b", "h100-ib:16",
                    "layout.tp=8;layout.dp=2;layout.zero_stage=1;layout.sequence_parallel=yes;"
                    "batch.global=256;batch.micro=8 sequences");
    assert_near(reserved_gib(s, 0), 36.43, 0.06);
    assert_true(kind(s, 0, ORR_MEM_ALLOCATOR) > 8 * GIB);
    step_free(s);
    s = ultra("nanotron-3b", "h100-ib:16",
              "layout.tp=8;layout.dp=2;layout.zero_stage=1;layout.sequence_parallel=yes;"
              "batch.global=256;batch.micro=8 sequences;framework.records_streams=no");
    assert_true(kind(s, 0, ORR_MEM_ALLOCATOR) < 4 * GIB);
    step_free(s);
}

/* Expandable segments leave little between what is allocated and what is reserved; the peak is in
 * the backward of PyTorch's cross-entropy. */
static void test_torchtitan_reserves_what_its_table_says(void **state) { /* G0197, G0194 */
    (void)state;
    Step *s = step_new("llama3-8b-8", "", 0);
    assert_near(reserved_gib(s, 0), 77.0, 0.04);
    assert_true(kind(s, 0, ORR_MEM_ALLOCATOR) < 0.03 * 77.0 * GIB);
    step_free(s);
    s = step_new("llama3-8b-128", "", 0);
    assert_near(reserved_gib(s, 0), 62.0, 0.04);
    step_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ddp_holds_20_bytes_a_parameter),
        cmocka_unit_test(test_first_stages_hold_what_was_printed),
        cmocka_unit_test(test_zero_1_keeps_no_buckets),
        cmocka_unit_test(test_tp_piles_up_what_its_collectives_read),
        cmocka_unit_test(test_torchtitan_reserves_what_its_table_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
