/* Memory of large arrays. */
#include "tests/near.h"

#include "sim/base/large.h"

#include <stdlib.h>
#include <string.h>

/* Small ones, one in large pages, and both sides of the border between them. */
static const gsize sizes[] = {0, 1, 100, (1u << 20) - 1, 1u << 20, (4u << 20) + 1};

static void test_large_memory_begins_a_cache_line(void **state) {
    (void)state;
    for (guint i = 0; i < G_N_ELEMENTS(sizes); i++) {
        void *block = orr_large_new(sizes[i]);
        assert_int_equal((guintptr)block % 64, 0);
        free(block);
    }
}

static void test_large_memory_is_zero_where_another_was(void **state) {
    (void)state;
    for (guint round = 0; round < 3; round++)
        for (guint i = 0; i < G_N_ELEMENTS(sizes); i++) {
            unsigned char *block = orr_large_new(sizes[i]);
            for (gsize k = 0; k < sizes[i]; k += MAX(sizes[i] / 97, 1))
                assert_int_equal(block[k], 0);
            memset(block, 0xa5, sizes[i]);
            free(block);
        }
}

static void test_large_copy_has_the_same_bytes(void **state) {
    (void)state;
    gsize n = 3u << 20;
    unsigned char *from = test_malloc(n);
    for (gsize i = 0; i < n; i++)
        from[i] = (unsigned char)(i * 7 + i / 251);
    unsigned char *copy = orr_large_dup(from, n);
    assert_memory_equal(copy, from, n);
    free(copy);
    free(orr_large_dup(NULL, 0));
    test_free(from);
}

static void test_large_memory_keeps_its_bytes_when_it_grows(void **state) {
    (void)state;
    unsigned char *block = NULL;
    gsize old = 0;
    for (gsize n = 1000; n < 8u << 20; n = 3 * n) {
        block = orr_large_renew(block, old, n);
        assert_int_equal((guintptr)block % 64, 0);
        for (gsize i = 0; i < old; i++)
            assert_int_equal(block[i], (unsigned char)(i * 7 + i / 251));
        for (gsize i = old; i < n; i++)
            block[i] = (unsigned char)(i * 7 + i / 251);
        old = n;
    }
    block = orr_large_renew(block, old, 500);
    for (gsize i = 0; i < 500; i++)
        assert_int_equal(block[i], (unsigned char)(i * 7 + i / 251));
    free(block);
}

static void test_pieces_of_a_pool_are_apart_and_zero(void **state) {
    (void)state;
    OrrPool pool = {0};
    orr_pool_clear(&pool);
    for (guint round = 0; round < 2; round++) {
        unsigned char *piece[4000];
        for (guint i = 0; i < G_N_ELEMENTS(piece); i++) {
            gsize n = i % 1000 == 999 ? 9u << 20 : i * 7 % 1700;
            piece[i] = orr_pool_take(&pool, n);
            assert_int_equal((guintptr)piece[i] % 128, 0);
            for (gsize k = 0; k < n; k += MAX(n / 97, 1))
                assert_int_equal(piece[i][k], 0);
            memset(piece[i], (int)(i % 251), n);
        }
        for (guint i = 0; i < G_N_ELEMENTS(piece); i++)
            for (gsize k = 0, n = i % 1000 == 999 ? 9u << 20 : i * 7 % 1700; k < n; k++)
                assert_int_equal(piece[i][k], i % 251);
        orr_pool_clear(&pool);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_large_memory_keeps_its_bytes_when_it_grows),
        cmocka_unit_test(test_large_memory_begins_a_cache_line),
        cmocka_unit_test(test_large_memory_is_zero_where_another_was),
        cmocka_unit_test(test_pieces_of_a_pool_are_apart_and_zero),
        cmocka_unit_test(test_large_copy_has_the_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
