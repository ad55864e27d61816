/* Lanes: where streams are, of all members of an island together.
 *
 * Members of an island do the same things, as a rule at the same places of the program, at times of
 * their own. While they do the lane of the first stands for all, so that an event touches one cache
 * line of a stream instead of one a member. Whoever goes on alone parts them; they are joined when
 * they are asked for together and found at one place. Cost: a copy or comparison of 32 bytes a
 * member. */
#include "sim/base/large.h"
#include "sim/exec/exec_priv.h"

#include <stdlib.h>

/* @tp: groups that are islands; NULL: each rank is one. */
void orr_exec__lanes_new(OrrExec *x, const OrrBoundGroup *tp) {
    uint32_t most = 1, n_rows = 1;
    for (uint32_t i = 0; tp && i < tp->n_groups; i++)
        most = MAX(most, tp->first_member[i + 1] - tp->first_member[i]);
    for (x->n_members = 1; x->n_members < most;)
        x->n_members *= 2;
    for (uint32_t i = 0; i < x->bound->program->n_roles; i++) {
        const OrrCompiledRole *role = &x->compiled->roles[i];
        for (uint32_t s = 0; s < ORR_N_STREAMS; s++)
            if (role->rows[role->n_calls].base[s] > 0 && x->row_at[s] == 0)
                x->row_at[s] = n_rows++ * x->n_members;
    }
    x->first_at = orr_large_new((x->bound->n_ranks + 1) * sizeof *x->first_at);
    for (uint32_t r = 0; r < x->bound->n_ranks; r++)
        x->first_at[r] = x->island_of[r] * n_rows * x->n_members;
    for (uint32_t i = 0; tp && i < tp->n_groups; i++)
        for (uint32_t m = tp->first_member[i]; m < tp->first_member[i + 1]; m++)
            x->first_at[tp->members[m]] += m - tp->first_member[i];
    x->owner_at = orr_large_new((x->bound->n_ranks + 1) * sizeof *x->owner_at);
    for (uint32_t r = 0; r < x->bound->n_ranks; r++)
        x->owner_at[r] = x->first_at[r] / n_rows / x->n_members * ORR_N_OWNERS * x->n_members +
                         x->first_at[r] % x->n_members;
    gsize n = (gsize)x->n_islands * ORR_N_OWNERS * x->n_members;
    x->owner_ns = orr_large_new(n * sizeof *x->owner_ns);
    x->idle_from_ns = orr_large_new(x->bound->n_ranks * sizeof *x->idle_from_ns);
    x->host_base_ns = orr_large_new(x->bound->n_ranks * sizeof *x->host_base_ns);
    x->outer = orr_large_new(x->bound->n_ranks * sizeof *x->outer);
    x->n_synced = orr_large_new(x->bound->n_ranks * sizeof *x->n_synced);
    n = (gsize)x->n_islands * n_rows * x->n_members;
    x->free_ns = orr_large_new(n * sizeof *x->free_ns);
    x->start_ns = orr_large_new(n * sizeof *x->start_ns);
    x->arrived_ns = orr_large_new(n * sizeof *x->arrived_ns);
    x->lanes = orr_large_new(n * sizeof *x->lanes);
    x->waiting = orr_large_new(n * sizeof *x->waiting);
    x->preds = orr_large_new(n * sizeof *x->preds);
    x->generations = orr_large_new(n * sizeof *x->generations);
    x->n_lanes = n;
    x->ended = orr_large_new(n * sizeof *x->ended);
    x->blockers = orr_large_new(2 * n * sizeof *x->blockers);
    for (gsize i = 0; i < n; i++)
        x->lanes[i] = (OrrLane){.blocked_on = ORR_N_STREAMS, .is_apart = 1};
}

void orr_exec__lanes_clear(OrrExec *x) {
    free(x->first_at);
    free(x->owner_at);
    free(x->owner_ns);
    free(x->idle_from_ns);
    free(x->host_base_ns);
    free(x->outer);
    free(x->n_synced);
    free(x->free_ns);
    free(x->start_ns);
    free(x->arrived_ns);
    free(x->lanes);
    free(x->waiting);
    free(x->preds);
    free(x->generations);
    free(x->ended);
    free(x->blockers);
}

