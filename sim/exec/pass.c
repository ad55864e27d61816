/* Passes taken as a whole: what an island does in a call (the forward of a chunk, say) when nothing
 * external reaches into it is a static recursion over its members and their items, evaluated at
 * once (recursion.c) instead of event by event: the same nanoseconds for a hundredth of the work.
 *
 * A call that can be a pass (passes.c) is one when all members have from outside what they need and
 * the host is ahead of every start in it; else it goes event by event. While no external
 * communication that slows kernels is under way or told it is taken to its end at once; beside such
 * communication piece by piece, as far as others see it (take.c, rates.c). */
#include "sim/exec/pass.h"

#include "sim/base/large.h"

#include <stdlib.h>

/* Whether the head of this lane begins a pass that is to be taken as a whole. */
bool orr_exec__begins_pass(const OrrExec *x, uint32_t r, uint32_t s) {
    const OrrLane *l = orr_exec__lane(x, r, s);
    if (!x->passes || l->item != 0)
        return false;
    const OrrIslandPass *pass = orr_pass__of(x, r);
    return pass->calls[l->call] && pass->released < orr_pass__key(x, r, l);
}

void orr_pass__begins_new(const OrrExec *x) {
    gsize n = x->bound->n_ranks;
    OrrBegins *b = &x->passes->begins;
    b->begin_ns = orr_large_new(n * sizeof *b->begin_ns);
    b->key = orr_large_new(n * sizeof *b->key);
    b->index = orr_large_new(n * sizeof *b->index);
    b->state = orr_large_new(n * sizeof *b->state);
    b->blocker = orr_large_new(n * sizeof *b->blocker);
    b->made = x->causes ? orr_large_new(n * sizeof *b->made) : NULL;
    for (gsize r = 0; x->causes && r < n; r++)
        b->made[r][0] = b->made[r][1] = ORR_NONE;
}

void orr_pass__begins_clear(const OrrExec *x) {
    OrrBegins *b = &x->passes->begins;
    free(b->begin_ns);
    free(b->key);
    free(b->index);
    free(b->state);
    free(b->blocker);
    free(b->made);
}

OrrBegin orr_pass__begin_of(const OrrExec *x, uint32_t r) {
    const OrrBegins *from = &x->passes->begins;
    const OrrBeginState *state = &from->state[r];
    OrrBegin b = {.first_change = state->first_change};
    for (int k = 0; k < ORR_PASS_LANES; k++) {
        b.begin_ns[k] = from->begin_ns[r][k];
        b.key[k] = from->key[r][k];
        b.index[k] = from->index[r][k];
        b.cause[k] = state->cause[k];
        b.made[k] = x->leaves_records ? from->made[r][k] : ORR_NONE;
        b.outer[k] = orr_exec__outer(x, r)[k];
    }
    if (b.cause[1] != ORR_STREAM_TP)
        b.blocker = from->blocker[r];
    b.blocker_end_ns = b.begin_ns[1];
    return b;
}

/* When the head of this lane had all from outside, if that has been noted: it may have gone event
 * by event only since then. False: it has not. */
bool orr_exec__begun(const OrrExec *x, uint32_t r, uint32_t s, OrrBegin *begin) {
    const OrrLane *l = orr_exec__lane(x, r, s);
    if (!x->passes || x->is_external[s] || l->item != 0)
        return false;
    for (int k = 0; k < ORR_PASS_LANES; k++) {
        if (s != orr_pass_lane[k] || x->passes->begins.key[r][k] != orr_pass__key(x, r, l))
            continue;
        *begin = orr_pass__begin_of(x, r);
        return true;
    }
    return false;
}

/* Ranks that had begun the call go on from where they were: none of their streams has done anything
 * since. A pass under way is not touched. Who starts in the past does so in order of time, by
 * events of the island, not at once. */
