/* Jitter: stretches of kernels between two meetings that take now more, now less time. Private to
 * sim/exec.
 *
 * Sampled, each stretch of each rank takes its time times 1 + sd z, z normal and independent.
 * Expected, the times of events are means, and every event carries the variance of its time, so
 * that a barrier of n ranks is late by the expected maximum of what they differ in. */
#ifndef ORR_EXEC_JITTER_H
#define ORR_EXEC_JITTER_H

#include "sim/exec/exec_priv.h"

OrrJitter *orr_jitter_new(const OrrExec *x);
void orr_jitter_free(OrrJitter *j);

/* Factor of the stretch that rank @r begins, in 1/ORR_RATE_ONE; ORR_RATE_ONE in expected mode. */
uint32_t orr_jitter_factor(const OrrJitter *j, uint32_t r, uint32_t step, uint32_t call,
                           uint32_t item);

/* Expected mode. An item of stream @s is about to start: first what it waits for, beginning with
 * the stream itself, then the host that issues it at @issue_ns. Returns by how much it is later
 * than the latest of these, in the mean. */
void orr_jitter_open(OrrJitter *j, uint32_t s, int64_t free_ns);
void orr_jitter_wait(OrrJitter *j, uint32_t q, int64_t end_ns);
int64_t orr_jitter_start(OrrJitter *j, const OrrExec *x, uint32_t r, uint32_t s, int64_t ready_ns,
                         int64_t issue_ns);
/* The host has waited for what was opened. */
void orr_jitter_sync(OrrJitter *j, const OrrExec *x, uint32_t r);
/* The item is a block of kernels of @work_ns, which the host does not hold up. */
void orr_jitter_block(OrrJitter *j, uint32_t r, uint32_t s, int64_t work_ns);
void orr_jitter_complete(OrrJitter *j, uint32_t r, uint32_t s);

/* Rank @r arrives at a meeting now. @begin_ns of the meeting that is complete: not before its last
 * arrival. */
void orr_jitter_arrive(OrrJitter *j, const OrrExec *x, uint32_t place, uint32_t r, uint32_t s,
                       bool is_first);
int64_t orr_jitter_meet(OrrJitter *j, const OrrExec *x, uint32_t place);
/* Rank @r waits at @place until @begin_ns for the last that it stands for: its kernels run at
 * @rate. */
void orr_jitter_pull(OrrJitter *j, const OrrExec *x, const OrrPlace *place, uint32_t r,
                     int64_t begin_ns, double rate);
/* The transfer of @place ends for rank @r now; @is_first: of the parts of its item. */
void orr_jitter_deliver(OrrJitter *j, uint32_t place, uint32_t r, uint32_t s, bool is_first);

#endif
