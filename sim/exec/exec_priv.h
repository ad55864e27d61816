/* State of an execution; private to sim/exec. */
#ifndef ORR_EXEC_PRIV_H
#define ORR_EXEC_PRIV_H

#include "sim/core/queue.h"
#include "sim/exec/compile.h"
#include "sim/exec/exec.h"
#include "sim/exec/lane_types.h"
#include "sim/net/fluid.h"
#include "sim/program/rendezvous.h"

enum {
    ORR_EV_ISLAND,      /* id: island, that has a local event at this time */
    ORR_EV_BLOCK_END,   /* id: rank * ORR_N_STREAMS + stream */
    ORR_EV_COMM_END,    /* id: place */
    ORR_EV_LANE_END,    /* id: rank * ORR_N_STREAMS + stream: all parts had been delivered before */
    ORR_EV_FLOW_START,  /* id: place */
    ORR_EV_PASS,        /* id: a rank of the island whose pass is due */
    ORR_EV_LAUNCH,      /* id: rank * ORR_N_STREAMS + stream */
    ORR_EV_RATE,        /* id: rank, whose kernels change their rate, as was noted for a pass */
    ORR_EV_LOOK,        /* id: a rank of the island whose pass under way has been disturbed */
    ORR_EV_CONVOY,      /* id: convoy: the last of its transfers is over */
    ORR_EV_SET_OUT,     /* id: convoy: those of its transfers that wait for the rest go without */
    ORR_EV_CONVOY_FLOW, /* id: convoy: the same as FLOW_START for all its transfers */
    ORR_EV_LAND         /* id: convoy: what of it is over may be seen from now on */
};

/* Where the current block of the compute stream is: in kernel `kernel`, begun at `begun_ns`, with
 * `left` (nanoseconds << 16 at rate 1) to do from `at_ns` on. */
typedef struct {
    uint32_t block, kernel;
    int64_t host_ns; /* host time at the start of its call */
    int64_t at_ns, begun_ns, gap_ns, extra_ns;
    uint64_t left;
    int64_t goal_gap_ns, goal_extra_ns; /* at its end, as its rates are now: if it is walked */
    uint32_t factor;                    /* of its kernels' times, in 1/ORR_RATE_ONE: jitter */
    bool is_walked; /* its rate was not 1 all the time: closed form does not hold */
} OrrProgress;

/* What most events of a rank touch comes first, a cache line; then what passes and rates do. */
typedef struct {
    uint32_t rate[2]; /* of its kernels: the least of outer and what inner leaves */
    uint8_t resident[ORR_N_COMM_KINDS]; /* external kernels on the GPU that slow others */
    uint8_t inner[ORR_N_COMM_KINDS];    /* those of the island */
    uint32_t accounted;                 /* blocks whose kernels are in owner_ns */
    int64_t sync_ns;                    /* when the last host synchronisation returned */
    uint32_t sync_index;                /* item that it waited for; ORR_NONE before the first */
    uint8_t sync_stream;                /* its stream */
    OrrProgress progress;
} __attribute__((aligned(64))) OrrRank;

typedef struct {
    int64_t end_ns;
    uint32_t index;
    uint32_t cause; /* record of the item, for the path */
} OrrPastEnd;

/* Ends of items of a local stream that one external stream will ask for, oldest first: past.c. */
typedef struct {
    OrrPastEnd *entry;           /* ring; NULL while the capacity is 0 */
    uint32_t first, n, capacity; /* a power of two */
} OrrOwnPast;
#define ORR_JOINT_ENDS 2u
typedef struct {
    uint32_t index[ORR_JOINT_ENDS];
    uint32_t n_own;                     /* entries that members keep by themselves */
    uint16_t n_lacking[ORR_JOINT_ENDS]; /* members that have yet to end the item */
    uint8_t first, n;                   /* ring */
} OrrJointPast;
typedef struct {
    uint32_t n; /* pairs of a stream and an asker */
    uint8_t of[ORR_N_STREAMS]
              [ORR_N_STREAMS]; /* of what stream for which: below n; UINT8_MAX: none */
    OrrOwnPast *own;           /* [n_ranks * n] */
    OrrJointPast *joint;       /* [n_islands * n] what members have ended at one place */
    int64_t *end_ns; /* [n_islands * n * ORR_JOINT_ENDS * n_members]; INT64_MIN: not yet */
    uint32_t *cause; /* the same; NULL: no path is wanted */
} OrrPasts;

