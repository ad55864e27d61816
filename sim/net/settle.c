/* New rates after changes, touching as little as possible, and to the bit what a solve of
 * everything gives.
 *
 * A bundle stops at the lowest level of its watched links and its top; a link is full at a level
 * that depends only on who has stopped below it. So changes spread upwards in level alone, and a
 * search in order of level looks at each link a few times at most. A link whose level is not its
 * goal (the level that the others' stops give it) waits under the lower of the two: the goal
 * becomes the level. The second time in a search that a link should rise, it first lets all go, and
 * stops them again when the search comes to its goal, so that links do not raise each other in
 * small steps. Then the links of the bundles that moved compute their goals anew; a link that stops
 * nobody and has room for the change is left alone. Source: the scheme of Ramalingam and Reps 1996,
 * An incremental algorithm for a generalization of the shortest-path problem, applied to
 * progressive filling. Cost: 0.2 to 4 us a link whose level changes, with a handful of bundles on
 * each. */
#include "sim/net/fluid.h"

#include "sim/net/fluid_priv.h"

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

/* The hole goes down to the bottom, since what fills it comes from there. */
static OrrLinkEntry heap_pop(OrrFluid *f) {
    OrrLinkEntry *heap = f->heap;
    OrrLinkEntry top = heap[0], e = heap[--f->n_heap];
    uint32_t at = 0, child = 1;
    for (; child + 1 < f->n_heap; child = 2 * at + 1) {
        child += heap[child + 1].key < heap[child].key;
        heap[at] = heap[child];
        at = child;
    }
    if (child < f->n_heap) {
        heap[at] = heap[child];
        at = child;
    }
    for (; at > 0 && heap[(at - 1) / 2].key > e.key; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = e;
    return top;
}

/* Below the lower of its level and its goal; an entry of that key or a lower one may be there
 * already. */
static void queue_link(OrrFluid *f, uint32_t link) {
    OrrLinkState *l = &f->links[link];
    uint64_t key = MIN(l->goal, l->level);
    if (l->seen != f->searches) {
        l->seen = f->searches;
        l->key = ORR_LEVEL_NONE;
        l->is_raised = false;
    }
    if (l->goal == l->level || l->key <= key)
        return;
    l->key = key;
    heap_push(f, (OrrLinkEntry){key, link});
}

static void look_at(OrrFluid *f, uint32_t link) {
    orr_fluid__renew_goal(f, link);
    queue_link(f, link);
}

/* The goal of the link of @use may depend on how the stop of its bundle has moved; not if both are
 * above it. */
static bool is_concerned(OrrFluid *f, const OrrBundle *b, const OrrStop *old, uint32_t use) {
    const OrrWatched *w = &f->uses[use];
    OrrLinkState *l = &f->links[w->link];
    if (l->mode == ORR_LINK_QUIET)
        return b->stop > old->stop && !orr_fluid__allow(f, use, orr_fluid__rate_at(b, b->stop));
    uint64_t stop = orr_fluid__stop_without(b, w->link);
    uint64_t old_stop = old->stop_link == w->link ? old->next_stop : old->stop;
    if (stop == old_stop || (stop >= l->goal && old_stop >= l->goal))
        return false;
    if (stop < l->goal && old_stop < l->goal) {
        OrrSlack change =
            (OrrSlack)orr_fluid__rate_at(b, stop) - (OrrSlack)orr_fluid__rate_at(b, old_stop);
        l->left -= (OrrSlack)w->total * change;
        l->highest = MAX(l->highest, stop);
    } else {
        l->is_sound = false;
    }
    return true;
}

/* Looks for links other than this that how the bundle has moved concerns. */
static void note_nearby(OrrFluid *f, const OrrBundle *b, const OrrStop *old, uint32_t link) {
    const uint64_t *free = f->use_free + b->first_use;
    uint64_t rate = orr_fluid__rate_at(b, b->stop);
    for (uint32_t u = 0; u < b->n_uses; u++) {
        if (rate < free[u])
            continue;
        uint32_t other = f->uses[b->first_use + u].link;
        if (other == link || !is_concerned(f, b, old, b->first_use + u))
            continue;
        OrrLinkState *l = &f->links[other];
        if (l->round == f->round || l->is_later)
            continue;
        if (b->is_own && l->is_sound && l->shield < l->level) {
            l->is_later = true;
            orr_fluid__push(&f->later, other);
            continue;
        }
        l->round = f->round;
        orr_fluid__push(&f->nearby, other);
    }
}

/* Only where the bundle would stop without the link that stops it has changed: for that link, is
 * one of the two below its goal? */
static bool is_next_concerned(const OrrFluid *f, const OrrBundle *b, const OrrStop *old) {
    return b->stop_link != ORR_FLUID_NIL &&
           MIN(b->next_stop, old->next_stop) < f->links[b->stop_link].goal;
}

/* Where the bundle stops, one of whose links has another level. */
static void change_stop(OrrFluid *f, OrrBundle *b, uint32_t link, uint64_t level) {
    if (level >= b->next_stop) {
        if (link == b->stop_link || link == b->next_link)
            orr_fluid__find_stop(f, b);
    } else if (b->stop_link == link) {
        b->stop = level;
    } else if (level < b->stop) {
        b->next_stop = b->stop;
        b->next_link = b->stop_link;
        b->stop = level;
        b->stop_link = link;
    } else {
        b->next_stop = level;
        b->next_link = link;
    }
}

/* The level of the link has changed: for sends, or for rings. */
static void tell(OrrFluid *f, uint32_t link, bool is_rings) {
    const OrrLinkState *l = &f->links[link];
    uint64_t level = l->level;
    for (uint32_t u = l->first[is_rings]; u != ORR_FLUID_NIL; u = f->uses[u].next) {
        uint32_t id = f->uses[u].bundle;
        OrrBundle *b = &f->bundles[id];
        f->use_level[u] = is_rings ? l->shield : level;
        if (level >= b->next_stop && link != b->stop_link && link != b->next_link)
            continue;
        const OrrStop old = orr_fluid__stop_of(b);
        change_stop(f, b, link, level);
        if (orr_fluid__is_stop(b, &old))
            continue;
        orr_fluid__move(f, id);
        if (b->stop != old.stop || b->stop_link != old.stop_link || is_next_concerned(f, b, &old))
            note_nearby(f, b, &old, link);
    }
}

/* Far below the level, unless one of the rings might stop there. */
static uint64_t shield_for(const OrrFluid *f, const OrrLinkState *l) {
    uint64_t highest = 0;
    for (uint32_t u = l->first[1]; u != ORR_FLUID_NIL; u = f->uses[u].next)
        highest = MAX(highest, f->bundles[f->uses[u].bundle].next_stop);
    return highest < l->level / 2 ? highest + highest / 2 + 1 : l->level;
}

static void set_level(OrrFluid *f, uint32_t link, uint64_t level) {
    OrrLinkState *l = &f->links[link];
    uint64_t old_level = l->level;
    l->level = level;
    f->round++;
    f->nearby.n = 0;
    tell(f, link, false);
    if (level < l->shield || old_level == l->shield) {
        l->shield = shield_for(f, l);
        tell(f, link, true);
    }
    if (level == ORR_LEVEL_NONE && l->goal == ORR_LEVEL_NONE)
        orr_fluid__be_quiet(f, link);
    for (uint32_t i = 0; i < f->nearby.n; i++)
        look_at(f, f->nearby.ids[i]);
}

static void forget_later(OrrFluid *f) {
    for (uint32_t i = 0; i < f->later.n; i++)
        f->links[f->later.ids[i]].is_later = false;
    f->later.n = 0;
}

/* All rings have found their stops, as far as is known: how do their other links stand? Whether
 * there is a level to change. */
static bool look_at_later(OrrFluid *f) {
    uint32_t n = f->later.n;
    forget_later(f);
    for (uint32_t i = 0; i < n; i++)
        look_at(f, f->later.ids[i]);
    return f->n_heap > 0;
}

/* A search that has looked at this many times all uses has gone round in circles: links of one
 * level let each other rise one by one. */
#define MOST_ROUNDS 16u
#define PER_LEVEL 16u  /* uses whose visit costs what a change of level does beside them */
#define MOST_FUTILE 4u /* halvings of the rounds, one for each search in vain */

/* False if a solve of everything is cheaper by now; levels are half changed then. */
static bool search(OrrFluid *f) {
    uint64_t n_looked = 0, most = (uint64_t)MOST_ROUNDS * f->n_uses >> f->n_futile;
    f->n_heap = 0;
    f->searches++;
    for (uint32_t i = 0; i < f->dirty.n; i++)
        if (f->links[f->dirty.ids[i]].is_watched) {
            look_at(f, f->dirty.ids[i]);
        }
    while (f->n_heap > 0 || look_at_later(f)) {
        OrrLinkEntry e = heap_pop(f);
        OrrLinkState *l = &f->links[e.link];
        if (l->key != e.key)
            continue; /* there is another */
        l->key = ORR_LEVEL_NONE;
        if (MIN(l->level, l->goal) != e.key)
            queue_link(f, e.link); /* it has become higher */
        if (l->level == l->goal || l->key != ORR_LEVEL_NONE || l->is_later)
            continue;
        bool is_direct = l->goal < l->level || !l->is_raised;
        l->is_raised = true;
        f->stats.solves++;
        f->stats.solved_activities += l->n_uses;
        n_looked += l->n_uses + PER_LEVEL;
        if (n_looked > most) {
            forget_later(f);
            f->n_futile += f->n_futile < MOST_FUTILE;
            return false;
        }
        set_level(f, e.link, is_direct ? l->goal : ORR_LEVEL_NONE);
        queue_link(f, e.link);
    }
    f->n_futile -= f->n_futile > 0 && n_looked > 0;
    return true;
}

static void commit(OrrFluid *f) {
    for (uint32_t i = 0; i < f->moved.n; i++) {
        uint32_t id = f->moved.ids[i];
        OrrBundle *b = &f->bundles[id];
        if (!b->is_moved)
            continue;
        b->is_moved = false;
        uint64_t rate = orr_fluid__rate_at(b, b->stop);
        if (rate == b->rate && !b->has_other)
            continue;
        bool is_slower = rate < b->rate && !b->has_other && b->at != ORR_FLUID_NIL;
        if (rate != b->rate) {
            f->stats.moves++;
            orr_fluid__progress(b, f->now_ns);
            b->rate = rate;
            if (orr_fluid__is_far_below(rate, b->ceiling))
                orr_fluid__push(&f->lowered, id);
        }
        b->has_other = false;
        b->is_end_late = is_slower; /* found when the list of ends comes to it, if not before */
        if (!is_slower)
            orr_fluid__find_end(f, id);
    }
    f->moved.n = 0;
}

/* Rates of all, with what is watched as it is or comes into sight. */
static void find_rates(OrrFluid *f) {
    do {
        orr_fluid__clear_crowded(f);
        /* a quarter: about where one solve of everything is as fast as the search */
        bool is_bulk = f->n_fresh > 0 && f->n_fresh >= (f->n_uses + f->n_bundles) / 4;
        if (is_bulk || !search(f))
            orr_fluid__settle_all(f);
        f->n_fresh = 0;
        for (uint32_t i = 0; i < f->dirty.n; i++)
            f->links[f->dirty.ids[i]].is_dirty = false;
        f->dirty.n = 0;
    } while (orr_fluid__raise(f) || f->crowded.n > 0);
    commit(f);
}

void orr_fluid_settle(OrrFluid *f, int64_t now_ns) {
    g_assert(now_ns >= f->now_ns);
    f->now_ns = now_ns;
    do {
        find_rates(f);
        if (f->lowered.n == 0 && f->relaxed.n == 0)
            return;
        orr_fluid__lower(f);
        commit(f);
    } while (f->dirty.n > 0);
}