/* What the stream waits for notes that with each member, or for all. */
static void note_waiting(OrrExec *x, uint32_t r, uint32_t s, bool is_apart) {
    uint32_t on = x->lanes[orr_exec__row(x, r, s)].blocked_on;
    if (on == ORR_N_STREAMS)
        return;
    uint32_t row = orr_exec__row(x, r, on), bit = 1u << s;
    OrrLane *first = &x->lanes[row];
    first->waiting = is_apart ? first->waiting & ~bit : first->waiting | bit;
    first->waiting_apart = is_apart ? first->waiting_apart | bit : first->waiting_apart & ~bit;
    for (uint32_t m = 0; m < x->n_members; m++)
        x->waiting[row + m] = is_apart ? x->waiting[row + m] | bit : x->waiting[row + m] & ~bit;
}

void orr_exec__part(OrrExec *x, uint32_t r, uint32_t s) {
    OrrLane *first = &x->lanes[orr_exec__row(x, r, s)];
    note_waiting(x, r, s, true);
    for (uint32_t m = 1; m < x->n_members; m++)
        first[m] = *first;
    first->is_apart = 1;
}

/* Whether two members are at one place, and wait for the same. */
static bool is_alike(const OrrLane *a, const OrrLane *b) {
    return a->completed == b->completed && a->state == b->state && a->blocked_on == b->blocked_on &&
           a->call == b->call && a->item == b->item && a->step == b->step &&
           a->is_held == b->is_held && (a->need == b->need || a->blocked_on == ORR_N_STREAMS) &&
           (a->pending == b->pending || a->state == ORR_LANE_BLOCKED);
}

bool orr_exec__join(OrrExec *x, uint32_t r, uint32_t s) {
    OrrLane *first = &x->lanes[orr_exec__row(x, r, s)];
    if (!first->is_apart)
        return true;
    uint32_t n = x->islands[x->island_of[r]].n_ranks;
    for (uint32_t m = 1; m < n; m++)
        if (!is_alike(first, first + m))
            return false;
    first->is_apart = 0;
    note_waiting(x, r, s, false);
    return true;
}

/* Out of what the stream waited for, and into what it does now. */
static void move_bit(uint16_t *from, uint16_t *to, uint32_t s) {
    if (from)
        *from &= ~(1u << s);
    if (to)
        *to |= 1u << s;
}

void orr_exec__block_on(OrrExec *x, uint32_t r, uint32_t s, uint32_t on, uint32_t need) {
    const OrrLane *now = orr_exec__lane(x, r, s);
    if (now->need == need && now->blocked_on == on)
        return;
    OrrLane *l = orr_exec__own_lane(x, r, s);
    l->need = need;
    if (on == l->blocked_on)
        return;
    bool was = l->blocked_on < ORR_N_STREAMS, is = on < ORR_N_STREAMS;
    move_bit(was ? &x->waiting[orr_exec__at(x, r, l->blocked_on)] : NULL,
             is ? &x->waiting[orr_exec__at(x, r, on)] : NULL, s);
    if (is)
        x->lanes[orr_exec__row(x, r, on)].waiting_apart |= 1u << s;
    l->blocked_on = on;
}

void orr_exec__block_all_on(OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s, uint32_t on,
                            uint32_t need) {
    if (orr_exec__is_apart(x, list[0], s)) {
        for (uint32_t m = 0; m < n; m++)
            orr_exec__block_on(x, list[m], s, on, need);
        return;
    }
    OrrLane *l = orr_exec__joint_lane(x, list[0], s);
    l->need = need;
    if (on == l->blocked_on)
        return;
    bool was = l->blocked_on < ORR_N_STREAMS, is = on < ORR_N_STREAMS;
    move_bit(was ? &orr_exec__joint_lane(x, list[0], l->blocked_on)->waiting : NULL,
             is ? &orr_exec__joint_lane(x, list[0], on)->waiting : NULL, s);
    l->blocked_on = on;
}

void orr_exec__hold(OrrExec *x, uint32_t r, uint32_t s, bool is_held) {
    if (orr_exec__lane(x, r, s)->is_held == is_held)
        return;
    orr_exec__own_lane(x, r, s)->is_held = is_held;
    x->islands[x->island_of[r]].n_held += is_held ? 1 : -1;
}

void orr_exec__hold_all(OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s, bool is_held) {
    if (orr_exec__is_apart(x, list[0], s)) {
        for (uint32_t m = 0; m < n; m++)
            orr_exec__hold(x, list[m], s, is_held);
        return;
    }
    OrrLane *l = orr_exec__joint_lane(x, list[0], s);
    if (l->is_held == is_held)
        return;
    l->is_held = is_held;
    x->islands[x->island_of[list[0]]].n_held += is_held ? n : -n;
}
