/* The caching allocator: what PyTorch's documentation and source say of sizes, reuse, splits and
 * the limit; and what it makes of a program whose host runs ahead. */
#include "sim/program/allocator.h"
#include "sim/program/builder.h"
#include "sim/program/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define MIB INT64_C(0x100000)
#define PLENTY (INT64_C(1) << 40)

G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrAllocator, orr_allocator_free)

static void test_segments_are_of_2_and_20_mib_or_of_their_own(void **state) {
    (void)state;
    g_autoptr(OrrAllocator) a = orr_allocator_new(PLENTY, false);
    orr_allocator_take(a, 1); /* 512 bytes of a small segment */
    assert_int_equal(orr_allocator_peak(a), 2 * MIB);
    orr_allocator_take(a, MIB); /* fits beside */
    assert_int_equal(orr_allocator_peak(a), 2 * MIB);
    orr_allocator_take(a, MIB); /* a byte's rounding is in the way: another */
    assert_int_equal(orr_allocator_peak(a), 4 * MIB);
    orr_allocator_take(a, 3 * MIB);
    orr_allocator_take(a, 3 * MIB);
    assert_int_equal(orr_allocator_peak(a), 24 * MIB);
    orr_allocator_take(a, 31 * MIB + 1); /* of its own, up to 2 MiB */
    assert_int_equal(orr_allocator_peak(a), 56 * MIB);
}

static void test_the_smallest_block_that_is_large_enough_is_split(void **state) {
    (void)state;
    g_autoptr(OrrAllocator) a = orr_allocator_new(PLENTY, false);
    uint32_t large = orr_allocator_take(a, 200 * MIB), small = orr_allocator_take(a, 100 * MIB);
    orr_allocator_give(a, large);
    orr_allocator_give(a, small);
    uint32_t in_small = orr_allocator_take(a, 60 * MIB);
    orr_allocator_take(a, 40 * MIB);  /* the rest of the small one */
    orr_allocator_take(a, 200 * MIB); /* so the large one is whole */
    assert_int_equal(orr_allocator_peak(a), 300 * MIB);
    orr_allocator_give(a, in_small);
    orr_allocator_take(a, 61 * MIB); /* two pieces of 60 and 0 do not make it */
    assert_int_equal(orr_allocator_peak(a), 362 * MIB);
}

static void test_free_neighbours_become_one_in_any_order(void **state) {
    (void)state;
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int i = 0; i < 6; i++) {
        g_autoptr(OrrAllocator) a = orr_allocator_new(PLENTY, false);
        uint32_t ids[3];
        orr_allocator_give(a, orr_allocator_take(a, 90 * MIB));
        for (int k = 0; k < 3; k++)
            ids[k] = orr_allocator_take(a, 30 * MIB);
        for (int k = 0; k < 3; k++)
            orr_allocator_give(a, ids[orders[i][k]]);
        orr_allocator_take(a, 90 * MIB);
        assert_int_equal(orr_allocator_peak(a), 90 * MIB);
    }
}

static void test_at_the_limit_unused_segments_go_back(void **state) {
    (void)state;
    g_autoptr(OrrAllocator) a = orr_allocator_new(100 * MIB, false);
    orr_allocator_give(a, orr_allocator_take(a, 60 * MIB));
    assert_true(orr_allocator_has(a, 60 * MIB));
    assert_false(orr_allocator_has(a, 80 * MIB));
    orr_allocator_take(a, 80 * MIB);
    assert_int_equal(orr_allocator_peak(a), 80 * MIB);
    assert_false(orr_allocator_has(a, 60 * MIB));
    orr_allocator_take(a, 60 * MIB); /* is not to be had, but counted */
    assert_int_equal(orr_allocator_peak(a), 140 * MIB);
}

static void test_expandable_segments_leave_no_holes_between(void **state) {
    (void)state;
    g_autoptr(OrrAllocator) a = orr_allocator_new(PLENTY, true);
    orr_allocator_take(a, 60 * MIB);
    uint32_t last = orr_allocator_take(a, 40 * MIB);
    orr_allocator_give(a, last);
    orr_allocator_take(a, 50 * MIB); /* grows by ten */
    assert_int_equal(orr_allocator_peak(a), 110 * MIB);
}

static const OrrKernel kernel = {.kind = ORR_K_GEMM,
                                 .dtype = ORR_BF16,
                                 .m = 1,
                                 .n = 1,
                                 .k = 1,
                                 .batch = 1,
                                 .flops = 2,
                                 .launches = 1};

