/* Which links may bind. Each activity has a ceiling, at least its rate, that is pledged on its
 * links; a link that could carry all that is pledged stops nobody whatever they do below their
 * ceilings, so it needs no news of rates: it is free. The others are watched: their levels are
 * looked for.
 *
 * When a settle has found rates that pass their ceilings these are raised, links that overflow come
 * into sight and the search goes on with them: an active set. Rates do not depend on it, since
 * those of the watched links alone are right for all where no ceiling is passed. Ceilings leave
 * room, so that few changes pass them, and are lowered when rates have fallen far. Cost: a visit a
 * use of the members whose ceiling moves; a change of bundle for the activities of a link that
 * comes into sight or goes. */
#include "sim/net/fluid.h"

#include "sim/net/fluid_priv.h"

#include <string.h>

/* A quarter more, or the top where that is near. */
static uint64_t ceiling_for(uint64_t rate, uint64_t top) {
    return rate >= top - top / 5 ? top : rate + rate / 4;
}

/* Far enough below to be worth the visits: twice what ceiling_for leaves. */
bool orr_fluid__is_far_below(uint64_t rate, uint64_t ceiling) {
    return rate < ceiling / 3 * 2;
}

/* Some of it is kept free, so that a link does not go out of sight with each that ends. */
static bool is_calm(const OrrLinkState *l) {
    if (l->level != ORR_LEVEL_NONE || l->goal != ORR_LEVEL_NONE)
        return false;
    if (l->n_records <= ORR_FLUID_MAX_KEY)
        return !orr_fluid__may_bind(l);
    OrrWide most = orr_fluid__capacity(l) / 4 * 3;
    return l->potential <= most || l->pledged + orr_fluid__margin(l) <= most;
}

void orr_fluid__pledge(OrrFluid *f, const OrrActivity *a, uint64_t from, uint64_t to) {
    for (uint32_t u = 0; u < a->n_rows; u++)
        orr_fluid__row_pledge(f, &a->uses[a->n_uses + u], from, to);
    for (uint32_t u = 0; u < a->n_uses; u++) {
        OrrLinkState *l = &f->links[a->uses[u].constraint];
        OrrWide factor = orr_fluid__factor(&a->uses[u]);
        l->pledged += factor * to;
        l->pledged -= factor * from;
    }
}

bool orr_fluid__watch_if_full(OrrFluid *f, uint32_t link) {
    OrrLinkState *l = &f->links[link];
    if (l->is_watched || !orr_fluid__may_bind(l))
        return false;
    l->is_watched = true;
    orr_fluid__push(&f->watched, link);
    orr_fluid__mark_dirty(f, link);
    orr_fluid__push(&f->crowded, link);
    orr_fluid__close(f, link);
    return true;
}

bool orr_fluid__watch_full(OrrFluid *f, const OrrActivity *a) {
    bool is_any = false;
    for (uint32_t u = 0; u < a->n_uses; u++)
        is_any |= orr_fluid__watch_if_full(f, a->uses[u].constraint);
    for (uint32_t u = 0; u < a->n_rows; u++)
        orr_fluid__row_watch_full(f, a->uses[a->n_uses + u].constraint);
    return is_any;
}

uint64_t orr_fluid__guess(const OrrFluid *f, const OrrActivity *a) {
    uint64_t lowest = ORR_LEVEL_NONE;
    for (uint32_t u = 0; u < a->n_uses; u++)
        lowest = MIN(lowest, f->links[a->uses[u].constraint].level);
    return lowest >= a->top_level ? a->top : ceiling_for(orr_level__rate(a->scale, lowest), a->top);
}

/* Whether the bundle of an activity on the link has a use of it. */
static bool is_on(const OrrFluid *f, const OrrBundle *b, uint32_t link) {
    if (f->links[link].is_twin)
        return !b->is_own;
    for (uint32_t u = b->first_use; u < b->first_use + b->n_uses; u++)
        if (f->uses[u].link == link)
            return true;
    return false;
}

void orr_fluid__place_anew(OrrFluid *f, uint32_t activity) {
    const OrrActivity *a = &f->activities[activity];
    const OrrStop alone = {a->top_level, ORR_LEVEL_NONE, ORR_FLUID_NIL};
    const OrrStop old =
        a->bundle == ORR_FLUID_NIL ? alone : orr_fluid__stop_of(&f->bundles[a->bundle]);
    uint64_t ceiling = orr_fluid__ceiling(f, a);
    orr_fluid__unplace(f, activity);
    orr_fluid__place(f, activity, ceiling);
    if (a->bundle != ORR_FLUID_NIL && !orr_fluid__is_stop(&f->bundles[a->bundle], &old))
        orr_fluid__mark_closed(f, a);
}