/* Ranks that meet in private collectives only (a TP group in its NVLink domain) and so can be ahead
 * of the rest: their local events have a queue of their own, in order of time, and run ahead of the
 * global clock until a rank waits for an external communication or one that slows kernels is, or
 * may be, under way. */
typedef struct {
    OrrQueue queue;
    int64_t queued_ns;   /* time of its valid entry in the global queue; INT64_MAX: none */
    int64_t unstable_ns; /* first launch ahead of a communication that slows kernels */
    uint32_t generation; /* of that entry */
    uint32_t n_ranks;
    const uint32_t *ranks; /* first, where it is alone */
    uint32_t first;
    uint32_t n_held;     /* local streams that wait for external ones */
    uint16_t n_unstable; /* external communications under way that slow kernels */
    uint16_t n_pending;  /* the same, to be launched ahead */
} __attribute__((aligned(64))) OrrIsland;

G_STATIC_ASSERT(sizeof(OrrIsland) == 64);

/* A communicator of one group, or a directed pair on a communicator: two cache lines. Sends that
 * go as one (convoy_joint.c) touch the first. */
typedef struct {
    int64_t arrived_ns;
    union {
        int64_t from_ns; /* is_booked: when the bytes begin to move */
        uint32_t flow;   /* is_flowing */
    };
    int64_t due_ns; /* when the transfer ends, as far as is known */
    OrrPair pair;
    uint32_t what; /* collective, or part of the sender */
    uint32_t last_rank;
    uint32_t ends[2]; /* ranks of a pair: source, destination */
    uint32_t convoy;  /* of a pair; ORR_NONE: none */
    uint8_t group, is_pair, is_flowing, is_eager;
    uint8_t stream, receive_stream; /* of the members, or of sender and receiver */
    uint8_t is_booked;              /* its transfer has room on all its links, see room.c */
    uint8_t is_convoyed;            /* it ends with its convoy, see convoy.c */
    uint8_t is_waiting;             /* for the rest of its convoy */
    uint8_t is_over;                /* in the fluid, in this instant */
    uint8_t
        is_held; /* its last transfer, told of late, keeps its room for the next in this event */
    uint8_t is_narrow; /* in the fluid on the links that it shares with its convoy only */

    int64_t queued_ns; /* of its event in the queue, perhaps before due_ns; INT64_MAX: none */
    /* what never changes, out of the bound program: an event asks for all of it */
    const OrrPlan *plans; /* [colls or parts of the program] */
    const OrrUse *uses;   /* of a pair, NULL: none */
    uint32_t n_uses;
    uint32_t index; /* group, or group * n_pairs + pair */
    uint32_t eager_delivered, generation;
    uint32_t booked_top;    /* as `top`, of what has room, or holds it, by itself */
    uint32_t top, top_what; /* in OrrExec.tops, for this part or collective; ORR_NONE: not known */
    OrrMeeting meeting;
} __attribute__((aligned(128))) OrrPlace;

G_STATIC_ASSERT(sizeof(OrrPlace) == 128 && offsetof(OrrPlace, queued_ns) == 64);

/* A transfer at the highest rate that its links and its plan allow. */
typedef struct {
    uint64_t bytes_per_s;
    uint64_t bytes;
    uint64_t scale; /* its share, as the fluid has it */
    int64_t ns;     /* INT64_MAX: never */
} OrrTop;

/* Sends that have room on a link, if that is counted; how many others it is left to first. */
typedef struct {
    uint32_t n_booked, penalty;
} OrrLinkRoom;

typedef struct {
    double count, transfer_ns, wait_ns,
        exposed_ns; /* weighted sums of whole nanoseconds: exact below 2^53 */
} OrrCommSum;

