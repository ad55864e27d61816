/* Fluid links on a clock: activities with remaining bytes share links by the solver. The owner
 * (sim/exec) starts and ends activities and asks for the next completion; the fluid knows no event
 * queue of its own.
 *
 * All changes at one instant are collected; orr_fluid_settle solves once, and re-times only what
 * moved. Rates are a function of the set of activities alone, whatever the history: those that the
 * solver gives for all of them, where a link that its activities could not fill even at their tops
 * (own cap, or a link's whole capacity) is left out, and tops are caps. An activity that finds all
 * its links with room to spare is admitted at its top without a solve (headroom). Remaining work is
 * an integer: it is updated only when the rate changes. Completion time is rounded up to the
 * nanosecond; INT64_MAX where the rate is 0. */
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
} OrrFlow;

/* Adds an activity at @now; its id is good until it ends. Rates are not known before settle. */
uint32_t orr_fluid_start(OrrFluid *f, int64_t now_ns, const OrrFlow *flow);
/* Solves what changed. For every activity whose end moved (new ones included) calls back with its
 * new end; the caller marks its old event stale by generation. */
typedef void (*OrrFluidRetime)(void *data, uint32_t activity, uint32_t owner, int64_t end_ns);
void orr_fluid_settle(OrrFluid *f, int64_t now_ns, OrrFluidRetime retime, void *data);
/* Removes an activity that is due now; settle afterwards. */
void orr_fluid_end(OrrFluid *f, int64_t now_ns, uint32_t activity);
/* Changes a capacity (degraded or flapping link); settle afterwards. */
void orr_fluid_capacity(OrrFluid *f, int64_t now_ns, uint32_t link, uint64_t bytes_per_s);
uint64_t orr_fluid_rate(const OrrFluid *f, uint32_t activity);
/* Bytes that have crossed a link until the last call that had a time (for conservation checks and
 * link counters), rounded down. Cost: one visit an activity on the link. */
uint64_t orr_fluid_link_bytes(const OrrFluid *f, uint32_t link);
/* --self-check: NULL, or which link is over its capacity, or which bytes are lost; g_free. */
char *orr_fluid_flaw(const OrrFluid *f);
typedef struct {
    uint64_t starts, headroom;          /* activities started; of those, admitted without a solve */
    uint64_t solves, solved_activities; /* links whose level was set, or solves of everything;
                                         * activities on them, summed */
} OrrFluidStats;
void orr_fluid_stats(const OrrFluid *f, OrrFluidStats *stats);

#endif