/* A product whose output a collective reads, @n times; each frees it behind itself. */
static OrrProgram *sends(uint32_t n, bool waits) {
    OrrBuilder *b = orr_builder_new();
    OrrColl coll = {.kind = ORR_ALL_REDUCE, .group = ORR_GROUP_TP, .dtype = ORR_BF16, .bytes = 8};
    orr_builder_role_begin(b, "only", 0);
    orr_builder_segment_begin(b, "a");
    for (uint32_t i = 0; i < n; i++) {
        uint32_t made = orr_builder_kernel(b, ORR_STREAM_COMPUTE, &kernel);
        orr_builder_mem(b, ORR_MEM_ACTIVATIONS, false, 32 * MIB);
        uint32_t sent = orr_builder_coll(b, ORR_STREAM_TP, &coll);
        orr_builder_wait(b, made);
        orr_builder_mem_shared(b, ORR_MEM_ACTIVATIONS, 32 * MIB);
        if (waits) {
            orr_builder_host(b, 0);
            orr_builder_wait(b, sent);
        }
    }
    orr_builder_call(b, orr_builder_segment_end(b), ORR_F, 0, 0);
    orr_builder_segment_begin(b, "end");
    orr_builder_kernel(b, ORR_STREAM_COMPUTE, &kernel);
    orr_builder_step_end(b);
    orr_builder_call(b, orr_builder_segment_end(b), ORR_N_PASSES, 0, 0);
    orr_builder_role_end(b);
    return orr_builder_finish(b);
}

static int64_t cached(OrrProgram *program, const OrrMemoryTerms *terms) {
    int64_t peak, by_kind[1][ORR_N_MEM_KINDS];
    orr_program_memory(program, terms, &peak, by_kind);
    assert_int_equal(by_kind[0][ORR_MEM_ACTIVATIONS], 32 * MIB);
    orr_program_free(program);
    return by_kind[0][ORR_MEM_ALLOCATOR];
}

static void test_what_a_collective_reads_is_held_while_the_host_is_ahead(void **state) {
    (void)state;
    int64_t kernel_ns = 1000, slow_ns = 1000000, none = 0;
    OrrRolePace device_slow = {&kernel_ns, &slow_ns, &none, 10, 10};
    OrrRolePace host_slow = {&kernel_ns, &kernel_ns, &none, 100000, 100000};
    OrrMemoryTerms terms = {.limit_bytes = PLENTY, .paces = &device_slow};
    assert_int_equal(cached(sends(10, false), &terms), 19 * 32 * MIB); /* of two steps */
    assert_int_equal(cached(sends(10, true), &terms), 0); /* the host waits each time */
    terms.paces = &host_slow;
    assert_int_equal(cached(sends(10, false), &terms), 0);
    terms.paces = NULL;
    assert_int_equal(cached(sends(10, false), &terms), 19 * 32 * MIB);
    assert_int_equal(cached(sends(3000, false), &terms), 512 * 32 * MIB); /* 1,024 launches */
    terms.limit_bytes = 100 * MIB; /* then the allocator waits for the device */
    assert_true(cached(sends(10, false), &terms) <= 100 * MIB);
}

static void test_moments_are_made_in_what_the_first_step_left(void **state) {
    (void)state;
    OrrBuilder *b = orr_builder_new();
    orr_builder_role_begin(b, "only", 0);
    orr_builder_role_static(b, ORR_MEM_OPTIMIZER, 96 * MIB);
    orr_builder_role_late(b, 64 * MIB, 2);
    orr_builder_segment_begin(b, "step");
    orr_builder_kernel(b, ORR_STREAM_COMPUTE, &kernel);
    orr_builder_mem(b, ORR_MEM_ACTIVATIONS, false, 80 * MIB);
    orr_builder_mem(b, ORR_MEM_ACTIVATIONS, true, -80 * MIB);
    orr_builder_kernel(b, ORR_STREAM_COMPUTE, &kernel);
    orr_builder_step_end(b);
    orr_builder_call(b, orr_builder_segment_end(b), ORR_N_PASSES, 0, 0);
    orr_builder_role_end(b);
    g_autoptr(OrrProgram) p = orr_builder_finish(b);
    OrrMemoryTerms terms = {.limit_bytes = PLENTY};
    int64_t peak, by_kind[1][ORR_N_MEM_KINDS];
    orr_program_memory(p, &terms, &peak, by_kind);
    /* 32 + 80, both moments of 32 in the 80, then 80 anew where 16 are left */
    assert_int_equal(peak, (32 + 80 + 80) * MIB);
    assert_int_equal(by_kind[0][ORR_MEM_OPTIMIZER], 96 * MIB);
    assert_int_equal(by_kind[0][ORR_MEM_ALLOCATOR], 16 * MIB);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_segments_are_of_2_and_20_mib_or_of_their_own),
        cmocka_unit_test(test_the_smallest_block_that_is_large_enough_is_split),
        cmocka_unit_test(test_free_neighbours_become_one_in_any_order),
        cmocka_unit_test(test_at_the_limit_unused_segments_go_back),
        cmocka_unit_test(test_expandable_segments_leave_no_holes_between),
        cmocka_unit_test(test_what_a_collective_reads_is_held_while_the_host_is_ahead),
        cmocka_unit_test(test_moments_are_made_in_what_the_first_step_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
