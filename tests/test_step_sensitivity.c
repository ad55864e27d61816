/* What more of each thing would make of a step: against the same job with the keys set, a factor of
 * one, and what can't be gained. */
#include "tests/near.h"

#include "sim/api/step_priv.h"
#include "tests/step_helpers.h"

#include <string.h>

#define SMALL                                                                                      \
    "model.hidden=8192;model.ffn=32768;model.head_dim=128;layout.tp=8;layout.pp=2;layout.vpp=1;"   \
    "layout.dp=4;schedule.name=1f1b;batch.global=16 sequences;batch.micro=1 sequence;"

#define CLOS "job.cluster=clos:64 node:8 gpu:h100 leaf:16;" SMALL

static Step *varied(const char *sets, double factor, uint32_t n_threads) {
    g_autoptr(GError) error = NULL;
    Step *s = step_new("tiny-pipeline", sets, 0);
    OrrStepSensitivity in = {.factor = factor, .n_threads = n_threads};
    if (!orr_step_run_sensitivity(s->run, &in, &error))
        fail_msg("%s: %s", sets, error->message);
    assert_int_equal(s->record->n_sensitivities, orr_step_n_sensitivities(s->run));
    return s;
}

static const OrrRecordSensitivity *find(const Step *s, const char *name) {
    for (uint32_t i = 0; i < s->record->n_sensitivities; i++)
        if (strcmp(s->record->sensitivities[i].name, name) == 0)
            return &s->record->sensitivities[i];
    return NULL;
}

/* A step of the job with @sets and @more set through the files. */
static int64_t with(const char *sets, const char *more) {
    g_autofree char *all = g_strconcat(sets, more, NULL);
    Step *s = step_new("tiny-pipeline", all, 0);
    int64_t ns = s->record->step_time_ns;
    step_free(s);
    return ns;
}

static void test_more_is_what_the_keys_set_gives(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"tensor cores, vector units",
         "gpu.peak_tf32=989.4 TFLOP/s;gpu.peak_bf16=1978.8 TFLOP/s;gpu.peak_fp16=1978.8 TFLOP/s;"
         "gpu.peak_fp8=3957.8 TFLOP/s;gpu.peak_int8=3957.8 TFLOP/s;gpu.vector=133.8 TFLOP/s"},
        {"memory bandwidth", "gpu.memory_bandwidth=6700 GB/s"},
        {"NVLink bandwidth", "gpu.nvlink=900 GB/s"},
        {"NIC and fabric bandwidth", "node.nic=800 Gb/s"},
        {"bandwidth above NICs", "cluster.leaf_oversubscription=2;cluster.pod_oversubscription=1"},
        {"host speed", "node.host_speed=2"},
    };
    static const char sets[] = CLOS "cluster.leaf_oversubscription=4;node.nic=400 Gb/s;";
    Step *s = varied(sets, 2, 0);
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        const OrrRecordSensitivity *found = find(s, rows[i][0]);
        if (!found)
            fail_msg("%s: not there", rows[i][0]);
        int64_t ns = with(sets, rows[i][1]);
        if (found->step_time_ns != ns)
            fail_msg("%s: %" G_GINT64_FORMAT " ns, with its keys set %" G_GINT64_FORMAT, rows[i][0],
                     found->step_time_ns, ns);
    }
    assert_true(find(s, "tensor cores, vector units")->step_time_ns < s->record->step_time_ns);
    assert_true(find(s, "bandwidth above NICs")->step_time_ns < s->record->step_time_ns);
    step_free(s);
}

/* Whatever the job is like: perturbed, placed at random, hashed, on a mesh, on sockets. */
static void test_as_much_as_before_is_the_step_itself(void **state) {
    (void)state;
    static const char *const rows[] = {
        CLOS,
        CLOS "perturb.a=gpu:3:speed=0.8;perturb.b=link:leaf1/up:bandwidth=0.5;",
        CLOS "perturb.a=gpu:*:speed~normal(1,0.02);perturb.j=jitter=0.02;",
        CLOS "network.placement=random;network.routing=ecmp-hash;"
             "cluster.leaf_oversubscription=4;",
        "job.cluster=v100-ib:8;layout.tp=2;layout.pp=2;layout.dp=2;layout.vpp=1;"
        "schedule.name=1f1b;precision.compute=fp16;",
        CLOS "nccl.NCCL_IB_HCA=no_such;",
    };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        Step *s = varied(rows[i], 1, 2);
        for (uint32_t k = 0; k < s->record->n_sensitivities; k++)
            if (s->record->sensitivities[k].step_time_ns != s->record->step_time_ns)
                fail_msg("%s: %s", rows[i], s->record->sensitivities[k].name);
        step_free(s);
    }
}

static void test_what_the_machine_lacks_is_not_varied(void **state) {
    (void)state;
    Step *s = varied(
        "job.cluster=clos:8 node:8 gpu:h100;layout.tp=4;layout.pp=2;layout.dp=1;layout.vpp=1;"
        "schedule.name=1f1b;",
        0, 0);
    assert_null(find(s, "NIC and fabric bandwidth"));
    assert_null(find(s, "management network"));
    assert_null(find(s, "bandwidth above NICs"));
    assert_non_null(find(s, "NVLink bandwidth"));
    assert_true(s->record->sensitivity_factor == ORR_SENSITIVITY_FACTOR);
    step_free(s);
    s = varied(CLOS "nccl.NCCL_IB_HCA=no_such;", 0, 0);
    assert_null(find(s, "NIC and fabric bandwidth"));
    assert_true(find(s, "management network")->step_time_ns < s->record->step_time_ns);
    step_free(s);
    s = varied(CLOS, 0, 0); /* nothing is oversubscribed */
    assert_null(find(s, "bandwidth above NICs"));
    step_free(s);
}

static void test_threads_do_not_matter_and_the_order_is_by_what_is_saved(void **state) {
    (void)state;
    Step *one = varied(CLOS, 0, 1), *many = varied(CLOS, 0, 5);
    g_autofree char *a = step_json(one), *b = step_json(many);
    assert_string_equal(a, b);
    for (uint32_t i = 1; i < one->record->n_sensitivities; i++)
        assert_true(one->record->sensitivities[i - 1].step_time_ns <=
                    one->record->sensitivities[i].step_time_ns);
    step_free(one);
    step_free(many);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_more_is_what_the_keys_set_gives),
        cmocka_unit_test(test_as_much_as_before_is_the_step_itself),
        cmocka_unit_test(test_what_the_machine_lacks_is_not_varied),
        cmocka_unit_test(test_threads_do_not_matter_and_the_order_is_by_what_is_saved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
