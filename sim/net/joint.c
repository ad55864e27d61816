/* Equal activities that set out together go as one: a joint activity.
 *
 * k equal activities are exactly one whose uses have count k (level.h), as long as all stop at what
 * they share. Links of which each of them has its own lie in rows (row.c). What is used of those is
 * in their sums, and they are not watched: such a link stops nobody, so none of them can have less
 * than the others. When one of a row becomes watched the owner is told (fluid.h) before anything is
 * solved, and splits the joint activity: each goes on with what is left to do, which is the same
 * for all. So no rate or end depends on who goes jointly. Nothing is listed at links of rows. */
#include "sim/net/fluid.h"

#include "sim/net/fluid_priv.h"

bool orr_fluid_start_joint(OrrFluid *f, int64_t now_ns, const OrrFlow *flow, uint32_t *activity) {
    g_assert(now_ns >= f->now_ns && flow->ahead_ns == 0);
    f->now_ns = now_ns;
    for (uint32_t u = 0; u < flow->n_rows; u++)
        if (orr_fluid__row_is_watched(f, flow->uses[flow->n_uses + u].constraint))
            return false;
    *activity = orr_fluid__add(f, flow);
    orr_fluid__begin(f, *activity, flow->n_rows, (OrrWide)flow->bytes * ORR_FLUID_WORK_PER_BYTE);
    return true;
}

void orr_fluid__join_rows(OrrFluid *f, uint32_t activity, uint32_t n_rows) {
    OrrActivity *a = &f->activities[activity];
    const OrrUse *rows = a->uses + a->n_uses;
    const OrrLoad load = {a->top, a->scale, orr_fluid__ceiling(f, a)};
    a->n_rows = n_rows;
    for (uint32_t u = 0; u < n_rows; u++) {
        orr_fluid__row_add(f, &rows[u], &load);
        orr_fluid__row_watch_full(f, rows[u].constraint);
    }
}

void orr_fluid__leave_rows(OrrFluid *f, OrrActivity *a) {
    const OrrUse *rows = a->uses + a->n_uses;
    const OrrLoad load = {a->top, a->scale, orr_fluid__ceiling(f, a)};
    for (uint32_t u = 0; u < a->n_rows; u++)
        orr_fluid__row_sub(f, &rows[u], &load);
    a->n_rows = 0;
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
