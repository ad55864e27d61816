/* Jitter in the mean where kernels change their rate: communication comes to a GPU, or leaves it.
 *
 * Who is late for such an edge has less work done before it; so lateness shrinks or grows there.
 * Early members of a meeting, which wait for the last beside their kernels, lose of their lead;
 * what a transfer slows is the same for all. Both follow from one linear rule (move_edge). An edge
 * is taken as the last of the copies of a rank sees it, since that is who is waited for: also where
 * the copies are on the mean further on, in what has ended already. */
#include "sim/exec/jitter_priv.h"

#include <math.h>
#include <string.h>

/* Variance of a part of was/is c + (1 - was/is) e, of which the smaller of c and e is a beginning
 * of the other. Where kernels slow down at an e that is beyond c, what undoes it when they speed up
 * again: it may be less than nothing until then. */
static double combined(double c, double e, double keeps) {
    double slow = MIN(keeps, 1 / keeps), gain = (1 - slow) * (1 - slow);
    if (e <= c)
        return e + keeps * keeps * (c - e);
    return keeps < 1 ? c + gain * (e - c) : fmax(c - gain / (1 - gain) * (e - c), 0);
}

static bool is_shared(const OrrJitter *j, uint32_t part) {
    return part == orr_jitter__common(j) || part == orr_jitter__shards(j);
}

/* Kernels change their rate, for the last of the copies of a rank. */
typedef struct {
    const double *form;
    double keeps; /* rate before over rate after */
    double copies;
} Edge;

/* Who comes c later to an edge that is e late has so much less work done before it, and ends
 * was/is c + (1 - was/is) e later. Set @slot of @to, its means from @base_ns on, relative to the
 * edge. */
static void move_edge(const OrrJitter *j, OrrForms *to, gsize slot, const Edge *e, double base_ns) {
    for (uint32_t i = 0; i < to->count[slot]; i++) {
        double *form = orr_form_parts(to, slot, i);
        for (uint32_t k = 0; k < j->n_parts; k++)
            if (e->keeps < 1 || !is_shared(j, k))
                form[k] = combined(form[k], e->form[k], e->keeps);
        *orr_form_ns(to, slot, i) += (e->keeps - 1) * (base_ns + *orr_form_ns(to, slot, i));
    }
}

/* The same of what has ended, if the last of the copies is yet to come there. */
static void move_if_ahead(OrrJitter *j, OrrForms *to, gsize slot, const Edge *e, double base_ns) {
    double mean = orr_jitter__largest(j, e->copies)->mean;
    for (uint32_t i = 0; i < to->count[slot]; i++) {
        const double *form = orr_form_parts(to, slot, i);
        double apart = 0;
        for (uint32_t k = 0; k < j->n_parts; k++)
            apart += fabs(form[k] - e->form[k]);
        if (base_ns + *orr_form_ns(to, slot, i) + mean * sqrt(apart) > 0) {
            move_edge(j, to, slot, e, base_ns);
            return;
        }
    }
}

/* How far the last of the copies is from the mean of a form. */
static double lead_of_last(OrrJitter *j, double copies, const double *form) {
    double apart = orr_jitter__sum(j, form) - form[orr_jitter__common(j)];
    return orr_jitter__largest(j, copies)->mean * sqrt(fmax(apart, 0));
}

/* The edge that the last of the copies comes to: the largest of what it waits for, of which each is
 * as late as for that one. */
static double take_edge(OrrJitter *j, gsize of, uint32_t r, double copies, double *edge) {
    uint32_t rank = r;
    double latest = -INFINITY;
    j->causes.count[0] = 0;
    for (uint32_t i = 0; i < j->current.count[of]; i++) {
        const double *form = orr_form_parts(&j->current, of, i);
        double at = *orr_form_ns(&j->current, of, i) + lead_of_last(j, copies, form);
        if (at > latest)
            latest = at, rank = *orr_form_rank(&j->current, of, i);
        orr_forms_add(&j->causes, 0, form, at, *orr_form_rank(&j->current, of, i));
    }
    double ns = orr_forms_largest(&j->causes, 0, edge);
    ns -= lead_of_last(j, copies, edge);
    orr_jitter__make_own(j, edge, &rank, r);
    return ns;
}

/* Where the rank's TP group is, in a meeting or its transfer; ORR_NONE: elsewhere, or it is for
 * another member to say. */
static uint32_t tp_place(const OrrExec *x, uint32_t r) {
    if (orr_exec__lane(x, r, ORR_STREAM_TP)->state != ORR_LANE_RUNNING)
        return ORR_NONE;
    const OrrItem *item = orr_exec__head(x, r, ORR_STREAM_TP);
    if (item->type != ORR_ITEM_COLL)
        return ORR_NONE;
    const OrrColl *c = &x->bound->program->colls[item->what];
    const OrrBoundGroup *g = &x->bound->groups[c->group];
    uint32_t group = g->group_of[r];
    bool is_first = g->members[g->first_member[group]] == r;
    return c->group == ORR_GROUP_TP && is_first ? x->coll_place[c->group][c->comm] + group
                                                : ORR_NONE;
}

void orr_jitter_edge(OrrJitter *j, const OrrExec *x, uint32_t r, uint32_t s, double was,
                     double is) {
    gsize compute = orr_jitter__lane(r, ORR_STREAM_COMPUTE),
          tp = orr_jitter__lane(r, ORR_STREAM_TP), of = orr_jitter__lane(r, s);
    double *edge = j->edge, edge_ns = take_edge(j, of, r, x->bound->weight[r], edge);
    double at_ns = (double)x->now_ns + edge_ns;
    Edge e = {edge, was / is, x->bound->weight[r]};
    if (orr_exec__lane(x, r, ORR_STREAM_COMPUTE)->state == ORR_LANE_RUNNING)
        move_edge(j, &j->current, compute, &e, -edge_ns);
    move_if_ahead(j, &j->ended, compute, &e,
                  (double)*orr_exec__free_ns(x, r, ORR_STREAM_COMPUTE) - at_ns);
    for (uint32_t i = 0; i < MIN(j->n_past[r], ORR_N_PAST); i++) {
        gsize slot = (gsize)r * ORR_N_PAST + i;
        move_if_ahead(j, &j->past, slot, &e, j->pasts[slot].end_ns - at_ns);
    }
    if (s == ORR_STREAM_TP)
        return;
    move_if_ahead(j, &j->ended, tp, &e, j->ended_begun_ns[r] - at_ns);
    uint32_t place = tp_place(x, r);
    if (place != ORR_NONE)
        move_if_ahead(j, &j->place, place, &e,
                      (j->has_met[place] ? (double)x->places[place].arrived_ns : 0) - at_ns);
}
