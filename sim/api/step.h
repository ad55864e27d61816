/* A training step from job to record: load, check, lower, bind, execute. */
#ifndef ORR_API_STEP_H
#define ORR_API_STEP_H

#include "sim/api/calibration.h"
#include "sim/cluster/placement.h"
#include "sim/core/probe.h"
#include "sim/program/program.h"
#include "sim/result/record.h"
#include "workloads/loader.h"

/* Specs made in memory, in the place of a job's files; all borrowed until the run is freed and
 * never changed, so runs on other threads may share them. */
typedef struct {
    const OrrJob *job; /* its [nccl] and routing are the cluster's already */
    const OrrModel *model;
    const OrrFramework *framework;
    const OrrCluster *cluster;         /* with at least the layout's GPUs */
    const OrrCalibration *calibration; /* NULL: roofline */
    const OrrPlacement *placement;     /* NULL: as the job says */
} OrrStepSpecs;

typedef struct {
    const char *job; /* a job name or a path */
    const OrrStepSpecs
        *specs; /* or these; job, overrides, calibration and seed then do not count */
    const OrrOverride *overrides;
    uint32_t n_overrides;
    const char *calibration; /* NULL: the GPU file's own */
    uint64_t seed;
    bool has_seed;
    bool is_unfolded; /* every rank executed as itself */
    bool self_check;
    bool is_unbound; /* program and memory only: nothing is bound, execute must not follow */
    /* Called now and then while executing, in thousandths of a simulated step; may be NULL. */
    void (*progress)(void *data, uint64_t thousandths);
    void *progress_data;
    /* Told a line for people before a step that takes much memory; may be NULL. */
    void (*note)(void *data, const char *text);
    void *note_data;
} OrrStepRequest;

typedef struct OrrStepRun OrrStepRun;
/* Everything but the execution. NULL with @error. The request is borrowed until the run is freed.
 */
OrrStepRun *orr_step_prepare(const OrrStepRequest *request, GError **error);
void orr_step_free(OrrStepRun *run);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrStepRun, orr_step_free)

/* Bytes at the peak of each role (stage), by kind, with what its process holds besides; [roles] of
 * the program. */
void orr_step_memory(const OrrStepRun *run, int64_t (*by_kind)[ORR_N_MEM_KINDS]);

/* Executes. @probe may be NULL; else it gets the spans of the last simulated step (the steady one)
 * of the @n_ranks ranks in @ranks (sorted), times from the begin of that step. */
bool orr_step_execute(OrrStepRun *run, const OrrProbe *probe, const uint32_t *ranks,
                      uint32_t n_ranks, GError **error);
typedef struct {
    uint32_t n_seeds;   /* at least 2 */
    uint32_t n_threads; /* 0: as many as there are processors; the result does not depend on it */
    void (*progress)(void *data, uint64_t done); /* seeds; on the caller's thread; may be NULL */
    void *progress_data;
} OrrStepSeeds;

/**
 * orr_step_run_seeds: after execute, the step time over the seeds from the job's on, for the
 * record's percentiles. Errors (ORR_ERROR_USAGE): nothing in the job depends on the seed.
 */
bool orr_step_run_seeds(OrrStepRun *run, const OrrStepSeeds *seeds, GError **error);
#define ORR_SENSITIVITY_FACTOR 1.1 /* a tenth more of each: ours, one that people think in */

typedef struct {
    double factor;      /* how many times as much of each; 0: ORR_SENSITIVITY_FACTOR */
    uint32_t n_threads; /* 0: as many as there are processors; the result does not depend on it */
    void (*progress)(void *data, uint64_t done); /* runs; on the caller's thread; may be NULL */
    void *progress_data;
} OrrStepSensitivity;

/* How many runs it takes: one for each thing that the machine has. */
uint32_t orr_step_n_sensitivities(const OrrStepRun *run);
/**
 * orr_step_run_sensitivity: after execute, what the step would take with more of each thing that
 * the machine has (arithmetic, memory, links by kind, latency, host), alone, for the record.
 */
bool orr_step_run_sensitivity(OrrStepRun *run, const OrrStepSensitivity *in, GError **error);
/* After execute. Owned by the run. */
const OrrRecord *orr_step_record(const OrrStepRun *run);
const OrrProgram *orr_step_program(const OrrStepRun *run);
uint32_t orr_step_n_ranks(const OrrStepRun *run);
uint32_t orr_step_role_of_rank(const OrrStepRun *run, uint32_t rank);
/* Size and members of the group instance of a span; borrowed until another group of the kind is
 * asked for, by one thread at a time. */
uint32_t orr_step_group(const OrrStepRun *run, OrrGroup kind, uint32_t group,
                        const uint32_t **members);
/* The rank at @position of the group of that kind that @rank is in. */
uint32_t orr_step_peer(const OrrStepRun *run, uint32_t rank, OrrGroup kind, uint32_t position);
/* How collective @coll of the program runs in the group of @rank. */
void orr_step_plan(const OrrStepRun *run, uint32_t rank, uint32_t coll, OrrAlgo *algo,
                   OrrProto *proto);
/* What the compute stream of a rank idled for others in a step. */
typedef struct {
    int64_t wait_ns;      /* the sum of the next three */
    int64_t bubble_ns;    /* for members of other stages */
    int64_t straggler_ns; /* for later members of its other groups */
    int64_t exposed_ns;   /* for transfers, which a late peer delays too */
    int64_t unperturbed_wait_ns;
    bool has_unperturbed; /* there are perturbations, and so a step without them */
} OrrStepWait;
/* Of a real rank, whoever was executed for it. After execute. */
void orr_step_rank_wait(const OrrStepRun *run, uint32_t rank, OrrStepWait *wait);
uint32_t orr_step_node_of_rank(const OrrStepRun *run, uint32_t rank);
const OrrLayout *orr_step_layout(const OrrStepRun *run);
const OrrNode *orr_step_node(const OrrStepRun *run);     /* with its GPU */
double orr_step_peak_flops_per_s(const OrrStepRun *run); /* dense, of one GPU, in the job's dtype */

#endif
