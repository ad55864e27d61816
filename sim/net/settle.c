/* New rates after changes, touching as little as possible, and to the bit what a solve of
 * everything gives.
 *
 * An activity stops at the lowest level of its links and its top; a link is full at a level that
 * depends only on who has stopped below it. So changes spread upwards in level alone, and a search
 * in order of level looks at each link a few times at most. A link whose level is not its goal (the
 * level that the others' stops give it) waits under the lower of the two: the goal becomes the
 * level. The second time in a search that a link should rise, it first lets all go, and stops them
 * again when the search comes to its goal, so that links do not raise each other in small steps.
 * Then the links of the activities that moved compute their goals anew; a link that stops nobody
 * and has room for the change is left alone. Source: the scheme of Ramalingam and Reps 1996, An
 * incremental algorithm for a generalization of the shortest-path problem, applied to progressive
 * filling. Cost: 0.2 to 4 us a link whose level changes, with a handful of activities on each. */
#include "sim/net/fluid.h"

#include "sim/net/fluid_priv.h"

#include <glib.h>

void orr_fluid__find_stop(const OrrFluid *f, OrrActivity *a) {
    const uint64_t *levels = f->record_level + a->first_record;
    a->stop = a->top_level;
    a->stop_link = ORR_FLUID_NIL;
    a->next_stop = ORR_LEVEL_NONE;
    for (uint32_t u = 0; u < a->n_uses; u++) {
        uint64_t level = levels[u];
        if (level >= a->next_stop)
            continue;
        uint32_t link = a->uses[u].constraint;
        if (level < a->stop) {
            if (a->stop_link != link)
                a->next_stop = a->stop;
            a->stop = level;
            a->stop_link = link;
        } else if (a->stop_link != link) {
            a->next_stop = level;
        }
    }
}

void orr_fluid__move(OrrFluid *f, uint32_t activity) {
    if (f->activities[activity].is_moved)
        return;
    f->activities[activity].is_moved = true;
    orr_fluid__push(&f->moved, activity);
}

/* Where the activity would stop without the link. */
static uint64_t stop_without(const OrrActivity *a, uint32_t link) {
    return a->stop_link == link ? a->next_stop : a->stop;
}

/* The level at which the link is full, as the others stop now: all rise, those stop that others
 * stop below it, and what they leave takes the rest higher, until nobody else stops below. */
static uint64_t find_goal(OrrFluid *f, uint32_t link) {
    const OrrLinkState *l = &f->links[link];
    if (!orr_fluid__can_bind(l))
        return ORR_LEVEL_NONE;
    if (l->n_records > f->cap_risers) {
        f->cap_risers = MAX(l->n_records, 2 * f->cap_risers);
        f->risers = g_renew(OrrRiser, f->risers, f->cap_risers);
    }
    OrrWide left = l->capacity, slope = l->slope;
    uint32_t n = 0;
    for (uint32_t r = l->head; r != ORR_FLUID_NIL; r = f->records[r].next) {
        uint32_t id = f->records[r].activity;
        f->risers[n++] =
            (OrrRiser){stop_without(&f->activities[id], link), f->records[r].factor, id};
    }
    while (n > 0) {
        uint64_t level = orr_level__of_constraint(left, slope);
        uint32_t n_before = n;
        for (uint32_t i = 0; i < n;) {
            const OrrRiser x = f->risers[i];
            if (x.stop >= level) {
                i++;
                continue;
            }
            const OrrActivity *a = &f->activities[x.activity];
            left -= (OrrWide)x.factor * orr_fluid__rate_at(a, x.stop);
            slope -= (OrrWide)x.factor * a->scale;
            f->risers[i] = f->risers[--n];
        }
        if (n == n_before)
            return level;
    }
    f->rooms[link].slack = (OrrSlack)left - (OrrSlack)orr_fluid__margin(l);
    return ORR_LEVEL_NONE;
}

static void heap_push(OrrFluid *f, OrrLinkEntry e) {
    if (f->n_heap == f->cap_heap) {
        f->cap_heap = MAX(64, 2 * f->cap_heap);
        f->heap = g_renew(OrrLinkEntry, f->heap, f->cap_heap);
    }
    uint32_t at = f->n_heap++;
    for (; at > 0 && f->heap[(at - 1) / 2].key > e.key; at = (at - 1) / 2)
        f->heap[at] = f->heap[(at - 1) / 2];
    f->heap[at] = e;
}

static OrrLinkEntry heap_pop(OrrFluid *f) {
    OrrLinkEntry top = f->heap[0], e = f->heap[--f->n_heap];
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < f->n_heap; at = child) {
        if (child + 1 < f->n_heap && f->heap[child + 1].key < f->heap[child].key)
            child++;
        if (f->heap[child].key >= e.key)
            break;
        f->heap[at] = f->heap[child];
    }
    f->heap[at] = e;
    return top;
}

static void look_at(OrrFluid *f, uint32_t link) {
    OrrLinkState *l = &f->links[link];
    l->goal = find_goal(f, link);
    orr_fluid__show_goal(f, link);
    if (l->goal != l->level)
        heap_push(f, (OrrLinkEntry){MIN(l->goal, l->level), link});
}

