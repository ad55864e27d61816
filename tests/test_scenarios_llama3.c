/* Llama 3 405B on 16,384 and 8,192 H100 (Llama 3 paper, section 3.3 and table 4): 400 and 430
 * TFLOP/s per GPU, in 80 GB; nothing is fitted to these rows. */
#include "tests/near.h"

#include "tests/step_helpers.h"

static void check(const char *job, double tflops, double *measured) {
    Step *s = step_new(job, "", 0);
    assert_string_equal(s->record->flops_formula, "megatron");
    *measured = s->record->tflops_per_gpu;
    if (s->record->verdict == ORR_DOES_NOT_FIT)
        fail_msg("%s does not fit", job);
    assert_near(*measured, tflops, 0.10);
    step_free(s);
}

static void test_llama3_on_16k_and_8k_gpus(void **state) {
    (void)state;
    double large, small;
    check("llama3-405b-16k", 400, &large);
    check("llama3-405b-8k", 430, &small);
    assert_near(large / small, 400.0 / 430, 0.03);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_llama3_on_16k_and_8k_gpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
