/* Passes that an island takes as a whole; private to sim/exec. */
#ifndef ORR_EXEC_PASS_H
#define ORR_EXEC_PASS_H

#include "sim/base/large.h"
#include "sim/exec/exec_priv.h"

#define ORR_PASS_LANES 2 /* 0: compute, 1: TP */
static const uint32_t orr_pass_lane[ORR_PASS_LANES] = {ORR_STREAM_COMPUTE, ORR_STREAM_TP};

#define ORR_PASS_WHOLE 1u /* a call that can be taken to its end at once */
#define ORR_PASS_OPEN 2u  /* also beside communication that slows kernels */

/* From @at_ns on kernels of the rank run at @rate. */
typedef struct {
    int64_t at_ns;
    uint32_t rank;
    uint32_t rate[2];
    bool is_due; /* its kernels go event by event and have yet to come to it */
} OrrRateChange;

/* What a collective of a pass cost a member. */
typedef struct {
    int64_t transfer_ns, wait_ns, exposed_ns;
} OrrPassWait;

/* A member while the recursion runs, and what has come out for it; times are absolute. */
typedef struct {
    uint32_t rank;
    uint32_t same_as; /* first member that is equal in all: only that is evaluated */
    const OrrBegin *begin;
    const OrrBlockTime *times;
    const int64_t *kernel_ns;
    uint32_t outer[2];      /* rates of its kernels but for the pass' own collectives */
    uint32_t change;        /* the next change of those, */
    int64_t change_ns;      /* and when that is; INT64_MAX: never */
    int64_t free_ns;        /* compute: end of the last block */
    int64_t tp_free_ns;     /* end of the last collective */
    int64_t start_ns;       /* launch of the collective in hand */
    uint32_t done;          /* blocks */
    OrrEnded last, blocker; /* the last collective, what that had waited for */
    int64_t blocker_end_ns;
    OrrEnded next_blocker; /* of the collective in hand */
    int64_t next_blocker_end_ns;
    /* the block in flight, when the rate of kernels has changed in it */
    bool is_walking;
    uint32_t kernel;
    int64_t block_start_ns, at_ns;
    bool has_waited; /* the block in hand, for a collective */
    uint64_t left;
    uint32_t n_touched; /* owners with time */
    uint8_t touched[ORR_N_OWNERS];
    int64_t owner_ns[ORR_N_OWNERS];
    int64_t *end_ns[ORR_PASS_LANES];      /* [most_items] */
    OrrPassWait *waits;                   /* [most_items], by collective */
    uint32_t outside_index, outside_step; /* of sums: exposed before the pass' first collective */
    int64_t outside_ns;
} OrrPassMember;

/* A member when its pass began, and how far outside that has been told of. */
typedef struct {
    OrrBegin begin;
    int64_t tp_free_ns;
    OrrEnded last;   /* collective before */
    uint32_t n_told; /* blocks whose ends are known to the streams of the rank */
} OrrPassStart;

/* What a member does in the tail of a pass; times count from its begin. */
typedef struct {
    int64_t *owner_ns;  /* [n_owners] */
    int64_t *launch_ns; /* [n_colls], if launches are wanted */
} OrrTailMember;

/* Of a tail: what is charged for it. */
typedef struct {
    const OrrItem *colls; /* its collectives, n_colls */
    uint32_t n_colls, n_owners;
    uint8_t owner[ORR_N_OWNERS];
    OrrCommSum *sums; /* [n_colls] of all members, as OrrExec.sums */
    int64_t *wait_ns; /* [n_colls] the same, of the ranks that are executed for */
    OrrTailMember *rows;
} OrrTailCharge;

/* What comes after the meeting of a pass: see tail.c. A pass asks for this cache line, and for what
 * lies behind it: the row of each member, [n_rows] head_ns, and what it takes. */
