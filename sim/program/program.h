/* The program: the waist of the house.
 *
 * SPMD. A *role* is what all ranks of one pipeline stage do (one role per stage as a rule). A role
 * is a list of *calls* in the order in which its host thread issues them; a call runs a *segment*
 * (a short list of operations shared by all calls, roles and micro-batches that do the same work,
 * for example the forward of a chunk). Operations are issued in order by the host, each on one
 * stream; operations of a stream run in order; an operation may wait for operations issued
 * earlier, on any stream, of the same rank (as CUDA events do). Operands are symbolic: a group
 * kind, a stage of my pipeline. The program knows no durations, and its size does not grow with
 * the number of ranks nor, but for the list of calls, with the number of micro-batches.
 *
 * One program is one training step; execution repeats it. Waits may reach into the step before. */
#ifndef ORR_PROGRAM_PROGRAM_H
#define ORR_PROGRAM_PROGRAM_H

#include "sim/base/error.h"
#include "sim/terms/terms.h"

#include <stdio.h>

/* A compute kernel. GEMM: C[m,n] (+)= A[m,k] B[k,n], `batch` of them. Attention: batch sequences of
 * m queries and n keys, `heads` query heads, `kv_heads`, head sizes k (QK) and k2 (V, 0 = k).
 * Memory-bound kernels: bytes only. flops and bytes are those of the whole kernel on one rank. */
typedef struct {
    uint8_t kind;      /* OrrKernelKind */
    uint8_t pass;      /* OrrKernelPass; attention backward is ORR_PASS_DGRAD */
    uint8_t dtype;     /* OrrDtype of the operands */
    uint8_t is_causal; /* attention */
    uint32_t heads, kv_heads;
    int64_t m, n, k, k2, batch;
    double flops;                     /* executed (causal attention: counted half) */
    double bytes_read, bytes_written; /* HBM traffic with perfect reuse inside the kernel */
    uint32_t launches;                /* device kernels that this stands for, at least 1 */
    char label[28];                   /* "qkv", "ffn1", ...: for traces and dumps */
} OrrKernel;

/* A collective over one group. bytes as nccl-tests counts `size`: all-reduce and broadcast the
 * buffer, all-gather the gathered whole, reduce-scatter the whole input, all-to-all the send
 * buffer of one rank. Calls on one communicator (group, comm) are in order. */
typedef struct {
    uint8_t kind;    /* OrrCollective */
    uint8_t group;   /* OrrGroup */
    uint8_t comm;    /* communicator number within the group kind */
    uint8_t purpose; /* OrrCommKind */
    uint8_t dtype;
    uint8_t on_copy_engine; /* takes no SMs: no interference */
    int64_t bytes;
    char label[28];
} OrrColl;

/* One part of a point-to-point kernel: a send to, or a receive from, a stage of my pipeline (or a
 * position in another group kind). The k-th send of a pair on a communicator meets the k-th
 * receive. */
typedef struct {
    uint8_t is_send;
    uint8_t group; /* OrrGroup: ORR_GROUP_PP as a rule */
    uint8_t comm;
    uint8_t purpose;
    uint32_t peer; /* position of the peer in that group (pipeline: its stage) */
    int64_t bytes;
    uint32_t chunk, micro_batch_tag; /* for dumps and messages only */
} OrrP2pPart;

/* A batch of parts that is one kernel; it ends when all its parts have. */
typedef struct {
    uint32_t first_part, n_parts;
    uint8_t is_eager; /* unbatched send: completes once copied out, if it fits the buffer */
    char label[28];
} OrrP2p;

typedef enum {
    ORR_OP_KERNEL, /* what = index of kernel; stream compute (or copy) */
    ORR_OP_COLL,   /* what = index of collective */
    ORR_OP_P2P,    /* what = index of p2p */
    ORR_OP_HOST,   /* host thread: works host_ns = `what`, then, if it has waits, blocks for them */
    ORR_N_OP_KINDS
} OrrOpKind;

#define ORR_MAX_WAITS 4
typedef struct {
    uint8_t kind, stream;
    uint8_t n_waits;
    uint8_t flags; /* ORR_OP_STEP_END */
    uint32_t what;
    uint32_t wait[ORR_MAX_WAITS]; /* indices of earlier operations of the same segment */
    uint32_t first_mem, n_mem;    /* memory effects, in OrrProgram.mems */
} OrrOp;
#define ORR_OP_STEP_END 1 /* the end of this operation ends the rank's step (its optimizer) */

/* Bytes that a rank allocates (positive) or frees when the host reaches this operation: before it
 * is issued, or (is_after) after. The caching allocator works in host order. */
typedef struct {
    uint8_t kind; /* OrrMemKind */
    uint8_t is_after;
    uint8_t is_shared; /* freed: a stream beside the compute stream may still read it */
    int64_t delta_bytes;
} OrrMem;

typedef struct {
    uint32_t first_op, n_ops;
    char label[40];
} OrrSegment;

/* A wait that crosses calls: operation `op` of this call waits for operation `src_op` of the call
 * `src_call` of the same role; steps_back = 1: of the step before (ignored in the first step). */
typedef struct {
    uint32_t op, src_call, src_op;
    uint32_t steps_back;
} OrrCallWait;

typedef struct {
    uint32_t segment;
    uint32_t first_wait, n_waits; /* in OrrProgram.call_waits */
    uint16_t chunk;               /* model chunk of this stage */
    uint8_t pass;                 /* OrrPass, or ORR_N_PASSES for step begin and end */
    uint8_t reserved;
    uint32_t micro_batch;
} OrrCall;

typedef struct {
    uint32_t first_call, n_calls;
    uint32_t stage;
    int64_t static_bytes[ORR_N_MEM_KINDS]; /* held throughout */
    int64_t late_bytes; /* of the optimizer's: made by the first update, in n_late tensors */
    uint32_t n_late;
    char label[28];
} OrrRole;

typedef struct {
    OrrKernel *kernels;
    uint32_t n_kernels;
    OrrColl *colls;
    uint32_t n_colls;
    OrrP2p *p2ps;
    uint32_t n_p2ps;
    OrrP2pPart *parts;
    uint32_t n_parts;
    OrrOp *ops;
    uint32_t n_ops;
    OrrMem *mems;
    uint32_t n_mems;
    OrrSegment *segments;
    uint32_t n_segments;
    OrrCall *calls;
    uint32_t n_calls;
    OrrCallWait *call_waits;
    uint32_t n_call_waits;
    OrrRole *roles;
    uint32_t n_roles;
} OrrProgram;

void orr_program_free(OrrProgram *program);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrProgram, orr_program_free)

/* Structural invariants (indices in range, waits point backwards, streams known, exactly one step
 * end a role): NULL if sound, else a text that names role, call and operation; g_free. */
char *orr_program_flaw(const OrrProgram *program);

/* Stable text form, one operation a line; the same program gives the same bytes. */
void orr_program_dump(const OrrProgram *program, FILE *out);

#endif
