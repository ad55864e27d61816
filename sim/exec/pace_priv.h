/* State of a run that tells step times alone; see pace.h. */
#ifndef ORR_EXEC_PACE_PRIV_H
#define ORR_EXEC_PACE_PRIV_H

#include "sim/base/random.h"
#include "sim/core/queue.h"
#include "sim/exec/compile.h"
#include "sim/exec/pace.h"
#include "sim/net/fluid.h"

typedef enum {
    ORR_PACE_BLOCKED, /* the head waits for other streams */
    ORR_PACE_ISSUING, /* a communication, launched at event_ns */
    ORR_PACE_RUNNING, /* ends at event_ns */
    ORR_PACE_WALKED,  /* a block of the compute stream whose end is not known yet */
    ORR_PACE_OPEN,    /* a communication whose end is not known, but not before event_ns */
    ORR_PACE_DONE
} OrrPaceState;

/* One stream of one rank. */
typedef struct {
    int64_t event_ns;
    uint32_t head, call, item, step;
    uint32_t completed; /* items ended since the beginning */
    uint32_t need;      /* of the stream that it is blocked on: items that must have ended */
    uint16_t pending;   /* parts of the current item whose end is not known */
    uint8_t blocked_on; /* ORR_N_STREAMS: none */
    uint8_t state;
} OrrPaceLane;

/* The block of the compute stream: in kernel `kernel`, with `left` to do from `at_ns` on. */
typedef struct {
    uint32_t block, kernel;
    int64_t host_ns, at_ns;
    uint64_t left;   /* nanoseconds << 16 at rate 1 */
    uint32_t factor; /* jitter, in 1/ORR_RATE_ONE */
} OrrPaceBlock;

/* What a block takes with nothing else resident, as OrrBlockTime has it. */
typedef struct {
    int64_t work_ns, host_ns;
} OrrPaceTime;

typedef struct {
    const OrrCompiledRole *role;
    const int64_t *kernel_ns; /* of its hardware */
    const OrrPaceTime *times;
    int64_t host_base_ns;
    uint32_t rate[2];
    uint16_t timed, open; /* lanes that are issuing or running; that are open; a bit each */
    uint8_t is_listed, is_in_block; /* on the list of ranks that can go on; compute runs a block */
    uint8_t resident[ORR_N_COMM_KINDS]; /* communication that slows kernels */
    uint16_t waiting_for[ORR_N_STREAMS];
    OrrPaceBlock block;
    OrrPaceLane lane[ORR_N_STREAMS];
} OrrPaceRank;

/* A communicator of one group. */
typedef struct {
    int64_t arrived_ns; /* the last who came */
    uint32_t n_arrived, what;
    uint32_t flow; /* in the fluid, if it is */
    uint8_t kind, stream;
    uint32_t group;
} OrrPaceGroup;

/* A directed pair on a communicator: who came first. */
typedef struct {
    int64_t arrived_ns;
    uint32_t part; /* of the sender */
    uint8_t has_sender, has_receiver;
    uint8_t stream; /* of who is there */
} OrrPacePair;

struct OrrPace {
    OrrCompiled *compiled; /* without times */
    const OrrProgram *program;
    /* by collective and by batch: purpose, if it slows kernels; else UINT8_MAX */
    uint8_t *slows_of_coll, *slows_of_p2p;
};

typedef struct {
    const OrrPace *pace;
    const OrrBound *bound;
    uint32_t max_steps;
    OrrPaceRank *ranks;
    OrrPaceTime *times; /* [n_hw * n_blocks] */
    OrrPaceGroup *groups;
    OrrPacePair *pairs;
    uint32_t first_group[ORR_N_GROUPS][256], first_pair[ORR_N_GROUPS][256];
    int64_t *least_ns[ORR_N_GROUPS]; /* [n_pair_classes] no send takes less */
    bool has_draws;
    double jitter_frac;
    OrrRandom random;
    /* when each rank can go on, as far as it knows; INT64_MAX: when others say so */
    int64_t *next_ns;       /* [n_ranks] */
    int64_t *group_next_ns; /* the least of each ORR_PACE_GROUP ranks; INT64_MIN: look it up */
    uint32_t *list;         /* ring of ranks that can go on */
    uint32_t first_listed, n_listed;
    uint32_t current;  /* rank that is going on */
    int64_t global_ns; /* nothing happens before */
    OrrFluid *fluid;   /* NULL: no links */
    OrrQueue starts;   /* transfers that enter it; id: group */
    GArray *ended;     /* groups whose transfers have ended */
    bool is_unsettled; /* the fluid, at settle_ns */
    int64_t settle_ns;
    int64_t *end_ns;  /* [max_steps * n_ranks] */
    uint32_t *to_end; /* [max_steps] ranks that have yet to end the step */
    uint32_t ended_step;
    bool is_over, is_mismatch;
} OrrPaceRun;

#define ORR_PACE_GROUP 64u /* ours: ranks whose next moments are looked at together */

/* pace.c */
/* Rank @r has been told something: it can go on. */
void orr_pace__list(OrrPaceRun *x, uint32_t r);
/* Rank @r cannot: by itself it has something to do at @next_ns, not before. */
void orr_pace__wait(OrrPaceRun *x, uint32_t r, int64_t next_ns);
void orr_pace__step_end(OrrPaceRun *x, uint32_t r, uint32_t step, int64_t now_ns);
/* pace_rank.c */
void orr_pace__begin(OrrPaceRun *x);
/* As far as rank @r can go without the others. */
void orr_pace__advance(OrrPaceRun *x, uint32_t r);
/* When rank @r has something to do was not known to the nanosecond; now it is. False: it was. */
bool orr_pace__look(OrrPaceRun *x, uint32_t r);
void orr_pace__set_end(OrrPaceRun *x, uint32_t r, uint32_t s, int64_t end_ns);
/* pace_meet.c */
/* Whether sends use links that others use. */
bool orr_pace__sends_share(const OrrBound *bound);
void orr_pace__meetings_new(OrrPaceRun *x);
void orr_pace__meetings_clear(OrrPaceRun *x);
void orr_pace__arrive(OrrPaceRun *x, uint32_t r, uint32_t s, const OrrItem *item, int64_t now_ns);
void orr_pace__flow_start(OrrPaceRun *x);
void orr_pace__flows_end(OrrPaceRun *x, int64_t now_ns);

#endif
