#include "tests/longest_path.h"

#include <glib.h>

typedef struct {
    const OrrOrder *order;
    const LongestPathTimes *times;
    uint32_t n_virtual;
    int64_t *end_ns; /* [pass][virtual stage][micro-batch] */
    uint32_t *stage_of;
} Paths;

static int64_t *end_of(Paths *p, OrrPass pass, uint32_t v, uint32_t m) {
    return &p->end_ns[((size_t)pass * p->n_virtual + v) * p->order->shape.n_micro_batches + m];
}

static int64_t after(Paths *p, OrrPass pass, uint32_t from, uint32_t to, uint32_t m) {
    return *end_of(p, pass, from, m) +
           (p->stage_of[from] != p->stage_of[to] ? p->times->p2p_ns : 0);
}

static int64_t ready_ns(Paths *p, const OrrSlot *slot, uint32_t v) {
    uint32_t m = slot->micro_batch;
    if (slot->pass == ORR_F)
        return v == 0 ? 0 : after(p, ORR_F, v - 1, v, m);
    if (slot->pass == ORR_W)
        return *end_of(p, ORR_I, v, m);
    int64_t ready = *end_of(p, ORR_F, v, m);
    if (v + 1 < p->n_virtual) {
        ready = MAX(ready, after(p, ORR_B, v + 1, v, m));
        ready = MAX(ready, after(p, ORR_I, v + 1, v, m));
    }
    return ready;
}

/* One sweep over a stage; true if an end moved. */
static bool relax(Paths *p, uint32_t s) {
    const OrrOrder *o = p->order;
    bool has_moved = false;
    int64_t free_ns = 0;
    for (uint32_t i = o->first[s]; i < o->first[s + 1]; i++) {
        const OrrSlot *slot = &o->slots[i];
        uint32_t v = o->virtual_stage[s * o->shape.n_chunks + slot->chunk];
        int64_t start = MAX(free_ns, ready_ns(p, slot, v));
        free_ns = start + p->times->pass_ns[slot->pass][v];
        int64_t *end = end_of(p, slot->pass, v, slot->micro_batch);
        has_moved = has_moved || *end != free_ns;
        *end = free_ns;
    }
    return has_moved;
}

int64_t longest_path_ns(const OrrOrder *order, const LongestPathTimes *times) {
    const OrrPipeShape *shape = &order->shape;
    Paths p = {.order = order, .times = times, .n_virtual = shape->n_stages * shape->n_chunks};
    size_t n_passes = (size_t)ORR_N_PASSES * p.n_virtual * shape->n_micro_batches;
    g_autofree int64_t *end_ns = p.end_ns = g_new0(int64_t, n_passes);
    g_autofree uint32_t *stage_of = p.stage_of = g_new0(uint32_t, p.n_virtual);
    for (uint32_t i = 0; i < p.n_virtual; i++)
        stage_of[order->virtual_stage[i]] = i / shape->n_chunks;

    /* A path visits each pass once; ends that still move after so many sweeps are on a cycle. */
    bool has_moved = true;
    for (size_t sweep = 0; has_moved && sweep <= n_passes; sweep++) {
        has_moved = false;
        for (uint32_t s = 0; s < shape->n_stages; s++)
            has_moved = relax(&p, sweep % 2 == 0 ? s : shape->n_stages - 1 - s) || has_moved;
    }
    if (has_moved)
        return -1;
    int64_t last_ns = 0;
    for (size_t i = 0; i < n_passes; i++)
        last_ns = MAX(last_ns, end_ns[i]);
    return last_ns;
}
