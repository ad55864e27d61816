/* Tails of passes: what an island does in a pass after a meeting at whose end all its members go on
 * together, with nothing under way, is the same each time, counted from that end.
 *
 * Kernels of a rank always take the same time, collectives of an island too, so a pass that nothing
 * slows from outside is evaluated to the end once for each segment with such a meeting (passes.c);
 * of what follows the meeting is kept what others ask for, and added to the meeting's end from then
 * on. It is kept for islands that are alike together, and for members on the same hardware once.
 * What it charges its members, and adds to the sums of collectives, is multiplied out once a step.
 * Cost: with all ranks different some 150 bytes a rank and segment that its role has. */
#include "sim/exec/pass.h"

#include <string.h>

#define MOST_FETCHED 320u /* bytes: those of eight members, of whom an end or two are asked for */

static OrrPassClass *class_new(const OrrExec *x, const OrrIslandPass *pass) {
    uint32_t n = x->passes->n_tails;
    OrrPassClass *c = orr_pool_take(&x->passes->tails,
                                    sizeof *c + n * sizeof *c->tails + pass->n * sizeof *c->row);
    const uint32_t *hw = x->bound->hw;
    c->tails = (OrrPassTail **)(c + 1);
    c->row = (uint8_t *)(c->tails + n);
    for (uint32_t m = 0; m < pass->n; m++) {
        uint32_t same = 0;
        while (hw[pass->list[same]] != hw[pass->list[m]])
            same++;
        c->row[m] = same < m ? c->row[same] : c->n_rows++;
    }
    return c;
}

/* All that the tails of an island depend on. */
static GBytes *key_of(const OrrExec *x, const OrrIslandPass *pass, uint32_t island) {
    g_autoptr(GArray) key = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    uint32_t plans =
        x->is_local_group[ORR_GROUP_TP] ? x->bound->groups[ORR_GROUP_TP].class_of[island] : 0;
    g_array_append_val(key, plans);
    for (uint32_t m = 0; m < pass->n; m++) {
        g_array_append_val(key, x->bound->hw[pass->list[m]]);
        g_array_append_val(key, x->bound->weight[pass->list[m]]);
    }
    return g_bytes_new(key->data, key->len * sizeof(uint32_t));
}

void orr_pass__classes_new(OrrExec *x) {
    OrrPasses *p = x->passes;
    if (p->n_tails == 0)
        return;
    g_autoptr(GHashTable) known =
        g_hash_table_new_full(g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref, NULL);
    for (uint32_t i = 0; i < x->n_islands; i++) {
        GBytes *key = key_of(x, &p->islands[i], i);
        OrrPassClass *class = g_hash_table_lookup(known, key);
        if (!class) {
            class = class_new(x, &p->islands[i]);
            g_hash_table_insert(known, g_bytes_ref(key), class);
        }
        p->islands[i].class = class;
        g_bytes_unref(key);
    }
}

void orr_pass__classes_clear(OrrExec *x) {
    orr_pool_clear(&x->passes->tails);
    orr_pool_clear(&x->passes->charges);
}

static OrrTailsTaken *slot_of(const OrrExec *x, const OrrIslandPass *pass,
                              const OrrCompiledSegment *segment) {
    return &pass->taken[x->passes->tail_of[segment - x->compiled->segments]];
}

const OrrPassTail *orr_pass__tail_of(const OrrExec *x, OrrIslandPass *pass,
                                     const OrrCompiledSegment *segment) {
    OrrTailsTaken *slot = slot_of(x, pass, segment);
    if (slot->tail == NULL) /* an island like it may have been there */
        slot->tail = pass->class->tails[slot - pass->taken];
    return slot->tail;
}

static void take_member(const OrrPassTail *tail, uint32_t row, OrrPassMember *m) {
    const int64_t *coll_end_ns = tail->ns + tail->n_rows;
    const int64_t *end_ns = coll_end_ns + tail->n_ends[1] + (gsize)row * tail->n_ends[0];
    int64_t begin_ns = m->tp_free_ns;
    for (uint32_t i = 0; i < tail->n_ends[0]; i++)
        m->end_ns[0][tail->item[i]] = begin_ns + end_ns[i];
    for (uint32_t i = 0; i < tail->n_ends[1]; i++)
        m->end_ns[1][tail->item[tail->n_ends[0] + i]] = begin_ns + coll_end_ns[i];
}

