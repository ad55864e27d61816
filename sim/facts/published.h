/* Published measurements as plain facts, a row each, with what their sources state and nothing
 * more: training runs, collectives by size, kernels by shape. workloads/published reads them from
 * tables, sim/judge holds them against the simulator. Numbers: 0 = not stated. Texts: as written,
 * "" = not stated, never NULL. */
#ifndef ORR_FACTS_PUBLISHED_H
#define ORR_FACTS_PUBLISHED_H

#include "sim/facts/measured.h"
#include "sim/terms/terms.h"

#include <glib.h>
#include <stdbool.h>

typedef enum {
    ORR_OUTCOME_NONE, /* not a trial of memory */
    ORR_OUTCOME_RAN,
    ORR_OUTCOME_OUT_OF_MEMORY
} OrrOutcome;

typedef struct {
    uint32_t file; /* place in OrrPublished.files */
    uint32_t line;
    char *id, *source, *gpu, *interconnect, *model, *framework, *schedule, *recompute, *precision,
        *zero, *note,
        *after_pp_fix; /* the last of nanotron's trials: run when its pipelines were mended */
    uint32_t gpus, nodes;
    uint32_t layers, hidden, heads, kv_heads, ffn, vocab, sequence_tokens, experts;
    uint32_t global_sequences, micro_sequences;
    uint32_t micro_batches; /* a step; then the global batch follows from it */
    uint32_t tp, pp, vpp, cp, ep, dp;
    int sp; /* 0, 1; -1: not stated */
    double params;
    double step_time_ns, tokens_per_gpu_per_s, tflops_per_gpu;
    double memory_bytes; /* the fullest GPU's, as printed; `note` says if allocated or reserved */
    bool is_trial;       /* of a table of what fits and what does not */
    OrrOutcome outcome;
    bool is_recommended; /* the table's own judgement; true where it has none */
    char *flaw;          /* why the row can't be read: "gpus = eight: ..."; NULL: sound */
} OrrPublishedRun;

typedef struct {
    uint32_t file, line;
    char *id, *system, *gpu, *interconnect;
    char *what;       /* as written, where `kind` is ORR_N_COLLECTIVES: not one of ours */
    uint32_t version; /* of NCCL: 22706; 0: not stated */
    OrrCollective kind;
    OrrAlgo algo; /* forced; ORR_N_ALGOS: free */
    OrrDtype dtype;
    uint32_t n_ranks, n_nodes;
    int64_t bytes; /* nccl-tests' size */
    double time_ns;
    OrrTimed timed;
} OrrPublishedCall;

typedef struct {
    uint32_t file, line;
    char *id, *gpu;
    char *flaw;         /* why it can't be compared; NULL: sound */
    OrrKernelKind kind; /* ORR_K_GEMM or ORR_K_ATTENTION, forward */
    OrrDtype dtype;
    bool is_block_scaled; /* FP8 with scales per 128 */
    bool is_causal;
    bool is_alone; /* the kernel itself; no: a serving stack's operation, with what is around it */
    int64_t m, n, k;
    int64_t batch, sequence_tokens;
    uint32_t heads, kv_heads, head_dim;
    double time_ns;
} OrrPublishedKernel;

typedef struct {
    char **files;                   /* base names, NULL-terminated */
    char **hashes;                  /* SHA-256 of each, NULL-terminated */
    GArray *runs, *calls, *kernels; /* of the structs above */
    GPtrArray *others;              /* char *: "FILE: why nothing in it can be compared" */
} OrrPublished;

OrrPublished *orr_published_new(void);
void orr_published_free(OrrPublished *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrPublished, orr_published_free)

#endif
