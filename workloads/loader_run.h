/* Files of whole runs: what is run for how long (workloads/runs), what fails (topologies/failures),
 * what it costs (workloads/prices). doc/formats.md has the keys. */
#ifndef WORKLOADS_LOADER_RUN_H
#define WORKLOADS_LOADER_RUN_H

#include "sim/facts/failures.h"
#include "sim/facts/prices.h"
#include "workloads/loader.h"

typedef enum {
    ORR_INTERVAL_FIXED,
    ORR_INTERVAL_YOUNG,
    ORR_INTERVAL_DALY,
    ORR_INTERVAL_SEARCH
} OrrIntervalPolicy;
extern const char *const orr_interval_policy_names[];

/* A store of checkpoints. */
typedef struct {
    char *name;
    double bytes_per_s; /* of the whole store, shared by the writers; 0: no limit of its own */
    double writer_bytes_per_s; /* of one writer */
    double node_bytes_per_s;   /* of the writers of one node together; 0: no limit */
    double read_bytes_per_s;   /* whole; 0: as written */
    double latency_ns;         /* opening, closing, metadata of one save */
    uint32_t every, keep;
    OrrScope survives;
    OrrStoreNetwork network;
} OrrRunStore;

/* A stretch of the run before the job as it is. */
typedef struct {
    char *name;
    double tokens;
    char *sets; /* "group.key=value; ..." on top of the job */
} OrrRunStage;

typedef struct {
    char *name, *summary, *source;
    char *job_ref;                   /* "" where step_ns is given */
    char *failures_ref, *prices_ref; /* "": none */
    char *sets;                      /* "group.key=value; ..." for the job and its files */
    OrrContract contract;
    double length_ns, tokens, steps; /* 0: no such end */
    double step_ns, tokens_per_step; /* instead of a simulated step; 0: simulate */
    uint32_t gpus, gpus_per_node;    /* with step_ns */
    double noise_frac, evaluate_ns, queue_ns, failure_scale;
    uint32_t evaluate_steps;
    struct {
        double start_ns, start_growth, in_place_ns, swap_ns, cold_ns, reshard_ns, requeue_ns,
            hot_swap_ns;
        uint32_t start_ranks, hot_spares, cold_spares, max_lost, repair_hands;
        OrrRequeue requeue_after;
        OrrElastic elastic;
    } recovery;
    struct {
        OrrIntervalPolicy policy;
        double interval_ns;
        uint32_t interval_steps;
        double bytes, bytes_per_parameter, loader_bytes; /* 0: worked out */
        double copy_bytes_per_s;                         /* device to host, a rank */
        double front_bytes_per_s; /* of a node to stores on a network of their own; 0: no limit */
        uint32_t writers;         /* 0: every rank */
        bool is_async;
    } checkpoint;
    OrrRunStore *stores;
    uint32_t n_stores;
    OrrRunStage *stages;
    uint32_t n_stages;
} OrrRunFile;
void orr_run_file_free(OrrRunFile *file);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrRunFile, orr_run_file_free)

/**
 * orr_workload_run: a file of workloads/runs, or a path; the name of a job without such a file is a
 * run of that job whose length the overrides give. Overrides of groups that are not the run file's
 * own are left for the job: orr_run_file_owns tells.
 */
OrrRunFile *orr_workload_run(const char *ref, const OrrOverride *overrides, uint32_t n_overrides,
                             OrrSources *sources, GError **error);
/* Whether the group is of this run file (run, recovery, checkpoint, its stores and phases). */
bool orr_run_file_owns(const OrrRunFile *file, const char *group);
/* "a.b=c; d.e=f" as overrides: their texts are kept in @texts (free func g_free). */
bool orr_run_parse_sets(const char *sets, GPtrArray *texts, GArray *overrides, GError **error);

/**
 * orr_workload_failures: a file of topologies/failures, or a path; counts are left per unit:
 * n_units is the caller's to set from the job. Overrides of the groups of causes apply.
 */
OrrFailureSet *orr_workload_failures(const char *ref, const OrrOverride *overrides,
                                     uint32_t n_overrides, OrrSources *sources, GError **error);
OrrPrices *orr_workload_prices(const char *ref, const OrrOverride *overrides, uint32_t n_overrides,
                               OrrSources *sources, GError **error);

/* Names, sentences and sources of "runs", "failures", "prices" or "shares": OrrListed*, free func
 * set. */
GPtrArray *orr_run_list(const char *kind, GError **error);

#endif
