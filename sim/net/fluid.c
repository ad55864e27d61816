/* Activities that come and go on shared links: their bookkeeping. Who moves alike is bundle.c's,
 * which links are watched watch.c's, rates are settle.c's.
 *
 * Sums per link are exact integers, so they do not remember the order of events. State is in arrays
 * by id; nothing is allocated once the arrays have grown to the largest load.
 * Cost: about 50 ns a use to start and to end, when it is in the cache. */
#include "sim/net/fluid.h"

#include "sim/base/large.h"
#include "sim/net/fluid_priv.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_TABLE 64u     /* keys of bundles; grows by doubling */
#define LINKS_A_STAND_IN 8u /* ours: so many twins at least are worth one */

OrrFluid *orr_fluid_new(const uint64_t *capacity, uint32_t n_links) {
    OrrFluid *f = g_new0(OrrFluid, 1);
    f->n_links = n_links;
    f->cap_stand_ins = n_links / LINKS_A_STAND_IN;
    f->links = orr_large_new((n_links + f->cap_stand_ins + 1) * sizeof *f->links);
    for (uint32_t l = 0; l < n_links; l++) {
        g_assert(capacity[l] < ORR_MAX_CAPACITY);
        f->links[l].capacity = capacity[l];
        f->links[l].head = f->links[l].first[0] = f->links[l].first[1] = ORR_FLUID_NIL;
        f->links[l].level = f->links[l].goal = f->links[l].shield = ORR_LEVEL_NONE;
    }
    f->free_activity = f->free_bundle = ORR_FLUID_NIL;
    f->table = g_new(uint32_t, FIRST_TABLE);
    f->table_mask = FIRST_TABLE - 1;
    memset(f->table, 0xff, FIRST_TABLE * sizeof *f->table);
    f->solver = orr_solver_new();
    return f;
}

static void clear_blocks(OrrBlocks *blocks) {
    for (uint32_t i = 0; i < G_N_ELEMENTS(blocks->free); i++)
        g_free(blocks->free[i].ids);
}

void orr_fluid_free(OrrFluid *f) {
    if (f == NULL)
        return;
    orr_solver_free(f->solver);
    clear_blocks(&f->record_blocks);
    clear_blocks(&f->use_blocks);
    clear_blocks(&f->member_blocks);
    free(f->links);
    free(f->activities);
    free(f->bundles);
    free(f->rows);
    void *arrays[] = {f->link_done,
                      f->row_of,
                      f->row_links,
                      f->records,
                      f->live,
                      f->table,
                      f->uses,
                      f->use_level,
                      f->use_free,
                      f->members,
                      f->ends,
                      f->dirty.ids,
                      f->moved.ids,
                      f->nearby.ids,
                      f->later.ids,
                      f->watched.ids,
                      f->relaxed.ids,
                      f->lowered.ids,
                      f->crowded.ids,
                      f->free_stand_ins.ids,
                      f->heap,
                      f->risers,
                      f->problem.rate,
                      f->problem.uses,
                      f->problem.level,
                      f->problem.link,
                      f->problem.capacity,
                      f->problem.activities};
    for (uint32_t i = 0; i < G_N_ELEMENTS(arrays); i++)
        g_free(arrays[i]);
    g_free(f);
}

void orr_fluid__grow_list(OrrIdList *list) {
    list->capacity = MAX(64, list->capacity + list->capacity / 2);
    list->ids = g_renew(uint32_t, list->ids, list->capacity);
}

static void advance_clock(OrrFluid *f, int64_t now_ns) {
    g_assert(now_ns >= f->now_ns);
    f->now_ns = now_ns;
}

void orr_fluid__mark_dirty(OrrFluid *f, uint32_t link) {
    if (f->links[link].is_dirty)
        return;
    f->links[link].is_dirty = true;
    orr_fluid__push(&f->dirty, link);
}

void orr_fluid__mark_closed(OrrFluid *f, const OrrActivity *a) {
    if (a->bundle == ORR_FLUID_NIL)
        return;
    const OrrBundle *b = &f->bundles[a->bundle];
    for (uint32_t u = b->first_use; u < b->first_use + b->n_uses; u++)
        if (f->links[f->uses[u].link].mode == ORR_LINK_CLOSED &&
            !orr_fluid__is_stand_in(f, f->uses[u].link))
            orr_fluid__mark_dirty(f, f->uses[u].link);
}

uint32_t orr_fluid__take_block(OrrBlocks *blocks, uint32_t class) {
    OrrIdList *list = &blocks->free[class];
    if (list->n > 0)
        return list->ids[--list->n];
    uint32_t first = blocks->n;
    blocks->n += 1u << class;
    return first;
}