void orr_pass__tail_prefetch(const OrrExec *x, const OrrIslandPass *pass,
                             const OrrCompiledSegment *segment) {
    uint32_t s = (uint32_t)(segment - x->compiled->segments);
    if (x->passes->meeting[s] == 0)
        return;
    const OrrPassTail *tail = slot_of(x, pass, segment)->tail;
    for (gsize i = 0; tail && i < MOST_FETCHED; i += ORR_LINE)
        __builtin_prefetch((const char *)tail + i, 0);
}

void orr_pass__tail_take(OrrPassWork *w, const OrrPassTail *tail) {
    w->tail = tail;
    for (uint32_t m = 0; m < w->n; m++)
        if (w->members[m].same_as == m)
            take_member(tail, tail->row[m], &w->members[m]);
}

void orr_pass__tail_count(OrrExec *x, OrrIslandPass *pass, const OrrPassTail *tail,
                          const OrrPassWork *w, int64_t begin_ns) {
    if (pass->taken_step != w->step)
        orr_pass__tails_charge(x, pass);
    pass->taken_step = w->step;
    pass->n_taken++;
    OrrTailsTaken *taken = slot_of(x, pass, w->segment);
    g_assert(taken->tail == tail);
    taken->n++;
    taken->begin_ns = begin_ns;
}

/* In which order members came to its collectives: to the call that was waited at longest, the last
 * one of equals. */
static void note_launches(OrrExec *x, const OrrIslandPass *pass, const OrrPassTail *tail,
                          int64_t begin_ns) {
    const OrrTailCharge *c = tail->charge;
    for (uint32_t j = 0; j < c->n_colls; j++) {
        OrrLaunch *launches = orr_exec__launch_of(x, 0, pass->taken_step, c->colls[j].what);
        const OrrLaunch *known = &launches[pass->first];
        int64_t wait_ns = c->wait_ns[j];
        int64_t first_ns = begin_ns + c->rows[tail->row[0]].launch_ns[j];
        bool is_known = known->step == pass->taken_step + 1;
        if (is_known &&
            (wait_ns < known->wait_ns || (wait_ns == known->wait_ns && first_ns < known->at_ns)))
            continue;
        for (uint32_t m = 0; m < pass->n; m++)
            launches[pass->list[m]] = (OrrLaunch){begin_ns + c->rows[tail->row[m]].launch_ns[j],
                                                  wait_ns, pass->taken_step + 1};
    }
}

static void charge(OrrExec *x, const OrrIslandPass *pass, const OrrPassTail *tail, uint32_t n) {
    const OrrTailCharge *c = tail->charge;
    for (uint32_t m = 0; m < pass->n; m++) {
        const OrrTailMember *row = &c->rows[tail->row[m]];
        for (uint32_t i = 0; i < c->n_owners; i++)
            *orr_exec__owner_ns(x, pass->list[m], c->owner[i]) += n * row->owner_ns[i];
    }
    for (uint32_t j = 0; j < c->n_colls; j++) {
        OrrCommSum *sum = orr_exec__sum_of(x, pass->taken_step, &c->colls[j]);
        sum->count += n * c->sums[j].count;
        sum->transfer_ns += n * c->sums[j].transfer_ns;
        sum->wait_ns += n * c->sums[j].wait_ns;
        sum->exposed_ns += n * c->sums[j].exposed_ns;
    }
}

void orr_pass__tails_charge(OrrExec *x, OrrIslandPass *pass) {
    for (uint32_t t = 0; t < x->passes->n_tails && pass->n_taken > 0; t++) {
        OrrTailsTaken *taken = &pass->taken[t];
        if (taken->n == 0)
            continue;
        charge(x, pass, taken->tail, taken->n);
        if (x->launches)
            note_launches(x, pass, taken->tail, taken->begin_ns);
        pass->n_taken -= taken->n;
        taken->n = 0;
    }
}

/* Sizes of a tail of @n members. */
typedef struct {
    uint32_t n, first_block, first_coll, n_colls, n_rows, n_ends[ORR_PASS_LANES], n_owners;
    uint8_t owner[ORR_N_OWNERS];
} Sizes;

