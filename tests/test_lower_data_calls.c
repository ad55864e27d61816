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

int main(void) {
    if (!g_getenv("top_srcdir")) /* by hand, from the build folder */
        g_setenv("top_srcdir", "..", TRUE);
    g_setenv("ORRERY_DATA", g_getenv("top_srcdir"), TRUE);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layer_larger_than_a_bucket_takes_several_calls),
        cmocka_unit_test(test_flat_gather_is_copied_slice_by_slice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