void orr_fluid__give_block(OrrBlocks *blocks, uint32_t class, uint32_t first) {
    orr_fluid__push(&blocks->free[class], first);
}

static uint32_t take_activity(OrrFluid *f) {
    uint32_t id = f->free_activity;
    if (id != ORR_FLUID_NIL) {
        f->free_activity = f->activities[id].next_free;
        if (f->free_activity != ORR_FLUID_NIL)
            orr_fluid_prefetch_flow(f, f->free_activity);
        return id;
    }
    if (f->n_activities == f->cap_activities) {
        f->cap_activities = MAX(64, f->cap_activities + f->cap_activities / 2);
        f->activities = orr_large_renew(f->activities, f->n_activities * sizeof *f->activities,
                                        f->cap_activities * sizeof *f->activities);
    }
    return f->n_activities++;
}

static void link_in(OrrFluid *f, uint32_t record, uint32_t activity, uint32_t link) {
    OrrLinkState *l = &f->links[link];
    f->records[record] = (OrrRecord){l->head, ORR_FLUID_NIL, activity, ORR_FLUID_NIL};
    if (l->head != ORR_FLUID_NIL)
        f->records[l->head].prev = record;
    l->head = record;
    l->n_records++;
}

static void link_out(OrrFluid *f, uint32_t record, uint32_t link) {
    OrrLinkState *l = &f->links[link];
    OrrRecord r = f->records[record];
    if (r.prev != ORR_FLUID_NIL)
        f->records[r.prev].next = r.next;
    else
        l->head = r.next;
    if (r.next != ORR_FLUID_NIL)
        f->records[r.next].prev = r.prev;
    l->n_records--;
}

static uint64_t top_of(const OrrFluid *f, const OrrActivity *a, uint32_t n_rows) {
    uint64_t top = a->cap;
    for (uint32_t u = 0; u < a->n_uses + n_rows; u++) {
        uint32_t at = a->uses[u].constraint;
        OrrWide capacity = u < a->n_uses ? orr_fluid__capacity(&f->links[at])
                                         : (OrrWide)f->rows[at].capacity * ORR_COEF_ONE;
        OrrWide alone =
            a->uses[u].coef == ORR_COEF_ONE ? capacity / ORR_COEF_ONE : capacity / a->uses[u].coef;
        top = MIN(top, (uint64_t)alone);
    }
    return top;
}

static void set_top(OrrFluid *f, OrrActivity *a, uint64_t top) {
    a->top = top;
    a->scale = a->largest_coef == 0 ? 1 : orr_level__scale(a->weight, a->largest_coef);
    if (f->last_top != top || f->last_scale != a->scale) {
        f->last_top = top;
        f->last_scale = a->scale;
        f->last_level = orr_level__of_cap(top, a->scale);
    }
    a->top_level = f->last_level;
}

/* The links of its bundle have one more. */
static void note_newcomer(OrrFluid *f, const OrrActivity *a) {
    orr_fluid__mark_closed(f, a);
    if (a->bundle != ORR_FLUID_NIL)
        f->n_fresh += f->bundles[a->bundle].n_uses;
}

static void join_links(OrrFluid *f, uint32_t id) {
    OrrActivity *a = &f->activities[id];
    uint32_t class = orr_fluid__class(a->n_uses);
    if (a->n_uses > 0)
        a->first_record = orr_fluid__take_block(&f->record_blocks, class);
    if (f->record_blocks.n > f->cap_records) {
        gsize old = f->cap_records * sizeof *f->records;
        f->cap_records = MAX(f->record_blocks.n, f->cap_records + f->cap_records / 2);
        f->records = orr_large_renew(f->records, old, f->cap_records * sizeof *f->records);
    }
    for (uint32_t u = 0; u < a->n_uses; u++) {
        const OrrUse *use = &a->uses[u];
        OrrLinkState *l = orr_fluid__link(f, use->constraint);
        uint64_t factor = orr_fluid__factor(use);
        link_in(f, a->first_record + u, id, use->constraint);
        l->potential += (OrrWide)factor * a->top;
        l->slope += (OrrWide)factor * a->scale;
        l->unit += factor;
        if (l->is_watched)
            orr_fluid__open_or_close(f, use->constraint);
    }
}

