/* Runs an order without times: every pass once, and no pass that waits for ever. A stage runs its
 * slots in order; each time a pass is done, the stages that may wait for it look again. Cost: one
 * visit a slot. */
#include "sim/schedule/schedules.h"

#include <glib.h>
#include <string.h>

typedef struct {
    const OrrOrder *order;
    uint32_t n_virtual; /* P * V */
    uint8_t *is_done;   /* [pass][virtual stage][micro-batch] */
    uint32_t *owner;    /* [virtual stage]: its stage */
    uint32_t *next;     /* [stage]: first slot that is not done */
} Run;

static size_t at(const Run *r, OrrPass pass, uint32_t virtual_stage, uint32_t micro_batch) {
    return ((size_t)pass * r->n_virtual + virtual_stage) * r->order->shape.n_micro_batches +
           micro_batch;
}

static uint32_t virtual_of(const OrrOrder *order, uint32_t stage, const OrrSlot *slot) {
    return order->virtual_stage[stage * order->shape.n_chunks + slot->chunk];
}

static void run_clear(Run *r) {
    g_free(r->is_done);
    g_free(r->owner);
    g_free(r->next);
}

static char *places_flaw(Run *r) {
    const OrrPipeShape *shape = &r->order->shape;
    for (uint32_t v = 0; v < r->n_virtual; v++)
        r->owner[v] = ORR_NONE;
    for (uint32_t i = 0; i < r->n_virtual; i++) {
        uint32_t v = r->order->virtual_stage[i];
        if (v >= r->n_virtual)
            return g_strdup_printf("virtual stage %u of %u", v, r->n_virtual);
        if (r->owner[v] != ORR_NONE)
            return g_strdup_printf("virtual stage %u is on two stages", v);
        r->owner[v] = i / shape->n_chunks;
    }
    return NULL;
}

static char *twice_flaw(Run *r) {
    const OrrOrder *o = r->order;
    for (uint32_t s = 0; s < o->shape.n_stages; s++) {
        for (uint32_t i = o->first[s]; i < o->first[s + 1]; i++) {
            const OrrSlot *slot = &o->slots[i];
            if (slot->pass >= ORR_N_PASSES || slot->chunk >= o->shape.n_chunks ||
                slot->micro_batch >= o->shape.n_micro_batches)
                return g_strdup_printf(
                    "stage %u, entry %u: pass, chunk or micro-batch out of range", s,
                    i - o->first[s]);
            uint32_t v = virtual_of(o, s, slot);
            uint8_t *seen = &r->is_done[at(r, slot->pass, v, slot->micro_batch)];
            if (*seen)
                return g_strdup_printf("%u%s%u comes twice", v, orr_pass_name(slot->pass),
                                       slot->micro_batch);
            *seen = 1;
        }
    }
    return NULL;
}

static char *missing_flaw(const Run *r) {
    for (uint32_t v = 0; v < r->n_virtual; v++) {
        for (uint32_t m = 0; m < r->order->shape.n_micro_batches; m++) {
            bool f = r->is_done[at(r, ORR_F, v, m)], b = r->is_done[at(r, ORR_B, v, m)];
            bool i = r->is_done[at(r, ORR_I, v, m)], w = r->is_done[at(r, ORR_W, v, m)];
            if (b && (i || w))
                return g_strdup_printf("%uB%u is the whole backward, and %u%s%u comes too", v, m, v,
                                       i ? "I" : "W", m);
            if (!f || (!b && !(i && w)))
                return g_strdup_printf("%u%s%u is missing: each of %u micro-batches needs F, and B "
                                       "or I with W, on each of %u virtual stages",
                                       v,
                                       !f  ? "F"
                                       : i ? "W"
                                       : w ? "I"
                                           : "B",
                                       m, r->order->shape.n_micro_batches, r->n_virtual);
        }
    }
    return NULL;
}

/* What @slot still waits for: true with *@pass and *@virtual_stage. */
static bool waits_for(const Run *r, uint32_t stage, const OrrSlot *slot, OrrPass *pass,
                      uint32_t *virtual_stage) {
    uint32_t v = virtual_of(r->order, stage, slot), m = slot->micro_batch;
    *virtual_stage = v;
    if (slot->pass == ORR_F) {
        *pass = ORR_F;
        *virtual_stage = v - 1;
        return v > 0 && !r->is_done[at(r, ORR_F, v - 1, m)];
    }
    if (slot->pass == ORR_W) {
        *pass = ORR_I;
        return !r->is_done[at(r, ORR_I, v, m)];
    }
    *pass = ORR_F;
    if (!r->is_done[at(r, ORR_F, v, m)])
        return true;
    if (v + 1 == r->n_virtual || r->is_done[at(r, ORR_B, v + 1, m)] ||
        r->is_done[at(r, ORR_I, v + 1, m)])
        return false;
    *pass = ORR_B;
    *virtual_stage = v + 1;
    return true;
}

