/* Memory of the event queue: heap[1] begins a cache line, large heaps lie in large pages. */
#include "sim/core/queue.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LINE 64u                        /* bytes of a cache line: four entries */
#define LARGE_PAGE (2u << 20)           /* bytes: fewer address lookups in heaps beyond that */
#define LEAD (LINE - sizeof(OrrQueued)) /* before heap[0] */
#define FIRST_CAPACITY 29u /* eight lines with the lead: executions have thousands of queues */

static OrrQueued *heap_new(uint32_t capacity) {
    gsize bytes = LEAD + (gsize)capacity * sizeof(OrrQueued);
    gsize align = bytes >= LARGE_PAGE ? LARGE_PAGE : LINE;
    gsize whole = (bytes + align - 1) / align * align;
    char *base = aligned_alloc(align, whole);
    if (base == NULL)
        g_error("out of memory: %" G_GSIZE_FORMAT " bytes for events", whole);
    if (align == LARGE_PAGE)
        madvise(base, whole, MADV_HUGEPAGE);
    return (OrrQueued *)(void *)(base + LEAD);
}

static void heap_free(OrrQueued *heap) {
    if (heap != NULL)
        free((char *)heap - LEAD);
}

void orr_queue__grow(OrrQueue *q) {
    uint32_t capacity = q->capacity > 0 ? 2 * q->capacity + 3 : FIRST_CAPACITY;
    OrrQueued *heap = heap_new(capacity);
    if (q->n > 0)
        memcpy(heap, q->heap, q->n * sizeof *heap);
    heap_free(q->heap);
    q->heap = heap;
    q->capacity = capacity;
}

void orr_queue_clear(OrrQueue *q) {
    heap_free(q->heap);
    orr_queue_init(q);
}
