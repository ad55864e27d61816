/* Private to sim/detail: what a message goes over, the rings, the clock. */
#ifndef ORR_DETAIL_DETAIL_PRIV_H
#define ORR_DETAIL_DETAIL_PRIV_H

#include "sim/core/queue.h"
#include "sim/detail/detail.h"
#include "sim/net/fluid.h"

#define ORR_DETAIL_MAX_PHASES 3

/* What every message of a sender to one receiver goes over. */
typedef struct {
    int64_t hop_ns;      /* from its last byte out until the receiver can use it */
    int64_t transfer_ns; /* alone */
    uint64_t cap_bytes_per_s;
    uint32_t to, n_uses; /* n_uses = 0: no link of it can be filled */
    uint64_t first_use;
} OrrEdge;

/* A lap or two of rings: every rank sends `n_steps` messages along its edge. */
typedef struct {
    uint32_t n_steps;
    uint64_t bytes; /* of a message */
    OrrEdge *edges; /* [n_ranks] */
} OrrPhase;

typedef struct {
    uint32_t n_ranks, n_phases;
    OrrPhase phases[ORR_DETAIL_MAX_PHASES];
    OrrUse *uses;
    uint64_t *capacity; /* [n_links] bytes per second */
    uint32_t n_links;   /* after orr_detail__prune: those that can be filled */
    int64_t start_ns;
} OrrRings;

/* NVLink domains of the ranks, in their order. */
typedef struct {
    uint32_t n;
    uint32_t *start; /* [n + 1] first rank */
    uint32_t *of;    /* [n_ranks] */
} OrrDomains;
void orr_detail__domains_init(OrrDomains *d, const OrrCluster *c, uint32_t n_ranks);
void orr_detail__domains_clear(OrrDomains *d);

/* edges.c: rings over the cluster for @plan, which must be ring or hierarchical. */
OrrRings *orr_detail__rings_new(const OrrDetailCase *c, const OrrCollPlan *plan);
void orr_detail__rings_free(OrrRings *r);
/* Drops the uses of links that all ranks together could not fill, and numbers the rest anew. */
void orr_detail__prune(OrrRings *r);
/* Links outside domains from one GPU to another, merged and in order; at most ORR_MAX_ROUTE. */
uint32_t orr_detail__net_uses(const OrrCluster *c, uint32_t src, uint32_t dst, OrrUse *uses);
/* Links inside a domain; none in a mesh. */
uint32_t orr_detail__inside_uses(const OrrCluster *c, uint32_t src, uint32_t dst, OrrUse *uses);
/* Until the receiver can use what has left: by the plan, and the way's own latency. */
int64_t orr_detail__hop_ns(const OrrCluster *c, const OrrCollPlan *plan, uint32_t src,
                           uint32_t dst);
int64_t orr_detail__transfer_ns(uint64_t bytes, uint64_t bytes_per_s);
/* What a rank gets over the network at most: its share of the domain's NICs. */
uint64_t orr_detail__net_share(const OrrCollPlan *plan, uint32_t per_domain);

/* ring.c: runs rings; by adding up where no link can be filled and @is_evented does not ask for
 * the queue. Fills times and counts of @result. */
void orr_detail__run_rings(const OrrRings *r, bool is_evented, OrrDetailResult *result);
/* pairs.c: an all-to-all. */
void orr_detail__run_pairs(const OrrDetailCase *c, const OrrCollPlan *plan,
                           OrrDetailResult *result);

/* clock.c: the event loop. At one instant ends come first, so that what starts finds their room. */
enum { ORR_DETAIL_END, ORR_DETAIL_ARRIVE, ORR_DETAIL_START };

typedef struct OrrClock OrrClock;
struct OrrClock {
    OrrQueue queue;
    OrrFluid *fluid;                 /* NULL: nothing is shared */
    uint32_t *activity; /* [n_senders] the transfer under way */
    int64_t now_ns;
    bool is_dirty;
    uint64_t n_events, n_shared;
    void (*handle)(void *data, uint32_t class, uint32_t sender, uint32_t tag);
    void *data;
};
void orr_detail__clock_init(OrrClock *k, uint32_t n_senders, const uint64_t *capacity,
                            uint32_t n_links);
void orr_detail__clock_clear(OrrClock *k);
void orr_detail__clock_run(OrrClock *k);
/* Begins a transfer now; ORR_DETAIL_END comes when it is over. */
void orr_detail__begin(OrrClock *k, uint32_t sender, const OrrFlow *flow);

#endif
