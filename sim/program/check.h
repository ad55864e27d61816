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

/* Peak bytes of each role by memory kind at its peak: static plus effects in host order over two
 * steps. @peak [n_roles]; @by_kind [n_roles][ORR_N_MEM_KINDS] at that moment. */
void orr_program_memory(const OrrProgram *program, int64_t *peak,
                        int64_t (*by_kind)[ORR_N_MEM_KINDS]);

#endif