typedef struct {
    uint32_t first_block, first_coll;
    uint32_t n_rows, n_ends[ORR_PASS_LANES];
    const uint8_t *row;
    const uint32_t *item; /* [n_ends[0] + n_ends[1]] those that others ask for, and the last */
    /* [n_rows] work before the meeting if that is the first collective, then [n_ends[1]] ends of
     * collectives, then [n_rows][n_ends[0]] of blocks */
    int64_t *ns;
    int64_t transfer_ns; /* of the meeting */
    OrrTailCharge *charge;
} OrrPassTail;

/* A tail of an island. */
typedef struct {
    const OrrPassTail *tail; /* NULL: not known yet */
    int64_t begin_ns;        /* when it was taken last */
    uint32_t n;              /* how often it was taken and has not been charged */
} OrrTailsTaken;

/* Islands whose members have the same hardware, plans and weights. */
typedef struct {
    uint8_t *row; /* [members] of OrrPassTail: one for members on the same hardware */
    uint32_t n_rows;
    OrrPassTail **tails; /* [n_tails]; NULL: not known yet */
} OrrPassClass;

/* A pass that is being taken. */
typedef struct OrrPassWork OrrPassWork;
struct OrrPassWork {
    OrrPassWork *next; /* of those that are free */
    const OrrCompiledSegment *segment;
    uint32_t step, call;
    uint32_t n;      /* members */
    uint32_t cause;  /* record with its begins, for the path; ORR_NONE: none yet */
    uint32_t n_told; /* of them: to their ends */
    bool is_tp_told;
    bool is_stale;           /* rates have changed since it was evaluated */
    bool is_looked_at;       /* at the end of this instant */
    bool is_bound;           /* whatever happens, nothing of it can be seen before its event */
    uint32_t tail_way;       /* record that all of the tail leads back to; ORR_NONE: not yet */
    const OrrPassTail *tail; /* of which what comes after its meeting was taken; NULL: none */
    OrrPassStart *starts;
    OrrPassMember *members;
};

/* What is waited for at the begin of a call: so many items of a stream, @in_step of which it has in
 * a step, @steps_back. */
typedef struct {
    uint32_t stream, n, in_step, steps_back;
} OrrPassNeed;
typedef struct {
    uint32_t n_lanes;  /* 1: it has no collectives */
    uint32_t n_synced; /* host synchronisations of the step before it */
    uint32_t n[ORR_PASS_LANES];
    const OrrPassNeed *needs[ORR_PASS_LANES]; /* external streams first */
} OrrPassNeeds;

/* What an island is at. */
typedef struct {
    const uint8_t *calls; /* of its role: OrrPasses.calls */
    const OrrPassNeeds *needs;
    OrrPassClass *class;
    const uint32_t *list; /* its ranks */
    uint32_t n;
    uint32_t first;        /* of them */
    uint32_t n_begun;      /* members whose pass has begun, and is not evaluated yet */
    uint32_t n_ready;      /* those that have checked in */
    uint32_t key;          /* call of those */
    uint32_t generation;   /* of the event of the pass */
    uint32_t released;     /* calls up to this one go event by event */
    uint32_t vetted;       /* call for which the host is known to be ahead */
    uint32_t tp_completed; /* collectives of a member when the last pass had ended */
    uint32_t n_changes, room;
    OrrRateChange *changes; /* in order of time */
    OrrTailsTaken *taken;   /* [n_tails] in step taken_step */
    uint32_t n_taken, taken_step;
    OrrPassWork *work; /* of the pass under way; NULL: none */
} __attribute__((aligned(64))) OrrIslandPass;

/* Of the time that a collective takes: OrrOwner. */
typedef struct {
    uint8_t wait, transfer;
} OrrPassOwners;

