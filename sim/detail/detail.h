/* Collectives message by message: each hop of a ring, each message of an all-to-all is a flow of
 * its own, with what it waits for, over the links of the cluster (max-min shares).
 *
 * A rank sends one message of a kind at a time (inside its domain, over the network); it is free
 * again when the last byte has left, and the receiver can use the message a hop later. A hop of a
 * ring starts when the sender is free and its chunk has come. Rates alone and times of a hop are
 * those of the plan (sim/collective), so that on an idle, even network the time is the closed form
 * hops * (time of a hop + chunk / rate). State is by rank, not by flow.
 *
 * Left out: slices within a chunk (the plan overlaps the phases of a hierarchical all-reduce, here
 * they follow one another), limits of the receiver's buffers, links of an NVLink mesh. A message
 * that crosses domains in a ring goes over all NICs of the domain evenly, as NCCL's rings together
 * do. Cost: 2 ns a flow where no link can be filled, some 100 ns an event elsewhere. Source of the
 * rules: Hockney 1994 (latency and rate), Culler et al. 1993, LogP (when a sender is free);
 * Patarasuk and Yuan 2009 (ring); Jia et al. 2018 (hierarchical). */
#ifndef ORR_DETAIL_DETAIL_H
#define ORR_DETAIL_DETAIL_H

#include "sim/collective/collective.h"

typedef struct {
    const OrrCluster *cluster;
    uint32_t n_ranks; /* on GPUs 0..n_ranks-1 */
    OrrCollective kind;
    OrrDtype dtype;
    int64_t bytes;             /* nccl-tests' size */
    const OrrNcclForce *force; /* or NULL */
    bool is_evented;           /* by the event queue even where no link can be filled: for tests */
} OrrDetailCase;

typedef struct {
    int64_t time_ns;
    OrrCollPlan plan; /* what the collective costs as one activity: choice, and to compare with */
    uint64_t n_flows, n_shared; /* messages; of those, over links that can be filled */
    uint64_t n_events;          /* of the queue; 0 where no link can be filled: hops are added up */
    uint64_t n_solves;          /* times that a link's share was set */
} OrrDetailResult;

/**
 * orr_detail_run: runs the collective, alone on the machine.
 * Errors (ORR_ERROR_INPUT): those of orr_collective_plan; more ranks than GPUs; an algorithm that
 * has no detailed form (tree, NVLS, ...), with those that have.
 */
bool orr_detail_run(const OrrDetailCase *c, OrrDetailResult *result, GError **error);

#endif
