/* One link at a time: where it is full as the others stop now, and what it wants to hear of them.
 *
 * A link that stops nobody gives each bundle an allowance, a rate at least its own, such that all
 * allowances fit in: it hears nothing of those that keep within. One that stops some keeps what
 * those leave that stop elsewhere below its level, so that as long as nobody changes sides its goal
 * is one division. Where all that rise stop at the very same level elsewhere, too, it stops nobody:
 * it is just full, and hears of who rises above that. Rings, whose links are many, have only a
 * lower bound of the levels of those that are not among the lowest of theirs. Cost: a visit a
 * bundle for a goal that is found anew. */
#include "sim/net/fluid.h"

#include "sim/net/fluid_priv.h"

static void set_mode(OrrFluid *f, OrrLinkState *l, OrrLinkMode mode, uint64_t free) {
    l->mode = (uint8_t)mode;
    l->is_sound = false;
    for (int i = 0; i < 2; i++)
        for (uint32_t u = l->first[i]; u != ORR_FLUID_NIL; u = f->uses[u].next)
            f->use_free[u] = free;
}

/* Rings of the link have its level itself from now on; false if they had already. */
static bool lift_shield(OrrFluid *f, uint32_t link) {
    OrrLinkState *l = &f->links[link];
    if (l->shield == l->level)
        return false;
    l->shield = l->level;
    for (uint32_t u = l->first[1]; u != ORR_FLUID_NIL; u = f->uses[u].next)
        f->use_level[u] = l->level;
    return true;
}

void orr_fluid__open_or_close(OrrFluid *f, uint32_t link) {
    OrrLinkState *l = &f->links[link];
    if (orr_fluid__can_bind(l) == (l->mode != ORR_LINK_OPEN))
        return;
    if (l->mode == ORR_LINK_OPEN)
        set_mode(f, l, ORR_LINK_CLOSED, 0);
    else
        set_mode(f, l, ORR_LINK_OPEN, UINT64_MAX);
}

void orr_fluid__close(OrrFluid *f, uint32_t link) {
    set_mode(f, &f->links[link], ORR_LINK_CLOSED, 0);
    lift_shield(f, link);
}

/* Members of @factor in all come to the use, or go. */
static void count(OrrFluid *f, uint32_t use, OrrSlack factor) {
    const OrrWatched *w = &f->uses[use];
    const OrrBundle *b = &f->bundles[w->bundle];
    OrrLinkState *l = &f->links[w->link];
    if (l->mode == ORR_LINK_QUIET) {
        OrrSlack rounding = factor + factor * (OrrSlack)(b->scale >> ORR_LEVEL_BITS) + 1;
        g_assert(f->use_free[use] > 0);
        l->slack -= factor * (OrrSlack)(f->use_free[use] - 1);
        l->slack -= factor > 0 ? 2 * rounding : 0; /* see orr_fluid__margin */
        if (l->slack < 0)
            orr_fluid__mark_dirty(f, w->link);
    } else if (l->is_sound) {
        uint64_t stop = orr_fluid__stop_without(b, w->link);
        if (stop < l->goal) {
            l->left -= factor * (OrrSlack)orr_fluid__rate_at(b, stop);
            l->highest = MAX(l->highest, stop);
        } else {
            l->rising += (OrrWide)(factor * (OrrSlack)b->scale);
            l->has_ring |= b->is_own;
        }
        l->gap = 0;
        l->is_sound = l->rising > 0;
    }
}

void orr_fluid__count_in(OrrFluid *f, uint32_t use) {
    f->uses[use].total += f->uses[use].factor;
    count(f, use, (OrrSlack)f->uses[use].factor);
}

void orr_fluid__count_out(OrrFluid *f, uint32_t use) {
    f->uses[use].total -= f->uses[use].factor;
    count(f, use, -(OrrSlack)f->uses[use].factor);
}

