/* Activities that come and go on shared links: their bookkeeping. Rates are settle.c's.
 *
 * Sums per link are exact integers, so they do not remember the order of events. State is in arrays
 * by id; nothing is allocated once the arrays have grown to the largest load.
 * Cost: about 50 ns a use to start and to end, when it is in the cache. */
#include "sim/net/fluid.h"

#include "sim/net/fluid_priv.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

OrrFluid *orr_fluid_new(const uint64_t *capacity, uint32_t n_links) {
    OrrFluid *f = g_new0(OrrFluid, 1);
    f->n_links = n_links;
    f->links = g_new0(OrrLinkState, n_links);
    f->rooms = g_new0(OrrLinkRoom, n_links);
    f->link_done = g_new0(OrrWide, n_links);
    for (uint32_t l = 0; l < n_links; l++) {
        g_assert(capacity[l] < ORR_MAX_CAPACITY);
        f->links[l].capacity = (OrrWide)capacity[l] * ORR_COEF_ONE;
        f->links[l].head = ORR_FLUID_NIL;
        f->links[l].level = f->links[l].goal = ORR_LEVEL_NONE;
    }
    f->free_activity = ORR_FLUID_NIL;
    for (size_t i = 0; i < G_N_ELEMENTS(f->free_block); i++)
        f->free_block[i] = ORR_FLUID_NIL;
    f->solver = orr_solver_new();
    return f;
}

void orr_fluid_free(OrrFluid *f) {
    if (f == NULL)
        return;
    orr_solver_free(f->solver);
    g_free(f->links);
    g_free(f->rooms);
    g_free(f->link_done);
    free(f->activities);
    g_free(f->records);
    g_free(f->record_level);
    g_free(f->record_goal);
    g_free(f->dirty.ids);
    g_free(f->pending.ids);
    g_free(f->admitted.ids);
    g_free(f->moved.ids);
    g_free(f->nearby.ids);
    g_free(f->heap);
    g_free(f->risers);
    g_free(f->problem.activities);
    g_free(f->problem.rate);
    g_free(f->problem.uses);
    g_free(f->problem.capacity);
    g_free(f->problem.level);
    g_free(f->problem.link);
    g_free(f);
}

void orr_fluid__push(OrrIdList *list, uint32_t id) {
    if (list->n == list->capacity) {
        list->capacity = MAX(64, list->capacity + list->capacity / 2);
        list->ids = g_renew(uint32_t, list->ids, list->capacity);
    }
    list->ids[list->n++] = id;
}

void orr_fluid__progress(OrrActivity *a, int64_t now_ns) {
    OrrWide done = (OrrWide)a->rate * (uint64_t)(now_ns - a->since_ns);
    a->left = done < a->left ? a->left - done : 0;
    a->since_ns = now_ns;
}

int64_t orr_fluid__end_ns(const OrrActivity *a) {
    if (a->left == 0)
        return a->since_ns;
    if (a->rate == 0)
        return INT64_MAX;
    OrrWide ns;
    if (a->left >> 63 == 0) /* 64-bit division is fast */
        ns = ((uint64_t)a->left - 1) / a->rate + 1;
    else
        ns = (a->left - 1) / a->rate + 1;
    return ns > (OrrWide)(INT64_MAX - a->since_ns) ? INT64_MAX : a->since_ns + (int64_t)ns;
}

static void advance_clock(OrrFluid *f, int64_t now_ns) {
    g_assert(now_ns >= f->now_ns);
    f->now_ns = now_ns;
}

static void mark_dirty(OrrFluid *f, uint32_t link) {
    if (f->links[link].is_dirty)
        return;
    f->links[link].is_dirty = true;
    orr_fluid__push(&f->dirty, link);
}

static uint32_t block_class(uint32_t n) {
    return n <= 1 ? 0 : 32 - (uint32_t)__builtin_clz(n - 1);
}

static uint32_t take_block(OrrFluid *f, uint32_t n) {
    if (n == 0)
        return ORR_FLUID_NIL;
    uint32_t class = block_class(n), first = f->free_block[class];
    if (first != ORR_FLUID_NIL) {
        f->free_block[class] = f->records[first].next;
        return first;
    }
    first = f->n_records;
    f->n_records += 1u << class;
    if (f->n_records > f->cap_records) {
        f->cap_records = MAX(f->n_records, f->cap_records + f->cap_records / 2);
        f->records = g_renew(OrrRecord, f->records, f->cap_records);
        f->record_level = g_renew(uint64_t, f->record_level, f->cap_records);
        f->record_goal = g_renew(uint64_t, f->record_goal, f->cap_records);
    }
    return first;
}

static void give_block(OrrFluid *f, uint32_t first, uint32_t n) {
    if (n == 0)
        return;
    uint32_t class = block_class(n);
    f->records[first].next = f->free_block[class];
    f->free_block[class] = first;
}