uint32_t orr_fluid__add(OrrFluid *f, const OrrFlow *flow) {
    uint32_t id = take_activity(f);
    OrrActivity *a = &f->activities[id];
    *a = (OrrActivity){.cap = flow->cap_bytes_per_s,
                       .bytes = flow->bytes,
                       .uses = flow->uses,
                       .n_uses = flow->n_uses,
                       .first_record = ORR_FLUID_NIL,
                       .bundle = ORR_FLUID_NIL,
                       .at = ORR_FLUID_NIL,
                       .weight = flow->weight,
                       .owner = flow->owner,
                       .largest_coef = flow->other_coef,
                       .is_live = true};
    uint32_t n = flow->n_uses + flow->n_rows;
    for (uint32_t u = 0; u < n; u++)
        a->largest_coef = MAX(a->largest_coef, a->uses[u].coef);
    set_top(f, a, top_of(f, a, flow->n_rows));
    return id;
}

void orr_fluid__begin(OrrFluid *f, uint32_t id, uint32_t n_rows, OrrWide left) {
    OrrActivity *a = &f->activities[id];
    a->finish = left;
    join_links(f, id);
    orr_fluid__part_twins(f, a);
    uint64_t ceiling = orr_fluid__guess(f, a);
    orr_fluid__pledge(f, a, 0, ceiling);
    orr_fluid__place(f, id, ceiling);
    if (n_rows > 0)
        orr_fluid__join_rows(f, id, n_rows);
    note_newcomer(f, a);
    orr_fluid__rebundle(f);
    f->stats.starts++;
    f->stats.headroom += a->bundle == ORR_FLUID_NIL;
}

uint32_t orr_fluid_start(OrrFluid *f, int64_t now_ns, const OrrFlow *flow) {
    advance_clock(f, now_ns);
    uint32_t id = orr_fluid__add(f, flow);
    OrrWide work = (OrrWide)flow->bytes * ORR_FLUID_WORK_PER_BYTE;
    OrrWide done = (OrrWide)f->activities[id].top * (uint64_t)flow->ahead_ns;
    orr_fluid__begin(f, id, 0, work > done ? work - done : 0);
    return id;
}

/* What the activity leaves on the watched links of its bundle. */
static void note_leaver(OrrFluid *f, const OrrActivity *a) {
    if (a->bundle == ORR_FLUID_NIL)
        return;
    const OrrBundle *b = &f->bundles[a->bundle];
    for (uint32_t u = b->first_use; u < b->first_use + b->n_uses; u++) {
        if (orr_fluid__is_stand_in(f, f->uses[u].link))
            continue;
        if (f->links[f->uses[u].link].level != ORR_LEVEL_NONE)
            orr_fluid__mark_dirty(f, f->uses[u].link);
        orr_fluid__relax(f, f->uses[u].link);
    }
}

uint64_t orr_fluid__ceiling(const OrrFluid *f, const OrrActivity *a) {
    return a->bundle == ORR_FLUID_NIL ? a->top : f->bundles[a->bundle].ceiling;
}

static uint64_t bytes_of(OrrWide work) {
    return (uint64_t)((work + ORR_FLUID_WORK_PER_BYTE - 1) / ORR_FLUID_WORK_PER_BYTE);
}

OrrWide orr_fluid__remove(OrrFluid *f, uint32_t activity) {
    OrrActivity *a = &f->activities[activity];
    g_assert(a->is_live);
    a->is_live = false;
    note_leaver(f, a);
    orr_fluid__leave_rows(f, a);
    orr_fluid__pledge(f, a, orr_fluid__ceiling(f, a), 0);
    orr_fluid__unplace(f, activity);
    for (uint32_t u = 0; u < a->n_uses; u++) {
        const OrrUse *use = &a->uses[u];
        OrrLinkState *l = &f->links[use->constraint];
        uint64_t factor = orr_fluid__factor(use);
        link_out(f, a->first_record + u, use->constraint);
        l->potential -= (OrrWide)factor * a->top;
        l->slope -= (OrrWide)factor * a->scale;
        l->unit -= factor;
        if (l->is_watched)
            orr_fluid__open_or_close(f, use->constraint);
    }
    if (a->n_uses > 0)
        orr_fluid__give_block(&f->record_blocks, orr_fluid__class(a->n_uses), a->first_record);
    a->next_free = f->free_activity;
    f->free_activity = activity;
    return a->finish;
}

void orr_fluid_end(OrrFluid *f, int64_t now_ns, uint32_t activity) {
    advance_clock(f, now_ns);
    const OrrActivity *a = &f->activities[activity];
    uint32_t n_rows = a->n_rows;
    uint64_t left = bytes_of(orr_fluid__remove(f, activity));
    f->lost_bytes += left;
    for (uint32_t l = 0; f->link_done && l < f->n_links; l++)
        f->link_done[l] += orr_fluid__factor_on(f, a, n_rows, l) * (a->bytes - left);
}

