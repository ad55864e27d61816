/* Inside the shared cluster: free units and places (share_place.c), what a job is doing
 * (share_turn.c), nodes that fail and are taken back (share_nodes.c), the queue (share_queue.c). */
#ifndef ORR_JOB_SHARE_PRIV_H
#define ORR_JOB_SHARE_PRIV_H

#include "sim/core/queue.h"
#include "sim/job/share.h"

/* What is free. */
typedef struct {
    const OrrShareSpec *spec;
    uint32_t *free;  /* units of each node */
    uint32_t *whole; /* GPUs of each node with all units free; @free itself where a GPU is a unit */
    uint32_t *used;  /* units of each GPU in use; NULL where a GPU is a unit */
    uint8_t *places; /* of each GPU: memory slices of MIG in use; NULL without MIG */
    bool *is_out;    /* nodes that take no job: in repair, told to leave, gone */
} Floor;

/* What a job holds: units on nodes, and where GPUs are sliced on which of them. */
typedef struct {
    uint32_t *nodes, *units;
    uint32_t n;
    uint32_t *gpus; /* [n_gpus], of all GPUs */
    uint32_t n_gpus, units_per_gpu;
    uint8_t places; /* on its GPU, with MIG */
} Grant;

/* Rates are in fixed point, 2^40 = 1: a year is right to 30 us. */
#define ORR_RATE_ONE (UINT64_C(1) << 40)

uint32_t orr_share__units_of_job(const OrrShareSpec *spec, const OrrShareJob *job);
uint64_t orr_share__units_free(const Floor *floor, const OrrShareJob *job);
/* Takes room for @job from @floor into @grant (NULL: only asks); false and nothing if there is
 * none. */
bool orr_share__place(Floor *floor, const OrrShareJob *job, Grant *grant);
/* Takes just what @grant has, and gives it back; neither changes @grant. */
void orr_share__take(Floor *floor, const Grant *grant);
void orr_share__give(Floor *floor, const Grant *grant);
void orr_share__grant_clear(Grant *grant);
void orr_share__grant_span(const OrrShareSpec *spec, const Grant *grant, uint32_t *racks,
                           uint32_t *blocks);
Floor orr_share__floor(const OrrShareSpec *spec); /* all free */
Floor orr_share__floor_copy(const Floor *floor);
void orr_share__floor_clear(Floor *floor);
bool orr_share__mig_has(uint32_t slices); /* whether MIG has a profile of so many */

typedef enum {
    TO_COME,
    WAITING,
    STARTING,
    LOADING,
    RUNNING,
    SAVING,  /* stands for save_takes_ns */
    WRITING, /* stands until its bytes are in the store */
    BLOCKED, /* stands because the checkpoint before is still on its way */
    HUNG,    /* a node failed */
    ENDED
} State;
#define IS_ON(state) ((state) >= STARTING && (state) <= HUNG)

typedef struct {
    State state;
    Grant grant;
    int64_t began_ns;          /* of this turn */
    int64_t since_ns;          /* of this state */
    int64_t settled_ns;        /* up to when it is booked */
    int64_t until_ns;          /* of a state with a fixed length */
    int64_t next_ns;           /* when something is to be done */
    int64_t leaves_ns;         /* told to leave by then; INT64_MAX */
    uint32_t leave;            /* ORR_SHARE_PREEMPTED, .._NODE_RECLAIMED or .._FAILED */
    bool is_last_save;         /* leaves when it is saved */
    int64_t at_ns;             /* work done */
    int64_t saved_ns;          /* of that in the store */
    int64_t captured_ns;       /* of that in the checkpoint on its way */
    int64_t due_ns;            /* work at the next checkpoint */
    int64_t sealed_ns, run_ns; /* time run for what is on its way, and for what is not */
    uint64_t place_q, rate_q; /* ORR_RATE_ONE: as in the closest place, alone on what it asks for */
    bool is_flowing;          /* bytes go over the store */
    int64_t left_bytes, bytes_per_s;
    int64_t queued_ns; /* when it came into the queue this time */
} Turn;

typedef enum { NODE_UP, NODE_LEAVING, NODE_DOWN, NODE_AWAY } NodeState;
typedef struct {
    NodeState state;
    uint32_t generation, n_draws;
    int64_t gone_ns; /* leaving: when it is gone */
    int64_t back_ns; /* down or away: when it is back */
} Node;

typedef struct {
    const OrrShareSpec *spec;
    const OrrShareOptions *options;
    OrrShareResult *results;
    OrrShareAccount *account;
    Floor floor;
    Turn *turns;
    uint32_t *queue, n_queue; /* in order of turn */
    uint32_t *on, n_on;       /* jobs that hold GPUs, by id */
    Node *nodes;              /* NULL: nothing is drawn */
    OrrQueue node_events;
    uint64_t n_writers; /* connections of all flows */
    int64_t now;
    bool has_changed; /* the queue or what is free, since the queue was last looked at */
    uint32_t n_left;  /* jobs that have not ended */
    uint64_t n_done;  /* checkpoints and ends so far */
} Share;

void orr_share__tell(const Share *h, OrrShareEventKind kind, uint32_t job, uint32_t node);

/* share_turn.c */
OrrShareOwner orr_share__owner(const Turn *turn);
/* When a job on the cluster is gone at the latest, as far as the scheduler knows. */
int64_t orr_share__promised_ns(const Share *h, uint32_t job);
int64_t orr_share__limit_ns(const OrrShareSpec *spec, const OrrShareJob *job);
/* Takes it off the cluster and puts it back in the queue; what is not saved is lost. */
void orr_share__leave(Share *h, uint32_t job);
void orr_share__start(Share *h, uint32_t place_in_queue);
/* Does what is due at h->now for @job. */
void orr_share__step(Share *h, uint32_t job);
/* Tells a running job to leave within @notice_ns; @leave: why. */
void orr_share__notice(Share *h, uint32_t job, int64_t notice_ns, uint32_t leave);
/* A node of the job is no more. */
void orr_share__fail(Share *h, uint32_t job);

/* Books what @job did up to h->now and moves its work and bytes on. */
void orr_share__settle(Share *h, uint32_t job);
/* When its next thing is due at the rates of now. */
void orr_share__plan(Share *h, uint32_t job);

/* share_store.c */
/* Bytes of @job begin to go over the store, or go no longer: all flows get their new rates. */
void orr_share__flow(Share *h, uint32_t job, bool begins);
/* How long a checkpoint of @job takes if nothing else goes to the store. */
int64_t orr_share__save_alone_ns(const Share *h, uint32_t job);

/* share_nodes.c */
void orr_share__nodes_begin(Share *h);
int64_t orr_share__nodes_next(Share *h);
void orr_share__nodes_step(Share *h);

/* share_queue.c */
void orr_share__enqueue(Share *h, uint32_t job);
void orr_share__schedule(Share *h);

#endif