/* Per unit of @unit, of which there may be less than one: rounded down, or less. */
static uint64_t share(OrrSlack slack, uint64_t unit) {
    int shift = 0;
    while (slack >> 63 > 0) /* 64-bit division is fast */
        slack >>= 8, shift += 8;
    return slack <= 0 ? 0 : (uint64_t)slack / unit << shift;
}

bool orr_fluid__allow(OrrFluid *f, uint32_t use, uint64_t rate) {
    const OrrWatched *w = &f->uses[use];
    OrrLinkState *l = &f->links[w->link];
    OrrSlack more = (OrrSlack)w->total * (OrrSlack)(rate - (f->use_free[use] - 1));
    if (f->use_free[use] == 0 || more > l->slack)
        return false;
    l->slack -= more;
    uint64_t extra = share(l->slack / 4, w->total); /* for the next time */
    extra = MIN(extra, f->bundles[w->bundle].top - rate);
    l->slack -= (OrrSlack)w->total * extra;
    f->use_free[use] = rate + 1 + extra;
    return true;
}

void orr_fluid__be_quiet(OrrFluid *f, uint32_t link) {
    OrrLinkState *l = &f->links[link];
    if (l->mode == ORR_LINK_OPEN)
        return;
    OrrSlack slack = (OrrSlack)orr_fluid__capacity(l) - (OrrSlack)orr_fluid__margin(l);
    for (int i = 0; i < 2; i++)
        for (uint32_t u = l->first[i]; u != ORR_FLUID_NIL; u = f->uses[u].next) {
            const OrrBundle *b = &f->bundles[f->uses[u].bundle];
            uint64_t rate = orr_fluid__rate_at(b, b->stop);
            slack -= (OrrSlack)f->uses[u].total * rate;
            f->use_free[u] = rate + 1;
        }
    l->mode = ORR_LINK_QUIET;
    l->is_sound = false;
    l->slack = slack;
    /* just full: it hears of who comes to stop higher, be it at the rate that he has */
    bool is_tight = slack < 0;
    uint64_t extra = share(slack / 2, l->unit); /* half of it for all, half for who asks */
    for (int i = 0; i < 2; i++)
        for (uint32_t u = l->first[i]; u != ORR_FLUID_NIL; u = f->uses[u].next) {
            uint64_t above = f->bundles[f->uses[u].bundle].top - (f->use_free[u] - 1);
            above = MIN(above, extra);
            l->slack -= (OrrSlack)f->uses[u].total * above;
            f->use_free[u] += above;
            f->use_free[u] -= is_tight && f->use_free[u] > 1;
        }
}

/* All rise, those stop that others stop below it, and what they leave takes the rest higher, until
 * nobody else stops below. */
static uint64_t fill(OrrFluid *f, uint32_t link) {
    OrrLinkState *l = &f->links[link];
    l->is_sound = false;
    if (!orr_fluid__can_bind(l))
        return ORR_LEVEL_NONE;
    if (l->n_uses > f->cap_risers) {
        f->cap_risers = MAX(l->n_uses, 2 * f->cap_risers);
        f->risers = g_renew(OrrRiser, f->risers, f->cap_risers);
    }
    l->left = (OrrSlack)orr_fluid__capacity(l);
    l->rising = l->slope;
    l->highest = 0;
    uint32_t n = 0;
    for (int i = 0; i < 2; i++)
        for (uint32_t u = l->first[i]; u != ORR_FLUID_NIL; u = f->uses[u].next) {
            uint32_t id = f->uses[u].bundle;
            f->risers[n++] =
                (OrrRiser){orr_fluid__stop_without(&f->bundles[id], link), f->uses[u].total, id};
        }
    while (n > 0) {
        uint64_t level = orr_level__of_constraint((OrrWide)l->left, l->rising);
        uint32_t n_before = n;
        bool is_needed = false; /* not if others stop all of them at this very level */
        l->has_ring = false;
        for (uint32_t i = 0; i < n;) {
            const OrrRiser x = f->risers[i];
            const OrrBundle *b = &f->bundles[x.bundle];
            if (x.stop >= level) {
                is_needed |= x.stop > level;
                l->has_ring |= b->is_own;
                i++;
                continue;
            }
            l->left -= (OrrSlack)((OrrWide)x.total * orr_fluid__rate_at(b, x.stop));
            l->rising -= (OrrWide)x.total * b->scale;
            l->highest = MAX(l->highest, x.stop);
            f->risers[i] = f->risers[--n];
        }
        if (n == n_before)
            return is_needed ? level : ORR_LEVEL_NONE;
    }
    return ORR_LEVEL_NONE;
}

