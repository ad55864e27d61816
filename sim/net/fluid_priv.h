/* Private to sim/net: the state that fluid.c (activities come and go), joint.c (those of several
 * equal ones), row.c (their links), bundle.c (who moves alike), twins.c (links alike), watch.c
 * (which links may bind), ends.c (who ends next), settle.c and settle_all.c (rates) and
 * fluid_check.c share. */
#ifndef ORR_NET_FLUID_PRIV_H
#define ORR_NET_FLUID_PRIV_H

#include "sim/net/fluid.h"
#include "sim/net/level.h"

#include <glib.h>

__extension__ typedef __int128 OrrSlack; /* in 1/ORR_COEF_ONE bytes per second */

#define ORR_FLUID_NIL UINT32_MAX
#define ORR_FLUID_IS_BUNDLE (1u << 31) /* of an OrrEnd's id */
#define ORR_FLUID_MAX_KEY 8u           /* uses of an activity that may share a bundle: a send */
#define ORR_FLUID_WORK_PER_BYTE                                                                    \
    1000000000u /* work in 1e-9 bytes: bytes/s times ns is an integer                              \
                 */

/* While none of its links may bind it moves at its top, alone; else with its bundle. */
typedef struct {
    OrrWide finish;   /* work of its bundle at which it is over; alone: work left at since_ns */
    int64_t since_ns; /* alone */
    uint64_t top;     /* own cap, or the capacity of a link if lower */
    uint64_t top_level, scale; /* see level.h */
    uint64_t cap, bytes;
    const OrrUse *uses;
    uint32_t n_uses, first_record;
    uint32_t n_rows; /* uses behind those, of a joint activity: see joint.c; no records */
    uint32_t bundle; /* ORR_FLUID_NIL: alone */
    uint32_t at;     /* in the heap of its bundle, or in that of ends; ORR_FLUID_NIL: is over */
    uint32_t weight, owner, largest_coef, next_free;
    bool is_live;
    bool is_placed; /* alone or in a bundle */
} __attribute__((aligned(64))) OrrActivity;

/* One use of a link by an activity, in the list of that link. */
typedef struct {
    uint32_t next, prev, activity;
    uint32_t watched; /* of the use of a bundle of its own (is_own), or ORR_FLUID_NIL */
} OrrRecord;

/* Activities of one scale and top that use the same watched links alike: all stop together, so k of
 * them are one whose uses have count k. What a search asks for comes first: one cache line. */
typedef struct {
    uint64_t stop;      /* level at which it stops: the lowest of top_level and its links' */
    uint64_t next_stop; /* the lowest but for stop_link's */
    uint64_t top_level, scale, top;
    uint32_t n_uses, first_use; /* of watched links, in OrrFluid.uses */
    uint32_t stop_link;         /* link that stops it, or ORR_FLUID_NIL: its top does */
    uint32_t next_link;         /* the same of next_stop */
    bool is_live;
    bool is_moved;    /* in the list of the settle under way */
    bool has_other;   /* members have come or gone since its end was found */
    bool is_end_late; /* its end has moved later since it was found */
    bool is_own;      /* of one activity with many uses: its uses come and go, it has no key */
    OrrWide work;     /* that each member would have done since the bundle began, at since_ns */
    int64_t since_ns;
    uint64_t rate;    /* of each member */
    uint64_t ceiling; /* at least the rate: what is pledged on the links of its members */
    int64_t end_ns;   /* of the first member */
    uint32_t at;      /* in the heap of ends; ORR_FLUID_NIL: not there */
    uint32_t n_members;
    uint32_t n_heap, first_member; /* in OrrFluid.members: a heap by finish of those not over */
    uint32_t most_members;         /* so that counts fit in 32 bits */
    uint32_t weight, largest_coef;
    uint32_t hash, next_alike; /* in the table of keys; or the next free one */
    uint8_t use_class, member_class;
} __attribute__((aligned(64))) OrrBundle;

