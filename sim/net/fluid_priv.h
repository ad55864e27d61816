/* Private to sim/net: the state that fluid.c (changes), settle.c and settle_all.c (rates)
 * and fluid_check.c share. */
#ifndef ORR_NET_FLUID_PRIV_H
#define ORR_NET_FLUID_PRIV_H

#include "sim/net/fluid.h"
#include "sim/net/level.h"

__extension__ typedef __int128 OrrSlack; /* in 1/ORR_COEF_ONE bytes per second */

#define ORR_FLUID_NIL UINT32_MAX
#define ORR_FLUID_WORK_PER_BYTE                                                                    \
    1000000000u /* work in 1e-9 bytes: bytes/s times ns is an integer                              \
                 */

/* What a search asks for comes first: one cache line. */
typedef struct {
    uint64_t stop;      /* level at which it stops: the lowest of top_level and its links' */
    uint64_t next_stop; /* the lowest but for stop_link's */
    uint64_t top_level; /* level at which it is at its top */
    uint64_t scale;     /* see level.h */
    uint64_t top;       /* own cap, or the capacity of a link if lower */
    const OrrUse *uses;
    uint32_t n_uses, first_record;
    uint32_t stop_link; /* link that stops it, or ORR_FLUID_NIL: its top does */
    bool is_live;
    bool is_new;      /* its end has not been told yet */
    bool is_moved;    /* in the list of the settle under way */
    OrrWide left;     /* work at since_ns, in 1e-9 bytes */
    int64_t since_ns; /* when the rate last changed */
    uint64_t rate;
    uint64_t cap, bytes;
    uint32_t weight, owner, next_free;
} __attribute__((aligned(64))) OrrActivity;

/* One use of a link by an activity, in the list of that link. */
typedef struct {
    uint32_t next, prev, activity;
    uint64_t factor; /* of the use */
} OrrRecord;

/* Sums over the activities on a link, in 1/ORR_COEF_ONE bytes per second. */
typedef struct {
    OrrWide capacity;
    OrrWide potential; /* usage if all were at their tops; up to capacity, the link never binds */
    OrrWide slope;     /* usage per unit of level, were all to rise, times 2^LEVEL_BITS */
    uint64_t unit;     /* usage if all had 1 byte per second */
    uint32_t head;     /* first record */
    uint32_t n_records;
    uint32_t round, local; /* last search that saw it; its number in the problem of a full solve */
    uint64_t level; /* at which it is full and stops those that still rise, or ORR_LEVEL_NONE */
    uint64_t goal;  /* what level should be, as the others are now */
    uint64_t shown; /* goal as its records have it, see OrrFluid */
    bool is_dirty;
    uint32_t raised; /* the last settle that raised its level at once */
} OrrLinkState;

/* The sums of a link that every change of a rate touches, apart from the rest. */
typedef struct {
    OrrWide usage;
    OrrSlack slack; /* of a link that stops nobody: what its activities leave where they stop now,
                     * less the margin, or less; below 0: look anew */
} OrrLinkRoom;

typedef struct {
    uint32_t *ids;
    uint32_t n, capacity;
} OrrIdList;

typedef struct {
    uint64_t key; /* level or goal, whichever is lower */
    uint32_t link;
} OrrLinkEntry;

/* A member of a link while its goal is computed. */
typedef struct {
    uint64_t stop, factor;
    uint32_t activity;
} OrrRiser;

struct OrrFluid {
    OrrLinkState *links;
    OrrLinkRoom *rooms; /* [n_links] */
    OrrWide *link_done; /* bytes of ended activities, in 1/ORR_COEF_ONE */
    uint32_t n_links;
    OrrActivity *activities;
    uint32_t n_activities, cap_activities, free_activity, n_live;
    OrrRecord *records;
    uint32_t n_records, cap_records;
    /* [record] what its link is at, so that an activity of many links need not visit them: its
     * level; its goal, or 0 if its activities could not fill it. */
    uint64_t *record_level, *record_goal;
    uint32_t free_block[32]; /* by the logarithm of the block's size */
    OrrIdList dirty;         /* links whose goal must be computed anew */
    OrrIdList pending;       /* new activities that found no headroom */
    OrrIdList admitted;      /* new activities that did */
    OrrIdList moved;         /* of the settle under way: activities whose rate may change */
    OrrIdList nearby;        /* links to look at next */
    OrrLinkEntry *heap;
    uint32_t n_heap, cap_heap;
    OrrRiser *risers;
    uint32_t cap_risers;
    uint32_t round, settles;
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

/* Could the activities of the link fill it? */
static inline bool orr_fluid__can_bind(const OrrLinkState *l) {
    return l->potential > l->capacity;
}

/* Twice what the rounding of rates (1 byte per second each) and of the level may hide: kept free
 * where nobody is said to be stopped without a search. */
static inline OrrWide orr_fluid__margin(const OrrLinkState *l) {
    return 2 * (l->unit + (l->slope >> ORR_LEVEL_BITS) + 1);
}

/* Is there room for all on the link, so that it stops nobody? */
static inline bool orr_fluid__has_room(const OrrFluid *f, uint32_t link) {
    const OrrLinkState *l = &f->links[link];
    return !orr_fluid__can_bind(l) || (l->level == ORR_LEVEL_NONE &&
                                       f->rooms[link].usage + orr_fluid__margin(l) <= l->capacity);
}

/* The rate that belongs to where it stops. */
static inline uint64_t orr_fluid__rate_at(const OrrActivity *a, uint64_t stop) {
    return stop >= a->top_level ? a->top : orr_level__rate(a->scale, stop);
}

/* Takes a link's goal over into its records, after goal or potential have changed. */
void orr_fluid__show_goal(OrrFluid *f, uint32_t link);
void orr_fluid__push(OrrIdList *list, uint32_t id);
/* Finds where the activity stops from the levels of its links. */
void orr_fluid__find_stop(const OrrFluid *f, OrrActivity *a);
/* Puts it on the list of those whose rate may change. */
void orr_fluid__move(OrrFluid *f, uint32_t activity);
/* Solves for all live activities. */
void orr_fluid__settle_all(OrrFluid *f);
/* Work done until @now at the rate so far. */
void orr_fluid__progress(OrrActivity *a, int64_t now_ns);
int64_t orr_fluid__end_ns(const OrrActivity *a);

#endif
