/* Fluid links on a clock: activities with remaining bytes share links by the solver. The owner
 * (sim/exec) starts activities, asks when the next is over and ends those that are; the fluid knows
 * no event queue of its own.
 *
 * All changes at one instant are collected; orr_fluid_settle solves once, and touches only what
 * moved. Rates are a function of the set of activities alone, whatever the history: those that the
 * solver gives for all of them, where a link that its activities could not fill even at their tops
 * (own cap, or a link's whole capacity) is left out, and tops are caps. Activities that stop alike
 * move as one (a bundle), and links that can't bind now are not looked at: neither changes a rate.
 * Remaining work is an integer. Completion time is rounded up to the nanosecond; INT64_MAX where
 * the rate is 0. */
#ifndef ORR_NET_FLUID_H
#define ORR_NET_FLUID_H

#include "sim/net/solver.h"

typedef struct OrrFluid OrrFluid;
/* @capacity [n_links] bytes per second, copied. */
OrrFluid *orr_fluid_new(const uint64_t *capacity, uint32_t n_links);
void orr_fluid_free(OrrFluid *f);

typedef struct {
    const OrrUse *uses; /* constraint = link id; borrowed for the life of the activity */
    uint32_t n_uses;    /* 0: no link limits it, only its cap */
    uint32_t weight;
    uint64_t cap_bytes_per_s;
    uint64_t bytes;   /* work: ends when the integral of x is that */
    int64_t ahead_ns; /* has moved at its top for that long already, alone on its links */
    uint32_t owner;   /* given back at completion */
    uint32_t n_rows;  /* uses behind those, of rows: see orr_fluid_start_joint; else 0 */
    /* the largest of uses that it has beside those, where room is held for it; 0: there are none */
    uint32_t other_coef;
} OrrFlow;

/* Adds an activity at @now; its id is good until it ends. Rates are not known before settle. */
uint32_t orr_fluid_start(OrrFluid *f, int64_t now_ns, const OrrFlow *flow);
/* The same of equal activities (of one weight, cap, size and top) that set out together, as one.
 * Its first n_uses uses are those that all have, counted for all; the n_rows behind are of rows
 * (constraint: row): what each of them uses of its own link there. While those stop nobody all have
 * one rate. False: one of them is watched, nothing was started. */
bool orr_fluid_start_joint(OrrFluid *f, int64_t now_ns, const OrrFlow *flow, uint32_t *activity);
/* Links side by side, one for each of so many equal activities, none in another row; before
 * anything starts. Returns the row. */
uint32_t orr_fluid_add_row(OrrFluid *f, const uint32_t *links, uint32_t n);
/* Its links, if somebody uses one of them alone: @n of them, else 0. */
const uint32_t *orr_fluid_row_links(const OrrFluid *f, uint32_t row, uint32_t *n);
/* Each of them goes on by itself, with its own uses, from what has been done: flows[@n], whose ids
 * then are @activities[@n]. */
void orr_fluid_split(OrrFluid *f, int64_t now_ns, uint32_t activity, const OrrFlow *flows,
                     uint32_t n, uint32_t *activities);
/* Solves what changed. */
void orr_fluid_settle(OrrFluid *f, int64_t now_ns);
/* When the first activity is over, as things are; INT64_MAX: none ever. Call it when settled. */
int64_t orr_fluid_next_end(OrrFluid *f);
/* Calls back for each activity that is over at @now, which is the next end. Each must be removed by
 * orr_fluid_end at that time. */
typedef void (*OrrFluidEnded)(void *data, uint32_t activity, uint32_t owner);
void orr_fluid_take_ended(OrrFluid *f, int64_t now_ns, OrrFluidEnded ended, void *data);
/* Removes an activity; settle afterwards. */
void orr_fluid_end(OrrFluid *f, int64_t now_ns, uint32_t activity);
/* Changes a capacity (degraded or flapping link), where no joint activity is and no room held, nor
 * on another link of its row; settle afterwards. */
void orr_fluid_capacity(OrrFluid *f, int64_t now_ns, uint32_t link, uint64_t bytes_per_s);
uint64_t orr_fluid_rate(const OrrFluid *f, uint32_t activity);
/* When it is over if nothing changes; INT64_MAX: never. */
int64_t orr_fluid_end_ns(const OrrFluid *f, uint32_t activity);
/* From now on bytes that cross links are counted. */
void orr_fluid_count_bytes(OrrFluid *f);
/* Those that have crossed a link until the last call that had a time (for conservation checks and
 * link counters), rounded down. Cost: one visit an activity. */
uint64_t orr_fluid_link_bytes(const OrrFluid *f, uint32_t link);
/* --self-check: NULL, or which link is over its capacity, or which bytes are lost; g_free. */
char *orr_fluid_flaw(const OrrFluid *f);
/* Room for an activity that its owner moves himself at its top, as long as none of its links can
 * stop anyone: false where one of them may; nothing is held then. */
typedef struct {
    const OrrUse *uses;
    uint32_t n_uses;
    uint64_t top_bytes_per_s, scale; /* its top as the fluid has it; orr_fluid_scale */
    uint32_t n_rows;                 /* of several equal ones: as in OrrFlow */
} OrrReserve;
uint64_t orr_fluid_scale(uint32_t weight, const OrrUse *uses, uint32_t n_uses);
/* Room is asked for on the link soon; an activity starts or ends on it soon. */
void orr_fluid_prefetch(const OrrFluid *f, uint32_t link);
void orr_fluid_prefetch_row(const OrrFluid *f, uint32_t row);
void orr_fluid_prefetch_use(const OrrFluid *f, uint32_t link);
/* The activity ends soon: itself; what it uses, once that has come. */
void orr_fluid_prefetch_flow(const OrrFluid *f, uint32_t activity);
void orr_fluid_prefetch_end(const OrrFluid *f, uint32_t activity);
bool orr_fluid_reserve(OrrFluid *f, const OrrReserve *r);
void orr_fluid_release(OrrFluid *f, const OrrReserve *r);
/* What is held for all is held for each from now on: @parts [@n]. */
void orr_fluid_part(OrrFluid *f, const OrrReserve *r, const OrrReserve *parts, uint32_t n);
/* The opposite: false if a row is watched; nothing is changed then. */
bool orr_fluid_join(OrrFluid *f, const OrrReserve *r, const OrrReserve *parts, uint32_t n);
/* Whether joint activities, or several that hold room as one, have the link in a row. */
bool orr_fluid_has_joint(const OrrFluid *f, uint32_t link);
/* Whether others hold room on it. Cost: a visit of each activity on the link. */
bool orr_fluid_has_room(const OrrFluid *f, uint32_t link);
/* Called in orr_fluid_settle for a link that may stop its users now: all that hold room on it must
 * be released, and those that move by now started; joint activities must be split that have it in
 * a row. */
typedef void (*OrrFluidCrowded)(void *data, uint32_t link);
void orr_fluid_on_crowded(OrrFluid *f, OrrFluidCrowded crowded, void *data);
typedef struct {
    uint64_t starts, headroom;          /* activities started; of those, at their tops at once */
    uint64_t solves, solved_activities; /* links whose level was set, or solves of everything;
                                         * bundles on them, summed */
    uint64_t moves;                     /* bundles whose rate changed */
    uint64_t twins;                     /* links that another came to stand for */
} OrrFluidStats;
void orr_fluid_stats(const OrrFluid *f, OrrFluidStats *stats);

#endif
