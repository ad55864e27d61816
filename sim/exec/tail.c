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

static void class_free(void *data) {
    OrrPassClass *c = data;
    for (uint32_t i = 0; i < c->n; i++)
        g_free(c->tails[i]);
    g_free(c);
}

static OrrPassClass *class_new(const OrrExec *x, const OrrIslandPass *pass) {
    uint32_t n = x->passes->n_tails;
    OrrPassClass *c = g_malloc0(sizeof *c + n * sizeof *c->tails + pass->n * sizeof *c->row);
    const uint32_t *hw = x->bound->hw;
    c->n = n;
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
    p->classes = g_ptr_array_new_with_free_func(class_free);
    if (p->n_tails == 0)
        return;
    g_autoptr(GHashTable) known =
        g_hash_table_new_full(g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref, NULL);
    for (uint32_t i = 0; i < x->n_islands; i++) {
        GBytes *key = key_of(x, &p->islands[i], i);
        OrrPassClass *class = g_hash_table_lookup(known, key);
        if (!class) {
            class = class_new(x, &p->islands[i]);
            g_ptr_array_add(p->classes, class);
            g_hash_table_insert(known, g_bytes_ref(key), class);
        }
        p->islands[i].class = class;
        g_bytes_unref(key);
    }
}

void orr_pass__classes_clear(OrrExec *x) {
    g_ptr_array_free(x->passes->classes, TRUE);
}

static void take_member(const OrrPassTail *tail, uint32_t row, OrrPassMember *m) {
    const int64_t *end_ns = tail->end_ns + (gsize)row * tail->n_ends[0];
    int64_t begin_ns = m->tp_free_ns;
    for (uint32_t i = 0; i < tail->n_ends[0]; i++)
        m->end_ns[0][tail->item[0][i]] = begin_ns + end_ns[i];
    for (uint32_t i = 0; i < tail->n_ends[1]; i++)
        m->end_ns[1][tail->item[1][i]] = begin_ns + tail->coll_end_ns[i];
}

void orr_pass__tail_prefetch(const OrrExec *x, const OrrIslandPass *pass,
                             const OrrCompiledSegment *segment) {
    uint32_t s = (uint32_t)(segment - x->compiled->segments);
    if (x->passes->meeting[s] == 0)
        return;
    const OrrPassTail *tail = pass->class->tails[x->passes->tail_of[s]];
    gsize n = sizeof *tail + (pass->n + 2) * sizeof(int64_t); /* as a rule an end each is asked */
    for (gsize i = 0; tail && i < n; i += ORR_LINE)
        __builtin_prefetch((const char *)tail + i, 0);
}

void orr_pass__tail_take(const OrrExec *x, OrrPassWork *w, const OrrPassTail *tail) {
    const uint8_t *row = orr_pass__of(x, w->members[0].rank)->class->row;
    w->tail = tail;
    for (uint32_t m = 0; m < w->n; m++)
        if (w->members[m].same_as == m)
            take_member(tail, row[m], &w->members[m]);
}

void orr_pass__tail_count(OrrExec *x, OrrIslandPass *pass, const OrrPassWork *w) {
    if (!w->tail)
        return;
    if (pass->taken_step != w->step)
        orr_pass__tails_charge(x, pass);
    pass->taken_step = w->step;
    pass->n_taken++;
    OrrTailsTaken *taken = &pass->taken[x->passes->tail_of[w->segment - x->compiled->segments]];
    taken->n++;
    taken->begin_ns = w->members[0].end_ns[1][w->tail->first_coll - 1];
}

/* In which order members came to its collectives: to the call that was waited at longest, the last
 * one of equals. */
static void note_launches(OrrExec *x, const OrrIslandPass *pass, const OrrPassTail *tail,
                          int64_t begin_ns) {
    const uint8_t *row = pass->class->row;
    for (uint32_t j = 0; j < tail->n_colls; j++) {
        OrrLaunch *launches = orr_exec__launch_of(x, 0, pass->taken_step, tail->colls[j].what);
        const OrrLaunch *known = &launches[pass->first];
        int64_t wait_ns = tail->wait_ns[j];
        int64_t first_ns = begin_ns + tail->rows[row[0]].launch_ns[j];
        bool is_known = known->step == pass->taken_step + 1;
        if (is_known &&
            (wait_ns < known->wait_ns || (wait_ns == known->wait_ns && first_ns < known->at_ns)))
            continue;
        for (uint32_t m = 0; m < pass->n; m++)
            launches[pass->list[m]] = (OrrLaunch){begin_ns + tail->rows[row[m]].launch_ns[j],
                                                  wait_ns, pass->taken_step + 1};
    }
}

static void charge(OrrExec *x, const OrrIslandPass *pass, const OrrPassTail *tail, uint32_t n) {
    for (uint32_t m = 0; m < pass->n; m++) {
        const OrrTailMember *row = &tail->rows[pass->class->row[m]];
        for (uint32_t i = 0; i < tail->n_owners; i++)
            *orr_exec__owner_ns(x, pass->list[m], tail->owner[i]) += n * row->owner_ns[i];
    }
    for (uint32_t j = 0; j < tail->n_colls; j++) {
        OrrCommSum *sum = orr_exec__sum_of(x, pass->taken_step, &tail->colls[j]);
        sum->count += n * tail->sums[j].count;
        sum->transfer_ns += n * tail->sums[j].transfer_ns;
        sum->wait_ns += n * tail->sums[j].wait_ns;
        sum->exposed_ns += n * tail->sums[j].exposed_ns;
    }
}

