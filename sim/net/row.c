/* Rows: links side by side, one for each of equal activities.
 *
 * The NICs of a node, say, as a rule are used by joint activities only (joint.c), which use each of
 * them alike. Then one set of sums stands for all of a row: it is folded, and what comes and goes
 * touches one cache line for all its links. Whoever uses one of them alone unfolds it: each link
 * has its own sums, and the row those of joint activities and rooms beside. It is folded again when
 * the next joint one comes and finds nobody else. Sums are the same at any time, so no rate depends
 * on it. Cost: a visit of all links to fold or unfold. */
#include "sim/net/fluid.h"

#include "sim/base/large.h"
#include "sim/net/fluid_priv.h"

#include <string.h>

static void find_capacity(const OrrFluid *f, OrrRow *row) {
    row->capacity = f->links[f->row_links[row->first]].capacity;
    for (uint32_t i = 1; i < row->n; i++)
        row->capacity = MIN(row->capacity, f->links[f->row_links[row->first + i]].capacity);
}

uint32_t orr_fluid_add_row(OrrFluid *f, const uint32_t *links, uint32_t n) {
    if (f->row_of == NULL) {
        f->row_of = g_new(uint32_t, f->n_links + 1);
        memset(f->row_of, 0xff, (f->n_links + 1) * sizeof *f->row_of);
        f->row_links = g_new(uint32_t, f->n_links + 1);
    }
    if (f->n_rows == f->cap_rows) {
        gsize had = f->cap_rows * sizeof *f->rows;
        f->cap_rows = MAX(64, 2 * f->cap_rows);
        f->rows = orr_large_renew(f->rows, had, f->cap_rows * sizeof *f->rows);
    }
    OrrRow *row = &f->rows[f->n_rows];
    *row = (OrrRow){.first = f->n_row_links, .n = n};
    for (uint32_t i = 0; i < n; i++) {
        g_assert(f->row_of[links[i]] == ORR_FLUID_NIL);
        f->row_of[links[i]] = f->n_rows;
        f->row_links[f->n_row_links++] = links[i];
    }
    find_capacity(f, row);
    return f->n_rows++;
}

const uint32_t *orr_fluid_row_links(const OrrFluid *f, uint32_t row, uint32_t *n) {
    *n = 0;
    if (f->rows[row].is_folded)
        return NULL;
    *n = f->rows[row].n;
    return f->row_links + f->rows[row].first;
}

bool orr_fluid_has_joint(const OrrFluid *f, uint32_t link) {
    return f->row_of && f->row_of[link] != ORR_FLUID_NIL && f->rows[f->row_of[link]].unit > 0;
}

void orr_fluid_prefetch_row(const OrrFluid *f, uint32_t row) {
    __builtin_prefetch(&f->rows[row], 1);
}

static void unfold(OrrFluid *f, OrrRow *row) {
    row->is_folded = 0;
    for (uint32_t i = 0; i < row->n; i++)
        orr_fluid_prefetch(f, f->row_links[row->first + i]);
    for (uint32_t i = 0; i < row->n; i++) {
        OrrLinkState *l = &f->links[f->row_links[row->first + i]];
        l->potential = row->potential;
        l->slope = row->slope;
        l->pledged = row->pledged;
        l->unit = row->unit;
        l->is_folded = 0;
    }
}

void orr_fluid__unfold(OrrFluid *f, uint32_t link) {
    unfold(f, &f->rows[f->row_of[link]]);
}

void orr_fluid__row_capacity(OrrFluid *f, uint32_t link) {
    if (f->row_of && f->row_of[link] != ORR_FLUID_NIL)
        find_capacity(f, &f->rows[f->row_of[link]]);
}

/* As orr_fluid__may_bind, for the lowest of its links. */
static bool may_bind(const OrrRow *row) {
    OrrWide capacity = (OrrWide)row->capacity * ORR_COEF_ONE;
    OrrWide margin = orr_fluid__margin_of(row->unit, row->slope);
    return row->potential > capacity && row->pledged + margin > capacity;
}

/* The same with @more on it. */
static bool would_bind(const OrrLinkState *l, const OrrSums *more) {
    OrrWide capacity = orr_fluid__capacity(l);
    OrrWide margin = orr_fluid__margin_of(l->unit + more->unit, l->slope + more->slope);
    return l->potential + more->potential > capacity &&
           l->pledged + more->pledged + margin > capacity;
}