static OrrTailCharge *alloc_charge(const OrrExec *x, const Sizes *z) {
    gsize n_row = z->n_owners + (x->launches ? z->n_colls : 0);
    gsize n_ns = z->n_rows * n_row + z->n_colls;
    OrrTailCharge *c = orr_pool_take(&x->passes->charges, sizeof *c + z->n_rows * sizeof *c->rows +
                                                              z->n_colls * sizeof *c->sums +
                                                              n_ns * sizeof(int64_t));
    c->n_colls = z->n_colls;
    c->n_owners = z->n_owners;
    memcpy(c->owner, z->owner, sizeof c->owner);
    c->rows = (OrrTailMember *)(c + 1);
    c->sums = (OrrCommSum *)(c->rows + z->n_rows);
    c->wait_ns = (int64_t *)(c->sums + z->n_colls);
    int64_t *ns = c->wait_ns + z->n_colls;
    for (uint32_t r = 0; r < z->n_rows; r++, ns += n_row) {
        c->rows[r].owner_ns = ns;
        c->rows[r].launch_ns = ns + z->n_owners;
    }
    return c;
}

static gsize whole_words(gsize bytes) {
    return (bytes + sizeof(int64_t) - 1) / sizeof(int64_t) * sizeof(int64_t);
}

static OrrPassTail *alloc_tail(const OrrExec *x, const Sizes *z) {
    gsize rows_bytes = whole_words(z->n);
    gsize items_bytes = whole_words((z->n_ends[0] + z->n_ends[1]) * sizeof(uint32_t));
    gsize n_ns = z->n_rows + z->n_rows * z->n_ends[0] + z->n_ends[1];
    OrrPassTail *t = orr_pool_take(&x->passes->tails,
                                   sizeof *t + rows_bytes + items_bytes + n_ns * sizeof(int64_t));
    t->first_block = z->first_block;
    t->first_coll = z->first_coll;
    t->n_rows = z->n_rows;
    memcpy(t->n_ends, z->n_ends, sizeof t->n_ends);
    t->row = (uint8_t *)(t + 1);
    t->item = (uint32_t *)(void *)((char *)(t + 1) + rows_bytes);
    t->ns = (int64_t *)(void *)((char *)(t + 1) + rows_bytes + items_bytes);
    t->charge = alloc_charge(x, z);
    return t;
}

/* Items of the tail that others ask for, and the last; @item may be NULL. */
static uint32_t asked_items(const OrrExec *x, const OrrPassWork *w, uint32_t k, uint32_t first,
                            uint32_t *item) {
    const uint32_t *shown = x->passes->shown + w->segment->first_item[orr_pass_lane[k]];
    uint32_t n = w->segment->n_items[orr_pass_lane[k]], n_asked = 0;
    for (uint32_t i = first; i < n; i++) {
        if (shown[i] != i && i + 1 < n)
            continue;
        if (item)
            item[n_asked] = i;
        n_asked++;
    }
    return n_asked;
}

static void fill_row(const OrrExec *x, const OrrPassTail *t, const OrrPassMember *m,
                     const int64_t *before_ns, uint32_t at) {
    const OrrTailCharge *c = t->charge;
    OrrTailMember *row = &c->rows[at];
    int64_t begin_ns = m->end_ns[1][t->first_coll - 1];
    int64_t *end_ns = t->ns + t->n_rows + t->n_ends[1] + (gsize)at * t->n_ends[0];
    for (uint32_t i = 0; i < c->n_owners; i++)
        row->owner_ns[i] = m->owner_ns[c->owner[i]] - before_ns[c->owner[i]];
    for (uint32_t i = 0; i < t->n_ends[0]; i++)
        end_ns[i] = m->end_ns[0][t->item[i]] - begin_ns;
    for (uint32_t j = 0; x->launches && j < c->n_colls; j++) {
        const OrrPassWait *wait = &m->waits[t->first_coll + j];
        row->launch_ns[j] =
            m->end_ns[1][t->first_coll + j] - wait->transfer_ns - wait->wait_ns - begin_ns;
    }
}