void orr_pass__release(OrrExec *x, uint32_t r, uint32_t key) {
    OrrIslandPass *pass = orr_pass__of(x, r);
    const uint32_t *list;
    uint32_t n = orr_pass__members(x, r, &list);
    orr_exec__land(x, x->island_of[r]);
    pass->n_ready = pass->n_begun = 0;
    if (!pass->work)
        pass->generation = (pass->generation + 1) & ORR_GENERATION_MASK;
    pass->released = MAX(pass->released, key);
    for (uint32_t m = 0; m < n; m++)
        if (x->passes->begins.state[list[m]].state == ORR_RATE_BEGUN)
            orr_pass__end_rates(x, list[m], true);
    orr_pass__trim_rates(x, r);
    int64_t now_ns = x->now_ns;
    x->now_ns = INT64_MIN;
    for (uint32_t m = 0; m < n; m++)
        for (int k = 0; k < ORR_PASS_LANES; k++) {
            uint32_t s = orr_pass_lane[k];
            if (orr_exec__lane(x, list[m], s)->state == ORR_LANE_CHECKED &&
                x->passes->begins.state[list[m]].state != ORR_RATE_ENTERED)
                orr_exec__own_lane(x, list[m], s)->state = ORR_LANE_BLOCKED;
            if (orr_exec__lane(x, list[m], s)->state == ORR_LANE_BLOCKED)
                orr_exec__try_start(x, list[m], s);
        }
    x->now_ns = now_ns;
}

/* Whether the host has issued all of the call before the first of the members begins it. */
bool orr_pass__is_host_ahead(const OrrExec *x, uint32_t r, uint32_t key) {
    const OrrCompiledRole *role = orr_pass__role(x, r);
    uint32_t step = (key - 1) / role->n_calls, call = (key - 1) % role->n_calls;
    const OrrCallRow *row = &role->rows[call], *all = &role->rows[role->n_calls];
    int64_t host_ns = step * all->host_ns + row[1].host_ns, first_ns = x->now_ns;
    uint32_t n_synced = step * all->syncs_before + row->syncs_before;
    const uint32_t *list;
    uint32_t n = orr_pass__members(x, r, &list);
    const int64_t *bases_ns = orr_exec__host_base_ns(x, list[0]);
    const uint32_t *synced = orr_exec__n_synced(x, list[0]);
    const OrrBegins b = x->passes->begins;
    int64_t base_ns = INT64_MIN;
    for (uint32_t m = 0; m < n; m++) {
        const uint32_t *known = b.key[list[m]];
        const int64_t *begin_ns = b.begin_ns[list[m]];
        if (synced[m] < n_synced)
            return false;
        base_ns = MAX(base_ns, bases_ns[m]);
        first_ns = known[0] == key ? MIN(first_ns, begin_ns[0]) : first_ns;
        first_ns = known[1] == key ? MIN(first_ns, begin_ns[1]) : first_ns;
    }
    return base_ns + host_ns <= first_ns;
}

/* Whether the call can be a pass beside communication that slows kernels. */
bool orr_pass__can_be_open(OrrExec *x, uint32_t r, uint32_t key) {
    OrrIslandPass *pass = orr_pass__of(x, r);
    uint32_t call = (key - 1) % orr_pass__role(x, r)->n_calls;
    if (!(x->passes->calls[x->bound->role[r]][call] & ORR_PASS_OPEN))
        return false;
    if (pass->vetted != key && orr_pass__is_host_ahead(x, r, key))
        pass->vetted = key;
    return pass->vetted == key;
}

/* An external communication that slows kernels is to come: who waits for a pass goes on alone
 * unless that can be taken all the same. */
void orr_exec__disturb_pass(OrrExec *x, uint32_t r) {
    if (!x->passes)
        return;
    const OrrIslandPass *pass = orr_pass__of(x, r);
    if (pass->n_begun > 0 && !orr_pass__can_be_open(x, r, pass->key))
        orr_pass__release(x, r, pass->key);
}
