/* Ends of items of local streams that external ones will ask for: those of an island run ahead of
 * the clock, so what an external stream waits for may have ended long before it comes to ask.
 *
 * Kept are the items that are asked for, until their asker is beyond them: as a rule none or one,
 * since it asks in their order. An item of all members of an island is kept together, a time each,
 * as they end it; if there are too many, or they end them out of step, each has a list of his own.
 * Cost: two cache lines an item and island. */
#include "sim/base/large.h"
#include "sim/exec/exec_priv.h"

#include <stdlib.h>
#include <string.h>

void orr_exec__pasts_new(OrrExec *x) {
    OrrPasts *p = &x->pasts;
    memset(p->of, UINT8_MAX, sizeof p->of);
    for (uint32_t s = 0; s < ORR_N_STREAMS; s++)
        for (uint32_t q = 0; q < ORR_N_STREAMS; q++)
            if (!x->is_external[s] && x->is_external[q] && (x->compiled->waiters[s] & 1u << q))
                p->of[s][q] = p->n++;
    gsize n_joint = (gsize)x->n_islands * p->n, n_ends = n_joint * ORR_JOINT_ENDS * x->n_members;
    p->own = orr_large_new(((gsize)x->bound->n_ranks * p->n + 1) * sizeof *p->own);
    p->joint = orr_large_new((n_joint + 1) * sizeof *p->joint);
    p->end_ns = orr_large_new((n_ends + 1) * sizeof *p->end_ns);
    if (x->options->has_path)
        p->cause = orr_large_new((n_ends + 1) * sizeof *p->cause);
    for (gsize i = 0; p->cause && i < n_ends; i++)
        p->cause[i] = ORR_NONE;
}

void orr_exec__pasts_clear(OrrExec *x) {
    OrrPasts *p = &x->pasts;
    for (gsize i = 0; i < (gsize)x->bound->n_ranks * p->n; i++)
        g_free(p->own[i].entry);
    free(p->own);
    free(p->joint);
    free(p->end_ns);
    free(p->cause);
}

static OrrOwnPast *own_of(const OrrExec *x, uint32_t r, uint32_t s, uint32_t asker) {
    return &x->pasts.own[(gsize)r * x->pasts.n + x->pasts.of[s][asker]];
}

static gsize joint_at(const OrrExec *x, uint32_t r, uint32_t s, uint32_t asker) {
    return (gsize)x->island_of[r] * x->pasts.n + x->pasts.of[s][asker];
}

/* The oldest item of stream @s that the asker can still ask for, by what its head waits for. */
static uint32_t oldest_asked(const OrrExec *x, uint32_t r, uint32_t s, uint32_t asker) {
    const OrrCompiledRole *role = orr_exec__role(x, r);
    const OrrLane *l = orr_exec__lane(x, r, asker);
    const OrrCallRow *row = &role->rows[l->call];
    const OrrItem *item = orr_exec__head(x, r, asker);
    uint32_t step = l->step * role->rows[role->n_calls].base[s], least = UINT32_MAX;
    const uint32_t *first = &role->first_cross[l->call * ORR_N_STREAMS + asker];
    for (uint32_t i = first[0]; item->has_cross && i < first[1]; i++) {
        const OrrCrossWait *c = &role->cross[i];
        if (c->item == l->item && c->src_stream == s && c->steps_back <= l->step)
            least =
                MIN(least, step - c->steps_back * role->rows[role->n_calls].base[s] + c->src_count);
    }
    for (uint32_t i = 0; i < item->n_waits; i++) {
        const OrrItemWait *w = &x->compiled->waits[item->first_wait + i];
        if (w->stream == s)
            least = MIN(least, step + row->base[s] + w->count);
    }
    if (least == UINT32_MAX)
        return 0;
    return l->state == ORR_LANE_BLOCKED ? least - 1 : least;
}

static void drop_before(OrrJointPast *joint, OrrOwnPast *own, uint32_t index) {
    while (own->n > 0 && own->entry[own->first].index < index) {
        own->first = (own->first + 1) & (own->capacity - 1);
        own->n--;
        joint->n_own--;
    }
}

