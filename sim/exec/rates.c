/* How fast kernels of a rank run while its pass is under way: external communication that slows
 * them begins and ends, at times that are known only then. Each change is noted, with its time; a
 * pass is evaluated with those that are known, and again when another comes (take.c).
 *
 * A rank whose pass has begun may be told to go event by event after all: its kernels then start in
 * the past, and come to what was noted since in turn, each change an event of the island. */
#include "sim/exec/pass.h"

#include <string.h>

static OrrRateChange *add_change(OrrIslandPass *pass) {
    if (pass->n_changes == pass->room) {
        pass->room = MAX(2 * pass->room, 8u);
        pass->changes = g_renew(OrrRateChange, pass->changes, pass->room);
    }
    return &pass->changes[pass->n_changes++];
}

static void schedule_change(OrrExec *x, uint32_t r, int64_t at_ns) {
    orr_exec__push_local(x, r, at_ns, ORR_EV_RATE, 0, r);
}

/* The pass under way must be evaluated again: before something of it can be seen. What comes from
 * outside often comes for several members at one instant: it is done at the end of that; until then
 * the island waits. */
static void disturb(OrrExec *x, OrrIslandPass *pass, uint32_t r, bool is_outer) {
    OrrPassWork *w = pass->work;
    w->is_stale = true;
    w->cause = ORR_NONE; /* what the path has of it lacks the change */
    if (w->is_bound || w->is_looked_at)
        return;
    if (!is_outer) {
        pass->generation = (pass->generation + 1) & ORR_GENERATION_MASK;
        orr_exec__push_local(x, r, x->now_ns, ORR_EV_PASS, pass->generation, r);
        return;
    }
    w->is_looked_at = true;
    x->islands[x->island_of[r]].n_held++;
    orr_queue_push(&x->queue, x->global_ns, ORR_EV_LOOK, 0, r);
}

void orr_exec__look(OrrExec *x, uint32_t r) {
    OrrIslandPass *pass = orr_pass__of(x, r);
    pass->work->is_looked_at = false;
    x->islands[x->island_of[r]].n_held--;
    pass->generation = (pass->generation + 1) & ORR_GENERATION_MASK;
    orr_exec__push_local(x, r, x->now_ns, ORR_EV_PASS, pass->generation, r);
}

/* External communication leaves kernels of the rank @rate from now on, or (not @is_outer) its own
 * does. Returns whether that is only noted; else it is theirs at once. */
bool orr_exec__note_rate(OrrExec *x, uint32_t r, bool is_outer, const uint32_t rate[2]) {
    OrrBeginState *b = &x->passes->begins.state[r];
    if (b->state == ORR_RATE_NOW || (b->state == ORR_RATE_REPLAYED && !is_outer))
        return false;
    OrrIslandPass *pass = orr_pass__of(x, r);
    uint32_t to[2] = {rate[0], rate[1]};
    if (b->state == ORR_RATE_ENTERED)
        orr_exec__lower_rate(x, r, true, to);
    OrrRateChange *last = NULL;
    for (uint32_t i = pass->n_changes; i > b->first_change && !last; i--)
        if (pass->changes[i - 1].rank == r)
            last = &pass->changes[i - 1];
    if (memcmp(last ? last->rate : orr_exec__outer(x, r), to, sizeof to) == 0)
        return true;
    if (!last || last->at_ns != x->now_ns)
        last = add_change(pass);
    *last = (OrrRateChange){x->now_ns, r, {to[0], to[1]}, b->state == ORR_RATE_REPLAYED};
    if (b->state == ORR_RATE_REPLAYED)
        schedule_change(x, r, x->now_ns);
    if (b->state == ORR_RATE_ENTERED)
        disturb(x, pass, r, is_outer);
    return true;
}

/* What is noted for the rank and is due by @until_ns comes to its kernels. */
static void catch_up(OrrExec *x, uint32_t r, int64_t until_ns) {
    OrrIslandPass *pass = orr_pass__of(x, r);
    bool is_more = false;
    for (uint32_t i = 0; i < pass->n_changes; i++) {
        OrrRateChange *c = &pass->changes[i];
        if (c->rank != r || !c->is_due)
            continue;
        if (c->at_ns > until_ns) {
            is_more = true;
            continue;
        }
        memcpy(orr_exec__outer(x, r), c->rate, sizeof c->rate);
        c->is_due = false;
    }
    orr_exec__rate(x, r);
    if (!is_more)
        x->passes->begins.state[r].state = ORR_RATE_NOW;
    orr_pass__trim_rates(x, r);
}

void orr_exec__rate_event(OrrExec *x, uint32_t r) {
    if (x->passes->begins.state[r].state == ORR_RATE_REPLAYED)
        catch_up(x, r, x->now_ns);
}

void orr_pass__begin_rates(OrrExec *x, uint32_t r) {
    OrrBeginState *b = &x->passes->begins.state[r];
    if (b->state == ORR_RATE_REPLAYED)
        catch_up(x, r, INT64_MAX);
    orr_pass__note_rates(x, orr_pass__of(x, r), r);
}

void orr_pass__end_rates(OrrExec *x, uint32_t r, bool is_replayed) {
    OrrIslandPass *pass = orr_pass__of(x, r);
    OrrBeginState *b = &x->passes->begins.state[r];
    b->state = ORR_RATE_NOW;
    if (pass->n_changes == 0)
        return; /* they are what they were */
    if (!is_replayed) {
        orr_exec__outer(x, r)[0] = orr_exec__outer(x, r)[1] = ORR_RATE_ONE;
        orr_exec__lower_rate(x, r, false, orr_exec__outer(x, r));
    }
    orr_exec__rate(x, r);
    for (uint32_t i = b->first_change; is_replayed && i < pass->n_changes; i++) {
        if (pass->changes[i].rank != r)
            continue;
        pass->changes[i].is_due = true;
        b->state = ORR_RATE_REPLAYED;
        schedule_change(x, r, pass->changes[i].at_ns);
    }
}

void orr_pass__trim_rates(OrrExec *x, uint32_t r) {
    OrrIslandPass *pass = orr_pass__of(x, r);
    if (pass->n_changes == 0 || pass->work)
        return;
    const uint32_t *list;
    uint32_t n = orr_pass__members(x, r, &list), first = 0;
    while (first < pass->n_changes && !pass->changes[first].is_due)
        first++;
    for (uint32_t m = 0; m < n; m++)
        if (x->passes->begins.state[list[m]].state == ORR_RATE_BEGUN)
            first = MIN(first, x->passes->begins.state[list[m]].first_change);
    if (first == 0)
        return;
    pass->n_changes -= first;
    memmove(pass->changes, pass->changes + first, pass->n_changes * sizeof *pass->changes);
    for (uint32_t m = 0; m < n; m++)
        x->passes->begins.state[list[m]].first_change -=
            MIN(x->passes->begins.state[list[m]].first_change, first);
}