/* What becomes of a change of the rate of a rank's kernels by external communication. */
typedef enum {
    ORR_RATE_NOW,     /* it is theirs at once */
    ORR_RATE_BEGUN,   /* noted: its pass has begun, but is not evaluated yet */
    ORR_RATE_ENTERED, /* noted: its pass is evaluated again */
    ORR_RATE_REPLAYED /* noted: it comes to them after those noted before */
} OrrRateState;

/* When the streams of a rank had all that their pass needs from outside, compute and TP. */
typedef struct {
    int64_t begin_ns[2];
    uint32_t key[2];   /* call of which that is known */
    uint32_t cause[2]; /* stream that was waited for last; itself: none */
    uint32_t index[2]; /* item of it */
    uint32_t made[2];  /* record of that, for the path */
    OrrEnded blocker;  /* communication that TP waited for, if it did */
    int64_t blocker_end_ns;
    uint32_t outer[2];     /* rates of its kernels then */
    uint32_t first_change; /* and later ones: those of the rank from here on */
} OrrBegin;

/* The same as it is kept, [n_ranks] each: what is asked of all members lies side by side. */
typedef struct {
    uint32_t first_change;
    uint8_t cause[2];
    uint8_t state; /* OrrRateState */
} OrrBeginState;
typedef struct {
    int64_t (*begin_ns)[2];
    uint32_t (*key)[2];
    uint32_t (*index)[2];
    uint32_t (*made)[2]; /* NULL: no path is wanted */
    OrrBeginState *state;
    OrrEnded *blocker; /* if TP waited for another stream: communication that ended at its begin */
} OrrBegins;

/* When a rank came to a collective in a step: to the call that its group waited at longest, the
 * last one of equals. */
typedef struct {
    int64_t at_ns;
    int64_t wait_ns; /* of all ranks that the members stand for */
    uint32_t step;   /* plus 1; 0: never */
} OrrLaunch;

typedef struct OrrPasses OrrPasses;
typedef struct OrrJitter OrrJitter;
typedef struct OrrCauses OrrCauses;
typedef struct OrrConvoys OrrConvoys;
#define ORR_MAX_ISLAND 128u /* ranks; larger groups are external */
#define ORR_WINDOWS 8       /* at least the steps that islands can be apart */
#define ORR_LAUNCH_STEPS 4u /* the one that is told, and what ranks are ahead of it */

/* Where a rank's part of its island's block is. */
typedef struct {
    uint32_t line; /* of ORR_LINE bytes: first of the block */
    uint32_t member;
} OrrHome;

/* The blocks of all islands, and where the array of each kind is in one, in bytes. */
typedef struct {
    char *bytes;
    OrrHome *homes;   /* [n_ranks] */
    uint32_t n_slots; /* streams that are used times members */
    uint32_t block_bytes;
    uint32_t free_ns, start_ns, arrived_ns, lanes, waiting, preds, generations, ended, blockers,
        causes;
    uint32_t owner_ns, idle_from_ns, host_base_ns, outer, n_synced;
} OrrStore;

