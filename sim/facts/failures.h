/* Kinds of failures with their rates: what was measured on some machine, or is assumed of it. Plain
 * structs, times in nanoseconds. Files of topologies/failures hold them; sim/job lets them strike.
 */
#ifndef ORR_FACTS_FAILURES_H
#define ORR_FACTS_FAILURES_H

#include "sim/base/error.h"

/* What there are many of. The job's own count of each is in the spec. */
typedef enum {
    ORR_UNIT_GPU,
    ORR_UNIT_NODE,
    ORR_UNIT_SWITCH,
    ORR_UNIT_RACK,
    ORR_UNIT_JOB,
    ORR_N_UNITS
} OrrFailureUnit;
extern const char *const orr_failure_unit_names[]; /* NULL-terminated */

typedef enum {
    ORR_LAW_EXPONENTIAL,
    ORR_LAW_WEIBULL, /* of each unit, renewed after each strike; shape below 1: infant mortality */
    ORR_LAW_EVENTS,  /* at given times */
    ORR_LAW_PERIODIC /* each mean time, to the second: maintenance */
} OrrFailureLaw;
extern const char *const orr_failure_law_names[];

typedef enum {
    ORR_EFFECT_STOP,    /* the job dies at once */
    ORR_EFFECT_HANG,    /* the job stands until a watchdog or a person sees it */
    ORR_EFFECT_CORRUPT, /* silent: training goes on, for nothing, until it is found */
    ORR_EFFECT_SLOW,    /* steps take longer for a while */
    ORR_EFFECT_STALL,   /* training stands for a while and goes on */
    ORR_EFFECT_PLANNED, /* announced: saved first, then a stop */
    ORR_EFFECT_RECLAIM, /* the provider takes nodes back: saved first if the notice is enough */
    ORR_N_EFFECTS
} OrrEffect;
extern const char *const orr_effect_names[];
/* Whether the training stops and is started again. */
bool orr_effect_is_interruption(OrrEffect effect);

/* How much is lost with it: a copy in memory or on a disk survives what is smaller. */
typedef enum {
    ORR_SCOPE_PROCESS,
    ORR_SCOPE_NODE,
    ORR_SCOPE_RACK,
    ORR_SCOPE_ALL,
    ORR_N_SCOPES
} OrrScope;
extern const char *const orr_scope_names[];

typedef struct {
    char *name, *component, *source;
    OrrFailureUnit unit;
    uint64_t n_units;       /* in this job */
    bool has_units;         /* n_units is given and does not follow the size of the job */
    uint32_t exclude_after; /* a unit is taken out for good after so many strikes; 0: never */
    OrrFailureLaw law;
    double mean_ns;    /* between two strikes of one unit; 0 with ORR_LAW_EVENTS */
    double shape;      /* Weibull */
    int64_t *event_ns; /* ORR_LAW_EVENTS, ascending */
    uint32_t n_events;
    OrrEffect effect;
    uint32_t nodes; /* that have to be replaced; 0: started again where it is */
    OrrScope scope;
    bool only_running; /* cannot strike while the job is down: bugs of the job itself */
    bool takes_all;    /* nodes: all that hang on the unit; the caller sets their number */
    int64_t detect_ns, diagnose_ns;
    bool by_hand;        /* somebody has to see it: detect_ns is the mean of an exponential time */
    int64_t repair_ns;   /* mean, exponential, until a node is back; 0: at once */
    int64_t duration_ns; /* SLOW (mean, exponential), STALL, PLANNED, RECLAIM (fixed) */
    double slow_factor;  /* SLOW: step time over nominal, at least 1 */
    char *slow_sets;     /* SLOW: "group.key=value; ..." whose step gives the factor; or NULL */
    char *slow_part;     /* SLOW: one part, "gpu:any:speed=0.8", whose step gives it; or NULL */
    double *class_factor, *class_share; /* of it, by where it strikes; shares add up to 1 */
    uint32_t n_classes;                 /* 0: slow_factor everywhere, else its mean */
    int64_t notice_ns;                  /* RECLAIM */
} OrrFailureKind;

/* Parts that fail, as files name them: "gpu", "hbm", ... */
extern const char *const orr_component_names[];

/* Which stops send the job back to the queue of the cluster. */
typedef enum { ORR_REQUEUE_REPLACED, ORR_REQUEUE_ALL } OrrRequeue;
extern const char *const orr_requeue_names[];

/* What a store of checkpoints hangs on: a network of its own, that of the training, or it is the
 * memory of other nodes, over that of the training. */
typedef enum { ORR_STORE_OWN, ORR_STORE_COMPUTE, ORR_STORE_PEERS } OrrStoreNetwork;
extern const char *const orr_store_network_names[];

typedef enum { ORR_ELASTIC_NO, ORR_ELASTIC_SHRINK, ORR_ELASTIC_KEEP_BATCH } OrrElastic;
extern const char *const orr_elastic_names[];

/* An array of kinds that can grow. */
typedef struct {
    char *name, *summary, *source;
    OrrFailureKind *kinds;
    uint32_t n;
} OrrFailureSet;
OrrFailureSet *orr_failure_set_new(void);
void orr_failure_set_free(OrrFailureSet *set);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrFailureSet, orr_failure_set_free)
/* A new kind to fill (exponential, one unit, factor 1), valid until the next. */
OrrFailureKind *orr_failure_set_add(OrrFailureSet *set, const char *name);
void orr_failure_kind_clear(OrrFailureKind *kind);
/* Deep copy. */
void orr_failure_kind_copy(OrrFailureKind *to, const OrrFailureKind *from);

#endif
