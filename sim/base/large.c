#include "sim/base/large.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LINES 128u              /* bytes of two cache lines: no type asks for more */
#define FIRST_BLOCK (64u << 10) /* bytes of a pool's */
#define MOST_BLOCK (8u << 20)
#define LARGE_PAGE (2u << 20) /* bytes of a large page of x86-64, and of ARM with 4 KiB pages */

void *orr_large_new(gsize bytes) {
    bool is_large = bytes >= LARGE_PAGE / 2;
    gsize unit = is_large ? LARGE_PAGE : LINES, whole = (bytes + unit - 1) / unit * unit;
    void *block = aligned_alloc(unit, MAX(whole, unit));
    if (!block)
        g_error("out of memory: %" G_GSIZE_FORMAT " bytes", whole);
    /* memory that has been in use has its small pages yet: given back, it comes anew, and zero */
    if (is_large && madvise(block, whole, MADV_HUGEPAGE) == 0 &&
        madvise(block, whole, MADV_DONTNEED) == 0)
        return block;
    memset(block, 0, bytes);
    return block;
}

void *orr_large_dup(const void *from, gsize bytes) {
    void *block = orr_large_new(bytes);
    if (bytes > 0)
        memcpy(block, from, bytes);
    return block;
}

void *orr_large_renew(void *block, gsize old_bytes, gsize bytes) {
    void *grown = orr_large_new(bytes);
    if (block)
        memcpy(grown, block, MIN(old_bytes, bytes));
    free(block);
    return grown;
}

void *orr_pool_take(OrrPool *pool, gsize bytes) {
    gsize whole = (MAX(bytes, 1) + LINES - 1) / LINES * LINES;
    if (whole > pool->left) {
        if (!pool->blocks)
            pool->blocks = g_ptr_array_new_with_free_func(free);
        pool->block_bytes = CLAMP(2 * pool->block_bytes, FIRST_BLOCK, MOST_BLOCK);
        pool->left = MAX(pool->block_bytes, whole);
        pool->next = orr_large_new(pool->left);
        g_ptr_array_add(pool->blocks, pool->next);
    }
    void *piece = pool->next;
    pool->next += whole;
    pool->left -= whole;
    return piece;
}

void orr_pool_clear(OrrPool *pool) {
    g_clear_pointer(&pool->blocks, g_ptr_array_unref);
    *pool = (OrrPool){0};
}
