/* Room that is held for activities which their owner moves himself, at their tops.
 *
 * What they take is in the sums of a link as if they were in the fluid with their tops pledged, so
 * that it becomes watched in time. Only a link that is not watched holds room: it stops nobody, so
 * the rates of all others are what they would be with these in the fluid. When it becomes watched
 * they come in, before anything is solved. Cost: some additions a use. */
#include "sim/net/fluid.h"

#include "sim/net/fluid_priv.h"

uint64_t orr_fluid_scale(uint32_t weight, const OrrUse *uses, uint32_t n_uses) {
    uint32_t largest = 0;
    for (uint32_t u = 0; u < n_uses; u++)
        largest = MAX(largest, uses[u].coef);
    return largest == 0 ? 1 : orr_level__scale(weight, largest);
}

static void take(OrrLinkState *l, const OrrUse *use, const OrrReserve *r) {
    uint64_t factor = orr_fluid__factor(use);
    OrrWide usage = (OrrWide)factor * r->top_bytes_per_s;
    l->potential += usage;
    l->pledged += usage;
    l->slope += (OrrWide)factor * r->scale;
    l->unit += factor;
}

static void give(OrrLinkState *l, const OrrUse *use, const OrrReserve *r) {
    uint64_t factor = orr_fluid__factor(use);
    OrrWide usage = (OrrWide)factor * r->top_bytes_per_s;
    l->potential -= usage;
    l->pledged -= usage;
    l->slope -= (OrrWide)factor * r->scale;
    l->unit -= factor;
}

void orr_fluid_prefetch(const OrrFluid *f, uint32_t link) {
    __builtin_prefetch(&f->links[link], 1);
}

void orr_fluid_prefetch_use(const OrrFluid *f, uint32_t link) {
    __builtin_prefetch(&f->links[link], 1);
    __builtin_prefetch((const char *)&f->links[link] + 64, 1);
}

bool orr_fluid_reserve(OrrFluid *f, const OrrReserve *r) {
    for (uint32_t u = 0; u < r->n_uses; u++) {
        OrrLinkState *l = &f->links[r->uses[u].constraint];
        take(l, &r->uses[u], r);
        if (!l->is_watched && !orr_fluid__may_bind(l))
            continue;
        for (uint32_t k = 0; k <= u; k++)
            give(&f->links[r->uses[k].constraint], &r->uses[k], r);
        return false;
    }
    return true;
}

void orr_fluid_release(OrrFluid *f, const OrrReserve *r) {
    for (uint32_t u = 0; u < r->n_uses; u++)
        give(&f->links[r->uses[u].constraint], &r->uses[u], r);
}

void orr_fluid_on_crowded(OrrFluid *f, OrrFluidCrowded crowded, void *data) {
    f->on_crowded = crowded;
    f->crowded_data = data;
}

void orr_fluid__clear_crowded(OrrFluid *f) {
    for (uint32_t i = 0; f->on_crowded && i < f->crowded.n; i++)
        f->on_crowded(f->crowded_data, f->crowded.ids[i]);
    f->crowded.n = 0;
}
