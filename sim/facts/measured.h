/* What a machine was measured to do, as plain facts: timed collectives and kernels, whoever timed
 * them (a log of nccl-tests, our own runner, a published table). Readers fill these, sim/judge
 * compares and fits them. Texts are never NULL ("" = not told). */
#ifndef ORR_FACTS_MEASURED_H
#define ORR_FACTS_MEASURED_H

#include "sim/terms/terms.h"

#include <glib.h>
#include <stdbool.h>

/* One timed call of a collective. */
typedef struct {
    OrrCollective kind;
    OrrDtype dtype;
    OrrAlgo algo;            /* as told or forced; ORR_N_ALGOS: not told */
    OrrProto proto;          /* ORR_N_PROTOS: not told */
    uint32_t n_ranks;
    uint32_t n_nodes;        /* 0: not told */
    uint32_t n_threads;      /* GPUs that one process drives; 0: not told */
    bool is_in_place;
    int64_t bytes;           /* nccl-tests' size */
    double time_ns;          /* above 0 */
    double spread_frac;      /* of repeated calls, over the time; negative: not told */
    uint32_t line;           /* in the file */
} OrrMeasuredCollective;

/* The rows of one file on one machine. */
typedef struct {
    char *name;              /* of the file */
    char *system, *gpu;      /* as written in it */
    char *network;           /* plugin or interconnect as written: "IB", "Socket", "8x400G NDR" */
    uint32_t nccl_version;   /* 22706 for 2.27.6; 0: not told */
    OrrMeasuredCollective *rows;
    uint32_t n_rows;
    char *notes;             /* what was left out and why, a line each */
} OrrCollectiveLog;

/* One timed kernel: a matrix product (m, n, k) or attention forward or backward. */
typedef struct {
    OrrKernelKind kind;      /* ORR_K_GEMM or ORR_K_ATTENTION */
    OrrKernelPass pass;
    OrrDtype dtype;
    bool is_block_scaled;    /* FP8 with scales per 128 */
    bool is_causal;
    int64_t m, n, k;
    int64_t batch, seq_len;
    uint32_t heads, kv_heads, head_dim;
    double time_ns;          /* above 0 */
    double spread_frac;      /* negative: not told */
    uint32_t line;
} OrrMeasuredKernel;

typedef struct {
    char *name, *gpu;
    OrrMeasuredKernel *rows;
    uint32_t n_rows;
    char *notes;
} OrrKernelLog;

void orr_collective_log_free(OrrCollectiveLog *log);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrCollectiveLog, orr_collective_log_free)
void orr_kernel_log_free(OrrKernelLog *log);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrKernelLog, orr_kernel_log_free)

#endif