struct OrrPasses {
    OrrPassOwners *owners; /* [n_colls] */
    uint8_t *is_pass;      /* [n_segments] */
    uint8_t *is_open;      /* [n_segments] also beside communication that slows kernels */
    uint8_t *is_quiet;     /* [n_segments] none such is launched before its end */
    uint8_t **calls;       /* [n_roles][n_calls] ORR_PASS_ */
    /* [n_roles][n_calls] external streams that may hang on a collective of the call: the others
     * that ask for one wait for its last kernels too, which end later */
    uint16_t **tp_askers;
    uint32_t *need;  /* [items] of the other lane that must have ended */
    uint32_t *shown; /* [items] the next of its lane, or itself, that an external stream waits for,
                      * counted from the first; the number of items: none */
    uint32_t *meeting; /* [n_segments] collectives up to the meeting that a tail follows; 0: none */
    uint32_t *tail_of; /* [n_segments] of those, in OrrPassClass.tails */
    uint32_t n_tails;
    OrrPool tails, charges; /* of the classes of islands, what a pass reads apart */
    uint32_t most_items, most_members;
    uint16_t loud_mask; /* external streams with communication that slows kernels */
    OrrIslandPass *islands;
    OrrTailsTaken *taken; /* of all of them */
    OrrBegins begins;
    OrrPassNeeds **needs; /* [n_roles][n_calls] */
    OrrPassNeed *all_needs;
    OrrPassWork *whole; /* work space of passes that are taken at once */
    OrrPassWork *spare;
};

/* The parts of work space, behind it in one piece: where to fetch them ahead is known by its
 * address. [most_members], and of those [ORR_PASS_LANES][most_items] and [most_items]. */
typedef struct {
    OrrPassStart *starts;
    OrrPassMember *members;
    int64_t *ends;
    OrrPassWait *waits;
} OrrPassParts;

static inline OrrPassParts orr_pass__parts(const OrrPasses *p, const OrrPassWork *w) {
    OrrPassParts parts = {.starts = (OrrPassStart *)(w + 1)};
    parts.members = (OrrPassMember *)(parts.starts + p->most_members);
    parts.ends = (int64_t *)(parts.members + p->most_members);
    parts.waits =
        (OrrPassWait *)(parts.ends + (gsize)p->most_members * p->most_items * ORR_PASS_LANES);
    return parts;
}

static inline const OrrCompiledRole *orr_pass__role(const OrrExec *x, uint32_t r) {
    return orr_exec__role(x, r);
}
static inline const OrrItem *orr_pass__item(const OrrExec *x, const OrrCompiledSegment *cs,
                                            uint32_t s, uint32_t i) {
    return &x->compiled->items[cs->first_item[s] + i];
}
static inline OrrIslandPass *orr_pass__of(const OrrExec *x, uint32_t r) {
    return &x->passes->islands[x->island_of[r]];
}
/* Ranks of the island of @r: a TP group, or itself. */
static inline uint32_t orr_pass__members(const OrrExec *x, uint32_t r, const uint32_t **list) {
    const OrrIslandPass *pass = orr_pass__of(x, r);
    *list = pass->list;
    return pass->n;
}
/* Names a call of a role over all steps, in their order; never 0. */
static inline uint32_t orr_pass__key(const OrrExec *x, uint32_t r, const OrrLane *l) {
    return l->step * orr_pass__role(x, r)->n_calls + l->call + 1;
}

