/* New rates after changes, solving as little as possible and still what a solve of everything gives.
 *
 * Taken in are the new activities without headroom and all activities of links that lost one of
 * those they hold. They are solved with everybody else fixed. An activity whose own bottleneck is
 * not taken in whole may fall but not rise. Where a rate, or the level at which it stopped, moved on
 * a link that is not taken in whole, or such a link stopped somebody, and the link holds activities
 * or is full now, its activities are taken in too, and all is solved again. In the end every link
 * that holds anybody has all its activities inside or has not changed: the levels of the whole are
 * those of the parts. The test compares with a solve of everything, to the bit, over random
 * histories. Cost: 0.2 us an activity that has to be solved. */
#include "sim/net/fluid.h"

#include "sim/net/fluid_priv.h"

#include <glib.h>

static void take_in(OrrFluid *f, uint32_t activity)
{
    if (f->activities[activity].round == f->round)
        return;
    f->activities[activity].round = f->round;
    orr_fluid__push(&f->set, activity);
}

static void take_in_link(OrrFluid *f, uint32_t link)
{
    OrrLinkState *l = &f->links[link];
    if (l->full_round == f->round)
        return;
    l->full_round = f->round;
    for (uint32_t r = l->head; r != ORR_FLUID_NIL; r = f->records[r].next)
        take_in(f, f->records[r].activity);
}

static bool is_inside(const OrrFluid *f, const OrrLinkState *l)
{
    return l->full_round == f->round ||
           (l->local_round == f->round && f->problem.n_inside[l->local] == l->n_records);
}

/* Number of the link in the problem; its capacity there is what outsiders leave. */
static uint32_t local_link(OrrFluid *f, uint32_t link)
{
    OrrLinkState *l = &f->links[link];
    if (l->local_round == f->round)
        return l->local;
    if (f->problem.n_links == f->problem.cap_links) {
        uint32_t n = f->problem.cap_links = MAX(64, 2 * f->problem.cap_links);
        f->problem.capacity = g_renew(OrrWide, f->problem.capacity, n);
        f->problem.load = g_renew(OrrWide, f->problem.load, n);
        f->problem.link = g_renew(uint32_t, f->problem.link, n);
        f->problem.n_inside = g_renew(uint32_t, f->problem.n_inside, n);
        f->problem.has_changed = g_renew(bool, f->problem.has_changed, n);
    }
    l->local_round = f->round;
    l->local = f->problem.n_links++;
    f->problem.capacity[l->local] = l->capacity - l->usage; /* wraps if reduced; members give back */
    f->problem.link[l->local] = link;
    f->problem.n_inside[l->local] = 0;
    return l->local;
}

static void add_activity(OrrFluid *f, uint32_t activity)
{
    const OrrActivity *a = &f->activities[activity];
    if (f->problem.n == f->problem.cap) {
        uint32_t n = f->problem.cap = MAX(64, 2 * f->problem.cap);
        f->problem.activities = g_renew(OrrSolveActivity, f->problem.activities, n);
        f->problem.rate = g_renew(uint64_t, f->problem.rate, n);
        f->problem.bottleneck = g_renew(uint32_t, f->problem.bottleneck, n);
        f->problem.level = g_renew(uint64_t, f->problem.level, n);
        f->problem.is_held = g_renew(bool, f->problem.is_held, n);
    }
    if (f->problem.n_uses + a->n_uses > f->problem.cap_uses) {
        f->problem.cap_uses = MAX(2 * f->problem.cap_uses, f->problem.n_uses + a->n_uses + 64);
        f->problem.uses = g_renew(OrrUse, f->problem.uses, f->problem.cap_uses);
    }
    OrrSolveActivity *x = &f->problem.activities[f->problem.n++];
    *x = (OrrSolveActivity){f->problem.n_uses, 0, a->weight, a->scale_coef, a->top, 0};
    for (uint32_t u = 0; u < a->n_uses; u++) {
        const OrrUse *use = &a->uses[u];
        if (!orr_fluid__can_bind(&f->links[use->constraint]))
            continue;
        uint32_t l = local_link(f, use->constraint);
        f->problem.capacity[l] += (OrrWide)orr_fluid__factor(use) * a->rate;
        f->problem.n_inside[l]++;
        f->problem.uses[f->problem.n_uses++] = (OrrUse){l, use->coef, use->count};
        x->n_uses++;
    }
}

/* Adds what was taken in since the last run, and says who may rise. */
static void load_problem(OrrFluid *f)
{
    for (uint32_t i = f->problem.n; i < f->set.n; i++)
        add_activity(f, f->set.ids[i]);
    for (uint32_t i = 0; i < f->problem.n; i++) {
        const OrrActivity *a = &f->activities[f->set.ids[i]];
        const OrrLinkState *l = a->bottleneck == ORR_BY_CAP ? NULL : &f->links[a->bottleneck];
        bool is_held = l != NULL && orr_fluid__can_bind(l) && !is_inside(f, l);
        f->problem.is_held[i] = is_held;
        f->problem.activities[i].cap = is_held ? a->rate : a->top;
        f->problem.activities[i].cap_level = is_held ? a->level : 0;
    }
}

/* Where the activity stopped, as its level is kept: 0 at its top. */
static uint64_t new_level(const OrrFluid *f, uint32_t i)
{
    return f->problem.bottleneck[i] == ORR_BY_CAP && !f->problem.is_held[i] ? 0
                                                                            : f->problem.level[i];
}

