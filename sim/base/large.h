/* Memory for large arrays that are visited in no order: large pages spare most address lookups. */
#ifndef ORR_BASE_LARGE_H
#define ORR_BASE_LARGE_H

#include <glib.h>

#define ORR_LINE 64u                                     /* bytes of a cache line */
#define ORR_INLINE inline __attribute__((always_inline)) /* whatever the compiler thinks of it */

/* @bytes of zeros that begin a pair of cache lines; from a megabyte on in large pages, where the
 * system has them. Never NULL; free(), or g_free() where the owner frees by that. */
void *orr_large_new(gsize bytes);
/* The same with a copy of @bytes at @from, which may be NULL if there are none. */
void *orr_large_dup(const void *from, gsize bytes);
/* @block, which may be NULL, with room for @bytes; its @old_bytes are kept, as far as there is
 * room. */
void *orr_large_renew(void *block, gsize old_bytes, gsize bytes);

/* Memory that comes piece by piece and goes all at once; zero: empty. Blocks double in size, so
 * that most of what many small pieces take is in large pages. */
typedef struct {
    GPtrArray *blocks;
    char *next;
    gsize left, block_bytes;
} OrrPool;

/* @bytes of zeros that begin a pair of cache lines, until the pool is cleared. Never NULL. */
void *orr_pool_take(OrrPool *pool, gsize bytes);
/* Frees all that was taken; the pool is empty then. */
void orr_pool_clear(OrrPool *pool);

#endif
