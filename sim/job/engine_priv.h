/* Inside the engine: the state of one run, shared by training (engine.c) and recovery (recover.c).
 */
#ifndef ORR_JOB_ENGINE_PRIV_H
#define ORR_JOB_ENGINE_PRIV_H

#include "sim/job/engine.h"
#include "sim/job/strikes.h"

/* Progress, as a checkpoint holds it. */
typedef struct {
    int64_t step, tokens, useful_ns, productive_ns;
    double mfu_ns;
    int64_t taken_ns, whole_ns; /* when the state was taken, when it can be read back */
} Mark;

typedef struct {
    Mark *marks; /* ring of tier.keep */
    uint32_t n, first;
    int64_t busy_ns;    /* the last write ends */
    int64_t traffic_ns; /* until then it slows the steps */
} Shelf;

#define MAX_SLOW 64u /* degradations at a time; more are not told apart */
typedef struct {
    uint32_t kind;
    int64_t end_ns;
    double factor;
} Slow;

typedef struct {
    const OrrRunSpec *spec;
    const OrrRunProbe *probe;
    OrrRunSeed *out;
    OrrStrikes strikes;
    OrrRandom noise;
    int64_t now, horizon_ns;
    Mark at;
    int64_t saved_step; /* of the checkpoint that the next interval counts from */
    uint64_t n_saves, n_rollbacks;
    Shelf shelves[ORR_MAX_TIERS];
    int64_t load_ns; /* of the mark that was rolled back to */
    uint32_t hot, cold, missing;
    bool is_hot_swap; /* only hot spares were put in */
    uint32_t lost_replicas, shrunk_cause;
    OrrQueue repairs; /* when each node is back */
    OrrQueue hands;   /* when each is free; as many as have ever been busy */
    Slow slow[MAX_SLOW];
    uint32_t n_slow;
    int64_t corrupt_ns, found_ns; /* INT64_MAX: none */
    uint32_t corrupt_kind;
    uint32_t planned; /* kind + 1 that waits for the end of the step; 0: none */
    bool is_over;
} Run;

void orr_job__emit(Run *r, OrrRunEvent e);
/* Books the time up to @until as lost. */
void orr_job__lose(Run *r, int64_t until, uint32_t cause, OrrLoss loss);
/* Lets @ns pass as lost time; @is_up: the job is up and not being recovered. false: the time of the
 * run is up (is_over), or a strike that stops the job comes first, and it is then. */
bool orr_job__pass(Run *r, int64_t ns, uint32_t cause, OrrLoss loss, bool is_up);

/* Lets @ns pass in the queue of the cluster: what fails there meanwhile is not the job's. false:
 * the time of the run is up. */
bool orr_job__queue(Run *r, int64_t ns, uint32_t cause, OrrLoss loss);

/* A checkpoint at the end of a step; false as orr_job__pass. */
bool orr_job__save(Run *r);
/* Saves now, to the tier that is whole soonest and survives @scope, booked to @cause. */
void orr_job__save_for(Run *r, uint32_t cause, OrrScope scope);
/* The strike that is due stops the job: everything until it trains again. */
void orr_job__interrupt(Run *r);
/* Corruption has been found. */
void orr_job__found(Run *r);
/* An announced stop because of @kind, at the end of a step: saved first. */
void orr_job__stop_gently(Run *r, uint32_t kind);
/* From nothing or from a stop to training; @is_known: no detection, no diagnosis, no waiting. */
void orr_job__come_up(Run *r, uint32_t cause, bool is_known);
/* How long until it is seen: of the strike of @kind that was taken last. */
int64_t orr_job__detect_ns(const Run *r, uint32_t kind);
/* Nodes back from repair. */
void orr_job__collect(Run *r);
uint32_t orr_job__replicas_short(const Run *r);

#endif
