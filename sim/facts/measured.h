/* What was measured, as plain facts: collectives by size, steps of a training run, kernels and
 * collectives of a profile. Importers fill them, judges read them; nothing here knows files. */
#ifndef ORR_FACTS_MEASURED_H
#define ORR_FACTS_MEASURED_H

#include "sim/terms/terms.h"

#include <glib.h>
#include <stdbool.h>

/* Who issues the calls that a tool times. */
typedef enum {
    ORR_TIMED_RANKS,       /* a process a GPU, calls one behind another: the kernels alone */
    ORR_TIMED_ONE_PROCESS, /* one process launches for all GPUs in turn: nccl-tests -g N */
    ORR_TIMED_TORCH        /* a call of torch.distributed, between two events */
} OrrTimed;

/* One timing of a collective. time_ns 0: not measured, or not usable (see flaw). */
typedef struct {
    double time_ns;
    double algbw_bytes_per_s, busbw_bytes_per_s; /* as printed; computed where not printed */
    int64_t n_wrong;                             /* values found wrong; -1: not checked */
} OrrMeasuredCall;

/* A row of a table: one size. bytes is what nccl-tests calls size: the buffer of a rank for
 * all-reduce, broadcast, reduce and send-receive; for all-gather the gathered result, for
 * reduce-scatter the input, for all-to-all the whole buffer of a rank. */
typedef struct {
    int64_t bytes, count; /* count 0: not known */
    OrrDtype dtype;       /* ORR_N_DTYPES: not one of ours, see dtype_name */
    char dtype_name[16];  /* as the tool wrote it */
    int32_t root;         /* -1: none */
    OrrMeasuredCall out_of_place, in_place;
    const char *flaw; /* static text: why the row must not be used; NULL: sound */
    uint32_t line;    /* of the file, from 1; 0: not known */
} OrrMeasuredCollective;

/* A table of one collective on one set of ranks. 0 and NULL: not known. */
typedef struct {
    char *name;   /* of the file */
    char *source; /* tool and version: "nccl-tests 2.18.0" */
    char *gpu;    /* as the tool names it: "NVIDIA H100 80GB HBM3" */
    char *nccl_version;
    char *environment; /* NCCL_* settings only, "A=1 B=2" */
    OrrCollective kind;
    uint32_t n_ranks, n_nodes;
    bool is_kind_inferred, is_n_ranks_inferred; /* from the ratio of busbw to algbw */
    OrrMeasuredCollective *rows;
    uint32_t n_rows, n_flawed; /* rows with a flaw are kept, and counted here */
    bool is_cut;               /* the table ended before its tool did */
    OrrTimed timed;
} OrrMeasuredTable;

typedef struct {
    OrrMeasuredTable **tables;
    uint32_t n_tables;
} OrrMeasuredTables;

/* Frees the struct and what it holds; NULL is fine. */
void orr_measured_tables_free(OrrMeasuredTables *tables);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrMeasuredTables, orr_measured_tables_free)

/* The time to use: out of place, else in place; 0 if the row has a flaw or neither. */
double orr_measured_time_ns(const OrrMeasuredCollective *row);
/* busbw over algbw as nccl-tests defines them: 2(n-1)/n, (n-1)/n or 1. */
double orr_measured_bus_factor(OrrCollective kind, uint32_t n_ranks);

/* One logged step. NAN: not logged. */
typedef struct {
    int64_t iteration;
    double time_ns;        /* mean over the steps since the line before */
    double tflops_per_gpu; /* as logged, by the framework's own formula */
    double tokens_per_gpu_per_s, mfu_frac;
    double samples_per_s; /* whole job */
    double memory_bytes;
    uint32_t line;
    bool is_dropped; /* warm-up, or not a whole step */
} OrrMeasuredStep;

