/* The rendezvous state machine that both the checker and exec use: who has arrived where.
 *
 * Knows no time. A *meeting place* is a communicator instance (one group of ranks, one comm
 * number) or a directed pair of ranks on a communicator. State lives in arrays by id; arrive()
 * says whether the meeting is now complete. Members arrive in stream order, so one open meeting a
 * place suffices for collectives. */
#ifndef ORR_PROGRAM_RENDEZVOUS_H
#define ORR_PROGRAM_RENDEZVOUS_H

#include "sim/program/program.h"

typedef struct {
    uint32_t n_expected, n_arrived;
    uint32_t what; /* descriptor of the open meeting: all members must bring an equal one */
} OrrMeeting;

typedef enum { ORR_MEET_WAIT, ORR_MEET_COMPLETE, ORR_MEET_MISMATCH } OrrMeet;

static inline void orr_meeting_init(OrrMeeting *m, uint32_t n_expected) {
    m->n_expected = n_expected;
    m->n_arrived = 0;
    m->what = ORR_NONE;
}

/* One member (or @count folded members) arrives with descriptor @what. On COMPLETE the meeting is
 * reset for the next call. */
static inline OrrMeet orr_meeting_arrive(OrrMeeting *m, uint32_t what, uint32_t count) {
    if (m->n_arrived == 0)
        m->what = what;
    else if (m->what != what)
        return ORR_MEET_MISMATCH;
    m->n_arrived += count;
    if (m->n_arrived < m->n_expected)
        return ORR_MEET_WAIT;
    m->n_arrived = 0;
    return ORR_MEET_COMPLETE;
}

/* A directed pair: the k-th send meets the k-th receive. */
typedef struct {
    int32_t n_sent, n_received; /* arrivals not yet matched; one of them is 0 */
} OrrPair;

static inline OrrMeet orr_pair_send(OrrPair *p) {
    if (p->n_received > 0) {
        p->n_received--;
        return ORR_MEET_COMPLETE;
    }
    p->n_sent++;
    return ORR_MEET_WAIT;
}

static inline OrrMeet orr_pair_receive(OrrPair *p) {
    if (p->n_sent > 0) {
        p->n_sent--;
        return ORR_MEET_COMPLETE;
    }
    p->n_received++;
    return ORR_MEET_WAIT;
}

#endif
