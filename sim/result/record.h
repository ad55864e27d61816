/* The metrics record of one training step: what a run says, in SI base units, and no format. The
 * executor fills it, sim/report renders it, `orrery plot` and `trace` start from it. Everything is
 * owned by the record; strings are never NULL ("" = does not apply). */
#ifndef ORR_RESULT_RECORD_H
#define ORR_RESULT_RECORD_H

#include "sim/base/error.h"
#include "sim/terms/terms.h"

/* tight: headroom under ORR_TIGHT_FRAC of the capacity. */
typedef enum { ORR_FITS, ORR_TIGHT, ORR_DOES_NOT_FIT, ORR_N_VERDICTS } OrrVerdict;
#define ORR_TIGHT_FRAC 0.05                 /* DESIGN.md, section 4, Memory */
const char *orr_verdict_name(OrrVerdict v); /* "fits" "tight" "does_not_fit" */
OrrVerdict orr_verdict(int64_t peak_bytes, int64_t capacity_bytes);

/* Owners of the critical path: kernel kinds first (same values as OrrKernelKind), then these. No
 * bubble lies on it: a wait is replaced by what the peer did meanwhile. */
typedef enum {
    ORR_PATH_INTERFERENCE = ORR_N_KERNEL_KINDS, /* slow-down of kernels on the path */
    ORR_PATH_TRANSFER_FIRST,                    /* + OrrCommKind: bytes moving */
    ORR_PATH_LATENCY_FIRST = ORR_PATH_TRANSFER_FIRST + ORR_N_COMM_KINDS, /* + OrrCommKind */
    ORR_PATH_HOST = ORR_PATH_LATENCY_FIRST + ORR_N_COMM_KINDS,           /* issuing */
    ORR_PATH_DATA,                                                       /* input */
    ORR_PATH_JITTER, /* how much later the last of several is, in the mean */
    ORR_N_PATH_OWNERS
} OrrPathOwner;
/* "gemm", "interference", "transfer_tp", "latency_tp", "host", ... */
const char *orr_path_owner_name(uint32_t owner);

typedef struct {
    char *name, *sha256;
} OrrRecordInput;
typedef struct {
    char *key, *value, *origin;
} OrrRecordAssumption;
typedef struct {
    char *code, *text;
} OrrRecordWarning;
typedef struct {
    char *code, *evidence, *advice;
} OrrRecordFinding;

typedef struct {
    char *formula;
    double peak_flops_per_s;   /* dense, of one GPU */
    double tflops_per_gpu;     /* model FLOPs by this formula */
    double mfu_frac, hfu_frac; /* hfu: with the recomputed FLOPs */
} OrrRecordMfu;

/* One kind of communication: mean per rank and step (ranks that do not take part count as 0). */
typedef struct {
    OrrCommKind kind;
    OrrCollective collective;
    uint32_t group_size;
    char *algorithm, *protocol; /* "ring" "simple"; "send" and "" for point to point */
    int64_t count, bytes;       /* calls; bytes as nccl-tests counts size, all calls together */
    int64_t transfer_ns, wait_ns, exposed_ns; /* DESIGN.md, section 6 */
} OrrRecordComm;

typedef struct {
    uint32_t stage;
    uint32_t layers;
    bool has_embedding, has_head;
    int64_t busy_ns;    /* compute stream not idle, mean over ranks of the stage */
    int64_t peak_bytes; /* worst rank of the stage */
    OrrVerdict verdict;
    int64_t mem_bytes[ORR_N_MEM_KINDS]; /* at the peak; adds up to peak_bytes */
    int64_t account_ns[ORR_N_OWNERS];   /* mean over ranks of the stage; adds up to step_time_ns,
                                           or all 0 where it was not taken */
} OrrRecordStage;

/* A kind of group that this layout has (size above 1), shown by the group of rank 0. */
typedef struct {
    OrrGroup kind;
    uint32_t size, n_groups;
    uint32_t nodes, domains; /* that the members sit on; above 1: it leaves the node */
    char *members;           /* "0-7" or "0,8,16,...,1016" */
    char *network;           /* what carries it between nodes: "ib", "roce", "ethernet",
                                "sockets"; "" inside the NVLink domain */
} OrrRecordGroup;