/* Does a move of the level alone change who has stopped below the level of the link? */
static bool is_turned(const OrrFluid *f, uint32_t local, uint64_t level, uint64_t old_level)
{
    const OrrLinkState *l = &f->links[f->problem.link[local]];
    return l->n_bound > 0 && (level >= l->level || old_level >= l->level);
}

/* Takes in the links whose outsiders may have to move; false if there are none. */
static bool spread(OrrFluid *f)
{
    for (uint32_t l = 0; l < f->problem.n_links; l++) {
        f->problem.load[l] = 0;
        f->problem.has_changed[l] = false;
    }
    for (uint32_t i = 0; i < f->problem.n; i++) {
        const OrrSolveActivity *x = &f->problem.activities[i];
        const OrrActivity *a = &f->activities[f->set.ids[i]];
        bool has_changed = a->is_new || f->problem.rate[i] != a->rate;
        uint64_t level = new_level(f, i);
        for (uint32_t u = x->first_use; u < x->first_use + x->n_uses; u++) {
            const OrrUse *use = &f->problem.uses[u];
            f->problem.load[use->constraint] +=
                (OrrWide)orr_fluid__factor(use) * f->problem.rate[i];
            f->problem.has_changed[use->constraint] |=
                has_changed || (level != a->level && is_turned(f, use->constraint, level, a->level));
        }
        if (f->problem.bottleneck[i] != ORR_BY_CAP) /* outsiders may have more than their share */
            f->problem.has_changed[f->problem.bottleneck[i]] = true;
    }
    bool has_spread = false;
    for (uint32_t i = 0; i < f->problem.n_links; i++) {
        OrrLinkState *l = &f->links[f->problem.link[i]];
        if (!f->problem.has_changed[i] || is_inside(f, l))
            continue;
        OrrWide usage = l->capacity - f->problem.capacity[i] + f->problem.load[i];
        if (l->n_bound > 0 || !orr_fluid__has_room(l, usage)) {
            take_in_link(f, f->problem.link[i]);
            has_spread = true;
        }
    }
    return has_spread;
}

static void set_rate(OrrFluid *f, OrrActivity *a, uint64_t rate, int64_t now_ns)
{
    orr_fluid__progress(a, now_ns);
    for (uint32_t u = 0; u < a->n_uses; u++) {
        OrrWide factor = orr_fluid__factor(&a->uses[u]);
        OrrLinkState *l = &f->links[a->uses[u].constraint];
        l->usage += factor * rate;
        l->usage -= factor * a->rate;
    }
    a->rate = rate;
}

static void commit(OrrFluid *f, int64_t now_ns, OrrFluidRetime retime, void *data)
{
    for (uint32_t i = 0; i < f->problem.n; i++) {
        OrrActivity *a = &f->activities[f->set.ids[i]];
        uint32_t by = f->problem.bottleneck[i];
        a->level = new_level(f, i);
        if (by != ORR_BY_CAP || !f->problem.is_held[i]) {
            if (a->bottleneck != ORR_BY_CAP)
                f->links[a->bottleneck].n_bound--;
            a->bottleneck = by == ORR_BY_CAP ? ORR_BY_CAP : f->problem.link[by];
            if (a->bottleneck != ORR_BY_CAP) {
                f->links[a->bottleneck].n_bound++;
                f->links[a->bottleneck].level = a->level;
            }
        }
        if (f->problem.rate[i] == a->rate && !a->is_new)
            continue;
        if (f->problem.rate[i] != a->rate)
            set_rate(f, a, f->problem.rate[i], now_ns);
        a->is_new = false;
        retime(data, f->set.ids[i], a->owner, orr_fluid__end_ns(a));
    }
}

static void collect(OrrFluid *f)
{
    f->round++;
    f->set.n = 0;
    f->problem.n = f->problem.n_uses = f->problem.n_links = 0;
    for (uint32_t i = 0; i < f->dirty.n; i++) {
        f->links[f->dirty.ids[i]].is_dirty = false;
        take_in_link(f, f->dirty.ids[i]);
    }
    for (uint32_t i = 0; i < f->pending.n; i++)
        if (f->activities[f->pending.ids[i]].is_live)
            take_in(f, f->pending.ids[i]);
    f->dirty.n = f->pending.n = 0;
}

void orr_fluid_settle(OrrFluid *f, int64_t now_ns, OrrFluidRetime retime, void *data)
{
    g_assert(now_ns >= f->now_ns);
    f->now_ns = now_ns;
    collect(f);
    if (f->set.n > 0) {
        do {
            load_problem(f);
            OrrSolveProblem problem = {.activities = f->problem.activities,
                                       .n = f->problem.n,
                                       .uses = f->problem.uses,
                                       .capacity = f->problem.capacity,
                                       .n_constraints = f->problem.n_links,
                                       .rate = f->problem.rate,
                                       .bottleneck = f->problem.bottleneck,
                                       .level = f->problem.level};
            orr_solver_run(f->solver, &problem);
            f->stats.solves++;
            f->stats.solved_activities += f->problem.n;
        } while (spread(f));
        commit(f, now_ns, retime, data);
    }
    for (uint32_t i = 0; i < f->admitted.n; i++) {
        OrrActivity *a = &f->activities[f->admitted.ids[i]];
        if (!a->is_live || !a->is_new)
            continue;
        a->is_new = false;
        retime(data, f->admitted.ids[i], a->owner, orr_fluid__end_ns(a));
    }
    f->admitted.n = 0;
}
