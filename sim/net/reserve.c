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

static void take(OrrFluid *f, const OrrUse *use, const OrrReserve *r) {
    OrrLinkState *l = orr_fluid__link(f, use->constraint);
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

/* The first @n_uses and @n_rows of it. */
static void give_back(OrrFluid *f, const OrrReserve *r, uint32_t n_uses, uint32_t n_rows) {
    const OrrLoad load = {r->top_bytes_per_s, r->scale, r->top_bytes_per_s};
    for (uint32_t u = 0; u < n_uses; u++)
        give(&f->links[r->uses[u].constraint], &r->uses[u], r);
    for (uint32_t u = 0; u < n_rows; u++)
        orr_fluid__row_sub(f, &r->uses[r->n_uses + u], &load);
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
        const OrrLinkState *l = &f->links[r->uses[u].constraint];
        take(f, &r->uses[u], r);
        if (l->is_watched || orr_fluid__may_bind(l)) {
            give_back(f, r, u + 1, 0);
            return false;
        }
    }
    const OrrUse *rows = r->uses + r->n_uses;
    const OrrLoad load = {r->top_bytes_per_s, r->scale, r->top_bytes_per_s};
    for (uint32_t u = 0; u < r->n_rows; u++) {
        if (!orr_fluid__row_has_room(f, &rows[u], &load)) {
            give_back(f, r, r->n_uses, u);
            return false;
        }
        orr_fluid__row_add(f, &rows[u], &load);
    }
    return true;
}

void orr_fluid_release(OrrFluid *f, const OrrReserve *r) {
    give_back(f, r, r->n_uses, r->n_rows);
}

void orr_fluid_part(OrrFluid *f, const OrrReserve *r, const OrrReserve *parts, uint32_t n) {
    orr_fluid_release(f, r);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t u = 0; u < parts[i].n_uses; u++)
            take(f, &parts[i].uses[u], &parts[i]);
}

bool orr_fluid_join(OrrFluid *f, const OrrReserve *r, const OrrReserve *parts, uint32_t n) {
    const OrrLoad load = {r->top_bytes_per_s, r->scale, r->top_bytes_per_s};
    const OrrUse *rows = r->uses + r->n_uses;
    for (uint32_t u = 0; u < r->n_rows; u++)
        if (orr_fluid__row_is_watched(f, rows[u].constraint))
            return false;
    for (uint32_t i = 0; i < n; i++)
        orr_fluid_release(f, &parts[i]);
    for (uint32_t u = 0; u < r->n_uses; u++)
        take(f, &r->uses[u], r);
    for (uint32_t u = 0; u < r->n_rows; u++)
        orr_fluid__row_add(f, &rows[u], &load);
    return true;
}

bool orr_fluid_has_room(const OrrFluid *f, uint32_t link) {
    const OrrLinkState *l = &f->links[link];
    if (l->is_folded)
        return false;
    uint64_t unit = l->unit;
    for (uint32_t r = l->head; r != ORR_FLUID_NIL; r = f->records[r].next) {
        const OrrActivity *a = &f->activities[f->records[r].activity];
        unit -= orr_fluid__factor(&a->uses[r - a->first_record]);
    }
    return unit > (orr_fluid_has_joint(f, link) ? f->rows[f->row_of[link]].unit : 0);
}

void orr_fluid_on_crowded(OrrFluid *f, OrrFluidCrowded crowded, void *data) {
    f->on_crowded = crowded;
    f->crowded_data = data;
}

#define AHEAD 4u /* links between one whose row is asked for and the one in hand: ours */

static void prefetch_row_of(const OrrFluid *f, uint32_t link) {
    uint32_t row = f->row_of[link];
    if (row != ORR_FLUID_NIL)
        orr_fluid_prefetch_row(f, row);
}

void orr_fluid__clear_crowded(OrrFluid *f) {
    for (uint32_t i = 0; f->on_crowded && i < f->crowded.n; i++) {
        if (f->row_of && i + AHEAD < f->crowded.n)
            prefetch_row_of(f, f->crowded.ids[i + AHEAD]);
        f->on_crowded(f->crowded_data, f->crowded.ids[i]);
    }
    f->crowded.n = 0;
}
