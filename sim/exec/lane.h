/* What the streams of a rank (lane.c) and of all members of an island (together.c) share; private
 * to sim/exec. */
#ifndef ORR_EXEC_LANE_H
#define ORR_EXEC_LANE_H

#include "sim/exec/exec_priv.h"

/* What the head of a stream waits for: the streams that have not got there yet, and the latest of
 * those that have. */
typedef struct {
    uint16_t missing;
    uint8_t first_missing; /* one of them: an external one if there is */
    uint32_t need;         /* its items that must have ended */
    bool has_wait;         /* `stream` and `index` are what ended last, at ready_ns */
    uint8_t stream;
    uint32_t index;
    uint32_t cause; /* record of that item; ORR_NONE: it is the last of its stream */
    int64_t ready_ns;
    int64_t begin_ns; /* the same of what is waited for outside of the call; and its stream */
    uint32_t begin_cause;
    bool is_begun; /* which was noted when it came: begun; else looked up now */
    OrrBegin begun;
} OrrWaiting;

/* Item @need - 1 of stream @q is among what the head of @s waits for. */
void orr_lane__consider(const OrrExec *x, uint32_t r, uint32_t s, uint32_t q, uint32_t need,
                        OrrWaiting *w);
void orr_lane__set_blocked(OrrExec *x, uint32_t r, uint32_t s, const OrrWaiting *w);
void orr_lane__note_issue_bound(OrrExec *x, uint32_t r, uint32_t s);
void orr_lane__probe(OrrExec *x, uint32_t r, uint32_t s, const OrrItem *item);
/* What made the head wait, if communication, now that its predecessor is known. */
static inline void orr_lane__note_blocker(OrrExec *x, uint32_t r, uint32_t s) {
    const OrrPredecessor *before = orr_exec__pred(x, r, s);
    OrrBlocker *blocker = orr_exec__blocker(x, r, s, true);
    blocker->ended = *orr_exec__ended(x, r, before->stream);
    blocker->end_ns = *orr_exec__free_ns(x, r, before->stream);
    if (orr_exec__lane(x, r, before->stream)->completed != before->index + 1)
        blocker->ended.is_set = 0;
}
static inline void orr_lane__leave_trail(OrrExec *x, uint32_t r, uint32_t s, const OrrItem *item) {
    OrrEnded *ended = orr_exec__ended(x, r, s);
    *ended = (OrrEnded){.start_ns = *orr_exec__start_ns(x, r, s),
                        .arrived_ns = *orr_exec__arrived_ns(x, r, s),
                        .what = item->what,
                        .step = orr_exec__lane(x, r, s)->step,
                        .type = item->type,
                        .is_issue_bound = orr_exec__pred(x, r, s)->is_issue_bound,
                        .is_set = 1,
                        .slot = !ended->slot};
}

#endif