/* Another goal for which the same would rise is less than the rounding of all rates and of the
 * level away. */
static void find_gap(OrrLinkState *l) {
    OrrWide margin = orr_fluid__margin(l);
    l->gap = ORR_LEVEL_NONE;
    if (margin >> 64 != 0 || l->rising >> 64 != 0)
        return;
    OrrWide gap = (margin << ORR_LEVEL_BITS) / (uint64_t)l->rising + 1;
    if (gap >> 64 == 0)
        l->gap = (uint64_t)gap;
}

void orr_fluid__find_goal(OrrFluid *f, uint32_t link) {
    OrrLinkState *l = &f->links[link];
    l->goal = fill(f, link);
    l->is_sound = l->goal != ORR_LEVEL_NONE;
    l->gap = 0; /* not known */
    if (l->goal == ORR_LEVEL_NONE && l->level == ORR_LEVEL_NONE)
        orr_fluid__be_quiet(f, link);
    else if (l->mode == ORR_LINK_QUIET)
        set_mode(f, l, ORR_LINK_CLOSED, 0);
}

/* Do the same bundles rise to the new goal? */
static bool is_same_side(const OrrFluid *f, const OrrLinkState *l, uint32_t link, uint64_t goal) {
    if (goal == ORR_LEVEL_NONE || goal < l->highest || goal - l->highest < l->gap)
        return false;
    if (goal <= l->goal)
        return true;
    if (l->has_ring)
        return false;
    for (uint32_t u = l->first[0]; u != ORR_FLUID_NIL; u = f->uses[u].next) {
        uint64_t stop = orr_fluid__stop_without(&f->bundles[f->uses[u].bundle], link);
        if (stop >= l->goal && stop < goal)
            return false;
    }
    return true;
}

void orr_fluid__renew_goal(OrrFluid *f, uint32_t link) {
    OrrLinkState *l = &f->links[link];
    if (l->is_sound && l->left >= 0) {
        uint64_t goal = orr_level__of_constraint((OrrWide)l->left, l->rising);
        if (l->gap == 0)
            find_gap(l);
        if (is_same_side(f, l, link, goal)) {
            l->goal = goal;
            return;
        }
    }
    orr_fluid__find_goal(f, link);
}

static void scan(const OrrFluid *f, OrrBundle *b) {
    const uint64_t *levels = f->use_level + b->first_use;
    const OrrWatched *uses = f->uses + b->first_use;
    b->stop = b->top_level;
    b->stop_link = b->next_link = ORR_FLUID_NIL;
    b->next_stop = ORR_LEVEL_NONE;
    for (uint32_t u = 0; u < b->n_uses; u++) {
        uint64_t level = levels[u];
        if (level >= b->next_stop)
            continue;
        uint32_t link = uses[u].link;
        if (level < b->stop) {
            if (b->stop_link != link) {
                b->next_stop = b->stop;
                b->next_link = b->stop_link;
            }
            b->stop = level;
            b->stop_link = link;
        } else if (b->stop_link != link) {
            b->next_stop = level;
            b->next_link = link;
        }
    }
}

/* The two lowest levels must be those of their links. */
void orr_fluid__find_stop(OrrFluid *f, OrrBundle *b) {
    do
        scan(f, b);
    while (b->is_own && ((b->stop_link != ORR_FLUID_NIL && lift_shield(f, b->stop_link)) ||
                         (b->next_link != ORR_FLUID_NIL && lift_shield(f, b->next_link))));
}