typedef struct {
    char *what, *value; /* "gpu:17:speed", "0.9" */
} OrrRecordPerturb;

/* Time of the compute stream idle for communication and for later peers, over all ranks: the least
 * comes of who keeps others waiting. */
typedef struct {
    int64_t least_ns, median_ns, most_ns;
    uint32_t least_rank, most_rank;
} OrrRecordWaits;

/* Step times over seeds. */
typedef struct {
    uint32_t n_seeds; /* 0: one seed only */
    int64_t p5_ns, p50_ns, p95_ns, mean_ns;
    int64_t ci95_ns; /* half the width of the 95 % interval of the mean */
} OrrRecordPercentiles;

/* Where the measured step time of such a job is likely to be: from this program's own errors on
 * published runs (sim/judge/interval.h). n_rows 0: not taken. */
typedef struct {
    double coverage_frac;
    int64_t low_ns, median_ns, high_ns;
    uint32_t n_rows, n_sources; /* runs of the regime, and publications they are of */
    char *regime;               /* what such runs are */
    char *outside;              /* what of the job no published run had; "": nothing */
} OrrRecordInterval;

/* What the step would take with more of something, and all else as it is. */
typedef struct {
    const char *name, *keys; /* static: what it is, keys of files that give it */
    int64_t step_time_ns;
} OrrRecordSensitivity;

/* A rank that others waited for. */
typedef struct {
    uint32_t rank;
    int64_t waited_for_ns; /* how much longer than without the perturbations the others idled for
                              communication and peers, in the mean, over what it did itself */
    int64_t cost_ns;       /* step time over that without the perturbations */
} OrrRecordStraggler;

/* A member of a meeting that cost much waiting, at the call that cost most. */
typedef struct {
    char *what; /* the collective's label */
    OrrGroup group;
    uint32_t group_size; /* members that met */
    uint32_t order;      /* from 0; those that come together are in order of rank */
    uint32_t rank;
    int64_t late_ns; /* after the first of them */
} OrrRecordArrival;

typedef struct {
    uint32_t tp, pp, vpp, cp, dp, ep, zero_stage;
    bool sequence_parallel;
    uint32_t micro_batch, global_batch; /* sequences: MBS, GBS */
    uint32_t micro_batches;             /* M, per step and pipeline */
    uint32_t sequence_length;           /* tokens */
    char *rank_order;                   /* "tp-cp-ep-dp-pp" */
} OrrRecordLayout;

