#include "sim/base/parallel.h"

#include <glib.h>

typedef struct {
    void (*piece)(void *data, uint32_t i);
    void *data;
    uint32_t n;
    gint next;         /* piece; atomic */
    GAsyncQueue *done; /* a token a piece */
} Work;

static gpointer worker(gpointer data) {
    Work *w = data;
    for (;;) {
        uint32_t i = (uint32_t)g_atomic_int_add(&w->next, 1);
        if (i >= w->n)
            return NULL;
        w->piece(w->data, i);
        g_async_queue_push(w->done, w);
    }
}

void orr_parallel(uint32_t n, uint32_t n_threads, void (*piece)(void *data, uint32_t i), void *data,
                  const OrrParallelProgress *progress) {
    if (n == 0)
        return;
    Work w = {.piece = piece, .data = data, .n = n, .done = g_async_queue_new()};
    n_threads = CLAMP(n_threads ? n_threads : g_get_num_processors(), 1, n);
    g_autofree GThread **threads = g_new(GThread *, n_threads);
    for (uint32_t t = 0; t < n_threads; t++)
        threads[t] = g_thread_new("piece", worker, &w);
    for (uint32_t i = 0; i < n; i++) {
        g_async_queue_pop(w.done);
        if (progress && progress->told)
            progress->told(progress->data, i + 1);
    }
    for (uint32_t t = 0; t < n_threads; t++)
        g_thread_join(threads[t]);
    g_async_queue_unref(w.done);
}