/* Activities lie in cache lines of their own. */
static void grow_activities(OrrFluid *f) {
    f->cap_activities = MAX(64, f->cap_activities + f->cap_activities / 2);
    OrrActivity *grown = aligned_alloc(64, f->cap_activities * sizeof *grown);
    if (grown == NULL)
        g_error("out of memory for %u activities on links", f->cap_activities);
    if (f->n_activities > 0)
        memcpy(grown, f->activities, f->n_activities * sizeof *grown);
    free(f->activities);
    f->activities = grown;
}

static uint32_t take_activity(OrrFluid *f) {
    uint32_t id = f->free_activity;
    if (id != ORR_FLUID_NIL) {
        f->free_activity = f->activities[id].next_free;
        return id;
    }
    if (f->n_activities == f->cap_activities) {
        grow_activities(f);
    }
    return f->n_activities++;
}

void orr_fluid__show_goal(OrrFluid *f, uint32_t link) {
    OrrLinkState *l = &f->links[link];
    uint64_t shown = orr_fluid__can_bind(l) ? l->goal : 0;
    if (shown == l->shown)
        return;
    if (l->shown == 0)
        f->rooms[link].slack =
            (OrrSlack)l->capacity - (OrrSlack)f->rooms[link].usage - (OrrSlack)orr_fluid__margin(l);
    l->shown = shown;
    for (uint32_t r = l->head; r != ORR_FLUID_NIL; r = f->records[r].next)
        f->record_goal[r] = shown;
}

