/* Scenarios about networks and memory through whole steps: S20, S25, S29, S38, S45, S49, S50. What
 * a room can answer alone is tested there (doc/scenarios.md lists all). */
#include "tests/near.h"

#include "tests/step_helpers.h"

#include <glib.h>
#include <string.h>

static double step_s(const char *job, const char *sets) {
    Step *s = step_new(job, sets, STEP_CHECKED);
    double seconds = 1e-9 * (double)s->record->step_time_ns;
    step_free(s);
    return seconds;
}

static const OrrRecordFinding *finding(const Step *s, const char *code) {
    for (uint32_t i = 0; i < s->record->n_findings; i++)
        if (strcmp(s->record->findings[i].code, code) == 0)
            return &s->record->findings[i];
    return NULL;
}

/* S20: three passes over 2 bytes a parameter, 9.2 GB; at 10 Gb/s the second node costs 3.7 to 7.4 s
 * more, at 100 Gb/s (without sockets in the way) at most 0.7, less by what computation hides. */
static void test_s20_second_node_is_paid_in_network_time(void **state) {
    (void)state;
    Step *s = step_new("qwen2-1.5b-4", "", STEP_CHECKED);
    OrrRecordComm gather = step_comm(s, ORR_COMM_DP_PARAMETER, ORR_ALL_GATHER);
    OrrRecordComm reduce = step_comm(s, ORR_COMM_DP_GRADIENT, ORR_REDUCE_SCATTER);
    assert_near((double)gather.bytes + (double)reduce.bytes, 3 * 2 * 1.543714304e9, 0.001);
    const OrrRecordFinding *f = finding(s, "communication_above_compute");
    assert_non_null(f);
    assert_non_null(strstr(f->evidence, "Gb/s; they have 10."));
    double alone = step_s("qwen2-1.5b-2", "");
    double added = 1e-9 * (double)s->record->step_time_ns - alone;
    assert_true(added > 3.7 && added < 7.4);
    double fast = step_s("qwen2-1.5b-4", "node.nic=100 Gb/s;node.net=roce") - alone;
    assert_true(fast > 0.15 && fast < 0.7);
    step_free(s);
}

/* S25: layers 1, 2, 2, 3: each stage has its own memory, and the heaviest decides. */
static void test_s25_heaviest_stage_decides(void **state) {
    (void)state;
    Step *s = step_new("tiny-pipeline",
                       "layout.pp=4;layout.vpp=1;layout.dp=1;schedule.name=gpipe;"
                       "layout.stage_layers=1,2,2,3",
                       STEP_CHECKED);
    const OrrRecordStage *stages = s->record->stages;
    int64_t worst = 0;
    for (uint32_t i = 0; i < 4; i++)
        worst = MAX(worst, stages[i].peak_bytes);
    assert_int_equal(worst, stages[3].peak_bytes);
    assert_int_equal(s->record->verdict, stages[3].verdict);
    assert_int_equal(stages[1].mem_bytes[ORR_MEM_WEIGHTS], stages[2].mem_bytes[ORR_MEM_WEIGHTS]);
    assert_true(stages[3].mem_bytes[ORR_MEM_WEIGHTS] > stages[1].mem_bytes[ORR_MEM_WEIGHTS]);
    step_free(s);
}

/* S29: without flash attention a layer in flight keeps scores, softmax and dropout; with it nothing
 * that grows with the square of the sequence. */
static void test_s29_unfused_attention_keeps_squares(void **state) {
    (void)state;
    double bytes[2][2];
    static const char *const kinds[] = {"flash", "unfused"};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 2; i++) {
            g_autofree char *sets = g_strdup_printf(
                "layout.pp=1;layout.vpp=1;layout.dp=4;schedule.name=1f1b;batch.global=4 sequences;"
                "framework.attention=%s;batch.sequence=%u tokens",
                kinds[k], 4096u << i);
            Step *s = step_new("tiny-pipeline", sets, STEP_CHECKED);
            bytes[k][i] = (double)s->record->stages[0].mem_bytes[ORR_MEM_ACTIVATIONS];
            step_free(s);
        }
    assert_near(bytes[0][1] / bytes[0][0], 2, 0.05);
    assert_true(bytes[1][1] / bytes[1][0] > 3.5);
    assert_true(bytes[1][0] > 3 * bytes[0][0]);
}

/* S38, on the main job's smaller cousin: more micro-batches take no more memory under 1F1B. */
static void test_s38_peak_does_not_grow_with_micro_batches(void **state) {
    (void)state;
    Step *few = step_new("llama70b-128", "batch.global=32 sequences", 0);
    Step *many = step_new("llama70b-128", "batch.global=128 sequences", 0);
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(few->record->stages[i].peak_bytes, many->record->stages[i].peak_bytes);
    step_free(few);
    step_free(many);
}