/* Runs @stage as far as it goes; the stages of neighbouring chunks are put on @todo. */
static void advance(Run *r, uint32_t stage, GArray *todo) {
    const OrrOrder *o = r->order;
    while (r->next[stage] < o->first[stage + 1]) {
        uint32_t first = r->next[stage], end = first + 1, v;
        OrrPass pass;
        while (o->slots[end - 1].is_overlapped && end < o->first[stage + 1])
            end++;
        for (uint32_t i = first; i < end; i++)
            if (waits_for(r, stage, &o->slots[i], &pass, &v))
                return;
        for (uint32_t i = first; i < end; i++) {
            const OrrSlot *slot = &o->slots[i];
            v = virtual_of(o, stage, slot);
            r->is_done[at(r, slot->pass, v, slot->micro_batch)] = 1;
            if (slot->pass == ORR_F && v + 1 < r->n_virtual)
                g_array_append_val(todo, r->owner[v + 1]);
            else if ((slot->pass == ORR_B || slot->pass == ORR_I) && v > 0)
                g_array_append_val(todo, r->owner[v - 1]);
        }
        r->next[stage] = end;
    }
}

/* The slot of @stage's next group that waits, and for whom. */
static const OrrSlot *blocked_slot(const Run *r, uint32_t stage, OrrPass *pass, uint32_t *v) {
    const OrrOrder *o = r->order;
    for (uint32_t i = r->next[stage]; i < o->first[stage + 1]; i++)
        if (waits_for(r, stage, &o->slots[i], pass, v))
            return &o->slots[i];
    return NULL;
}

static char *cycle_text(const Run *r, uint32_t stage) {
    g_autofree uint8_t *is_seen = g_new0(uint8_t, r->order->shape.n_stages);
    OrrPass pass;
    uint32_t v;
    while (!is_seen[stage]) { /* walk into the cycle first */
        is_seen[stage] = 1;
        blocked_slot(r, stage, &pass, &v);
        stage = r->owner[v];
    }
    GString *text = g_string_new("the order hangs: ");
    uint32_t start = stage;
    do {
        const OrrSlot *slot = blocked_slot(r, stage, &pass, &v);
        if (stage != start)
            g_string_append(text, "; ");
        g_string_append_printf(text, "stage %u waits before %u%s%u for %u%s%u of stage %u", stage,
                               virtual_of(r->order, stage, slot), orr_pass_name(slot->pass),
                               slot->micro_batch, v, orr_pass_name(pass), slot->micro_batch,
                               r->owner[v]);
        stage = r->owner[v];
    } while (stage != start);
    return g_string_free(text, FALSE);
}

static char *hang_flaw(Run *r) {
    const OrrOrder *o = r->order;
    g_autoptr(GArray) todo = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    for (uint32_t s = 0; s < o->shape.n_stages; s++) {
        r->next[s] = o->first[s];
        g_array_append_val(todo, s);
    }
    while (todo->len > 0) {
        uint32_t stage = g_array_index(todo, uint32_t, todo->len - 1);
        g_array_set_size(todo, todo->len - 1);
        advance(r, stage, todo);
    }
    for (uint32_t s = 0; s < o->shape.n_stages; s++)
        if (r->next[s] < o->first[s + 1])
            return cycle_text(r, s);
    return NULL;
}

char *orr_order_flaw(const OrrOrder *order) {
    const OrrPipeShape *shape = &order->shape;
    Run r = {.order = order, .n_virtual = shape->n_stages * shape->n_chunks};
    size_t n_passes = (size_t)ORR_N_PASSES * r.n_virtual * shape->n_micro_batches;
    r.is_done = g_malloc0(n_passes);
    r.owner = g_new0(uint32_t, r.n_virtual);
    r.next = g_new0(uint32_t, shape->n_stages);
    char *flaw = places_flaw(&r);
    if (flaw == NULL)
        flaw = twice_flaw(&r);
    if (flaw == NULL)
        flaw = missing_flaw(&r);
    if (flaw == NULL) {
        memset(r.is_done, 0, n_passes);
        flaw = hang_flaw(&r);
    }
    run_clear(&r);
    return flaw;
}