typedef struct OrrRecord {
    char *version;
    uint64_t seed;
    char *job, *model, *cluster, *gpu, *framework, *schedule, *precision, *recompute, *calibration;
    OrrRecordInput *inputs;
    uint32_t n_inputs;
    OrrRecordAssumption *assumptions;
    uint32_t n_assumptions;
    OrrRecordWarning *warnings;
    uint32_t n_warnings;
    OrrRecordFinding *findings;
    uint32_t n_findings;
    char **overrides;
    uint32_t n_overrides; /* "group.key=value" of --set */
    OrrRecordPerturb *perturbs;
    uint32_t n_perturbs;
    OrrRecordStraggler *stragglers; /* most waited for first */
    uint32_t n_stragglers;
    OrrRecordArrival *arrivals; /* by meeting, most waited for first, then by order */
    uint32_t n_arrivals;
    int64_t sound_step_time_ns; /* without the perturbations; 0 if there are none */
    OrrRecordPercentiles percentiles;
    double sensitivity_factor;           /* how many times as much; 0: not asked */
    OrrRecordSensitivity *sensitivities; /* most saved first */
    uint32_t n_sensitivities;
    OrrRecordInterval interval;
    OrrRecordWaits waits; /* of ranks in a step */

    uint32_t world_size;
    OrrRecordLayout layout;
    uint64_t parameters_total, parameters_active;

    int64_t step_time_ns, first_step_ns;
    bool is_periodic; /* two successive steps agreed; else step_time_ns is a mean */
    uint32_t simulated_steps;
    int64_t tokens_per_step;
    double tokens_per_s, tokens_per_s_per_gpu;
    char *flops_formula;
    double model_flops_per_step, hardware_flops_per_step; /* by flops_formula, whole job */
    double tflops_per_gpu;
    OrrRecordMfu *mfu;
    uint32_t n_mfu; /* the first is flops_formula's */
    double bubble_of_step_frac, bubble_over_ideal_frac;
    double communication_share_frac; /* exposed communication over step time */

    OrrRecordComm *comms;
    uint32_t n_comms;
    OrrRecordGroup *groups;
    uint32_t n_groups;
    OrrRecordStage *stages;
    uint32_t n_stages;
    int64_t capacity_bytes;
    OrrVerdict verdict;                          /* the worst stage's */
    int64_t time_account_ns[ORR_N_OWNERS];       /* adds up to step_time_ns */
    int64_t critical_path_ns[ORR_N_PATH_OWNERS]; /* adds up to step_time_ns; all 0: not taken */

    struct {
        uint64_t ranks, representatives, operations, blocks, events;
    } simulation; /* of one simulated step */
} OrrRecord;

/* All zero, all strings "". */
OrrRecord *orr_record_new(void);
void orr_record_free(OrrRecord *record);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrRecord, orr_record_free)

/* Replaces a string of the record: orr_record_set(&record->job, "llama3-405b-16k"). */
void orr_record_set(char **field, const char *value);
void orr_record_add_input(OrrRecord *record, const char *name, const char *sha256);
void orr_record_add_assumption(OrrRecord *record, const char *key, const char *value,
                               const char *origin);
void orr_record_add_warning(OrrRecord *record, const char *code, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
/* Texts are copied. */
void orr_record_add_finding(OrrRecord *record, const char *code, const char *evidence,
                            const char *advice);
void orr_record_add_override(OrrRecord *record, const char *text);
void orr_record_add_perturb(OrrRecord *record, const char *what, const char *value);
void orr_record_add_straggler(OrrRecord *record, const OrrRecordStraggler *straggler);
/* Texts are borrowed for ever. */
void orr_record_add_sensitivity(OrrRecord *record, const char *name, const char *keys,
                                int64_t step_time_ns);
/* The text is copied. */
void orr_record_add_arrival(OrrRecord *record, const OrrRecordArrival *arrival);
void orr_record_add_mfu(OrrRecord *record, const char *formula, double peak_flops_per_s,
                        double tflops_per_gpu, double mfu_frac, double hfu_frac);
/* Each returns a zeroed new element to fill (strings ""), valid until the next one is added. */
OrrRecordComm *orr_record_add_comm(OrrRecord *record);
OrrRecordGroup *orr_record_add_group(OrrRecord *record);
/* Of @stage's peak: tensors alone, and what PyTorch's caching allocator holds for them, as
 * torch.cuda.max_memory_allocated and max_memory_reserved tell. */
int64_t orr_record_allocated_bytes(const OrrRecordStage *stage);
int64_t orr_record_reserved_bytes(const OrrRecordStage *stage);
/* Replaces the stages by @n_stages zeroed ones, numbered. */
void orr_record_alloc_stages(OrrRecord *record, uint32_t n_stages);

/* An account whose parts are means rounded down: puts the integer remainder to @total_ns on the
 * largest owner (the first of equals). */
void orr_record_settle(int64_t *account_ns, uint32_t n_owners, int64_t total_ns);

/* Invariants: both accounts (and those of the stages, where taken) add up to step_time_ns, no part
 * is negative, memory kinds add up to the peak, verdicts agree, the first MFU row is
 * flops_formula's, tokens are GBS x sequence. NULL if sound, else what is wrong; g_free. */
char *orr_record_flaw(const OrrRecord *record);

#endif