#define HASHED                                                                                     \
    "job.cluster=clos:64 node:2 gpu:h100 nics:2 nic:25G leaf:8;layout.tp=2;layout.pp=1;"           \
    "layout.vpp=1;layout.dp=32;layout.zero_stage=1;schedule.name=1f1b;model.hidden=1024;"          \
    "model.ffn=4096;model.head_dim=128;batch.global=32 sequences;network.routing=%s;"              \
    "network.seed=%u"

/* S45: flows that hash onto one uplink are never faster than evenly spread ones, and mostly slower.
 */
static void test_s45_hash_collisions_cost_time(void **state) {
    (void)state;
    g_autofree char *even = g_strdup_printf(HASHED, "spread", 0);
    double spread = step_s("tiny-pipeline", even);
    uint32_t n_slower = 0;
    for (uint32_t seed = 0; seed < 8; seed++) {
        g_autofree char *sets = g_strdup_printf(HASHED, "ecmp-hash", seed);
        double hashed = step_s("tiny-pipeline", sets);
        assert_true(hashed >= spread * 0.9999);
        n_slower += hashed > spread * 1.01;
    }
    assert_true(n_slower >= 2);
}

/* S49: twice the GPUs, the same TP group of eight: the same all-reduce; the report shows the group.
 */
static void test_s49_a_group_of_eight_does_not_feel_the_world(void **state) {
    (void)state;
    OrrRecordComm tp[2];
    for (uint32_t i = 0; i < 2; i++) {
        g_autofree char *sets = g_strdup_printf(
            "job.cluster=h100-ib:%u;layout.tp=8;layout.pp=1;layout.vpp=1;layout.dp=%u;"
            "schedule.name=1f1b;model.kv_heads=8;batch.global=%u sequences",
            32 << i, 4 << i, 16 << i);
        Step *s = step_new("tiny-pipeline", sets, STEP_CHECKED);
        tp[i] = step_comm(s, ORR_COMM_TP, ORR_ALL_GATHER);
        assert_int_equal(s->record->groups[0].kind, ORR_GROUP_TP);
        assert_int_equal(s->record->groups[0].size, 8);
        assert_int_equal(s->record->groups[0].nodes, 1);
        assert_string_equal(s->record->groups[0].members, "0-7");
        step_free(s);
    }
    assert_int_equal(tp[0].bytes, tp[1].bytes);
    assert_int_equal(tp[0].transfer_ns, tp[1].transfer_ns);
}

/* S50: over rates, sizes and oversubscription, what leaves a node is not faster than its NIC: ring,
 * (n-1)/n of the bytes. The run's own check asserts the same for every link. */
static void test_s50_nothing_is_faster_than_its_link(void **state) {
    (void)state;
    static const uint32_t rates[] = {10, 100, 400}, overs[] = {1, 4};
    for (size_t i = 0; i < G_N_ELEMENTS(rates); i++)
        for (size_t k = 0; k < G_N_ELEMENTS(overs); k++) {
            g_autofree char *sets = g_strdup_printf(
                "job.cluster=clos:16 node:1 gpu:h100 nic:%uG leaf:4 oversub:%u;layout.tp=1;"
                "layout.pp=1;layout.vpp=1;layout.dp=16;layout.zero_stage=1;schedule.name=1f1b;"
                "batch.global=16 sequences;layout.sequence_parallel=no",
                rates[i], overs[k]);
            Step *s = step_new("tiny-pipeline", sets, STEP_CHECKED);
            OrrRecordComm gather = step_comm(s, ORR_COMM_DP_PARAMETER, ORR_ALL_GATHER);
            OrrRecordComm reduce = step_comm(s, ORR_COMM_DP_GRADIENT, ORR_REDUCE_SCATTER);
            double bytes_per_ns = rates[i] / 8.0;
            assert_true((double)gather.transfer_ns >=
                        (double)gather.bytes * 15 / 16 / bytes_per_ns);
            assert_true((double)reduce.transfer_ns >=
                        (double)reduce.bytes * 15 / 16 / bytes_per_ns);
            step_free(s);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_s20_second_node_is_paid_in_network_time),
        cmocka_unit_test(test_s25_heaviest_stage_decides),
        cmocka_unit_test(test_s29_unfused_attention_keeps_squares),
        cmocka_unit_test(test_s38_peak_does_not_grow_with_micro_batches),
        cmocka_unit_test(test_s45_hash_collisions_cost_time),
        cmocka_unit_test(test_s49_a_group_of_eight_does_not_feel_the_world),
        cmocka_unit_test(test_s50_nothing_is_faster_than_its_link),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