typedef struct {
    OrrWide finish;
    uint32_t activity;
} OrrMember;

/* The use of a watched link by a bundle, in the list of that link. */
typedef struct {
    uint32_t next, prev, bundle, link;
    uint32_t record; /* of an own bundle */
    uint32_t coef;
    uint64_t factor; /* of one member */
    uint64_t total;  /* of all */
} OrrWatched;

/* What a watched link wants to hear of the bundles on it. */
typedef enum {
    ORR_LINK_OPEN,  /* nothing: they could not fill it */
    ORR_LINK_QUIET, /* it stops nobody, and each has an allowance: who passes that */
    ORR_LINK_CLOSED /* each that stops elsewhere now */
} OrrLinkMode;

/* Sums over the activities on a link, in 1/ORR_COEF_ONE bytes per second. Who holds room touches
 * the first cache line (reserve.c), an activity that comes or goes the first two, a search the last
 * two. */
typedef struct {
    OrrWide potential; /* usage if all were at their tops; up to capacity, the link never binds */
    OrrWide slope;     /* usage per unit of level, were all to rise, times 2^LEVEL_BITS */
    OrrWide pledged;   /* usage if all were at their ceilings: usage is no more */
    uint64_t unit;     /* usage if all had 1 byte per second */
    uint64_t capacity : 62;  /* bytes per second */
    uint64_t is_watched : 1; /* may bind: its level is looked for */
    uint64_t is_folded : 1;  /* these sums are those of its row: see row.c */

    uint64_t shield; /* level as rings have it, no higher */
    uint64_t level;  /* at which it is full and stops those that still rise, or ORR_LEVEL_NONE */
    uint64_t goal;   /* what level should be, as the others are now */
    union {
        uint64_t key;   /* in the search `seen`: of its entry in the heap, or ORR_LEVEL_NONE */
        uint32_t local; /* in a full solve: its number */
    };
    uint32_t head, n_records;          /* activities */
    uint32_t first[2];                 /* watched: bundles of sends, of rings (is_own) */
    uint32_t n_uses;                   /* both */
    uint32_t round, seen;              /* the last look, and search, that saw it */
    uint8_t mode;                      /* OrrLinkMode */
    bool is_twin : 1;                  /* another stands in for it: twins.c */
    bool is_dirty : 1, is_relaxed : 1; /* in the lists of OrrFluid */
    bool is_raised : 1;                /* its level, at once, in the search `seen` */
    bool is_sound : 1;                 /* left and rising are those of its goal */
    bool is_later : 1;                 /* in the list of OrrFluid */
    bool has_ring : 1;                 /* among those that rise */

    OrrSlack left;    /* if is_sound: what those leave that stop below the goal */
    OrrWide rising;   /* slope of the others */
    OrrSlack slack;   /* if quiet: what the allowances leave */
    uint64_t highest; /* if is_sound: none of those below stops above that */
    uint64_t gap; /* this far above it a goal does not depend on how it was found; 0: not known */
} __attribute__((aligned(64))) OrrLinkState;

G_STATIC_ASSERT(sizeof(OrrLinkState) == 192);

/* Links side by side: what joint activities and rooms have on each of them. */
typedef struct {
    OrrWide potential, slope, pledged;
    uint64_t unit;
    uint64_t capacity : 63; /* of the lowest */
    uint64_t is_folded : 1; /* these are the sums of its links, all that there is */
    uint32_t first, n;      /* in OrrFluid.row_links */
} __attribute__((aligned(128))) OrrRow;

/* What an activity adds to the sums of a link, for each byte per second that is used there. */
typedef struct {
    uint64_t top, scale, ceiling;
} OrrLoad;

/* The same on the link. */
typedef struct {
    OrrWide potential, slope, pledged;
    uint64_t unit;
} OrrSums;

typedef struct {
    uint32_t *ids;
    uint32_t n, capacity;
} OrrIdList;