typedef struct {
    const OrrBound *bound;
    const OrrExecOptions *options;
    OrrCompiled *compiled;
    OrrQueue queue; /* external events and islands */
    OrrIsland *islands;
    uint32_t n_islands;
    uint32_t next_island;               /* to be run before the next event; ORR_NONE: none */
    uint8_t is_external[ORR_N_STREAMS]; /* streams whose meetings leave the island */
    uint16_t external_mask;             /* the same, a bit each */
    uint8_t is_local_group[ORR_N_GROUPS];
    OrrPasts pasts;
    uint16_t
        charged_mask;    /* streams for whose communication the compute stream or the host waits */
    uint16_t ended_mask; /* those, and streams that they wait for */
    bool is_ahead;       /* an island is being run */
    OrrPasses *passes;   /* NULL: every pass event by event */
    OrrJitter *jitter;   /* NULL: none, or drawn */
    OrrJitter *draws;    /* NULL: no jitter, or its mean */
    int64_t global_ns;   /* of the global queue; now_ns is that of the event in hand */
    OrrFluid *fluid;     /* NULL: no link can saturate */
    bool is_fluid_dirty;
    OrrLinkRoom *link_room; /* [n_links] */
    /* a bit a link: of those that many pairs use bookings are counted; those with a penalty */
    uint64_t *counted_links, *left_links;
    uint32_t *link_first; /* [n_links + 1] into link_place: pairs that use the link */
    uint32_t *link_place;
    OrrTop *tops;
    uint32_t n_tops;
    uint64_t n_booked; /* transfers that needed no fluid */
    int64_t now_ns;
    uint32_t max_steps, n_places;
    OrrRank *ranks;
    /* What belongs to the members of an island lies in one block: see store.c. */
    OrrStore store;
    uint32_t *island_of;            /* [n_ranks] */
    uint32_t row_at[ORR_N_STREAMS]; /* of a stream, slots beyond the first */
    uint32_t n_members;             /* room in each row: a power of two */
    OrrPlace *places;
    uint8_t *is_early;                      /* [n_p2ps] launches are told ahead of their times */
    uint32_t coll_place[ORR_N_GROUPS][256]; /* first place of (group, communicator), or ORR_NONE */
    uint32_t pair_place[ORR_N_GROUPS][256];
    int64_t *end_ns;     /* [max_steps * n_ranks] */
    int64_t *window_ns;  /* [ORR_WINDOWS * n_ranks * ORR_N_OWNERS] */
    uint32_t *to_end;    /* [max_steps] ranks that have yet to end the step */
    OrrCommSum *sums;    /* [ORR_WINDOWS * (n_colls + n_p2ps)] */
    OrrLaunch *launches; /* [ORR_LAUNCH_STEPS * n_colls * n_ranks]; NULL: none wanted */
    OrrCauses *causes;   /* NULL: no path wanted */
    bool leaves_records; /* a rank does: until then there are none to note, see cause.c */
    OrrConvoys *convoys; /* NULL: each send on its own */
    uint32_t ended_step; /* the last step that all ranks have ended, ORR_NONE at first */
    bool is_over;
    int64_t stop_ns; /* the end of the last step, which some are ahead of; INT64_MAX: not known */
    uint64_t n_events, n_taken; /* handled; taken from the global queue */
    char *mismatch;             /* two members brought different collectives */
} OrrExec;

/* Ranks are many and roles few: theirs are in the cache. */
static inline const OrrCompiledRole *orr_exec__role(const OrrExec *x, uint32_t r) {
    return &x->compiled->roles[x->bound->role[r]];
}

static inline bool orr_exec__has_bit(const uint64_t *bits, uint32_t i) {
    return bits[i / 64] >> i % 64 & 1;
}

#include "sim/exec/stored.h"

/* lane.c */
void orr_exec__try_start(OrrExec *x, uint32_t r, uint32_t s);
void orr_exec__complete(OrrExec *x, uint32_t r, uint32_t s);
void orr_exec__launch(OrrExec *x, uint32_t r, uint32_t s);
void orr_exec__settle_head(OrrExec *x, uint32_t r, uint32_t s);
void orr_exec__settle_joint(OrrExec *x, uint32_t r, uint32_t s); /* of all members */
static inline const OrrItem *orr_exec__head(const OrrExec *x, uint32_t r, uint32_t s) {
    return &x->compiled->items[orr_exec__lane(x, r, s)->head];
}
/* Notes what the head waits for, one at a time, so that its end wakes the stream: @need items of
 * stream @on; ORR_N_STREAMS: nothing. */
void orr_exec__block_on(OrrExec *x, uint32_t r, uint32_t s, uint32_t on, uint32_t need);
/* The same of all @n members of an island. */
void orr_exec__block_all_on(OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s, uint32_t on,
                            uint32_t need);