/* The activity of the record uses its link as one that is watched. */
static void take_in(OrrFluid *f, uint32_t record, uint32_t link) {
    uint32_t id = f->records[record].activity;
    const OrrActivity *a = &f->activities[id];
    if (!a->is_placed)
        return;
    const OrrBundle *b = a->bundle == ORR_FLUID_NIL ? NULL : &f->bundles[a->bundle];
    if (b == NULL || (!b->is_own && !is_on(f, b, link)))
        orr_fluid__place_anew(f, id);
    else if (b->is_own && f->records[record].watched == ORR_FLUID_NIL && !f->links[link].is_twin)
        orr_fluid__add_use(f, a->bundle, record, &a->uses[record - a->first_record]);
}

void orr_fluid__rebundle(OrrFluid *f) {
    for (uint32_t i = 0; i < f->watched.n; i++) {
        uint32_t link = f->watched.ids[i];
        for (uint32_t r = f->links[link].head; r != ORR_FLUID_NIL; r = f->records[r].next)
            take_in(f, r, link);
    }
    f->watched.n = 0;
}

static void set_ceiling(OrrFluid *f, uint32_t bundle, uint64_t ceiling) {
    OrrBundle *b = &f->bundles[bundle];
    g_assert(b->n_heap == b->n_members); /* those that are over have been ended */
    for (uint32_t i = 0; i < b->n_heap; i++) {
        const OrrActivity *a = &f->activities[f->members[b->first_member + i].activity];
        orr_fluid__pledge(f, a, b->ceiling, ceiling);
        if (ceiling > b->ceiling)
            orr_fluid__watch_full(f, a);
    }
    b->ceiling = ceiling;
}

bool orr_fluid__raise(OrrFluid *f) {
    for (uint32_t i = 0; i < f->moved.n; i++) {
        const OrrBundle *b = &f->bundles[f->moved.ids[i]];
        uint64_t rate = orr_fluid__rate_at(b, b->stop);
        if (b->is_live && rate > b->ceiling)
            set_ceiling(f, f->moved.ids[i], ceiling_for(rate, b->top));
    }
    orr_fluid__rebundle(f);
    return f->dirty.n > 0;
}

void orr_fluid__relax(OrrFluid *f, uint32_t link) {
    if (f->links[link].is_relaxed)
        return;
    f->links[link].is_relaxed = true;
    orr_fluid__push(&f->relaxed, link);
}

static void let_go(OrrFluid *f, uint32_t record, uint32_t link) {
    uint32_t id = f->records[record].activity;
    const OrrActivity *a = &f->activities[id];
    const OrrBundle *b = a->bundle == ORR_FLUID_NIL ? NULL : &f->bundles[a->bundle];
    if (b == NULL)
        return;
    if (b->is_own && b->n_uses > 1) {
        if (f->records[record].watched != ORR_FLUID_NIL)
            orr_fluid__drop_use(f, f->records[record].watched);
    } else if (is_on(f, b, link)) {
        orr_fluid__place_anew(f, id);
    }
}

static void unwatch(OrrFluid *f, uint32_t link) {
    OrrLinkState *l = &f->links[link];
    l->is_watched = false;
    for (uint32_t r = l->head; r != ORR_FLUID_NIL; r = f->records[r].next)
        let_go(f, r, link);
    g_assert(l->n_uses == 0 || l->is_watched);
}

void orr_fluid__lower(OrrFluid *f) {
    for (uint32_t i = 0; i < f->lowered.n; i++) {
        uint32_t id = f->lowered.ids[i];
        const OrrBundle *b = &f->bundles[id];
        if (!b->is_live || !orr_fluid__is_far_below(b->rate, b->ceiling))
            continue;
        set_ceiling(f, id, ceiling_for(b->rate, b->top));
        for (uint32_t u = b->first_use; u < b->first_use + b->n_uses; u++)
            orr_fluid__relax(f, f->uses[u].link);
    }
    f->lowered.n = 0;
    uint32_t n = f->relaxed.n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t link = f->relaxed.ids[i];
        f->links[link].is_relaxed = false;
        if (orr_fluid__is_stand_in(f, link))
            orr_fluid__end_stand_in(f, link);
        else if (f->links[link].is_watched && is_calm(&f->links[link]))
            unwatch(f, link);
    }
    f->relaxed.n -= n; /* others have come */
    if (f->relaxed.n > 0)
        memmove(f->relaxed.ids, f->relaxed.ids + n, f->relaxed.n * sizeof *f->relaxed.ids);
    orr_fluid__rebundle(f);
}
