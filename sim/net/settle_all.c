/* Rates by one solve of all bundles: cheaper than settle.c's search where most are new. */
#include "sim/net/fluid.h"

#include "sim/net/fluid_priv.h"

static uint32_t local_link(OrrFluid *f, uint32_t link) {
    OrrLinkState *l = &f->links[link];
    if (l->round == f->round)
        return l->local;
    if (f->problem.n_links == f->problem.cap_links) {
        uint32_t n = f->problem.cap_links = MAX(64, 2 * f->problem.cap_links);
        f->problem.capacity = g_renew(OrrWide, f->problem.capacity, n);
        f->problem.level = g_renew(uint64_t, f->problem.level, n);
        f->problem.link = g_renew(uint32_t, f->problem.link, n);
    }
    l->round = f->round;
    l->local = f->problem.n_links++;
    f->problem.capacity[l->local] = orr_fluid__capacity(l);
    f->problem.link[l->local] = link;
    return l->local;
}

static void add_bundle(OrrFluid *f, const OrrBundle *b) {
    if (f->problem.n == f->problem.cap) {
        f->problem.cap = MAX(64, 2 * f->problem.cap);
        f->problem.activities = g_renew(OrrSolveActivity, f->problem.activities, f->problem.cap);
        f->problem.rate = g_renew(uint64_t, f->problem.rate, f->problem.cap);
    }
    if (f->problem.n_uses + b->n_uses > f->problem.cap_uses) {
        f->problem.cap_uses = MAX(2 * f->problem.cap_uses, f->problem.n_uses + b->n_uses + 64);
        f->problem.uses = g_renew(OrrUse, f->problem.uses, f->problem.cap_uses);
    }
    OrrSolveActivity *x = &f->problem.activities[f->problem.n++];
    *x = (OrrSolveActivity){f->problem.n_uses, 0, b->weight, b->largest_coef, b->top};
    for (uint32_t u = b->first_use; u < b->first_use + b->n_uses; u++) {
        const OrrWatched *use = &f->uses[u];
        if (!orr_fluid__can_bind(&f->links[use->link])) {
            orr_fluid__open_or_close(f, use->link);
            continue;
        }
        f->problem.uses[f->problem.n_uses++] =
            (OrrUse){local_link(f, use->link), use->coef, (uint32_t)(use->total / use->coef)};
        x->n_uses++;
    }
}

static void set_level(OrrFluid *f, uint32_t link, uint64_t level) {
    OrrLinkState *l = &f->links[link];
    l->level = l->goal = level;
    l->mode = orr_fluid__can_bind(l) ? ORR_LINK_CLOSED : ORR_LINK_OPEN;
    l->is_sound = false;
    l->shield = level;
}

static void take_levels(OrrFluid *f, OrrBundle *b) {
    for (uint32_t u = b->first_use; u < b->first_use + b->n_uses; u++) {
        const OrrLinkState *l = &f->links[f->uses[u].link];
        f->use_level[u] = b->is_own ? l->shield : l->level;
        f->use_free[u] = l->mode == ORR_LINK_OPEN ? UINT64_MAX : 0;
    }
    orr_fluid__find_stop(f, b);
}

void orr_fluid__settle_all(OrrFluid *f) {
    f->round++;
    f->problem.n = f->problem.n_uses = f->problem.n_links = 0;
    for (uint32_t i = 0; (i = orr_fluid__live_from(f, i)) < f->n_bundles; i++) {
        add_bundle(f, &f->bundles[i]);
        orr_fluid__move(f, i);
    }
    OrrSolveProblem problem = {.activities = f->problem.activities,
                               .n = f->problem.n,
                               .uses = f->problem.uses,
                               .capacity = f->problem.capacity,
                               .n_constraints = f->problem.n_links,
                               .rate = f->problem.rate,
                               .constraint_level = f->problem.level};
    orr_solver_run(f->solver, &problem);
    f->stats.solves++;
    f->stats.solved_activities += f->problem.n;
    for (uint32_t i = 0; i < f->dirty.n; i++) /* those that can't bind any more are not in it */
        set_level(f, f->dirty.ids[i], ORR_LEVEL_NONE);
    for (uint32_t l = 0; l < f->problem.n_links; l++)
        set_level(f, f->problem.link[l], f->problem.level[l]);
    for (uint32_t i = 0; (i = orr_fluid__live_from(f, i)) < f->n_bundles; i++)
        take_levels(f, &f->bundles[i]);
}