void orr_pass__tails_charge(OrrExec *x, OrrIslandPass *pass) {
    for (uint32_t t = 0; t < x->passes->n_tails && pass->n_taken > 0; t++) {
        OrrTailsTaken *taken = &pass->taken[t];
        if (taken->n == 0)
            continue;
        charge(x, pass, pass->class->tails[t], taken->n);
        if (x->launches)
            note_launches(x, pass, pass->class->tails[t], taken->begin_ns);
        pass->n_taken -= taken->n;
        taken->n = 0;
    }
}

/* Room for a tail and all that it points to: what each pass asks for comes first. */
static OrrPassTail *alloc_tail(const OrrExec *x, const OrrPassTail *sizes) {
    uint32_t n_launches = x->launches ? sizes->n_colls : 0;
    gsize n_ends = sizes->n_rows * sizes->n_ends[0] + sizes->n_ends[1];
    gsize n_items = (sizes->n_ends[0] + sizes->n_ends[1] + 1) / 2 * 2; /* rows lie behind them */
    gsize n_row = sizes->n_owners + n_launches;
    gsize n_ns = n_ends + sizes->n_rows * n_row + sizes->n_colls;
    OrrPassTail *t =
        g_malloc0(sizeof *t + sizes->n_rows * sizeof *t->rows + sizes->n_colls * sizeof *t->sums +
                  n_ns * sizeof(int64_t) + n_items * sizeof(uint32_t));
    *t = *sizes;
    t->coll_end_ns = (int64_t *)(t + 1);
    t->end_ns = t->coll_end_ns + t->n_ends[1];
    t->item[0] = (uint32_t *)(t->coll_end_ns + n_ends);
    t->item[1] = t->item[0] + t->n_ends[0];
    t->rows = (OrrTailMember *)(t->item[0] + n_items);
    t->sums = (OrrCommSum *)(t->rows + t->n_rows);
    t->wait_ns = (int64_t *)(t->sums + t->n_colls);
    int64_t *ns = t->wait_ns + t->n_colls;
    for (uint32_t r = 0; r < t->n_rows; r++, ns += n_row) {
        t->rows[r].owner_ns = ns;
        t->rows[r].launch_ns = ns + t->n_owners;
    }
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
    OrrTailMember *row = &t->rows[at];
    int64_t begin_ns = m->end_ns[1][t->first_coll - 1];
    for (uint32_t i = 0; i < t->n_owners; i++)
        row->owner_ns[i] = m->owner_ns[t->owner[i]] - before_ns[t->owner[i]];
    for (uint32_t i = 0; i < t->n_ends[0]; i++)
        t->end_ns[(gsize)at * t->n_ends[0] + i] = m->end_ns[0][t->item[0][i]] - begin_ns;
    for (uint32_t j = 0; x->launches && j < t->n_colls; j++) {
        const OrrPassWait *wait = &m->waits[t->first_coll + j];
        row->launch_ns[j] =
            m->end_ns[1][t->first_coll + j] - wait->transfer_ns - wait->wait_ns - begin_ns;
    }
}

static void fill_sums(const OrrExec *x, const OrrPassWork *w, OrrPassTail *t) {
    for (uint32_t i = 0; i < w->n; i++) {
        const OrrPassMember *m = &w->members[w->members[i].same_as];
        uint32_t weight = x->bound->weight[w->members[i].rank];
        for (uint32_t j = 0; j < t->n_colls; j++) {
            const OrrPassWait *wait = &m->waits[t->first_coll + j];
            t->sums[j].count += weight;
            t->sums[j].transfer_ns += (double)wait->transfer_ns * weight;
            t->sums[j].wait_ns += (double)wait->wait_ns * weight;
            t->sums[j].exposed_ns += (double)wait->exposed_ns * weight;
            t->wait_ns[j] += wait->wait_ns * weight;
        }
    }
}

OrrPassTail *orr_pass__tail_new(const OrrExec *x, const OrrPassWork *w,
                                const int64_t (*before_ns)[ORR_N_OWNERS]) {
    const OrrPassClass *class = orr_pass__of(x, w->members[0].rank)->class;
    OrrPassTail sizes = {.n_rows = class->n_rows};
    sizes.first_coll = x->passes->meeting[w->segment - x->compiled->segments];
    sizes.n_colls = w->segment->n_items[ORR_STREAM_TP] - sizes.first_coll;
    sizes.colls = x->compiled->items + w->segment->first_item[ORR_STREAM_TP] + sizes.first_coll;
    for (uint32_t j = 0; j < sizes.first_coll; j++)
        sizes.first_block =
            MAX(sizes.first_block, x->passes->need[w->segment->first_item[ORR_STREAM_TP] + j]);
    sizes.n_ends[0] = asked_items(x, w, 0, sizes.first_block, NULL);
    sizes.n_ends[1] = asked_items(x, w, 1, sizes.first_coll, NULL);
    for (uint32_t o = 0; o < ORR_N_OWNERS; o++) {
        bool is_charged = false;
        for (uint32_t m = 0; m < w->n; m++)
            is_charged |=
                w->members[m].same_as == m && w->members[m].owner_ns[o] != before_ns[m][o];
        if (is_charged)
            sizes.owner[sizes.n_owners++] = o;
    }
    OrrPassTail *t = alloc_tail(x, &sizes);
    asked_items(x, w, 0, t->first_block, t->item[0]);
    asked_items(x, w, 1, t->first_coll, t->item[1]);
    for (uint32_t i = 0; i < t->n_ends[1]; i++)
        t->coll_end_ns[i] =
            w->members[0].end_ns[1][t->item[1][i]] - w->members[0].end_ns[1][t->first_coll - 1];
    for (uint32_t m = 0; m < w->n; m++) {
        uint32_t from = w->members[m].same_as;
        fill_row(x, t, &w->members[from], before_ns[from], class->row[m]);
    }
    fill_sums(x, w, t);
    return t;
}