/* Nobody but joint ones is on any of its links. */
static void fold(OrrFluid *f, OrrRow *row) {
    const uint32_t *links = f->row_links + row->first;
    for (uint32_t i = 0; i < row->n; i++)
        if (f->links[links[i]].unit != row->unit)
            return;
    for (uint32_t i = 0; i < row->n; i++) {
        g_assert(!f->links[links[i]].is_watched);
        f->links[links[i]].is_folded = 1;
    }
    row->is_folded = 1;
}

/* What the use adds to each link. */
static OrrSums sums_of(const OrrUse *use, const OrrLoad *load) {
    const OrrWide factor = orr_fluid__factor(use);
    return (OrrSums){factor * load->top, factor * load->scale, factor * load->ceiling,
                     (uint64_t)factor};
}

void orr_fluid__row_add(OrrFluid *f, const OrrUse *use, const OrrLoad *load) {
    OrrRow *row = &f->rows[use->constraint];
    const OrrSums more = sums_of(use, load);
    row->potential += more.potential;
    row->slope += more.slope;
    row->pledged += more.pledged;
    row->unit += more.unit;
    if (row->is_folded)
        return;
    for (uint32_t i = 0; i < row->n; i++) {
        OrrLinkState *l = &f->links[f->row_links[row->first + i]];
        l->potential += more.potential;
        l->slope += more.slope;
        l->pledged += more.pledged;
        l->unit += more.unit;
    }
    fold(f, row);
}

void orr_fluid__row_sub(OrrFluid *f, const OrrUse *use, const OrrLoad *load) {
    OrrRow *row = &f->rows[use->constraint];
    const OrrSums less = sums_of(use, load);
    row->potential -= less.potential;
    row->slope -= less.slope;
    row->pledged -= less.pledged;
    row->unit -= less.unit;
    for (uint32_t i = 0; !row->is_folded && i < row->n; i++) {
        uint32_t link = f->row_links[row->first + i];
        OrrLinkState *l = &f->links[link];
        l->potential -= less.potential;
        l->slope -= less.slope;
        l->pledged -= less.pledged;
        l->unit -= less.unit;
        if (l->is_watched) { /* since the last settle, or it is let go */
            orr_fluid__open_or_close(f, link);
            orr_fluid__relax(f, link);
        }
    }
}

void orr_fluid__row_pledge(OrrFluid *f, const OrrUse *use, uint64_t from, uint64_t to) {
    OrrRow *row = &f->rows[use->constraint];
    OrrWide factor = orr_fluid__factor(use);
    row->pledged += factor * to;
    row->pledged -= factor * from;
    for (uint32_t i = 0; !row->is_folded && i < row->n; i++) {
        OrrLinkState *l = &f->links[f->row_links[row->first + i]];
        l->pledged += factor * to;
        l->pledged -= factor * from;
    }
}

bool orr_fluid__row_has_room(const OrrFluid *f, const OrrUse *use, const OrrLoad *load) {
    const OrrRow *row = &f->rows[use->constraint];
    const OrrSums more = sums_of(use, load);
    if (row->is_folded) {
        OrrRow then = *row;
        then.potential += more.potential;
        then.slope += more.slope;
        then.pledged += more.pledged;
        then.unit += more.unit;
        return !may_bind(&then);
    }
    for (uint32_t i = 0; i < row->n; i++) {
        const OrrLinkState *l = &f->links[f->row_links[row->first + i]];
        if (l->is_watched || would_bind(l, &more))
            return false;
    }
    return true;
}

void orr_fluid__row_watch_full(OrrFluid *f, uint32_t id) {
    OrrRow *row = &f->rows[id];
    if (row->is_folded && !may_bind(row))
        return;
    if (row->is_folded)
        unfold(f, row);
    for (uint32_t i = 0; i < row->n; i++)
        orr_fluid__watch_if_full(f, f->row_links[row->first + i]);
}

bool orr_fluid__row_is_watched(const OrrFluid *f, uint32_t id) {
    const OrrRow *row = &f->rows[id];
    for (uint32_t i = 0; !row->is_folded && i < row->n; i++)
        if (f->links[f->row_links[row->first + i]].is_watched)
            return true;
    return false;
}