/* The call whose items of stream @s item number @count of a step is among, counted from 1. */
uint32_t orr_pass__call_of(const OrrCompiledRole *role, uint32_t s, uint32_t count);
/* Whether all members of each island do the same. */
bool orr_pass__is_one_role_each(const OrrExec *x);
bool orr_pass__is_tight(const OrrExec *x, const OrrCompiledRole *role, uint32_t c);
OrrPassWork *orr_pass__work_new(const OrrPasses *p);
/* fetch.c: what evaluating a pass in @w touches, where its members do the same. */
void orr_pass__fetch_work(const OrrPasses *p, const OrrPassWork *w);
/* Whether the host has issued all of call @key before the first of the members begins it. */
bool orr_pass__is_host_ahead(const OrrExec *x, uint32_t r, uint32_t key);
/* Whether the call can be a pass beside communication that slows kernels. */
bool orr_pass__can_be_open(OrrExec *x, uint32_t r, uint32_t key);
/* The island takes call @key, and what is before it, event by event. */
void orr_pass__release(OrrExec *x, uint32_t r, uint32_t key);
/* Changes of the rates of @r are noted from now on: its pass begins. */
void orr_pass__begin_rates(OrrExec *x, uint32_t r);
static inline void orr_pass__note_rates(OrrExec *x, const OrrIslandPass *pass, uint32_t r) {
    OrrBeginState *b = &x->passes->begins.state[r];
    b->first_change = pass->n_changes;
    b->state = ORR_RATE_BEGUN;
}
/* What has been noted of the begin of its pass. */
OrrBegin orr_pass__begin_of(const OrrExec *x, uint32_t r);
void orr_pass__begins_new(const OrrExec *x);
void orr_pass__begins_clear(const OrrExec *x);
/* The pass of @r is taken, or not to be: what was noted comes to its kernels at once, or in turn.
 */
void orr_pass__end_rates(OrrExec *x, uint32_t r, bool is_replayed);
/* Forgets changes that no pass needs any more. */
void orr_pass__trim_rates(OrrExec *x, uint32_t r);

/* check_in.c */
void orr_pass__needs_new(const OrrExec *x);
void orr_pass__needs_clear(const OrrExec *x);
/* tail.c */
void orr_pass__classes_new(OrrExec *x);
void orr_pass__classes_clear(OrrExec *x);
/* A pass of @segment is evaluated soon. */
void orr_pass__tail_prefetch(const OrrExec *x, const OrrIslandPass *pass,
                             const OrrCompiledSegment *segment);
/* That of a pass, if it is known. */
const OrrPassTail *orr_pass__tail_of(const OrrExec *x, OrrIslandPass *pass,
                                     const OrrCompiledSegment *segment);
/* The pass, evaluated but for its tail, ends with @tail. */
void orr_pass__tail_take(OrrPassWork *w, const OrrPassTail *tail);
/* The island has taken @tail in pass @w, whose members met until @begin_ns. */
void orr_pass__tail_count(OrrExec *x, OrrIslandPass *pass, const OrrPassTail *tail,
                          const OrrPassWork *w, int64_t begin_ns);
/* Charges the members of the island for the tails that they have taken. */
void orr_pass__tails_charge(OrrExec *x, OrrIslandPass *pass);
/* From a pass evaluated to its end, and what its members had been charged at its meeting, whose
 * transfer takes @transfer_ns. */
void orr_pass__tail_new(const OrrExec *x, const OrrPassWork *w, int64_t transfer_ns,
                        const int64_t (*before_ns)[ORR_N_OWNERS]);
/* Evaluates a pass that nothing slows from outside, with the tail of one before if that is known.
 */
void orr_exec__recursion_whole(const OrrExec *x, OrrPassWork *w);
/* Evaluates the pass as if nothing slowed it from outside: ends that others ask for come no
 * earlier. */
void orr_exec__recursion_least(const OrrExec *x, OrrPassWork *w);
/* Evaluates the pass, whose starts are filled in, with the changes of rates known by now. */
void orr_exec__recursion(const OrrExec *x, OrrPassWork *w, const OrrRateChange *changes,
                         uint32_t n_changes);
/* take_tail.c: takes the pass to its end, if all of it is known but its begin; but for the streams
 * that can go on then. False: it is not, nothing has been done. With records for the path its
 * starts are filled in. */
bool orr_pass__take_with_tail(OrrExec *x, OrrIslandPass *pass, OrrPassWork *w);
/* pass_sums.c */
/* Adds what its communication took to the sums. */
void orr_exec__recursion_sums(OrrExec *x, const OrrPassWork *w, const uint32_t *list);
/* In which order members came to its collectives. */
void orr_exec__recursion_meetings(OrrExec *x, const OrrPassWork *w, const uint32_t *list);

#endif
