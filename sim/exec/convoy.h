/* Sends of all members of an island to those of another, as one: a convoy. Private to sim/exec.
 *
 * Members of an island do the same things at the same places of the program, so the sends of a
 * stage are eight at a time, each over links of its own. While all of them have room on their links
 * (room.c) their ends are known, and one event stands for all, at the end of the last. Whoever
 * finds his link taken leaves and goes on alone; where members are not in step each goes alone. */
#ifndef ORR_EXEC_CONVOY_H
#define ORR_EXEC_CONVOY_H

#include "sim/exec/exec_priv.h"

typedef struct {
    uint32_t island[2];   /* of the senders, of the receivers */
    uint16_t role[2];     /* the same */
    uint32_t n, n_flying; /* members; of them those whose transfers end with it */
    uint32_t n_unknown;   /* of those: in the fluid, or yet to start there */
    int64_t first_ns;     /* the first known end */
    uint32_t first;       /* in OrrConvoys.places */
    uint32_t n_waiting;   /* transfers that wait for the rest, so that all set out together */
    int64_t leave_ns;     /* when they do wait no longer */
    uint32_t n_over;      /* transfers that are over in the fluid, in this instant */
    uint32_t generation;  /* of its end; and of that */
    uint32_t wait_generation, land_generation;
    /* what its transfers use as one: n_shared uses of links that all have, then n_rows of rows, of
     * which each has a link, in OrrConvoys.joint_uses; both 0: they are not alike; behind those
     * what each uses of the shared ones */
    uint32_t first_joint, n_shared, n_rows;
    uint32_t joint_what; /* part of which it is known whether all are equal; ORR_NONE: none */
    uint32_t joint_top;  /* theirs then, in OrrExec.tops */
    const OrrPlan *plan; /* the first's then; latencies are equal, too */
    uint32_t room_top;   /* the same of those for which it has room */
    uint32_t flow;       /* all its transfers in the fluid, as one; ORR_NONE: they are not */
    uint32_t rows_top;   /* the top of those for which it has rows */
    uint32_t n_narrow;   /* transfers in the fluid that use those */
    bool has_rows;       /* it has room on links of rows for its transfers in the fluid */
    bool is_equal;
    bool has_room;        /* its transfers hold room as one */
    bool is_joint;        /* it has set out as one */
    bool is_at_once;      /* its transfers start at one time */
    bool is_over;         /* so it was in the fluid, too, until first_ns */
    bool is_late;         /* some end before the rest: in the list of the receivers' island */
    bool has_started;     /* one of its transfers has, in the fluid */
    bool has_ended;       /* the same */
    bool is_bound;        /* it will land before anybody can see that some are over in the fluid */
    uint8_t stream[2];    /* of the senders, of the receivers, when it last set out */
    uint32_t next_late;   /* the next of that */
    uint32_t first_place; /* of its places */
    /* to fetch ahead only (fetch.c): */
    uint32_t onward; /* convoy that left the receivers next when it last ended, or ORR_NONE */
} __attribute__((aligned(128))) OrrConvoy;

#define ORR_CONVOY_STREAMS 16u /* at least ORR_N_STREAMS: a cache line an island */
G_STATIC_ASSERT(ORR_CONVOY_STREAMS >= ORR_N_STREAMS);

#define ORR_JOINT_OWNER (1u << 31) /* of an activity of the fluid: a convoy, not a place */

struct OrrConvoys {
    uint16_t streams; /* a bit each: streams of single early sends or receives for which none but
                       * local streams and each other wait */
    OrrConvoy *convoys;
    uint32_t n, n_places;
    uint32_t *places; /* of each convoy, in the order of the members */
    OrrUse *uses;     /* of all those places, in that order: an event asks for all of a convoy */
    OrrUse *joint_uses;
    uint32_t *row_first, *row; /* [n_links + 1] into `row`: convoys that have the link in a row */
    uint32_t *over;            /* those with some that are over */
    uint32_t n_over;
    uint32_t *told; /* places of transfers that are over in the fluid, in this instant */
    uint32_t n_told;
    uint32_t *ended; /* places of transfers that are over in the fluid, and end with their convoy */
    uint32_t n_ended;
    uint32_t *arrived; /* [n_islands] the last that ended there, or ORR_NONE */
    /* [n_islands * ORR_CONVOY_STREAMS] of each stream whose items have one peer: that of all of
     * them, plus 1; 0: none that is known */
    uint32_t *of;
    uint32_t *late; /* [n_islands] first of those whose ends differ, or ORR_NONE */
    /* [n_roles][n_calls] of a receive: the call, plus 1, of the pass that may be told late of its
     * end; 0: none */
    uint32_t **late_call;
    int64_t least_ns; /* of a send, latency included */
    uint16_t *single; /* [n_roles] a bit for each stream whose items have one peer and size */
    /* [n_roles][n_calls * ORR_N_STREAMS] what its kernels take at least from the end of the block
     * that a send of the call waits for to that of the one that the next send of the stream waits
     * for; 0: not known */
    int64_t **gap_ns;
};

