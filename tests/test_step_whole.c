/* Whole steps: the same bytes twice, accounts that add up, steady periods, and what hides what. */
#include "tests/near.h"

#include "tests/step_helpers.h"

#include <glib.h>
#include <string.h>

static const char *const jobs[] = {"tiny",         "tiny-pipeline",  "gpt2-1",
                                   "llama3-8b-8",  "megatron-22b-8", "gpt2-meg-v100-pp16",
                                   "llama2-13b-64"};

static void test_steps_give_the_same_bytes_twice(void **state) {
    (void)state;
    for (size_t i = 0; i < G_N_ELEMENTS(jobs); i++) {
        Step *a = step_new(jobs[i], "", 0), *b = step_new(jobs[i], "", STEP_CHECKED);
        g_autofree char *x = step_json(a), *y = step_json(b);
        assert_string_equal(x, y);
        step_free(a);
        step_free(b);
    }
}

/* What compute waits for is booked once: as the transfer or the wait of a communication, or before
 * its launch. */
static void test_exposed_time_of_communication_is_in_the_account(void **state) {
    (void)state;
    for (size_t i = 0; i < G_N_ELEMENTS(jobs); i++) {
        Step *s = step_new(jobs[i], "", STEP_CHECKED);
        const int64_t *account = s->record->time_account_ns;
        double booked = (double)account[ORR_OWN_BUBBLE] + (double)account[ORR_OWN_STRAGGLER];
        double exposed = 0;
        for (int k = 0; k < ORR_N_COMM_KINDS; k++)
            booked += (double)account[ORR_OWN_EXPOSED_FIRST + k];
        for (uint32_t k = 0; k < s->record->n_comms; k++)
            if (s->record->comms[k].group_size != 2) /* of some ranks only */
                exposed += (double)s->record->comms[k].exposed_ns;
        assert_true(s->record->is_periodic);
        assert_true(exposed <= booked * 1.001 + 1000);
        step_free(s);
    }
}

#define SHARDED                                                                                    \
    "job.framework=pytorch-fsdp;layout.tp=1;layout.pp=1;layout.vpp=1;layout.dp=16;"                \
    "layout.zero_stage=3;layout.sequence_parallel=no;schedule.name=1f1b;"                          \
    "batch.global=16 sequences;batch.micro=1 sequence;model.hidden=1024;model.ffn=4096;"           \
    "model.heads=8;model.head_dim=128;batch.sequence=4096 tokens;"

static double exposed(const Step *s, OrrCommKind kind) {
    return (double)s->record->time_account_ns[ORR_OWN_EXPOSED_FIRST + kind] /
           (double)s->record->step_time_ns;
}

/* Gathers and reductions run beside compute: a fast network hides them, a slow one shows nearly all
 * of its transfers. */
static void test_gathers_hide_on_a_fast_network_and_show_on_a_slow_one(void **state) {
    (void)state;
    Step *fast = step_new("tiny-pipeline",
                          SHARDED "job.cluster=clos:16 node:4 gpu:h100 nic:400G;"
                                  "layout.reshard_after_forward=yes",
                          STEP_CHECKED);
    Step *slow = step_new("tiny-pipeline",
                          SHARDED "job.cluster=clos:16 node:4 gpu:h100 nics:1 nic:10G;"
                                  "layout.reshard_after_forward=yes",
                          STEP_CHECKED);
    Step *kept = step_new("tiny-pipeline",
                          SHARDED "job.cluster=clos:16 node:4 gpu:h100 nics:1 nic:10G;"
                                  "layout.reshard_after_forward=no",
                          STEP_CHECKED);
    OrrRecordComm gather = step_comm(slow, ORR_COMM_DP_PARAMETER, ORR_ALL_GATHER);
    assert_true(exposed(fast, ORR_COMM_DP_PARAMETER) < 0.2);
    assert_true(exposed(slow, ORR_COMM_DP_PARAMETER) > 0.3);
    assert_true(gather.transfer_ns < slow->record->step_time_ns);
    assert_true(gather.exposed_ns > gather.transfer_ns / 2);
    assert_true(kept->record->step_time_ns < slow->record->step_time_ns);
    step_free(fast);
    step_free(slow);
    step_free(kept);
}

/* No collective is faster than its bytes over the wire: (n-1)/n of S through one NIC a node. */
static void test_gathers_are_not_faster_than_the_wire(void **state) {
    (void)state;
    Step *s = step_new("tiny-pipeline",
                       SHARDED "job.cluster=clos:16 node:1 gpu:h100 nics:1 nic:10G;"
                               "layout.reshard_after_forward=yes",
                       STEP_CHECKED);
    OrrRecordComm gather = step_comm(s, ORR_COMM_DP_PARAMETER, ORR_ALL_GATHER);
    OrrRecordComm reduce = step_comm(s, ORR_COMM_DP_GRADIENT, ORR_REDUCE_SCATTER);
    assert_true((double)gather.transfer_ns >= (double)gather.bytes * 15 / 16 / 1.25);
    assert_true((double)reduce.transfer_ns >= (double)reduce.bytes * 15 / 16 / 1.25);
    step_free(s);
}

/* The kernels of a step are there once, whatever hides them. */
static void test_compute_does_not_depend_on_the_network(void **state) {
    (void)state;
    int64_t gemm[2];
    static const char *const nics[] = {"400G", "10G"};
    for (int i = 0; i < 2; i++) {
        g_autofree char *sets =
            g_strdup_printf(SHARDED "job.cluster=clos:16 node:4 gpu:h100 nic:%s", nics[i]);
        Step *s = step_new("tiny-pipeline", sets, STEP_CHECKED);
        gemm[i] = s->record->time_account_ns[ORR_K_GEMM];
        step_free(s);
    }
    assert_int_equal(gemm[0], gemm[1]);
}

/* Times beyond are no longer whole nanoseconds; layers beyond are a slip of the keyboard. */
static void test_steps_of_days_are_refused(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"model.hidden=8388608;model.ffn=16000000", "llama3-8b-8.ini: the kernels of a step take"},
        {"model.layers=1000000", "1 to 10000"}};
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(step_try("llama3-8b-8", rows[i][0], 0, &error));
        if (error->code != ORR_ERROR_INPUT || !strstr(error->message, rows[i][1]))
            fail_msg("\"%s\" does not say \"%s\"", error->message, rows[i][1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_give_the_same_bytes_twice),
        cmocka_unit_test(test_exposed_time_of_communication_is_in_the_account),
        cmocka_unit_test(test_gathers_hide_on_a_fast_network_and_show_on_a_slow_one),
        cmocka_unit_test(test_gathers_are_not_faster_than_the_wire),
        cmocka_unit_test(test_compute_does_not_depend_on_the_network),
        cmocka_unit_test(test_steps_of_days_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