/* Do the goals of the activity's other links depend on how its stop has moved? Not if both are
 * above the goal, nor if a link that stops nobody has room for the change. */
static void note_nearby(OrrFluid *f, const OrrActivity *a, const OrrActivity *old, uint32_t link) {
    const uint64_t *goals = f->record_goal + a->first_record;
    const uint64_t *levels = f->record_level + a->first_record;
    uint64_t lowest = MIN(a->stop, old->stop);
    OrrSlack change =
        (OrrSlack)orr_fluid__rate_at(a, a->stop) - (OrrSlack)orr_fluid__rate_at(old, old->stop);
    for (uint32_t u = 0; u < a->n_uses; u++) {
        if (goals[u] <= lowest)
            continue;
        uint32_t other = a->uses[u].constraint;
        if (other == link)
            continue;
        if (goals[u] == ORR_LEVEL_NONE && levels[u] == ORR_LEVEL_NONE) {
            f->rooms[other].slack -= (OrrSlack)orr_fluid__factor(&a->uses[u]) * change;
            if (f->rooms[other].slack >= 0)
                continue;
        }
        OrrLinkState *l = &f->links[other];
        uint64_t stop = stop_without(a, other), old_stop = stop_without(old, other);
        if (l->round == f->round || stop == old_stop || (stop >= l->goal && old_stop >= l->goal))
            continue;
        l->round = f->round;
        orr_fluid__push(&f->nearby, other);
    }
}

static void set_level(OrrFluid *f, uint32_t link, uint64_t level) {
    OrrLinkState *l = &f->links[link];
    uint64_t old_level = l->level;
    l->level = level;
    f->round++;
    f->nearby.n = 0;
    for (uint32_t r = l->head; r != ORR_FLUID_NIL; r = f->records[r].next) {
        uint32_t id = f->records[r].activity;
        OrrActivity *a = &f->activities[id];
        f->record_level[r] = level;
        if (MIN(level, old_level) > a->next_stop)
            continue;
        const OrrActivity old = *a;
        orr_fluid__find_stop(f, a);
        if (a->stop == old.stop && a->stop_link == old.stop_link && a->next_stop == old.next_stop)
            continue;
        orr_fluid__move(f, id);
        note_nearby(f, a, &old, link);
    }
    for (uint32_t i = 0; i < f->nearby.n; i++)
        look_at(f, f->nearby.ids[i]);
}

static void search(OrrFluid *f) {
    f->n_heap = 0;
    f->settles++;
    for (uint32_t i = 0; i < f->dirty.n; i++)
        look_at(f, f->dirty.ids[i]);
    while (f->n_heap > 0) {
        OrrLinkEntry e = heap_pop(f);
        OrrLinkState *l = &f->links[e.link];
        if (l->level == l->goal || MIN(l->level, l->goal) != e.key)
            continue;
        bool is_direct = l->goal < l->level || l->raised != f->settles;
        l->raised = f->settles;
        f->stats.solves++;
        f->stats.solved_activities += l->n_records;
        set_level(f, e.link, is_direct ? l->goal : ORR_LEVEL_NONE);
        if (l->goal != l->level)
            heap_push(f, (OrrLinkEntry){MIN(l->goal, l->level), e.link});
    }
}

static void set_rate(OrrFluid *f, OrrActivity *a, uint64_t rate, int64_t now_ns) {
    orr_fluid__progress(a, now_ns);
    for (uint32_t u = 0; u < a->n_uses; u++) {
        OrrWide factor = orr_fluid__factor(&a->uses[u]);
        OrrLinkRoom *room = &f->rooms[a->uses[u].constraint];
        room->usage += factor * rate;
        room->usage -= factor * a->rate;
    }
    a->rate = rate;
}

static void commit(OrrFluid *f, OrrIdList *list, OrrFluidRetime retime, void *data) {
    for (uint32_t i = 0; i < list->n; i++) {
        OrrActivity *a = &f->activities[list->ids[i]];
        a->is_moved = false;
        if (!a->is_live)
            continue;
        uint64_t rate = orr_fluid__rate_at(a, a->stop);
        if (rate == a->rate && !a->is_new)
            continue;
        if (rate != a->rate)
            set_rate(f, a, rate, f->now_ns);
        a->is_new = false;
        retime(data, list->ids[i], a->owner, orr_fluid__end_ns(a));
    }
    list->n = 0;
}

void orr_fluid_settle(OrrFluid *f, int64_t now_ns, OrrFluidRetime retime, void *data) {
    g_assert(now_ns >= f->now_ns);
    f->now_ns = now_ns;
    /* a quarter: about where one solve of everything is as fast as the search */
    if (f->pending.n > 0 && f->pending.n >= f->n_live / 4)
        orr_fluid__settle_all(f);
    else
        search(f);
    for (uint32_t i = 0; i < f->dirty.n; i++)
        f->links[f->dirty.ids[i]].is_dirty = false;
    f->dirty.n = 0;
    commit(f, &f->moved, retime, data);
    commit(f, &f->pending, retime, data);
    commit(f, &f->admitted, retime, data);
}