static void fill_sums(const OrrExec *x, const OrrPassWork *w, const OrrPassTail *t) {
    OrrTailCharge *c = t->charge;
    for (uint32_t i = 0; i < w->n; i++) {
        const OrrPassMember *m = &w->members[w->members[i].same_as];
        uint32_t weight = x->bound->weight[w->members[i].rank];
        for (uint32_t j = 0; j < c->n_colls; j++) {
            const OrrPassWait *wait = &m->waits[t->first_coll + j];
            c->sums[j].count += weight;
            c->sums[j].transfer_ns += (double)wait->transfer_ns * weight;
            c->sums[j].wait_ns += (double)wait->wait_ns * weight;
            c->sums[j].exposed_ns += (double)wait->exposed_ns * weight;
            c->wait_ns[j] += wait->wait_ns * weight;
        }
    }
}

/* Owners that are charged in the tail. */
static void find_owners(const OrrPassWork *w, const int64_t (*before_ns)[ORR_N_OWNERS], Sizes *z) {
    for (uint32_t o = 0; o < ORR_N_OWNERS; o++) {
        bool is_charged = false;
        for (uint32_t m = 0; m < w->n; m++)
            is_charged |=
                w->members[m].same_as == m && w->members[m].owner_ns[o] != before_ns[m][o];
        if (is_charged)
            z->owner[z->n_owners++] = o;
    }
}

/* What blocks of a member before a meeting at the first collective take. */
static int64_t work_before(const OrrExec *x, const OrrPassWork *w, const OrrPassTail *t,
                           const OrrPassMember *m) {
    const OrrItem *blocks = x->compiled->items + w->segment->first_item[ORR_STREAM_COMPUTE];
    int64_t sum_ns = 0;
    for (uint32_t i = 0; t->first_coll == 1 && i < t->first_block; i++)
        sum_ns += m->times[blocks[i].what].work_ns;
    return sum_ns;
}

static void fill(const OrrExec *x, const OrrPassWork *w, OrrPassTail *t, const uint8_t *row,
                 const int64_t (*before_ns)[ORR_N_OWNERS]) {
    uint32_t *item = (uint32_t *)t->item;
    asked_items(x, w, 0, t->first_block, item);
    asked_items(x, w, 1, t->first_coll, item + t->n_ends[0]);
    memcpy((uint8_t *)t->row, row, w->n);
    const int64_t *coll_end_ns = w->members[0].end_ns[1];
    for (uint32_t i = 0; i < t->n_ends[1]; i++)
        t->ns[t->n_rows + i] = coll_end_ns[item[t->n_ends[0] + i]] - coll_end_ns[t->first_coll - 1];
    for (uint32_t m = 0; m < w->n; m++) {
        const OrrPassMember *from = &w->members[w->members[m].same_as];
        t->ns[row[m]] = work_before(x, w, t, from);
        fill_row(x, t, from, before_ns[w->members[m].same_as], row[m]);
    }
    fill_sums(x, w, t);
}

void orr_pass__tail_new(const OrrExec *x, const OrrPassWork *w, int64_t transfer_ns,
                        const int64_t (*before_ns)[ORR_N_OWNERS]) {
    const OrrPassClass *class = orr_pass__of(x, w->members[0].rank)->class;
    uint32_t segment = (uint32_t)(w->segment - x->compiled->segments);
    const uint32_t *need = x->passes->need + w->segment->first_item[ORR_STREAM_TP];
    Sizes z = {.n = w->n, .n_rows = class->n_rows, .first_coll = x->passes->meeting[segment]};
    z.n_colls = w->segment->n_items[ORR_STREAM_TP] - z.first_coll;
    for (uint32_t j = 0; j < z.first_coll; j++)
        z.first_block = MAX(z.first_block, need[j]);
    z.n_ends[0] = asked_items(x, w, 0, z.first_block, NULL);
    z.n_ends[1] = asked_items(x, w, 1, z.first_coll, NULL);
    find_owners(w, before_ns, &z);
    OrrPassTail *t = alloc_tail(x, &z);
    t->transfer_ns = transfer_ns;
    t->charge->colls = x->compiled->items + w->segment->first_item[ORR_STREAM_TP] + z.first_coll;
    fill(x, w, t, class->row, before_ns);
    class->tails[x->passes->tail_of[segment]] = t;
}