/* Blocks of 2^class entries in an array that its owner grows to @n. */
typedef struct {
    OrrIdList free[32];
    uint32_t n;
} OrrBlocks;

typedef struct {
    uint64_t key; /* level or goal, whichever is lower */
    uint32_t link;
} OrrLinkEntry;

/* The end of an activity that is alone, or of a bundle's first member, or earlier. */
typedef struct {
    int64_t end_ns;
    uint32_t id;
} OrrEnd;

/* A bundle on a link while its goal is computed. */
typedef struct {
    uint64_t stop, total;
    uint32_t bundle;
} OrrRiser;

struct OrrFluid {
    OrrLinkState *links; /* [n_links + cap_stand_ins] */
    OrrWide *link_done;  /* bytes of ended activities, in 1/ORR_COEF_ONE; NULL: not counted */
    uint32_t n_links;
    OrrRow *rows;
    uint32_t n_rows, cap_rows;
    uint32_t *row_of; /* [n_links] or ORR_FLUID_NIL; NULL: there are no rows */
    uint32_t *row_links;
    uint32_t n_row_links;
    uint32_t n_stand_ins, n_known_stand_ins, cap_stand_ins; /* links that stand for twins */
    OrrIdList free_stand_ins;
    OrrActivity *activities;
    uint32_t n_activities, cap_activities, free_activity;
    OrrRecord *records;
    OrrBlocks record_blocks;
    uint32_t cap_records;
    OrrBundle *bundles;
    uint32_t n_bundles, cap_bundles, free_bundle;
    uint64_t *live;  /* a bit for each bundle that is live */
    uint32_t *table; /* [table_mask + 1] first bundle of each hash */
    uint32_t table_mask, n_keys;
    OrrWatched *uses;
    /* [use] what its link is at, so that a bundle of many links need not visit them: its level, for
     * a ring perhaps less; one more than the rate up to which the link needs no news of the
     * bundle (its allowance), 0 if it always does, UINT64_MAX if never. */
    uint64_t *use_level, *use_free;
    OrrBlocks use_blocks;
    uint32_t cap_uses, n_uses;
    OrrMember *members;
    OrrBlocks member_blocks;
    uint32_t cap_members;
    OrrEnd *ends;
    uint32_t n_ends, cap_ends;
    OrrIdList dirty;   /* links whose goal must be computed anew */
    OrrIdList moved;   /* bundles whose rate or members may have changed */
    OrrIdList nearby;  /* links to look at next */
    OrrIdList later;   /* links to look at when the rings that moved have found their stops */
    OrrIdList watched; /* links that have become watched: their activities change bundles */
    OrrIdList relaxed; /* links that need not be watched any more, perhaps */
    OrrIdList lowered; /* bundles far below their ceilings */
    OrrIdList crowded; /* links that have become watched, where room may be held */
    OrrFluidCrowded on_crowded;
    void *crowded_data;
    OrrLinkEntry *heap;
    uint32_t n_heap, cap_heap;
    OrrRiser *risers;
    uint32_t cap_risers;
    uint32_t round, searches;
    uint32_t n_futile; /* searches lately that a solve of everything had to end */
    uint32_t n_fresh;  /* uses of watched links by activities that are new in this instant */
    int64_t now_ns;
    uint64_t lost_bytes;                       /* of activities that were ended early */
    uint64_t last_top, last_scale, last_level; /* the last division: many activities are alike */
    OrrFluidStats stats;
    OrrSolver *solver;
    struct { /* of a solve of everything */
        OrrSolveActivity *activities;
        uint64_t *rate;
        uint32_t n, cap;
        OrrUse *uses;
        uint32_t n_uses, cap_uses;
        OrrWide *capacity;
        uint64_t *level;
        uint32_t *link;
        uint32_t n_links, cap_links;
    } problem;
};

static inline uint64_t orr_fluid__factor(const OrrUse *use) {
    return (uint64_t)use->count * use->coef;
}