static void grow(OrrOwnPast *own) {
    uint32_t capacity = MAX(2 * own->capacity, ORR_JOINT_ENDS);
    OrrPastEnd *grown = g_new(OrrPastEnd, capacity);
    for (uint32_t i = 0; i < own->n; i++)
        grown[i] = own->entry[(own->first + i) & (own->capacity - 1)];
    g_free(own->entry);
    own->entry = grown;
    own->capacity = capacity;
    own->first = 0;
}

static void keep(OrrExec *x, uint32_t r, uint32_t s, uint32_t asker, OrrPastEnd end) {
    OrrOwnPast *own = own_of(x, r, s, asker);
    OrrJointPast *joint = &x->pasts.joint[joint_at(x, r, s, asker)];
    if (orr_exec__lane(x, r, asker)->state == ORR_LANE_DONE)
        return;
    if (own->n == own->capacity)
        drop_before(joint, own, oldest_asked(x, r, s, asker));
    if (own->n == own->capacity)
        grow(own);
    own->entry[(own->first + own->n++) & (own->capacity - 1)] = end;
    joint->n_own++;
}

/* Those that no member can ask for any more are dropped. */
static void drop_joint(const OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s,
                       uint32_t asker, OrrJointPast *joint) {
    uint32_t oldest = UINT32_MAX, n_askers = orr_exec__is_apart(x, list[0], asker) ? n : 1;
    for (uint32_t m = 0; m < n_askers; m++)
        if (orr_exec__lane(x, list[m], asker)->state != ORR_LANE_DONE)
            oldest = MIN(oldest, oldest_asked(x, list[m], s, asker));
    for (; joint->n > 0 && joint->index[joint->first] < oldest; joint->n--)
        joint->first = (joint->first + 1) % ORR_JOINT_ENDS;
}

/* The members keep them each by himself, from now on: what each keeps is older than what lies
 * together. */
static void spread(OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s, uint32_t asker) {
    gsize at = joint_at(x, list[0], s, asker);
    OrrJointPast *joint = &x->pasts.joint[at];
    for (; joint->n > 0; joint->n--) {
        gsize row = (at * ORR_JOINT_ENDS + joint->first) * x->n_members;
        for (uint32_t m = 0; m < n; m++)
            if (x->pasts.end_ns[row + m] != INT64_MIN)
                keep(x, list[m], s, asker,
                     (OrrPastEnd){x->pasts.end_ns[row + m], joint->index[joint->first],
                                  x->leaves_records ? x->pasts.cause[row + m] : ORR_NONE});
        joint->first = (joint->first + 1) % ORR_JOINT_ENDS;
    }
}

/* Room for the end of item @index of the members of an island, of which none is known yet. Returns
 * where. */
static uint32_t add_joint(OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s, uint32_t asker,
                          uint32_t index) {
    OrrJointPast *joint = &x->pasts.joint[joint_at(x, list[0], s, asker)];
    if (joint->n == ORR_JOINT_ENDS ||
        (joint->n > 0 && x->leaves_records)) /* records go with them */
        drop_joint(x, list, n, s, asker, joint);
    if (joint->n == ORR_JOINT_ENDS)
        spread(x, list, n, s, asker);
    uint32_t e = (joint->first + joint->n++) % ORR_JOINT_ENDS;
    joint->index[e] = index;
    joint->n_lacking[e] = (uint16_t)n;
    return e;
}

/* Which of those that lie together is item @index; ORR_JOINT_ENDS: none. */
static uint32_t find_joint(const OrrJointPast *joint, uint32_t index) {
    for (uint32_t i = 0; i < joint->n; i++)
        if (joint->index[(joint->first + i) % ORR_JOINT_ENDS] == index)
            return (joint->first + i) % ORR_JOINT_ENDS;
    return ORR_JOINT_ENDS;
}

