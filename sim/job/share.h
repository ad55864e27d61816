/* Several jobs on one cluster: a queue, gangs, places, preemption, failures, a shared store.
 *
 * A node has units: its GPUs times the slices of a GPU (1 without slicing). A job takes whole GPUs
 * over nodes, or some slices of one; all of it at once or none (gang). Work goes at a rate that
 * follows from where the job lies; checkpoints go over one store that all jobs share. Every
 * unit-nanosecond is booked. Cost: events times (running jobs + nodes), and the queue times that
 * for backfill. Sources: Lifka 1995 and Mu'alem and Feitelson 2001 for backfill (EASY); NVIDIA
 * Multi-Instance GPU User Guide, "Supported MIG Profiles", for the places of slices. */
#ifndef ORR_JOB_SHARE_H
#define ORR_JOB_SHARE_H

#include "sim/facts/share.h"

/* Sums of unit-nanoseconds pass 2^63: ten thousand GPUs for ten days. */
typedef __int128 OrrUnitNs;

/* Where the time of a unit went. */
typedef enum {
    ORR_SHARE_USEFUL,     /* work that was kept, as long as it takes in the closest place */
    ORR_SHARE_SPREAD,     /* what it took longer because its nodes lay further apart */
    ORR_SHARE_REWORK,     /* work that was lost with a node or by preemption */
    ORR_SHARE_START,      /* starting again, and reading the checkpoint */
    ORR_SHARE_SAVE,       /* standing for a checkpoint */
    ORR_SHARE_DETECT,     /* standing because a node failed and nobody knows yet */
    ORR_SHARE_DOWN,       /* of a node in repair */
    ORR_SHARE_RECLAIMED,  /* of a spot node that its owner takes or has taken */
    ORR_SHARE_EMPTY,      /* idle: nothing was waiting */
    ORR_SHARE_SHORT,      /* idle: the first in the queue is larger than what is free */
    ORR_SHARE_FRAGMENTED, /* idle: it is not larger, but what is free lies in the wrong places */
    ORR_N_SHARE_OWNERS
} OrrShareOwner;
extern const char *const orr_share_owner_names[];

typedef struct {
    int64_t start_ns, end_ns; /* first start, end; -1: it never could */
    int64_t waited_ns;        /* in the queue, all times together */
    int64_t ran_ns;           /* holding its GPUs, all times together */
    /* of that, by owner; DOWN and after are 0. They add up to ran_ns. */
    int64_t spent_ns[ORR_SHARE_DOWN];
    int64_t lost_ns;                 /* of that all but useful and spread */
    OrrUnitNs unit_ns, spot_unit_ns; /* units held; of those on spot nodes */
    uint32_t preemptions, reclaims, failures, saves;
    uint32_t racks, blocks; /* over how many its last nodes lie */
} OrrShareResult;

/* The parts add up to units x makespan_ns exactly. */
typedef struct {
    int64_t makespan_ns;
    OrrUnitNs part[ORR_N_SHARE_OWNERS];
    uint64_t units;
    uint64_t node_failures, node_reclaims;
} OrrShareAccount;

/* What one step of a job with a job file takes over so many racks and blocks; above 0. */
typedef struct {
    int64_t (*step_ns)(void *data, uint32_t job, uint32_t racks, uint32_t blocks);
    void *data;
} OrrSharePricer;

typedef enum {
    ORR_SHARE_SUBMITTED,
    ORR_SHARE_STARTED,
    ORR_SHARE_SAVED,     /* a checkpoint is whole */
    ORR_SHARE_NOTICE,    /* a job is told to leave */
    ORR_SHARE_PREEMPTED, /* it has left */
    ORR_SHARE_FAILED,    /* a job has lost a node */
    ORR_SHARE_REQUEUED,
    ORR_SHARE_ENDED,
    ORR_SHARE_NODE_FAILED,
    ORR_SHARE_NODE_NOTICE,
    ORR_SHARE_NODE_RECLAIMED,
    ORR_SHARE_NODE_BACK,
    ORR_SHARE_SPAN,   /* a job did one thing from begin_ns to now_ns; @owner says what */
    ORR_SHARE_LEVELS, /* units by owner from begin_ns to now_ns */
    ORR_N_SHARE_EVENTS
} OrrShareEventKind;
extern const char *const orr_share_event_names[];

#define ORR_SHARE_NONE UINT32_MAX
typedef struct {
    OrrShareEventKind kind;
    int64_t begin_ns, now_ns;
    uint32_t job, node; /* ORR_SHARE_NONE: none */
    /* SPAN: what it did; work under way counts as USEFUL, nobody knows yet */
    OrrShareOwner owner;
    const uint32_t *nodes, *units; /* of the job: n_nodes; borrowed for the call */
    uint32_t n_nodes;
    const int64_t *levels; /* LEVELS: ORR_N_SHARE_OWNERS, work under way as USEFUL */
} OrrShareEvent;

typedef struct {
    void (*event)(void *data, const OrrShareEvent *event);
    void *data;
} OrrShareProbe;

typedef struct {
    uint64_t seed;
    const OrrSharePricer *pricer; /* NULL: a job is as fast anywhere */
    const OrrShareProbe *probe;   /* may be NULL */
} OrrShareOptions;

/* Errors (ORR_ERROR_INPUT): a job that no empty cluster could hold, a limit below the work, ...;
 * the line of the table is named where it is known. */
bool orr_share_check(const OrrShareSpec *spec, GError **error);
/* Whether anything depends on the seed. */
bool orr_share_is_drawn(const OrrShareSpec *spec);
/* How long @work_ns takes on what the job asks for when nothing is beside it and all is well. */
int64_t orr_share_length_ns(const OrrShareSpec *spec, const OrrShareJob *job, int64_t work_ns);
/* Share of a GPU's memory that the job has: slices of MIG come with eighths of it. */
double orr_share_memory_frac(const OrrShareSpec *spec, const OrrShareJob *job);
/* The most closely that so many nodes can lie. */
void orr_share_closest(const OrrShareSpec *spec, const OrrShareJob *job, uint32_t *racks,
                       uint32_t *blocks);
/* @results: n_jobs. The spec has passed orr_share_check. Pure: seeds may run in parallel. Errors
 * (ORR_ERROR_INPUT): failures so frequent that the jobs do not end. */
bool orr_share_simulate(const OrrShareSpec *spec, const OrrShareOptions *options,
                        OrrShareResult *results, OrrShareAccount *account, GError **error);

#endif
