/* What is kept of ranks and their streams, by rank and stream; of the middle of exec_priv.h. */
#ifndef ORR_EXEC_STORED_H
#define ORR_EXEC_STORED_H

#include "sim/base/large.h"
#include "sim/exec/exec_priv.h"

/* The array of a kind in the block of the island of @r. */
#define ORR_STORED(x, r, kind, type)                                                               \
    ((type *)(void *)((x)->store.bytes + (gsize)(x)->store.homes[r].line * ORR_LINE +              \
                      (x)->store.kind))

/* Where what belongs to stream @s of rank @r lies in an array of streams. */
static inline uint32_t orr_exec__slot(const OrrExec *x, uint32_t r, uint32_t s) {
    return x->row_at[s] + x->store.homes[r].member;
}
/* End of the last item; of the current one: launch, last arrival. */
static inline int64_t *orr_exec__free_ns(const OrrExec *x, uint32_t r, uint32_t s) {
    return ORR_STORED(x, r, free_ns, int64_t) + orr_exec__slot(x, r, s);
}
static inline int64_t *orr_exec__start_ns(const OrrExec *x, uint32_t r, uint32_t s) {
    return ORR_STORED(x, r, start_ns, int64_t) + orr_exec__slot(x, r, s);
}
static inline int64_t *orr_exec__arrived_ns(const OrrExec *x, uint32_t r, uint32_t s) {
    return ORR_STORED(x, r, arrived_ns, int64_t) + orr_exec__slot(x, r, s);
}
static inline OrrPredecessor *orr_exec__pred(const OrrExec *x, uint32_t r, uint32_t s) {
    return ORR_STORED(x, r, preds, OrrPredecessor) + orr_exec__slot(x, r, s);
}
/* Of the end of its block. */
static inline uint32_t *orr_exec__generation(const OrrExec *x, uint32_t r, uint32_t s) {
    return ORR_STORED(x, r, generations, uint32_t) + orr_exec__slot(x, r, s);
}
static inline OrrEnded *orr_exec__ended(const OrrExec *x, uint32_t r, uint32_t s) {
    return ORR_STORED(x, r, ended, OrrEnded) + orr_exec__slot(x, r, s);
}
/* What the last item of the stream that ended had waited for, or what the next one does. */
static inline OrrBlocker *orr_exec__blocker(const OrrExec *x, uint32_t r, uint32_t s,
                                            bool is_next) {
    uint32_t slot = orr_exec__slot(x, r, s);
    bool is_second = ORR_STORED(x, r, ended, OrrEnded)[slot].slot ^ is_next;
    return ORR_STORED(x, r, blockers, OrrBlocker) + is_second * x->store.n_slots + slot;
}
/* Streams that are apart whose heads wait for this one of the member. */
static inline uint16_t *orr_exec__waiting_apart(const OrrExec *x, uint32_t r, uint32_t s) {
    return ORR_STORED(x, r, waiting, uint16_t) + orr_exec__slot(x, r, s);
}
/* What rank @r is charged for an owner, since its last step; of the members of an island side by
 * side. */
static inline int64_t *orr_exec__owner_ns(const OrrExec *x, uint32_t r, uint32_t owner) {
    return ORR_STORED(x, r, owner_ns, int64_t) + owner * x->n_members + x->store.homes[r].member;
}
/* Idle time of the compute stream is accounted up to here. */
static inline int64_t *orr_exec__idle_from_ns(const OrrExec *x, uint32_t r) {
    return ORR_STORED(x, r, idle_from_ns, int64_t) + x->store.homes[r].member;
}
/* Issue time = base + host time of the program so far. */
static inline int64_t *orr_exec__host_base_ns(const OrrExec *x, uint32_t r) {
    return ORR_STORED(x, r, host_base_ns, int64_t) + x->store.homes[r].member;
}
/* Rates that external communication leaves its kernels; of old while changes are noted. */
static inline uint32_t *orr_exec__outer(const OrrExec *x, uint32_t r) {
    return ORR_STORED(x, r, outer, uint32_t) + 2 * x->store.homes[r].member;
}
/* Host synchronisations that have returned. */
static inline uint32_t *orr_exec__n_synced(const OrrExec *x, uint32_t r) {
    return ORR_STORED(x, r, n_synced, uint32_t) + x->store.homes[r].member;
}
/* Whether so many have: as a rule there are none. */
static inline bool orr_exec__has_synced(const OrrExec *x, uint32_t r, uint32_t n) {
    return n == 0 || *orr_exec__n_synced(x, r) >= n;
}
static inline bool orr_exec__is_probed(const OrrExec *x, uint32_t r) {
    return x->options->probe && x->options->is_probed && x->options->is_probed[r];
}
/* The lane of the first member, which stands for all while they are not apart. */
static inline OrrLane *orr_exec__joint_lane(const OrrExec *x, uint32_t r, uint32_t s) {
    return ORR_STORED(x, r, lanes, OrrLane) + x->row_at[s];
}
static inline bool orr_exec__is_apart(const OrrExec *x, uint32_t r, uint32_t s) {
    return orr_exec__joint_lane(x, r, s)->is_apart;
}
/* Where the stream is: to look at. */
static inline const OrrLane *orr_exec__lane(const OrrExec *x, uint32_t r, uint32_t s) {
    const OrrLane *first = orr_exec__joint_lane(x, r, s);
    return first->is_apart ? first + x->store.homes[r].member : first;
}
/* lanes.c: the members are at places of their own from now on. */
void orr_exec__part(OrrExec *x, uint32_t r, uint32_t s);
/* Whether stream @s of all members of the island of @r is at one place. */
bool orr_exec__join(OrrExec *x, uint32_t r, uint32_t s);
/* To change it of this rank alone. What was got from orr_exec__lane before counts no more. */
static inline OrrLane *orr_exec__own_lane(OrrExec *x, uint32_t r, uint32_t s) {
    OrrLane *first = orr_exec__joint_lane(x, r, s);
    if (!first->is_apart)
        orr_exec__part(x, r, s);
    return first + x->store.homes[r].member;
}
/* Streams whose heads wait for stream @s of the rank, a bit each. */
static inline uint32_t orr_exec__waiting(const OrrExec *x, uint32_t r, uint32_t s) {
    const OrrLane *first = orr_exec__joint_lane(x, r, s);
    return first->waiting | (first->waiting_apart ? *orr_exec__waiting_apart(x, r, s) : 0);
}

#endif