/* What a framework's own timers say of a step. */
typedef struct {
    char *name;     /* as logged: "forward-backward", "optimizer" */
    double time_ns; /* of one step: median over the used steps that logged it */
    uint32_t n;     /* steps that logged it */
} OrrMeasuredTimer;

/* A training run from its log. 0, NAN and NULL: not known. */
typedef struct {
    char *name;      /* of the file */
    char *framework; /* "Megatron", "Megatron-DeepSpeed", "DeepSpeed", "NeMo", "torchtitan" */
    char *gpu, *model;
    uint32_t n_gpus, tp, pp, dp, cp, ep, vpp;
    uint32_t layers, hidden, heads, vocab;
    int64_t ffn, sequence_tokens, global_batch, micro_batch;
    int32_t zero_stage;  /* -1: not known */
    int8_t is_recompute; /* -1: not known */
    OrrMeasuredStep *steps;
    uint32_t n_steps, n_used; /* n_used went into the numbers below */
    /* Steady state: medians over the used steps, and the spread of the step time. */
    double step_time_ns, step_p10_ns, step_p90_ns, step_deviation_ns;
    double tflops_per_gpu, tokens_per_gpu_per_s, mfu_frac, samples_per_s;
    double memory_bytes;      /* the highest of all steps */
    const char *memory_what;  /* "allocated", "reserved"; static */
    OrrMeasuredTimer *timers; /* in the order in which they first turn up */
    uint32_t n_timers;
    const char *timers_of; /* whose they are: "the last rank", ...; static; NULL: no timers */
} OrrMeasuredRun;

void orr_measured_run_free(OrrMeasuredRun *run);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrMeasuredRun, orr_measured_run_free)

/**
 * orr_measured_run_settle: drops the warm-up and fills the steady-state members from the steps.
 * Warm-up are iterations 0 and 1 and the steps at the beginning that are slower than the median by
 * more than half; at least one step is kept.
 */
void orr_measured_run_settle(OrrMeasuredRun *run);

/* Kernels of one name on one stream of a profile. */
typedef struct {
    char *name;
    OrrKernelKind kind; /* ORR_N_KERNEL_KINDS: not known by its name */
    int64_t stream;
    uint32_t n_calls;
    double total_ns, median_ns, min_ns, max_ns;
} OrrMeasuredKernel;

/* Communication kernels of one kind, size, group and stream. */
typedef struct {
    char *name; /* of the kernel */
    OrrCollective kind;
    bool has_kind; /* false: the name does not tell */
    OrrDtype dtype;
    int64_t bytes; /* by the convention of OrrMeasuredCollective; 0: not known */
    uint32_t group_size;
    char *group; /* "process group" as the profile names it; NULL */
    int64_t stream;
    uint32_t n_calls;
    double total_ns, median_ns, min_ns, max_ns;
    double exposed_ns; /* of the total: no compute kernel ran */
} OrrMeasuredTransfer;

/* One rank's profile. Times in nanoseconds; the window is that of the device's events. */
typedef struct {
    char *name;
    char *gpu;
    int32_t rank;        /* -1: not known */
    uint32_t world_size; /* 0: not known */
    uint32_t n_steps;    /* ProfilerStep annotations; 0: none */
    double window_ns, busy_ns, compute_ns, transfer_ns, exposed_ns, idle_ns;
    double kind_ns[ORR_N_KERNEL_KINDS + 1]; /* compute kernels by kind, unknown ones last */
    OrrMeasuredKernel *kernels;
    uint32_t n_kernels;
    OrrMeasuredTransfer *transfers;
    uint32_t n_transfers;
    double copy_ns; /* memcpy and memset */
    /* Of idle_ns: the event that ended it had not been launched yet. NAN: no launches in the file.
     */
    double host_idle_ns;
    uint32_t n_launched; /* events of the device whose launch is known */
} OrrMeasuredProfile;

void orr_measured_profile_free(OrrMeasuredProfile *profile);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrMeasuredProfile, orr_measured_profile_free)

#endif