/* Whether what the head was found to wait for is still to come. */
static inline bool orr_exec__is_blocked(const OrrExec *x, uint32_t r, uint32_t s) {
    const OrrLane *l = orr_exec__lane(x, r, s);
    uint32_t q = l->blocked_on;
    return q < ORR_N_STREAMS && orr_exec__lane(x, r, q)->completed < l->need;
}
void orr_exec__wake(OrrExec *x, uint32_t r, uint32_t s);
int64_t orr_exec__host_at(const OrrExec *x, uint32_t r, uint32_t s);
/* together.c: the same for stream @s of all @n members of an island */
void orr_exec__start_all(OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s);
void orr_exec__wake_all(OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s);
/* convoy.c */
void orr_exec__convoys_new(OrrExec *x);
void orr_exec__convoys_clear(OrrExec *x);
void orr_exec__convoy_end(OrrExec *x, uint32_t convoy, uint32_t generation);
void orr_exec__convoy_leaves(OrrExec *x, uint32_t convoy, uint32_t generation);
void orr_exec__convoy_flows(OrrExec *x, uint32_t convoy, uint32_t generation);
void orr_exec__flows_ended(OrrExec *x);
void orr_exec__convoy_lands(OrrExec *x, uint32_t convoy, uint32_t generation);
void orr_exec__land(OrrExec *x, uint32_t island);
void orr_exec__tell_over(OrrExec *x, uint32_t island);
void orr_exec__lose_room(OrrExec *x, uint32_t place);
/* convoy_joint.c: convoys that have the link in a row hold room no more as one; are no more one in
 * the fluid; @place does not hold room as one with others */
/* A link of the convoy's is taken: whether its transfers, if they have room as one, lost that as
 * one. */
bool orr_exec__convoy_loses_room(OrrExec *x, uint32_t convoy);
/* convoy_rows.c. Whether room is held on the links that only one of the place's convoy uses. */
bool orr_exec__has_rows(const OrrExec *x, const OrrPlace *place);
/* Its transfer, @flow, starts in the fluid, which need not know of those; that is over there. */
void orr_exec__narrow(OrrExec *x, OrrPlace *place, OrrFlow *flow);
void orr_exec__leave_rows(OrrExec *x, OrrPlace *place);
/* convoy_joint.c */
void orr_exec__part_rooms_on(OrrExec *x, uint32_t link);
void orr_exec__split_on(OrrExec *x, uint32_t link);
void orr_exec__part_room_of(OrrExec *x, const OrrPlace *place);
/* passes.c */
void orr_exec__passes_new(OrrExec *x);
void orr_exec__passes_clear(OrrExec *x);
/* pass.c */
bool orr_exec__begins_pass(const OrrExec *x, uint32_t r, uint32_t s);
bool orr_exec__begun(const OrrExec *x, uint32_t r, uint32_t s, OrrBegin *begin);
void orr_exec__disturb_pass(OrrExec *x, uint32_t r);
/* check_in.c */
void orr_exec__check_in(OrrExec *x, uint32_t r, uint32_t s);
/* For all members of an island whose compute and TP streams may be at the begin of the same pass
 * and may have all that they wait for: as orr_exec__try_start of each. False: they are not there,
 * nothing has been done. */
bool orr_exec__check_in_all(OrrExec *x, uint32_t island);
/* rates.c */
bool orr_exec__note_rate(OrrExec *x, uint32_t r, bool is_outer, const uint32_t rate[2]);
void orr_exec__rate_event(OrrExec *x, uint32_t r);
void orr_exec__look(OrrExec *x, uint32_t r);
/* take.c */
void orr_exec__pass(OrrExec *x, uint32_t r, uint32_t generation);
/* lanes.c */
void orr_exec__store_new(OrrExec *x, const OrrBoundGroup *tp);
void orr_exec__store_clear(OrrExec *x);
/* island.c */
void orr_exec__islands_new(OrrExec *x);
void orr_exec__islands_clear(OrrExec *x);
void orr_exec__push_local(OrrExec *x, uint32_t r, int64_t time_ns, uint32_t class,
                          uint32_t generation, uint32_t id);