/* Ranks of a TP group, which is an island where there are convoys; how many. */
static inline uint32_t orr_convoy__members(const OrrExec *x, uint32_t island,
                                           const uint32_t **list) {
    const OrrBoundGroup *tp = &x->bound->groups[ORR_GROUP_TP];
    *list = tp->members + tp->first_member[island];
    return tp->first_member[island + 1] - tp->first_member[island];
}
/* convoys.c: whether ends may be told late as far as the streams of its members go. */
bool orr_convoy__can_be_late(const OrrExec *x, const OrrConvoy *c);
/* Before when no member can be ready to send again: each sends what a block of his has made, and
 * has to go through others until that. INT64_MIN: not known. */
int64_t orr_convoy__next_send_ns(const OrrExec *x, const OrrConvoy *c);
/* convoy.c. All transfers that end with it are known to have ended by @end_ns. */
void orr_convoy__await_end(OrrExec *x, uint32_t convoy, int64_t end_ns);
/* All transfers end with the convoy, those that are known at what their places say. */
void orr_convoy__fly(OrrExec *x, uint32_t convoy, int64_t first_ns, uint32_t n_unknown);
/* All transfers are known to end, at what their places say. */
void orr_convoy__fly_booked(OrrExec *x, uint32_t convoy, int64_t first_ns, int64_t last_ns);
/* Whether transfers of it may be in the fluid and end with it, whenever that may be: the next ones
 * would be seen, so it lands before these can start. */
bool orr_convoy__bind_to_land(OrrExec *x, uint32_t convoy);
/* The end is known of one of those that end with it. */
void orr_convoy__know_end(OrrExec *x, uint32_t place, int64_t end_ns);
/* None of its transfers has room any more: their ends are not known, or they go on alone. */
void orr_convoy__lose_room(OrrExec *x, uint32_t convoy);
/* convoy_out.c. The partners of a transfer have met: it waits for the rest of its convoy, but not
 * beyond its latency. */
void orr_convoy__wait(OrrExec *x, uint32_t place);
/* Its transfer starts, in the fluid as a rule. */
void orr_convoy__starts(OrrExec *x, uint32_t place);
/* Sends or receives of stream @s of all members, in the order of @list, are launched at
 * @start_ns. */
void orr_convoy__arrive(OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s, uint32_t part,
                        const int64_t *start_ns);
/* convoy_joint.c. Whether its transfers, whose partners have met, can be asked for as one. */
bool orr_convoy__is_joint(OrrExec *x, OrrConvoy *c);
/* Books all of such a convoy, @is_start: of which the first starts now; returns what they take.
 * INT64_MAX: there is no room. */
int64_t orr_convoy__take_room(OrrExec *x, OrrConvoy *c, bool is_start);
/* Its transfers hold room each for itself from now on. */
void orr_convoy__part_room(OrrExec *x, OrrConvoy *c);
/* Those that hold room give it back. */
void orr_convoy__give_room(OrrExec *x, OrrConvoy *c);
/* It gives back what it holds for all as one. */
void orr_convoy__drop_room(OrrExec *x, OrrConvoy *c);
/* convoy_rows.c. It keeps of its room that on links of rows, for its transfers that start in the
 * fluid now; asks for it. Nothing is done where that is not possible. */
void orr_convoy__keep_rows(OrrExec *x, OrrConvoy *c);
void orr_convoy__ask_rows(OrrExec *x, OrrConvoy *c);
/* Its transfers in the fluid are on all their links from now on. */
void orr_convoy__widen(OrrExec *x, OrrConvoy *c);
/* All its transfers start in the fluid now, as one. False: they can't, nothing has been done. */
bool orr_convoy__flow(OrrExec *x, uint32_t convoy);
void orr_convoy__flow_over(OrrExec *x, OrrConvoy *c);
void orr_convoy__joints_new(OrrExec *x);
void orr_convoy__joints_clear(OrrConvoys *v);
void orr_convoy__prefetch_room(const OrrExec *x, const OrrConvoy *c);
/* convoy_fetch.c: the convoy leaves an island behind the one that ended there last. */
void orr_convoy__note_onward(const OrrExec *x, uint32_t convoy);
/* All its transfers start in the fluid now; one of them, which end with it, is over there. */
void orr_convoy__fetch_starts(const OrrExec *x, const OrrConvoy *c);
void orr_convoy__fetch_ends(const OrrExec *x, OrrConvoy *c);
/* What ends of transfers touch, of those behind the @k-th of OrrConvoys.told, or of
 * `ended`, each time a step further on. */
void orr_convoy__fetch_told(const OrrExec *x, uint32_t k);
void orr_convoy__fetch_ended(const OrrExec *x, uint32_t k);
/* together.c: those that members are at end now, at @end_ns each. */
void orr_together__complete(OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s,
                            const int64_t *end_ns);
void orr_together__go_on(OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s);

#endif
