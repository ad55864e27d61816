/* Private to sim/net: the state that fluid.c (changes), settle.c (rates) and fluid_check.c share. */
#ifndef ORR_NET_FLUID_PRIV_H
#define ORR_NET_FLUID_PRIV_H

#include "sim/net/fluid.h"

#define ORR_FLUID_NIL UINT32_MAX
#define ORR_FLUID_WORK_PER_BYTE 1000000000u /* work in 1e-9 bytes: bytes/s times ns is an integer */

typedef struct {
    OrrWide left;      /* work at since_ns, in 1e-9 bytes */
    int64_t since_ns;  /* when the rate last changed */
    uint64_t rate, top; /* top: own cap, or the capacity of a link if lower */
    uint64_t cap, bytes;
    const OrrUse *uses;
    uint32_t n_uses, weight, scale_coef, owner;
    uint32_t first_record;
    uint32_t bottleneck; /* link that holds it, or ORR_BY_CAP */
    uint64_t level;      /* of the solver, where that link stopped it; 0 if it is at its top */
    uint32_t round;      /* last settle that took it in */
    uint32_t next_free;
    bool is_live;
    bool is_new;         /* its end has not been told yet */
} OrrActivity;

/* One use of a link by an activity, in the list of that link. */
typedef struct {
    uint32_t next, prev, activity;
} OrrRecord;

/* Sums over the activities on a link, in 1/ORR_COEF_ONE bytes per second. */
typedef struct {
    OrrWide capacity, usage;
    OrrWide potential; /* usage if all were at their tops; up to capacity, the link never binds */
    uint64_t unit;     /* usage if all had 1 byte per second */
    uint32_t head;     /* first record */
    uint32_t n_records, n_bound; /* activities that this link holds */
    uint64_t level;    /* where it holds them, if n_bound > 0 */
    uint32_t full_round;  /* last settle that took in all its activities */
    uint32_t local_round, local; /* its number in the problem of that settle */
    bool is_dirty;
} OrrLinkState;

typedef struct {
    uint32_t *ids;
    uint32_t n, capacity;
} OrrIdList;

struct OrrFluid {
    OrrLinkState *links;
    OrrWide *link_done; /* bytes of ended activities, in 1/ORR_COEF_ONE */
    uint32_t n_links;
    OrrActivity *activities;
    uint32_t n_activities, cap_activities, free_activity;
    OrrRecord *records;
    uint32_t n_records, cap_records;
    uint32_t free_block[32]; /* by the logarithm of the block's size */
    OrrIdList dirty;    /* links whose activities must be solved */
    OrrIdList pending;  /* new activities that found no headroom */
    OrrIdList admitted; /* new activities that did */
    OrrIdList set;      /* of the settle under way: activities taken in */
    int64_t now_ns;
    uint32_t round;
    uint64_t lost_bytes; /* of activities that were ended early */
    OrrFluidStats stats;
    OrrSolver *solver;
    struct { /* the problem of the settle under way */
        OrrSolveActivity *activities;
        uint64_t *rate;
        uint32_t *bottleneck;
        uint64_t *level;
        bool *is_held; /* kept at its old rate while its bottleneck is only taken in part */
        uint32_t n, cap;
        OrrUse *uses;
        uint32_t n_uses, cap_uses;
        OrrWide *capacity, *load;
        uint32_t *link, *n_inside;
        bool *has_changed;
        uint32_t n_links, cap_links;
    } problem;
};

static inline uint64_t orr_fluid__factor(const OrrUse *use)
{
    return (uint64_t)use->count * use->coef;
}

/* Could the activities of the link fill it? */
static inline bool orr_fluid__can_bind(const OrrLinkState *l)
{
    return l->potential > l->capacity;
}

/* Is there room for all on the link, whatever 2 bytes per second each the rounding may hide? */
static inline bool orr_fluid__has_room(const OrrLinkState *l, OrrWide usage)
{
    return !orr_fluid__can_bind(l) || usage + 2 * (OrrWide)l->unit <= l->capacity;
}

void orr_fluid__push(OrrIdList *list, uint32_t id);
/* Work done until @now at the rate so far. */
void orr_fluid__progress(OrrActivity *a, int64_t now_ns);
int64_t orr_fluid__end_ns(const OrrActivity *a);

#endif
