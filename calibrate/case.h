/* One measurement that orrery-calibrate can make: which kernel, copy, launch or collective, and of
 * what shape. A case is also the key of its record: two cases are the same if all columns are.
 *
 * Left out: how it is measured (device.h) and how often (sample.h). */
#ifndef ORR_CALIBRATE_CASE_H
#define ORR_CALIBRATE_CASE_H

#include "calibrate/mem_kernels.h"
#include "sim/base/error.h"
#include "sim/terms/terms.h"

typedef enum {
    ORR_CASE_GEMM,
    ORR_CASE_BATCHED_GEMM,
    ORR_CASE_GROUPED_GEMM,
    ORR_CASE_ATTENTION,         /* fused */
    ORR_CASE_UNFUSED_ATTENTION, /* products and softmax, each a kernel */
    ORR_CASE_KERNEL,            /* bound by memory: norms, rotary, ... */
    ORR_CASE_COPY,
    ORR_CASE_LAUNCH,
    ORR_CASE_COLLECTIVE,
    ORR_N_CASE_KINDS
} OrrCaseKind;
extern const char *const orr_case_kind_names[]; /* NULL-terminated */

typedef enum { ORR_COPY_D2D, ORR_COPY_H2D, ORR_COPY_D2H, ORR_COPY_P2P, ORR_N_COPIES } OrrCopy;

typedef enum {
    ORR_LAUNCH_LATENCY, /* launch of an empty kernel to its end, as the host sees it */
    ORR_LAUNCH_RATE,    /* time a launch when many follow one another */
    ORR_LAUNCH_GRAPH,   /* the same of kernels in a graph */
    ORR_N_LAUNCHES
} OrrLaunch;

/* How the GPUs of a collective are picked; together with group_gpus and stride. */
typedef enum {
    ORR_RANKS_WORLD,  /* all */
    ORR_RANKS_NODE,   /* neighbours within a node */
    ORR_RANKS_RAIL,   /* the same place in each node */
    ORR_RANKS_STRIDE, /* every so many-th */
    ORR_N_RANKS_SHAPES
} OrrRanksShape;
extern const char *const orr_ranks_shape_names[]; /* NULL-terminated */

/* 0 where a field says nothing about the kind. */
typedef struct {
    OrrCaseKind kind;
    int op; /* OrrMemKernel, OrrCopy, OrrLaunch or OrrCollective; else 0 */
    OrrDtype dtype;
    OrrKernelPass pass;
    /* C[m, n] = A[m, k] B[k, n] as it is executed; the pass says how the operands lie. */
    int64_t m, n, k;
    int64_t batch; /* products, or sequences */
    int64_t sequence, heads, kv_heads, head_dim, is_causal;
    int64_t rows, columns;
    int64_t bytes; /* copies; collectives: as nccl-tests counts size */
    OrrRanksShape ranks;
    int64_t is_in_place, group_gpus, stride;
    int64_t n_groups;    /* that run at the same time */
    int64_t has_compute; /* products run beside the collective */
    int64_t flushes_l2;
} OrrCase;

/* Name of the op of a case, "" where the kind has none. */
const char *orr_case_op_name(const OrrCase *c);
/* Number of the op @name of @kind, or -1. */
int orr_case_op(OrrCaseKind kind, const char *name);
/* Names of the ops of @kind, NULL-terminated; NULL where the kind has none. */
const char *const *orr_case_op_names(OrrCaseKind kind);

/* Columns of a case in CSV, NULL-terminated, in the order of orr_case_cell. */
extern const char *const orr_case_columns[];
#define ORR_N_CASE_COLUMNS 23
/* Text of column @i; g_free. */
char *orr_case_cell(const OrrCase *c, guint i);
/* All columns, separated by commas: the key of a record; g_free. */
char *orr_case_key(const OrrCase *c);
/* Reads @text, which may be "" (0), into column @i. Errors: ORR_ERROR_INPUT, without a place. */
bool orr_case_read(OrrCase *c, guint i, const char *text, GError **error);
/* NULL if the fields make a measurement that can be done, else why not; g_free. */
char *orr_case_flaw(const OrrCase *c);

/* FLOPs (causal attention counted half) and bytes over HBM or the wire with perfect reuse. */
double orr_case_flops(const OrrCase *c);
double orr_case_bytes(const OrrCase *c);
/* Bus bandwidth over algorithm bandwidth as nccl-tests has it (doc/PERFORMANCE.md). */
double orr_case_bus_factor(OrrCollective op, int64_t n_gpus);

#endif
