/* What a pass, but for its tail (tail.c), adds to the sums of its collectives, and to the order in
 * which members came.
 *
 * Sums are of whole nanoseconds below 2^53, so neither their order nor taking those that are the
 * same together matters. */
#include "sim/exec/pass.h"

static const OrrItem *collectives(const OrrExec *x, const OrrPassWork *w) {
    return x->compiled->items + w->segment->first_item[ORR_STREAM_TP];
}

static void add(OrrCommSum *sum, const OrrCommSum *more) {
    sum->count += more->count;
    sum->transfer_ns += more->transfer_ns;
    sum->wait_ns += more->wait_ns;
    sum->exposed_ns += more->exposed_ns;
}

void orr_exec__recursion_sums(OrrExec *x, const OrrPassWork *w, const uint32_t *list) {
    const OrrProgram *p = x->bound->program;
    uint32_t n_comms = p->n_colls + p->n_p2ps;
    uint32_t n_colls = w->tail ? w->tail->first_coll : w->segment->n_items[ORR_STREAM_TP];
    OrrCommSum *sums = x->sums + (gsize)(w->step % ORR_WINDOWS) * n_comms;
    double same = 0; /* weight of those that are as the first */
    for (uint32_t i = 0; i < w->n; i++)
        same += w->members[i].same_as == 0 ? x->bound->weight[list[i]] : 0;
    for (uint32_t j = 0; j < n_colls; j++) {
        OrrCommSum all = {0};
        for (uint32_t i = 0; i < w->n; i++) {
            const OrrPassWait *wait = &w->members[i].waits[j];
            if (i > 0 && w->members[i].same_as == 0)
                continue;
            double weight = i == 0 ? same : x->bound->weight[list[i]];
            all.count += weight;
            all.transfer_ns += (double)wait->transfer_ns * weight;
            all.wait_ns += (double)wait->wait_ns * weight;
            all.exposed_ns += (double)wait->exposed_ns * weight;
        }
        add(&sums[collectives(x, w)[j].what], &all);
    }
    for (uint32_t i = 0; i < w->n; i++) {
        const OrrPassMember *m = &w->members[w->members[i].same_as];
        if (m->outside_ns > 0)
            x->sums[(gsize)(m->outside_step % ORR_WINDOWS) * n_comms + m->outside_index]
                .exposed_ns += (double)m->outside_ns * x->bound->weight[list[i]];
    }
}

/* For the order in which members came: see exec_priv.h. */
void orr_exec__recursion_meetings(OrrExec *x, const OrrPassWork *w, const uint32_t *list) {
    const OrrPassMember *all = w->members;
    uint32_t n_colls = w->tail ? w->tail->first_coll : w->segment->n_items[ORR_STREAM_TP];
    for (uint32_t j = 0; j < n_colls; j++) {
        uint32_t what = collectives(x, w)[j].what;
        int64_t wait_ns = 0;
        for (uint32_t i = 0; i < w->n; i++)
            wait_ns += all[all[i].same_as].waits[j].wait_ns * x->bound->weight[list[i]];
        if (!orr_exec__is_longest(x, list[0], w->step, what, wait_ns))
            continue;
        for (uint32_t i = 0; i < w->n; i++) {
            const OrrPassMember *m = &all[all[i].same_as];
            int64_t arrived = m->end_ns[1][j] - m->waits[j].transfer_ns;
            *orr_exec__launch_of(x, list[i], w->step, what) =
                (OrrLaunch){arrived - m->waits[j].wait_ns, wait_ns, w->step + 1};
        }
    }
}