/* The end of one member goes with those of the others, unless they are further. */
static void remember_one(OrrExec *x, uint32_t r, uint32_t s, uint32_t asker, OrrPastEnd end) {
    const OrrIsland *island = &x->islands[x->island_of[r]];
    gsize at = joint_at(x, r, s, asker);
    OrrJointPast *joint = &x->pasts.joint[at];
    uint32_t e = find_joint(joint, end.index);
    if (e == ORR_JOINT_ENDS && joint->n > 0 &&
        joint->index[(joint->first + joint->n - 1) % ORR_JOINT_ENDS] > end.index) {
        spread(x, island->ranks, island->n_ranks, s, asker);
        keep(x, r, s, asker, end);
        return;
    }
    bool is_new = e == ORR_JOINT_ENDS;
    if (is_new)
        e = add_joint(x, island->ranks, island->n_ranks, s, asker, end.index);
    gsize row = (at * ORR_JOINT_ENDS + e) * x->n_members;
    for (uint32_t m = 0; is_new && m < island->n_ranks; m++)
        x->pasts.end_ns[row + m] = INT64_MIN;
    for (uint32_t m = 0; is_new && x->leaves_records && m < island->n_ranks; m++)
        x->pasts.cause[row + m] = ORR_NONE;
    uint32_t member = x->store.homes[r].member;
    x->pasts.end_ns[row + member] = end.end_ns;
    if (x->leaves_records)
        x->pasts.cause[row + member] = end.cause;
    joint->n_lacking[e]--;
}

/* Item @item of the step of stream @s ends: kept for the external streams that will ask for it. */
void orr_exec__remember(OrrExec *x, uint32_t r, uint32_t s, uint32_t item, OrrPastEnd end) {
    uint32_t asked = orr_exec__role(x, r)->asked[s][item] & x->external_mask;
    for (; asked; asked &= asked - 1)
        remember_one(x, r, s, __builtin_ctz(asked), end);
}

/* The same of an item that all members of an island end, for one asker. */
void orr_exec__remember_all(OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s,
                            uint32_t asker, uint32_t index, const int64_t *ends_ns,
                            const uint32_t *causes) {
    gsize at = joint_at(x, list[0], s, asker);
    uint32_t e = add_joint(x, list, n, s, asker, index);
    gsize row = (at * ORR_JOINT_ENDS + e) * x->n_members;
    x->pasts.joint[at].n_lacking[e] = 0;
    for (uint32_t m = 0; m < n; m++)
        x->pasts.end_ns[row + m] = ends_ns[m];
    for (uint32_t m = 0; x->leaves_records && m < n; m++)
        x->pasts.cause[row + m] = causes[m];
}

bool orr_exec__recall_all(const OrrExec *x, uint32_t r, uint32_t s, uint32_t asker, uint32_t index,
                          const int64_t **ends_ns, const uint32_t **causes) {
    *ends_ns = NULL;
    if (x->pasts.of[s][asker] == UINT8_MAX)
        return true;
    gsize at = joint_at(x, r, s, asker);
    const OrrJointPast *joint = &x->pasts.joint[at];
    uint32_t e = find_joint(joint, index);
    if (e == ORR_JOINT_ENDS)
        return joint->n_own == 0;
    gsize row = (at * ORR_JOINT_ENDS + e) * x->n_members;
    *causes = x->leaves_records ? x->pasts.cause + row : NULL;
    *ends_ns = x->pasts.end_ns + row;
    return joint->n_lacking[e] == 0;
}

/* The end of item @index of the stream; false if the asker has asked for a later one before, or the
 * item ended before anything that counts. It asks in order, so what is older is dropped. */
bool orr_exec__recall(const OrrExec *x, uint32_t r, uint32_t s, uint32_t asker, uint32_t index,
                      OrrPastEnd *end) {
    if (x->pasts.of[s][asker] == UINT8_MAX)
        return false;
    const uint32_t *causes;
    const int64_t *ends_ns;
    uint32_t member = x->store.homes[r].member;
    orr_exec__recall_all(x, r, s, asker, index, &ends_ns, &causes);
    if (ends_ns && ends_ns[member] != INT64_MIN) {
        *end = (OrrPastEnd){ends_ns[member], index, causes ? causes[member] : ORR_NONE};
        return true;
    }
    OrrJointPast *joint = &x->pasts.joint[joint_at(x, r, s, asker)];
    if (joint->n_own == 0)
        return false;
    OrrOwnPast *own = own_of(x, r, s, asker);
    drop_before(joint, own, index);
    if (own->n == 0 || own->entry[own->first].index != index)
        return false;
    *end = own->entry[own->first];
    return true;
}
