/* Data-parallel calls of a profile: how a layer's gradients are cut into buckets, and how
 * parameters that were gathered as one buffer reach their tensors (nanotron: 52 MB of FP32; a copy
 * a rank and tensor); and what hosts
 * compare before a call in PyTorch's debug mode. */
#include "sim/api/step.h"
#include "tests/near.h"

#include <string.h>

static OrrStepRun *prepare(const char *framework, OrrStepRequest *request, OrrOverride *sets) {
    sets[0] = (OrrOverride){"job", "framework", framework};
    sets[1] = (OrrOverride){"layout", "zero_stage", "1"};
    *request = (OrrStepRequest){.job = "llama3-8b-8", .overrides = sets, .n_overrides = 2};
    g_autoptr(GError) error = NULL;
    OrrStepRun *run = orr_step_prepare(request, &error);
    if (!run)
        fail_msg("%s", error->message);
    return run;
}

static int64_t largest_gradient_call(const OrrProgram *p) {
    int64_t most = 0;
    for (uint32_t i = 0; i < p->n_colls; i++)
        if (strcmp(p->colls[i].label, "grads") == 0)
            most = MAX(most, p->colls[i].bytes);
    return most;
}

static uint32_t launches_of(const OrrProgram *p, const char *label) {
    for (uint32_t i = 0; i < p->n_kernels; i++)
        if (strcmp(p->kernels[i].label, label) == 0)
            return p->kernels[i].launches;
    return 0;
}

/* Distinct calls in the program and their bytes, by kind and what they are for. */
static uint32_t calls_of(const OrrProgram *p, OrrCollective kind, const char *label,
                         int64_t *bytes) {
    uint32_t n = 0;
    *bytes = 0;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const OrrColl *coll = p->ops[i].kind == ORR_OP_COLL ? &p->colls[p->ops[i].what] : NULL;
        if (coll && coll->kind == kind && strcmp(coll->label, label) == 0) {
            *bytes += coll->bytes;
            n++;
        }
    }
    return n;
}

static OrrStepRun *replicated(OrrStepRequest *request, OrrOverride *sets, const char *whole) {
    sets[0] = (OrrOverride){"job", "framework", "nanotron"};
    sets[1] = (OrrOverride){"layout", "zero_stage", "0"};
    sets[2] = (OrrOverride){"framework", "bucket_whole_tensors", whole};
    *request = (OrrStepRequest){.job = "llama3-8b-8", .overrides = sets, .n_overrides = 3};
    g_autoptr(GError) error = NULL;
    OrrStepRun *run = orr_step_prepare(request, &error);
    if (!run)
        fail_msg("%s", error->message);
    return run;
}

/* Buckets of 52 MB: each of a layer's four matrices (67 to 470 MB) and each table is a call of its
 * own where a bucket ends behind a tensor, and is cut where it does not. */
static void test_bucket_ends_behind_the_tensor_that_fills_it(void **state) {
    (void)state;
    OrrStepRequest request;
    OrrOverride sets[3];
    int64_t bytes, cut_bytes;
    g_autoptr(OrrStepRun) run = replicated(&request, sets, "yes");
    assert_int_equal(calls_of(orr_step_program(run), ORR_ALL_REDUCE, "grads", &bytes), 4 * 32 + 2);
    assert_near((double)bytes, 4.0 * 8.03e9, 0.001);
    assert_int_equal(largest_gradient_call(orr_step_program(run)) / 4,
                     128257LL * 4096); /* and a norm */
    g_autoptr(OrrStepRun) cut = replicated(&request, sets, "no");
    assert_true(calls_of(orr_step_program(cut), ORR_ALL_REDUCE, "grads", &cut_bytes) > 17 * 32);
    assert_int_equal(cut_bytes, bytes);
    assert_true(largest_gradient_call(orr_step_program(cut)) <= 52000000);
}

/* No DistributedDataParallel under ZeRO-1: the whole buffer at once, and summed on every rank. */
static void test_sharded_optimizer_may_leave_gradients_to_one_call(void **state) {
    (void)state;
    OrrStepRequest request;
    OrrOverride sets[2];
    int64_t bytes;
    g_autoptr(OrrStepRun) run = prepare("nanotron", &request, sets);
    assert_int_equal(calls_of(orr_step_program(run), ORR_ALL_REDUCE, "grads", &bytes), 1);
    assert_near((double)bytes, 4.0 * 8.03e9, 0.001);
    assert_int_equal(calls_of(orr_step_program(run), ORR_REDUCE_SCATTER, "grads", &bytes), 0);
    g_autoptr(OrrStepRun) whole = prepare("megatron-2023", &request, sets);
    assert_true(largest_gradient_call(orr_step_program(whole)) > 1000000000);
}