static inline OrrWide orr_fluid__capacity(const OrrLinkState *l) {
    return (OrrWide)l->capacity * ORR_COEF_ONE;
}

/* Could the activities of the link fill it? */
static inline bool orr_fluid__can_bind(const OrrLinkState *l) {
    return l->potential > orr_fluid__capacity(l);
}

/* Twice what the rounding of rates (1 byte per second each) and of the level may hide: kept free
 * where nobody is said to be stopped without a search. */
static inline OrrWide orr_fluid__margin_of(uint64_t unit, OrrWide slope) {
    return 2 * (unit + (slope >> ORR_LEVEL_BITS) + 1);
}
static inline OrrWide orr_fluid__margin(const OrrLinkState *l) {
    return orr_fluid__margin_of(l->unit, l->slope);
}

/* Could the activities of the link fill it with what is pledged to them? If not its level is
 * ORR_LEVEL_NONE whatever they do below their ceilings. */
static inline bool orr_fluid__may_bind(const OrrLinkState *l) {
    return orr_fluid__can_bind(l) && l->pledged + orr_fluid__margin(l) > orr_fluid__capacity(l);
}

void orr_fluid__grow_list(OrrIdList *list); /* fluid.c */
static inline void orr_fluid__push(OrrIdList *list, uint32_t id) {
    if (list->n == list->capacity)
        orr_fluid__grow_list(list);
    list->ids[list->n++] = id;
}

/* The first live bundle from @id on; n_bundles: there is none. */
static inline uint32_t orr_fluid__live_from(const OrrFluid *f, uint32_t id) {
    uint32_t n_words = (f->n_bundles + 63) / 64, word = id / 64;
    uint64_t bits = word < n_words ? f->live[word] & UINT64_MAX << id % 64 : 0;
    while (bits == 0 && ++word < n_words)
        bits = f->live[word];
    return bits == 0 ? f->n_bundles : 64 * word + (uint32_t)__builtin_ctzll(bits);
}

/* Puts it on the list of those whose rate or members may have changed. */
static inline void orr_fluid__move(OrrFluid *f, uint32_t bundle) {
    if (f->bundles[bundle].is_moved)
        return;
    f->bundles[bundle].is_moved = true;
    orr_fluid__push(&f->moved, bundle);
}

/* Where a bundle stops, as its links see it. */
typedef struct {
    uint64_t stop, next_stop;
    uint32_t stop_link;
} OrrStop;

static inline OrrStop orr_fluid__stop_of(const OrrBundle *b) {
    return (OrrStop){b->stop, b->next_stop, b->stop_link};
}

static inline bool orr_fluid__is_stop(const OrrBundle *b, const OrrStop *stop) {
    return b->stop == stop->stop && b->stop_link == stop->stop_link &&
           b->next_stop == stop->next_stop;
}

/* Where the bundle would stop without the link. */
static inline uint64_t orr_fluid__stop_without(const OrrBundle *b, uint32_t link) {
    return b->stop_link == link ? b->next_stop : b->stop;
}

/* The rate that belongs to where it stops. */
static inline uint64_t orr_fluid__rate_at(const OrrBundle *b, uint64_t stop) {
    return stop >= b->top_level ? b->top : orr_level__rate(b->scale, stop);
}

static inline uint32_t orr_fluid__class(uint32_t n) {
    return n <= 1 ? 0 : 32 - (uint32_t)__builtin_clz(n - 1);
}

static inline bool orr_fluid__is_stand_in(const OrrFluid *f, uint32_t link) {
    return link >= f->n_links;
}

/* fluid.c */
uint32_t orr_fluid__take_block(OrrBlocks *blocks, uint32_t class);
void orr_fluid__give_block(OrrBlocks *blocks, uint32_t class, uint32_t first);
void orr_fluid__mark_dirty(OrrFluid *f, uint32_t link);
/* The same for all links of the activity's bundle that ask where each member stops: it has come
 * there. A stand-in has one member whoever comes. */