static void change_top(OrrFluid *f, OrrActivity *a) {
    uint64_t top = top_of(f, a, 0);
    g_assert(a->n_rows == 0); /* it would be joint no more */
    for (uint32_t u = 0; u < a->n_uses && top != a->top; u++) {
        OrrLinkState *l = &f->links[a->uses[u].constraint];
        l->potential += (OrrWide)orr_fluid__factor(&a->uses[u]) * top;
        l->potential -= (OrrWide)orr_fluid__factor(&a->uses[u]) * a->top;
        if (l->is_watched)
            orr_fluid__open_or_close(f, a->uses[u].constraint);
    }
    set_top(f, a, top);
}

/* Tops change with the capacity, and with them which links can bind: all activities of the link
 * are placed anew. */
void orr_fluid_capacity(OrrFluid *f, int64_t now_ns, uint32_t link, uint64_t bytes_per_s) {
    g_assert(bytes_per_s < ORR_MAX_CAPACITY);
    advance_clock(f, now_ns);
    for (uint32_t r = f->links[link].head; r != ORR_FLUID_NIL; r = f->records[r].next) {
        OrrActivity *a = &f->activities[f->records[r].activity];
        if (!a->is_placed)
            continue;
        note_newcomer(f, a); /* all its links are to be looked at */
        orr_fluid__pledge(f, a, orr_fluid__ceiling(f, a), 0);
        orr_fluid__unplace(f, f->records[r].activity);
    }
    orr_fluid__link(f, link)->capacity = bytes_per_s;
    orr_fluid__row_capacity(f, link);
    orr_fluid__push(&f->crowded, link);
    f->links[link].is_sound = false;
    if (f->links[link].is_watched) {
        orr_fluid__open_or_close(f, link);
        orr_fluid__mark_dirty(f, link);
    }
    for (uint32_t r = f->links[link].head; r != ORR_FLUID_NIL; r = f->records[r].next)
        change_top(f, &f->activities[f->records[r].activity]);
    for (uint32_t r = f->links[link].head; r != ORR_FLUID_NIL; r = f->records[r].next) {
        OrrActivity *a = &f->activities[f->records[r].activity];
        if (a->is_placed)
            continue;
        uint64_t ceiling = orr_fluid__guess(f, a);
        orr_fluid__pledge(f, a, 0, ceiling);
        orr_fluid__place(f, f->records[r].activity, ceiling);
        note_newcomer(f, &f->activities[f->records[r].activity]);
    }
    orr_fluid__rebundle(f);
}

OrrWide orr_fluid__factor_on(const OrrFluid *f, const OrrActivity *a, uint32_t n_rows,
                             uint32_t link) {
    OrrWide sum = 0;
    for (uint32_t u = 0; u < a->n_uses; u++)
        if (a->uses[u].constraint == link)
            sum += orr_fluid__factor(&a->uses[u]);
    for (uint32_t u = a->n_uses; u < a->n_uses + n_rows; u++)
        if (f->row_of[link] == a->uses[u].constraint)
            sum += orr_fluid__factor(&a->uses[u]);
    return sum;
}

OrrWide orr_fluid__left(const OrrFluid *f, const OrrActivity *a) {
    OrrWide done;
    if (a->bundle == ORR_FLUID_NIL) {
        done = (OrrWide)a->top * (uint64_t)(f->now_ns - a->since_ns);
    } else {
        const OrrBundle *b = &f->bundles[a->bundle];
        done = b->work + (OrrWide)b->rate * (uint64_t)(f->now_ns - b->since_ns);
    }
    return a->finish > done ? a->finish - done : 0;
}

uint64_t orr_fluid_rate(const OrrFluid *f, uint32_t activity) {
    const OrrActivity *a = &f->activities[activity];
    return a->bundle == ORR_FLUID_NIL ? a->top : f->bundles[a->bundle].rate;
}

int64_t orr_fluid_end_ns(const OrrFluid *f, uint32_t activity) {
    const OrrActivity *a = &f->activities[activity];
    return orr_fluid__end_of(orr_fluid__left(f, a), orr_fluid_rate(f, activity), f->now_ns);
}

void orr_fluid_count_bytes(OrrFluid *f) {
    f->link_done = g_new0(OrrWide, f->n_links);
}

uint64_t orr_fluid_link_bytes(const OrrFluid *f, uint32_t link) {
    OrrWide sum = f->link_done[link];
    for (uint32_t i = 0; i < f->n_activities; i++) {
        const OrrActivity *a = &f->activities[i];
        if (a->is_live)
            sum += orr_fluid__factor_on(f, a, a->n_rows, link) *
                   (a->bytes - bytes_of(orr_fluid__left(f, a)));
    }
    return (uint64_t)(sum / ORR_COEF_ONE);
}
