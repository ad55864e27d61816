/* What a whole run is: how long, of which steps, what strikes it, how it recovers, what it saves.
 * Plain structs, times in nanoseconds, already priced: nothing here knows a cluster or a file.
 * See doc/models/runs.md. */
#ifndef ORR_JOB_SPEC_H
#define ORR_JOB_SPEC_H

#include "sim/facts/failures.h"

#define ORR_SPARES_UNLIMITED UINT32_MAX

typedef struct {
    int64_t queue_ns; /* before the first start */
    int64_t
        requeue_ns; /* mean, exponential, in the queue after a stop; 0: the job keeps its nodes */
    OrrRequeue requeue_after; /* which stops */
    uint32_t repair_hands;    /* nodes repaired at a time; 0: no limit */
    int64_t start_ns;         /* processes and communicators of the whole job, from nothing */
    int64_t in_place_ns;      /* the same where no node changed */
    int64_t hot_swap_ns;      /* the same where only hot spares were put in */
    int64_t swap_ns, cold_ns; /* a hot spare put in; a cold one provisioned */
    uint32_t hot_spares, cold_spares;
    OrrElastic elastic;
    uint32_t nodes_per_replica; /* at least 1 */
    int64_t reshard_ns;         /* more than loading, at another number of replicas */
} OrrRecovery;

#define ORR_MAX_TIERS 4
typedef struct {
    char *name;
    uint32_t every;   /* each n-th checkpoint goes here too */
    int64_t block_ns; /* training stands */
    int64_t write_ns; /* after that, until it is whole; 0: synchronous */
    int64_t load_ns;
    /* while bytes are on their way over the network of the training, steps are that much longer */
    int64_t traffic_ns;
    double write_slow_frac;
    OrrScope survives; /* the largest loss that leaves it readable */
    uint32_t keep;     /* whole ones kept, at least 1 */
    double bytes, bytes_per_s;
} OrrTier;

typedef struct {
    double bytes;            /* of the whole state */
    int64_t interval_ns;     /* of training between two; 0 with steps */
    uint32_t interval_steps; /* 0 with a time */
    OrrTier tiers[ORR_MAX_TIERS];
    uint32_t n_tiers; /* 0: no checkpoints */
} OrrCheckpointPlan;

#define ORR_MAX_LOST_REPLICAS 8u
typedef struct {
    int64_t end_tokens; /* of the run, where the phase ends; INT64_MAX: the last */
    int64_t tokens_per_step;
    int64_t step_ns[ORR_MAX_LOST_REPLICAS + 1]; /* with so many replicas fewer */
    double mfu_frac;
} OrrRunPhase;

typedef struct {
    char *name;
    uint32_t n_gpus, n_nodes, n_replicas;
    /* The run ends with the first of these that is reached; 0: no such end. */
    int64_t length_ns, total_tokens, total_steps;
    OrrRunPhase *phases;
    uint32_t n_phases;
    uint32_t max_lost_replicas; /* priced above */
    double noise_frac;          /* mean excess of a step over nominal, exponential a step */
    int64_t evaluate_ns;
    uint32_t evaluate_steps; /* each so many; 0: none */
    OrrCheckpointPlan checkpoint;
    OrrRecovery recovery;
    OrrFailureKind *kinds;
    uint32_t n_kinds;
} OrrRunSpec;

OrrRunSpec *orr_run_spec_new(void);
void orr_run_spec_free(OrrRunSpec *spec);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrRunSpec, orr_run_spec_free)
/* A new zeroed kind to fill, valid until the next. */
OrrFailureKind *orr_run_spec_add_kind(OrrRunSpec *spec, const char *name);
/* Errors (ORR_ERROR_INPUT): no end, no phase, a slow factor below 1, ... ; one message. */
bool orr_run_spec_check(const OrrRunSpec *spec, GError **error);

/* Causes of lost time: these first, then the kinds of the spec. */
typedef enum {
    ORR_CAUSE_START,
    ORR_CAUSE_CHECKPOINT,
    ORR_CAUSE_EVALUATION,
    ORR_CAUSE_NOISE,
    ORR_CAUSE_END,
    ORR_N_OWN_CAUSES
} OrrOwnCause;
extern const char *const orr_own_cause_names[];
static inline uint32_t orr_run_n_causes(const OrrRunSpec *spec) {
    return ORR_N_OWN_CAUSES + spec->n_kinds;
}

/* Mean time between two strikes of a kind anywhere in the job, ns; INFINITY if it never strikes. */
double orr_kind_mtbf_ns(const OrrFailureKind *kind);
/* How often it strikes, per ns; of recorded strikes those in the length of the run over that length,
 * or, where it ends otherwise, all up to the last one. */
double orr_run_kind_rate(const OrrRunSpec *spec, const OrrFailureKind *kind);
/* Whether the job is saved before a kind stops it: planned, or with notice enough for a save. */
bool orr_kind_is_announced(const OrrRunSpec *spec, const OrrFailureKind *kind);
/* Mean time between strikes of all kinds that interrupt unannounced, so that work is lost. */
double orr_run_mtbf_ns(const OrrRunSpec *spec);

#endif