static void link_in(OrrFluid *f, uint32_t record, uint32_t activity, const OrrUse *use) {
    OrrLinkState *l = &f->links[use->constraint];
    f->records[record] = (OrrRecord){l->head, ORR_FLUID_NIL, activity, orr_fluid__factor(use)};
    f->record_level[record] = l->level;
    f->record_goal[record] = l->shown;
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

static uint64_t top_of(const OrrFluid *f, const OrrActivity *a) {
    uint64_t top = a->cap;
    for (uint32_t u = 0; u < a->n_uses; u++) {
        OrrWide capacity = f->links[a->uses[u].constraint].capacity;
        OrrWide alone =
            a->uses[u].coef == ORR_COEF_ONE ? capacity / ORR_COEF_ONE : capacity / a->uses[u].coef;
        top = MIN(top, (uint64_t)alone);
    }
    return top;
}

static void set_top(OrrFluid *f, OrrActivity *a, uint64_t top) {
    uint32_t largest = 0;
    for (uint32_t u = 0; u < a->n_uses; u++)
        largest = MAX(largest, a->uses[u].coef);
    a->top = top;
    a->scale = largest == 0 ? 1 : orr_level__scale(a->weight, largest);
    if (f->last_top != top || f->last_scale != a->scale) {
        f->last_top = top;
        f->last_scale = a->scale;
        f->last_level = orr_level__of_cap(top, a->scale);
    }
    a->top_level = f->last_level;
}

/* Takes the activity to its top if all links have room: no other rate depends on it then. */
static bool admit(OrrFluid *f, OrrActivity *a) {
    bool has_room = true;
    for (uint32_t u = 0; u < a->n_uses; u++)
        f->rooms[a->uses[u].constraint].usage += (OrrWide)orr_fluid__factor(&a->uses[u]) * a->top;
    for (uint32_t u = 0; u < a->n_uses && has_room; u++)
        has_room = orr_fluid__has_room(f, a->uses[u].constraint);
    a->rate = has_room ? a->top : 0;
    for (uint32_t u = 0; u < a->n_uses; u++) {
        OrrLinkRoom *room = &f->rooms[a->uses[u].constraint];
        OrrWide factor = orr_fluid__factor(&a->uses[u]);
        if (has_room) /* with its part of the margin */
            room->slack -= (OrrSlack)(factor * a->top +
                                      2 * (factor + (factor * a->scale >> ORR_LEVEL_BITS) + 1));
        else
            room->usage -= factor * a->top;
    }
    return has_room;
}

uint32_t orr_fluid_start(OrrFluid *f, int64_t now_ns, const OrrFlow *flow) {
    advance_clock(f, now_ns);
    uint32_t id = take_activity(f);
    OrrActivity *a = &f->activities[id];
    *a = (OrrActivity){.left = (OrrWide)flow->bytes * ORR_FLUID_WORK_PER_BYTE,
                       .since_ns = now_ns - flow->ahead_ns,
                       .cap = flow->cap_bytes_per_s,
                       .bytes = flow->bytes,
                       .uses = flow->uses,
                       .n_uses = flow->n_uses,
                       .weight = flow->weight,
                       .owner = flow->owner,
                       .is_live = true,
                       .is_new = true};
    set_top(f, a, top_of(f, a));
    a->first_record = take_block(f, a->n_uses);
    for (uint32_t u = 0; u < a->n_uses; u++) {
        const OrrUse *use = &a->uses[u];
        OrrLinkState *l = &f->links[use->constraint];
        link_in(f, a->first_record + u, id, use);
        l->potential += (OrrWide)orr_fluid__factor(use) * a->top;
        l->slope += (OrrWide)orr_fluid__factor(use) * a->scale;
        l->unit += orr_fluid__factor(use);
        orr_fluid__show_goal(f, use->constraint);
    }
    orr_fluid__find_stop(f, a);
    f->n_live++;
    f->stats.starts++;
    bool is_admitted = admit(f, a);
    g_assert(is_admitted || flow->ahead_ns == 0);
    f->stats.headroom += is_admitted;
    orr_fluid__push(is_admitted ? &f->admitted : &f->pending, id);
    for (uint32_t u = 0; u < a->n_uses && !is_admitted; u++)
        mark_dirty(f, a->uses[u].constraint); /* also those that only later ones may fill */
    return id;
}

void orr_fluid_end(OrrFluid *f, int64_t now_ns, uint32_t activity) {
    advance_clock(f, now_ns);
    OrrActivity *a = &f->activities[activity];
    g_assert(a->is_live);
    orr_fluid__progress(a, now_ns);
    uint64_t left = (uint64_t)((a->left + ORR_FLUID_WORK_PER_BYTE - 1) / ORR_FLUID_WORK_PER_BYTE);
    f->lost_bytes += left;
    for (uint32_t u = 0; u < a->n_uses; u++) {
        const OrrUse *use = &a->uses[u];
        OrrLinkState *l = &f->links[use->constraint];
        f->link_done[use->constraint] += (OrrWide)orr_fluid__factor(use) * (a->bytes - left);
        link_out(f, a->first_record + u, use->constraint);
        l->potential -= (OrrWide)orr_fluid__factor(use) * a->top;
        f->rooms[use->constraint].usage -= (OrrWide)orr_fluid__factor(use) * a->rate;
        f->rooms[use->constraint].slack += (OrrSlack)((OrrWide)orr_fluid__factor(use) * a->rate);
        l->slope -= (OrrWide)orr_fluid__factor(use) * a->scale;
        l->unit -= orr_fluid__factor(use);
        orr_fluid__show_goal(f, use->constraint);
        if (l->level != ORR_LEVEL_NONE)
            mark_dirty(f, use->constraint);
    }
    f->n_live--;
    give_block(f, a->first_record, a->n_uses);
    a->is_live = false;
    a->next_free = f->free_activity;
    f->free_activity = activity;
}

/* Tops change with the capacity, and with them which links can bind: all links of the activities
 * concerned are solved anew. */
void orr_fluid_capacity(OrrFluid *f, int64_t now_ns, uint32_t link, uint64_t bytes_per_s) {
    g_assert(bytes_per_s < ORR_MAX_CAPACITY);
    advance_clock(f, now_ns);
    f->links[link].capacity = (OrrWide)bytes_per_s * ORR_COEF_ONE;
    orr_fluid__show_goal(f, link);
    mark_dirty(f, link);
    for (uint32_t r = f->links[link].head; r != ORR_FLUID_NIL; r = f->records[r].next) {
        OrrActivity *a = &f->activities[f->records[r].activity];
        uint64_t top = top_of(f, a);
        for (uint32_t u = 0; u < a->n_uses && top != a->top; u++) {
            OrrLinkState *l = &f->links[a->uses[u].constraint];
            OrrWide factor = orr_fluid__factor(&a->uses[u]);
            l->potential += factor * top;
            l->potential -= factor * a->top;
            orr_fluid__show_goal(f, a->uses[u].constraint);
            mark_dirty(f, a->uses[u].constraint);
        }
        if (top == a->top)
            continue;
        set_top(f, a, top);
        orr_fluid__find_stop(f, a);
        orr_fluid__push(&f->pending, f->records[r].activity);
    }
}

uint64_t orr_fluid_rate(const OrrFluid *f, uint32_t activity) {
    return f->activities[activity].rate;
}

uint64_t orr_fluid_link_bytes(const OrrFluid *f, uint32_t link) {
    OrrWide sum = f->link_done[link];
    for (uint32_t r = f->links[link].head; r != ORR_FLUID_NIL; r = f->records[r].next) {
        OrrActivity a = f->activities[f->records[r].activity];
        uint32_t use = r - a.first_record;
        orr_fluid__progress(&a, f->now_ns);
        uint64_t left =
            (uint64_t)((a.left + ORR_FLUID_WORK_PER_BYTE - 1) / ORR_FLUID_WORK_PER_BYTE);
        sum += (OrrWide)orr_fluid__factor(&a.uses[use]) * (a.bytes - left);
    }
    return (uint64_t)(sum / ORR_COEF_ONE);
}