/* Debug mode: the host compares every call with the others of its group, 220 us a rank. */
static void test_checked_calls_hold_the_host_by_the_size_of_the_group(void **state) {
    (void)state;
    OrrStepRequest request;
    OrrOverride sets[2];
    g_autoptr(OrrStepRun) run = prepare("nanotron-debug", &request, sets);
    const OrrProgram *p = orr_step_program(run);
    uint32_t n = 0;
    for (uint32_t i = 1; i < p->n_ops; i++) {
        if (p->ops[i].kind != ORR_OP_COLL)
            continue;
        assert_int_equal(p->ops[i - 1].kind, ORR_OP_HOST);
        assert_int_equal(p->ops[i - 1].what, 8 * 220000); /* data parallelism of 8 is the world */
        n++;
    }
    assert_true(n >= 3); /* gradients, norm, parameters */
    g_autoptr(OrrStepRun) plain = prepare("nanotron", &request, sets);
    p = orr_step_program(plain);
    for (uint32_t i = 1; i < p->n_ops; i++)
        if (p->ops[i].kind == ORR_OP_COLL)
            assert_false(p->ops[i - 1].kind == ORR_OP_HOST && p->ops[i - 1].what == 8 * 220000);
}

/* Half a launch for each of 8 ranks' slices of each tensor, and the join before. */
static void test_flat_gather_is_copied_slice_by_slice(void **state) {
    (void)state;
    OrrStepRequest request;
    OrrOverride sets[2];
    g_autoptr(OrrStepRun) run = prepare("nanotron", &request, sets);
    uint32_t n = launches_of(orr_step_program(run), "slices");
    assert_true(n > 8 * 32 * 4 / 2 && n < 8 * 32 * 12 / 2);
    g_autoptr(OrrStepRun) other = prepare("megatron-2023", &request, sets);
    assert_int_equal(launches_of(orr_step_program(other), "slices"), 0);
}

/* InternEvo: each of 8 ranks sends its tensors to all, the parts make up the BF16 parameters, and
 * gradients are summed whole; Megatron's distributed optimizer scatters and gathers. */
static void test_updated_parameters_are_broadcast_rank_by_rank(void **state) {
    (void)state;
    OrrStepRequest request;
    OrrOverride sets[2];
    int64_t bytes;
    g_autoptr(OrrStepRun) run = prepare("internevo", &request, sets);
    const OrrProgram *p = orr_step_program(run);
    assert_int_equal(calls_of(p, ORR_BROADCAST, "parameters", &bytes), 8);
    assert_near((double)bytes, 2.0 * 8.03e9, 0.001);
    assert_int_equal(calls_of(p, ORR_ALL_GATHER, "parameters", &bytes), 0);
    assert_int_equal(calls_of(p, ORR_REDUCE_SCATTER, "grads", &bytes), 0);
    assert_true(calls_of(p, ORR_ALL_REDUCE, "grads", &bytes) > 0);
    g_autoptr(OrrStepRun) other = prepare("megatron-2023", &request, sets);
    p = orr_step_program(other);
    assert_int_equal(calls_of(p, ORR_BROADCAST, "parameters", &bytes), 0);
    assert_true(calls_of(p, ORR_REDUCE_SCATTER, "grads", &bytes) > 0);
    assert_int_equal(calls_of(p, ORR_ALL_REDUCE, "grads", &bytes), 0);
}

/* DeepSpeed of 2021 takes lists: a copy for each of 8 ranks' view of each of a layer's matrices (q,
 * k and v as one, out, gate and up as one, down), nothing of it where one buffer is gathered. */
static void test_calls_by_lists_copy_a_view_a_rank_and_matrix(void **state) {
    (void)state;
    OrrStepRequest request;
    OrrOverride sets[2];
    g_autoptr(OrrStepRun) run = prepare("deepspeed-2021", &request, sets);
    assert_int_equal(launches_of(orr_step_program(run), "lists"), 0); /* ZeRO-1 here */
    sets[1].value = "3";
    g_autoptr(GError) error = NULL;
    g_autoptr(OrrStepRun) sharded = orr_step_prepare(&request, &error);
    assert_non_null(sharded);
    const OrrProgram *p = orr_step_program(sharded);
    uint32_t most = 0;
    for (uint32_t i = 0; i < p->n_kernels; i++)
        if (strcmp(p->kernels[i].label, "lists") == 0)
            most = MAX(most, p->kernels[i].launches);
    assert_int_equal(most, 8 * 4);
    sets[0].value = "deepspeed-zero3";
    g_autoptr(OrrStepRun) later = orr_step_prepare(&request, &error);
    assert_int_equal(launches_of(orr_step_program(later), "lists"), 0);
}

int main(void) {
    if (!g_getenv("top_srcdir")) /* by hand, from the build folder */
        g_setenv("top_srcdir", "..", TRUE);
    g_setenv("ORRERY_DATA", g_getenv("top_srcdir"), TRUE);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bucket_ends_behind_the_tensor_that_fills_it),
        cmocka_unit_test(test_sharded_optimizer_may_leave_gradients_to_one_call),
        cmocka_unit_test(test_checked_calls_hold_the_host_by_the_size_of_the_group),
        cmocka_unit_test(test_flat_gather_is_copied_slice_by_slice),
        cmocka_unit_test(test_updated_parameters_are_broadcast_rank_by_rank),
        cmocka_unit_test(test_calls_by_lists_copy_a_view_a_rank_and_matrix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
