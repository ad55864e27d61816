/* Lanes: where streams are, of all members of an island together.
 *
 * Members of an island do the same things, as a rule at the same places of the program, at times of
 * their own. While they do the lane of the first stands for all, so that an event touches one cache
 * line of a stream instead of one a member. Whoever goes on alone parts them; they are joined when
 * they are asked for together and found at one place. Cost: a copy or comparison of 32 bytes a
 * member. */
#include "sim/exec/exec_priv.h"

/* What the stream waits for notes that with each member, or for all. */
static void note_waiting(OrrExec *x, uint32_t r, uint32_t s, bool is_apart) {
    uint32_t on = orr_exec__joint_lane(x, r, s)->blocked_on;
    if (on == ORR_N_STREAMS)
        return;
    OrrLane *first = orr_exec__joint_lane(x, r, on);
    uint16_t *waiting = ORR_STORED(x, r, waiting, uint16_t) + x->row_at[on];
    uint32_t bit = 1u << s;
    first->waiting = is_apart ? first->waiting & ~bit : first->waiting | bit;
    first->waiting_apart = is_apart ? first->waiting_apart | bit : first->waiting_apart & ~bit;
    for (uint32_t m = 0; m < x->n_members; m++)
        waiting[m] = is_apart ? waiting[m] | bit : waiting[m] & ~bit;
}

void orr_exec__part(OrrExec *x, uint32_t r, uint32_t s) {
    OrrLane *first = orr_exec__joint_lane(x, r, s);
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
    OrrLane *first = orr_exec__joint_lane(x, r, s);
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
    move_bit(was ? orr_exec__waiting_apart(x, r, l->blocked_on) : NULL,
             is ? orr_exec__waiting_apart(x, r, on) : NULL, s);
    if (is)
        orr_exec__joint_lane(x, r, on)->waiting_apart |= 1u << s;
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
