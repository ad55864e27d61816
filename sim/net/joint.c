/* Equal activities that set out together go as one: a joint activity.
 *
 * k equal activities are exactly one whose uses have count k (level.h), as long as all stop at what
 * they share. What only some of them use, their own links, is in the sums of those links, and is
 * not watched: such a link stops nobody, so none of them can have less than the others. When an own
 * link becomes watched the owner is told (fluid.h) before anything is solved, and splits the joint
 * activity: each goes on with what is left to do, which is the same for all. So no rate or end
 * depends on who goes jointly. Own links have no list of who is on them. Cost: some additions an
 * own link, in its first cache line; all else once. */
#include "sim/net/fluid.h"

#include "sim/net/fluid_priv.h"

bool orr_fluid_start_joint(OrrFluid *f, int64_t now_ns, const OrrFlow *flow, uint32_t *activity) {
    const OrrUse *own = flow->uses + flow->n_uses;
    g_assert(now_ns >= f->now_ns && flow->ahead_ns == 0);
    f->now_ns = now_ns;
    for (uint32_t u = 0; u < flow->n_own; u++)
        orr_fluid_prefetch(f, own[u].constraint);
    for (uint32_t u = 0; u < flow->n_own; u++)
        if (f->links[own[u].constraint].is_watched)
            return false;
    *activity = orr_fluid__add(f, flow);
    orr_fluid__begin(f, *activity, flow->n_own, (OrrWide)flow->bytes * ORR_FLUID_WORK_PER_BYTE);
    return true;
}

void orr_fluid__join_own(OrrFluid *f, uint32_t activity, uint32_t n_own) {
    OrrActivity *a = &f->activities[activity];
    OrrWide ceiling = orr_fluid__ceiling(f, a);
    const OrrUse *own = a->uses + a->n_uses;
    a->n_own = n_own;
    for (uint32_t u = 0; u < n_own; u++) {
        OrrLinkState *l = &f->links[own[u].constraint];
        uint64_t factor = orr_fluid__factor(&own[u]);
        l->potential += (OrrWide)factor * a->top;
        l->slope += (OrrWide)factor * a->scale;
        l->pledged += factor * ceiling;
        l->unit += factor;
        orr_fluid__watch_if_full(f, own[u].constraint);
    }
}

void orr_fluid__leave_own(OrrFluid *f, OrrActivity *a) {
    OrrWide ceiling = orr_fluid__ceiling(f, a);
    const OrrUse *own = a->uses + a->n_uses;
    for (uint32_t u = 0; u < a->n_own; u++) {
        OrrLinkState *l = &f->links[own[u].constraint];
        uint64_t factor = orr_fluid__factor(&own[u]);
        l->potential -= (OrrWide)factor * a->top;
        l->slope -= (OrrWide)factor * a->scale;
        l->pledged -= factor * ceiling;
        l->unit -= factor;
        if (l->is_watched) { /* since the last settle */
            orr_fluid__open_or_close(f, own[u].constraint);
            orr_fluid__relax(f, own[u].constraint);
        }
    }
    a->n_own = 0;
}

void orr_fluid_split(OrrFluid *f, int64_t now_ns, uint32_t activity, const OrrFlow *flows,
                     uint32_t n, uint32_t *activities) {
    g_assert(now_ns >= f->now_ns);
    f->now_ns = now_ns;
    OrrWide left = orr_fluid__remove(f, activity);
    for (uint32_t i = 0; i < n; i++) {
        activities[i] = orr_fluid__add(f, &flows[i]);
        orr_fluid__begin(f, activities[i], 0, left);
    }
}
