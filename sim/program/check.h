/* Runs a program at zero times under the real rendezvous rules, one rank a role for the pipeline
 * dimension: a schedule that would hang on NCCL is refused with its cycle. */
#ifndef ORR_PROGRAM_CHECK_H
#define ORR_PROGRAM_CHECK_H

#include "sim/program/program.h"

/**
 * orr_program_check: runs two steps of one pipeline (a rank of each role), collectives over
 * groups whose members all share a role meeting trivially, pipeline pairs and groups that span
 * roles (embedding, model, world) for real.
 * Returns: true if every role comes to its end; false with @error naming the cycle: a line a role:
 * "stage 1 waits in call 7 (F chunk 0 micro-batch 3) for a send of stage 0, which waits ...".
 */
bool orr_program_check(const OrrProgram *program, GError **error);

/* How long a rank of a role takes for what the program describes: by index there. */
typedef struct {
    int64_t *kernel_ns, *coll_ns, *part_ns; /* [n_kernels], [n_colls], [n_parts] */
    int64_t launch_ns, comm_ns; /* of the host: a device kernel; a collective or a batch of sends */
} OrrRolePace;

typedef struct {
    int64_t limit_bytes;      /* what the allocator may take of the device, above 0 */
    bool expands;             /* its segments are expandable */
    const OrrRolePace *paces; /* [n_roles], borrowed; NULL: the host is ahead as far as it can be */
} OrrMemoryTerms;

/* Peak bytes of each role by memory kind: static plus effects in host order over two steps, at the
 * moment when most is in use. ORR_MEM_ALLOCATOR is what the caching allocator held of the device
 * beyond that at its own peak; more than the limit is not to be had.
 * @peak [n_roles]: sum over the kinds; @by_kind [n_roles][ORR_N_MEM_KINDS]. */
void orr_program_memory(const OrrProgram *program, const OrrMemoryTerms *terms, int64_t *peak,
                        int64_t (*by_kind)[ORR_N_MEM_KINDS]);

#endif