void orr_exec__run_island(OrrExec *x, uint32_t island);
void orr_exec__catch_up_island(OrrExec *x, uint32_t island);
/* A local stream begins or ceases to wait for an external one. */
void orr_exec__hold(OrrExec *x, uint32_t r, uint32_t s, bool is_held);
void orr_exec__hold_all(OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s, bool is_held);
void orr_exec__will_launch(OrrExec *x, uint32_t r, int64_t start_ns, uint32_t purpose);
void orr_exec__unstable(OrrExec *x, uint32_t r, uint32_t purpose, int change);
static inline bool orr_exec__slows_kernels(const OrrExec *x, uint32_t purpose) {
    return x->bound->rate[0][purpose] < ORR_RATE_ONE || x->bound->rate[1][purpose] < ORR_RATE_ONE;
}
/* past.c */
void orr_exec__pasts_new(OrrExec *x);
void orr_exec__pasts_clear(OrrExec *x);
void orr_exec__remember(OrrExec *x, uint32_t r, uint32_t s, uint32_t item, OrrPastEnd end);
void orr_exec__remember_all(OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s,
                            uint32_t asker, uint32_t index, const int64_t *ends_ns,
                            const uint32_t *causes);
bool orr_exec__recall(const OrrExec *x, uint32_t r, uint32_t s, uint32_t asker, uint32_t index,
                      OrrPastEnd *end);
/* The same of the members of the island of @r, side by side, and their records; NULL: no end is
 * kept of any. False: they must be asked for one by one. */
bool orr_exec__recall_all(const OrrExec *x, uint32_t r, uint32_t s, uint32_t asker, uint32_t index,
                          const int64_t **ends_ns, const uint32_t **causes);
/* block.c */
void orr_exec__block_start(OrrExec *x, uint32_t r, const OrrItem *item, int64_t start_ns);
void orr_exec__block_end(OrrExec *x, uint32_t r, uint32_t s, const OrrItem *item);
void orr_exec__resident(OrrExec *x, uint32_t r, uint32_t s, uint32_t purpose, int change);
void orr_exec__rate(OrrExec *x, uint32_t r);
void orr_exec__lower_rate(const OrrExec *x, uint32_t r, bool is_inner, uint32_t rate[2]);
/* meet.c */
void orr_exec__places_new(OrrExec *x);
void orr_exec__used_comms(const OrrProgram *program, uint32_t kind, bool has_coll[256],
                          bool has_pair[256]);
void orr_exec__ordered_comms(const OrrBound *bound, bool is_ordered[ORR_N_GROUPS][256]);
bool orr_exec__arrive_early(OrrExec *x, uint32_t r, uint32_t s, const OrrItem *item,
                            int64_t start_ns);
void orr_exec__arrive(OrrExec *x, uint32_t r, uint32_t s, const OrrItem *item);
uint32_t orr_exec__pair_of(const OrrExec *x, uint32_t r, const OrrP2pPart *part);
bool orr_exec__meet_pair(OrrExec *x, OrrPlace *place, uint32_t r, uint32_t s, uint32_t part,
                         int64_t at_ns);
void orr_exec__begin_transfer(OrrExec *x, uint32_t place, int64_t arrived_ns);
void orr_exec__flow_start(OrrExec *x, uint32_t place);
void orr_exec__comm_end(OrrExec *x, uint32_t place);
void orr_exec__pair_over(OrrExec *x, uint32_t place, const OrrPlan *plan);
void orr_exec__leave_fluid(OrrExec *x, OrrPlace *place);
void orr_exec__flow_ended(void *data, uint32_t activity, uint32_t owner);
uint32_t orr_exec__purpose(const OrrExec *x, const OrrItem *item, bool *takes_sms);
static inline const OrrPlan *orr_exec__plan(const OrrPlace *place) {
    return &place->plans[place->what];
}
const OrrUse *orr_exec__uses(const OrrExec *x, const OrrPlace *place, const OrrPlan *plan,
                             uint32_t *n);
void orr_exec__push_end(OrrExec *x, uint32_t place, int64_t end_ns);
void orr_exec__forget_end(OrrExec *x, uint32_t place);
bool orr_exec__is_due(OrrExec *x, uint32_t place, int64_t now_ns);
int64_t orr_exec__private_ns(const OrrPlan *plan);
const OrrPlan *orr_exec__private_plan(const OrrExec *x, uint32_t kind, uint32_t group,
                                      uint32_t coll);