void orr_fluid__mark_closed(OrrFluid *f, const OrrActivity *a);
/* What the activity, with so many rows, uses of the link; cost: a visit of its uses. */
OrrWide orr_fluid__factor_on(const OrrFluid *f, const OrrActivity *a, uint32_t n_rows,
                             uint32_t link);
/* Work that the activity has yet to do, now. */
OrrWide orr_fluid__left(const OrrFluid *f, const OrrActivity *a);
/* Adds an activity; and puts it on its links, with @left to do. */
uint32_t orr_fluid__add(OrrFluid *f, const OrrFlow *flow);
void orr_fluid__begin(OrrFluid *f, uint32_t activity, uint32_t n_rows, OrrWide left);
/* Takes it off its links; what it had left to do. */
OrrWide orr_fluid__remove(OrrFluid *f, uint32_t activity);
uint64_t orr_fluid__ceiling(const OrrFluid *f, const OrrActivity *a);
/* joint.c: the activity comes to its rows, or leaves them. */
void orr_fluid__join_rows(OrrFluid *f, uint32_t activity, uint32_t n_rows);
void orr_fluid__leave_rows(OrrFluid *f, OrrActivity *a);
/* row.c: a link of a folded row has sums of its own from now on. */
void orr_fluid__unfold(OrrFluid *f, uint32_t link);
static inline OrrLinkState *orr_fluid__link(OrrFluid *f, uint32_t link) {
    if (f->links[link].is_folded)
        orr_fluid__unfold(f, link);
    return &f->links[link];
}
/* Its row, if it has one, looks at its capacity. */
void orr_fluid__row_capacity(OrrFluid *f, uint32_t link);
void orr_fluid__row_add(OrrFluid *f, const OrrUse *use, const OrrLoad *load);
void orr_fluid__row_sub(OrrFluid *f, const OrrUse *use, const OrrLoad *load);
void orr_fluid__row_pledge(OrrFluid *f, const OrrUse *use, uint64_t from, uint64_t to);
/* Whether none of its links is watched, or may bind then. */
bool orr_fluid__row_has_room(const OrrFluid *f, const OrrUse *use, const OrrLoad *load);
bool orr_fluid__row_is_watched(const OrrFluid *f, uint32_t row);
void orr_fluid__row_watch_full(OrrFluid *f, uint32_t row);
/* bundle.c: puts an activity whose links pledge it @ceiling where it belongs, which may raise that;
 * takes it out, with finish then the work left. */
void orr_fluid__place(OrrFluid *f, uint32_t activity, uint64_t ceiling);
void orr_fluid__unplace(OrrFluid *f, uint32_t activity);
void orr_fluid__add_use(OrrFluid *f, uint32_t bundle, uint32_t record, const OrrUse *use);
void orr_fluid__drop_use(OrrFluid *f, uint32_t use);
/* twins.c: the record of the ring that shares the watched link with the activity, if that is to be
 * a twin; ORR_FLUID_NIL: it can't be. */
uint32_t orr_fluid__ring_beside(const OrrFluid *f, const OrrActivity *a, uint32_t link);
/* Whether the link of a bundle's use, or what it stands for, is like one with the ring of @record.
 */
