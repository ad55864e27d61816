/* What an execution shows to a watcher: spans of operations of chosen ranks. */
#ifndef ORR_CORE_PROBE_H
#define ORR_CORE_PROBE_H

#include <stdint.h>

/* One operation of one rank, as a profiler would show it: from its local launch to its end. Spans
 * of one (rank, stream) come in order and never overlap. */
typedef struct {
    uint32_t rank;
    uint32_t step;     /* of the simulated steps, from 0 */
    uint8_t stream;    /* OrrStream */
    uint8_t op_kind;   /* OrrOpKind */
    uint8_t pass;      /* OrrPass of the call; ORR_N_PASSES: step begin or end */
    uint32_t what;     /* descriptor of the program: kernels, colls, p2ps */
    uint32_t call, op; /* call of the role; operation of the program */
    uint32_t chunk, micro_batch;
    uint32_t group;     /* instance of the group (collectives) */
    int64_t start_ns;   /* local launch */
    int64_t arrived_ns; /* communication: last arrival = begin of transfer; else start_ns */
    int64_t end_ns;
} OrrSpan;

typedef struct {
    void (*span)(void *data, const OrrSpan *span);
    void *data;
} OrrProbe;

#endif
