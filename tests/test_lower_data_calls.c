/* Data-parallel calls of a profile: how a layer's gradients are cut into buckets, and how
 * parameters that were gathered as one buffer reach their tensors (nanotron: 52 MB of FP32; a copy
 * a rank and tensor). */
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

static void test_layer_larger_than_a_bucket_takes_several_calls(void **state) {
    (void)state;
    OrrStepRequest request;
    OrrOverride sets[2];
    g_autoptr(OrrStepRun) run = prepare("nanotron", &request, sets);
    assert_true(largest_gradient_call(orr_step_program(run)) <= 52000000);
    g_autoptr(OrrStepRun) whole = prepare("megatron-2023", &request, sets);
    assert_true(largest_gradient_call(orr_step_program(whole)) > 1000000000);
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
        cmocka_unit_test(test_layer_larger_than_a_bucket_takes_several_calls),
        cmocka_unit_test(test_flat_gather_is_copied_slice_by_slice),
        cmocka_unit_test(test_updated_parameters_are_broadcast_rank_by_rank),
        cmocka_unit_test(test_calls_by_lists_copy_a_view_a_rank_and_matrix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
