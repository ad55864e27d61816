/* Segments of a program compiled for execution: operations become items of streams; stretches of
 * kernels that meet nobody become one item, a block. Compiled once per program, shared by ranks. */
#ifndef ORR_EXEC_COMPILE_H
#define ORR_EXEC_COMPILE_H

#include "sim/bound/bound.h"

typedef enum { ORR_ITEM_BLOCK, ORR_ITEM_COLL, ORR_ITEM_P2P, ORR_ITEM_SYNC } OrrItemType;

typedef struct {
    uint8_t stream; /* of the item waited for */
    uint32_t count; /* items of that stream in this segment that must have ended */
} OrrItemWait;

typedef struct {
    uint8_t type, stream, is_step_end;
    uint8_t has_cross; /* some call has a wait across calls at it */
    uint16_t waiters;  /* streams with operations that wait for it, a bit each */
    uint32_t what;     /* block, collective or p2p index */
    uint32_t op;       /* first operation in the program */
    uint32_t first_wait, n_waits;
    uint32_t n_syncs_before; /* host synchronisations of this segment before it */
    int64_t issue_ns;        /* host time from the start of the call to its (first) issue's end */
} OrrItem;

typedef struct {
    uint32_t first_kernel, n_kernels; /* in OrrCompiled.block_kernels */
} OrrBlock;

typedef struct {
    uint32_t op;        /* operation of the program */
    uint32_t kernel;    /* descriptor */
    uint32_t is_memory; /* row of OrrBound.rate */
    int64_t issue_ns;   /* from the start of the call */
} OrrBlockKernel;

typedef struct {
    uint32_t first_item[ORR_N_STREAMS], n_items[ORR_N_STREAMS]; /* items lie stream by stream */
    uint32_t n_syncs;
    int64_t host_ns;
} OrrCompiledSegment;

/* A wait across calls, resolved: item `item` of `stream` of this call waits until `src_count` items
 * of `src_stream` have ended in the same step (or steps_back before). */
typedef struct {
    uint8_t stream, src_stream;
    uint32_t item, src_count, steps_back;
} OrrCrossWait;

/* Where a call stands in its role: what streams and host have behind them when it begins. A row is
 * what the start of an item needs, so it lies together. Row n_calls holds the totals of a step. */
typedef struct {
    int64_t host_ns;              /* host time before the call */
    uint32_t base[ORR_N_STREAMS]; /* items of each stream before the call */
    uint32_t syncs_before;
    uint32_t first_cross; /* in OrrCompiledRole.cross; the next row's is the end */
} OrrCallRow;

typedef struct {
    uint32_t n_calls;
    const OrrCall *calls;
    OrrCallRow *rows;    /* [n_calls + 1] */
    OrrCrossWait *cross; /* by call, of a call by stream */
    /* [n_calls * ORR_N_STREAMS + 1] the first cross wait of a call's stream; the next one's is the
     * end */
    uint32_t *first_cross;
    /* [(n_calls + 1) * ORR_N_STREAMS] the first call from this one on that has items on a stream;
     * n_calls: none */
    uint32_t *next_call;
    /* [items of a step] of each stream: the streams that wait for that item, a bit each */
    uint16_t *asked[ORR_N_STREAMS];
    struct {
        uint32_t block, times;
    } * step_blocks; /* blocks of the compute stream in a step, each once */
    uint32_t n_step_blocks;
    uint64_t n_ops, n_blocks; /* of a step, for --stats */
} OrrCompiledRole;

/* What a block takes with nothing else resident, by hardware kind. */
typedef struct {
    int64_t work_ns; /* sum of its kernels */
    int64_t host_ns; /* max over kernels of issue + the work from it on: end >= host start + this */
    uint32_t first_share, n_shares;
} OrrBlockTime;

typedef struct {
    uint8_t kind; /* OrrKernelKind */
    int64_t ns;
} OrrShare;

typedef struct {
    const OrrBound *bound;
    OrrCompiledSegment *segments;
    OrrItem *items;
    OrrItemWait *waits;
    OrrBlock *blocks;
    uint32_t n_blocks;
    OrrBlockKernel *kernels;
    OrrBlockTime *times; /* [n_hw * n_blocks] */
    OrrShare *shares;
    OrrCompiledRole *roles;
    uint16_t waiters[ORR_N_STREAMS]; /* of each stream: which streams wait for it at all */
} OrrCompiled;

OrrCompiled *orr_compile(const OrrBound *bound);
/* The same without the times of blocks and their shares: what does not depend on the hardware. */
OrrCompiled *orr_compile_shape(const OrrBound *bound);
void orr_compiled_free(OrrCompiled *c);

#endif
