/* Memory of the event queue: heap[1] begins a cache line, large heaps lie in large pages. */
#include "sim/core/queue.h"

#include "sim/base/large.h"

#include <stdlib.h>
#include <string.h>

#define LINE 64u                        /* bytes of a cache line: four entries */
#define LEAD (LINE - sizeof(OrrQueued)) /* before heap[0] */
#define FIRST_CAPACITY 29u /* eight lines with the lead: executions have thousands of queues */

static OrrQueued *heap_new(uint32_t capacity) {
    char *base = orr_large_new(LEAD + (gsize)capacity * sizeof(OrrQueued));
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