void orr_exec__share(OrrExec *x, uint32_t place, int64_t ahead_ns);
/* room.c */
void orr_exec__rooms_new(OrrExec *x);
void orr_exec__rooms_clear(OrrExec *x);
bool orr_exec__book(OrrExec *x, uint32_t place, int64_t from_ns);
bool orr_exec__take_room(OrrExec *x, uint32_t place, int64_t from_ns, bool is_start,
                         int64_t *end_ns);
/* Room for uses, if all their links have it; no more. @is_start: for what starts now, on links that
 * are left to the fluid for a while, too. */
bool orr_exec__reserve(OrrExec *x, const OrrReserve *r, bool is_start);
void orr_exec__unreserve(OrrExec *x, const OrrReserve *r);
/* The links are used by a transfer in the fluid. */
void orr_exec__pass_by(OrrExec *x, const OrrUse *uses, uint32_t n);
/* The same of one link. */
void orr_exec__pass_link(OrrExec *x, uint32_t link);
const OrrTop *orr_exec__top(OrrExec *x, OrrPlace *place);
void orr_exec__empty_link(void *data, uint32_t link);
OrrReserve orr_exec__room_of(const OrrExec *x, const OrrPlace *place);
void orr_exec__count_booked(OrrExec *x, const OrrReserve *r, int change);
void orr_exec__room_prefetch(const OrrExec *x, const OrrPlace *place);
void orr_exec__room_give(OrrExec *x, uint32_t place);
void orr_exec__room_hold(OrrExec *x, uint32_t place);
/* fetch.c: what the next event of the queue will touch */
void orr_exec__fetch_next(const OrrExec *x);
/* Of members of a collective of stream @s that ends, that behind the first of the @n in @list. */
void orr_exec__fetch_members(const OrrExec *x, const uint32_t *list, uint32_t n, uint32_t s);
/* exec.c */
void orr_exec__handle(OrrExec *x, const OrrEvent *e);
void orr_exec__show(const OrrExec *x, const OrrSpan *span);
/* account.c */
OrrOwner orr_exec__wait_owner(const OrrExec *x, const OrrEnded *e);
void orr_exec__idle(OrrExec *x, uint32_t r, uint32_t cause, int64_t ready_ns, int64_t start_ns);
/* The same of all members of an island, which begin when they are ready. */
void orr_exec__idle_all(OrrExec *x, const uint32_t *list, uint32_t n, const uint32_t *cause,
                        const int64_t *ready_ns);
void orr_exec__comm_sum(OrrExec *x, uint32_t r, uint32_t s, const OrrItem *item);
void orr_exec__step_end(OrrExec *x, uint32_t r, uint32_t s, uint32_t step);
void orr_exec__result(OrrExec *x, OrrExecResult *result);
static inline uint32_t orr_exec__sum_index(const OrrExec *x, uint8_t type, uint32_t what) {
    return type == ORR_ITEM_COLL ? what : x->bound->program->n_colls + what;
}
static inline OrrCommSum *orr_exec__sum_of(const OrrExec *x, uint32_t step, const OrrItem *item) {
    uint32_t n = x->bound->program->n_colls + x->bound->program->n_p2ps;
    return &x->sums[(step % ORR_WINDOWS) * n + orr_exec__sum_index(x, item->type, item->what)];
}
static inline OrrLaunch *orr_exec__launch_of(const OrrExec *x, uint32_t r, uint32_t step,
                                             uint32_t coll) {
    gsize row = (gsize)(step % ORR_LAUNCH_STEPS) * x->bound->program->n_colls + coll;
    return &x->launches[row * x->bound->n_ranks + r];
}
/* Whether no call of collective @coll in the step so far cost the group of @r more than @wait_ns.
 */
static inline bool orr_exec__is_longest(const OrrExec *x, uint32_t r, uint32_t step, uint32_t coll,
                                        int64_t wait_ns) {
    const OrrLaunch *launch = orr_exec__launch_of(x, r, step, coll);
    return launch->step != step + 1 || wait_ns >= launch->wait_ns;
}
/* path.c */
void orr_exec__path(const OrrExec *x, int64_t begin_ns, int64_t end_ns, uint32_t step,
                    int64_t path_ns[ORR_N_PATH_OWNERS]);

#endif