bool orr_fluid__is_twin_of(const OrrFluid *f, uint32_t use, uint32_t link, uint32_t record);
/* The bundle of the use is to have more members: its link is a twin from now on, if it is none. */
void orr_fluid__begin_stand_in(OrrFluid *f, uint32_t use);
/* The bundle of the use is gone; it has no more to stand for, when all is settled. */
void orr_fluid__leave_stand_in(OrrFluid *f, const OrrBundle *b, uint32_t use);
void orr_fluid__end_stand_in(OrrFluid *f, uint32_t stand_in);
/* Its send is in a bundle that has a stand-in for it, and the ring of @record is on that. */
void orr_fluid__make_twin(OrrFluid *f, uint32_t link, uint32_t record);
/* The send, which has been taken out, has its links to itself: they are twins no more. */
void orr_fluid__end_twins(OrrFluid *f, const OrrActivity *a);
/* The activity is to come to its links, or to go: sends on those that are twins are placed anew. */
void orr_fluid__part_twins(OrrFluid *f, const OrrActivity *a);
/* watch.c: to where it belongs now; if it stops elsewhere there its links hear of it. */
void orr_fluid__place_anew(OrrFluid *f, uint32_t activity);
void orr_fluid__pledge(OrrFluid *f, const OrrActivity *a, uint64_t from, uint64_t to);
/* Watches the link, if what is pledged on it brings it over. */
bool orr_fluid__watch_if_full(OrrFluid *f, uint32_t link);
/* The same of all links of the activity. */
bool orr_fluid__watch_full(OrrFluid *f, const OrrActivity *a);
/* What the activity's rate will hardly exceed, as its links are now. */
uint64_t orr_fluid__guess(const OrrFluid *f, const OrrActivity *a);
/* The activities of links that have become watched change bundles. */
void orr_fluid__rebundle(OrrFluid *f);
/* Raises ceilings that rates have passed; whether that gave anything to solve. */
bool orr_fluid__raise(OrrFluid *f);
void orr_fluid__relax(OrrFluid *f, uint32_t link);
/* Whether a ceiling is so high above a rate that it is worth the visits to lower it. */
bool orr_fluid__is_far_below(uint64_t rate, uint64_t ceiling);
/* Lowers ceilings and drops links from sight, when all is settled. */
void orr_fluid__lower(OrrFluid *f);
/* reserve.c: whoever holds room on crowded links leaves them. */
void orr_fluid__clear_crowded(OrrFluid *f);
/* ends.c: the activity's end or the bundle's is at @end_ns (INT64_MAX: not known); out of the list.
 */
void orr_fluid__set_end(OrrFluid *f, uint32_t id, int64_t end_ns);
void orr_fluid__no_end(OrrFluid *f, uint32_t id);
void orr_fluid__find_end(OrrFluid *f, uint32_t bundle);
void orr_fluid__progress(OrrBundle *b, int64_t now_ns);
int64_t orr_fluid__end_of(OrrWide left, uint64_t rate, int64_t since_ns);
void orr_fluid__add_member(OrrFluid *f, OrrBundle *b, uint32_t activity);
void orr_fluid__drop_member(OrrFluid *f, OrrBundle *b, uint32_t activity);
/* goal.c: finds where the bundle stops from the levels of its links. */
void orr_fluid__find_stop(OrrFluid *f, OrrBundle *b);
/* Opens or closes a watched link, if its potential asks for that. */
void orr_fluid__open_or_close(OrrFluid *f, uint32_t link);
/* The link, which stops nobody, has become watched. */
void orr_fluid__close(OrrFluid *f, uint32_t link);
/* One member of @factor more of the use, or one less. */
void orr_fluid__count_in(OrrFluid *f, uint32_t use);
void orr_fluid__count_out(OrrFluid *f, uint32_t use);
/* The bundle has stopped at @rate elsewhere, which is above its allowance: grants it more if
 * the others' allowances leave that. */
bool orr_fluid__allow(OrrFluid *f, uint32_t use, uint64_t rate);
/* Finds the goal of the link, as the others stop now. */
void orr_fluid__find_goal(OrrFluid *f, uint32_t link);
/* The same where all that has changed since the last is in `left`. */
void orr_fluid__renew_goal(OrrFluid *f, uint32_t link);
/* Gives allowances, if the link stops nobody. */
void orr_fluid__be_quiet(OrrFluid *f, uint32_t link);
/* settle_all.c: solves for all bundles. */
void orr_fluid__settle_all(OrrFluid *f);

#endif
