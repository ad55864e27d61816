/* Jitter: stretches of kernels between two meetings that take now more, now less time. Private to
 * sim/exec.
 *
 * Sampled, each stretch of each rank takes its time times 1 + sd z, z normal and independent.
 * Expected, the times of events are means, and every event carries the variance of its time, so
 * that a barrier of n ranks is late by the expected maximum of what they differ in. */
#ifndef ORR_EXEC_JITTER_H
#define ORR_EXEC_JITTER_H

#include "sim/base/random.h"
#include "sim/exec/exec_priv.h"

OrrJitter *orr_jitter_new(const OrrExec *x);
void orr_jitter_free(OrrJitter *j);

/* A stretch: where a rank begins it. */
typedef struct {
    uint32_t rank, step, call, item;
} OrrJitterSpot;

/* The draws of a seed. */
OrrRandom orr_jitter_random(uint64_t seed);
/* Factor of the stretch, in 1/ORR_RATE_ONE. */
uint32_t orr_jitter_draw(OrrRandom random, double sd, OrrJitterSpot at);
/* The same of @j; ORR_RATE_ONE in expected mode. */
uint32_t orr_jitter_factor(const OrrJitter *j, OrrJitterSpot at);

/* Expected mode. An item of stream @s is about to start: first what it waits for, beginning with
 * the stream itself, item @index (plus 1) of stream @q that ended at @end_ns, then the host that
 * issues it at @issue_ns. Returns by how much it is later than the latest of these, in the mean. */
void orr_jitter_open(OrrJitter *j, const OrrExec *x, uint32_t r, uint32_t s);
void orr_jitter_wait(OrrJitter *j, const OrrExec *x, uint32_t r, uint32_t q, uint32_t index,
                     double end_ns);
int64_t orr_jitter_start(OrrJitter *j, const OrrExec *x, uint32_t r, uint32_t s, int64_t ready_ns,
                         int64_t issue_ns);
/* The host has waited for what was opened. */
void orr_jitter_sync(OrrJitter *j, uint32_t r);
/* The item is a block of kernels that take @kernels_ns, which the host does not hold up. */
void orr_jitter_block(OrrJitter *j, uint32_t r, uint32_t s, double kernels_ns);
/* What stream @s of rank @r begins or ends changes the rate of the rank's kernels from @was to
 * @is. */
void orr_jitter_edge(OrrJitter *j, const OrrExec *x, uint32_t r, uint32_t s, double was, double is);
void orr_jitter_complete(OrrJitter *j, const OrrExec *x, uint32_t r, uint32_t s);

/* Rank @r arrives at a meeting now. @begin_ns of the meeting that is complete: not before its last
 * arrival. */
void orr_jitter_arrive(OrrJitter *j, const OrrExec *x, uint32_t place, uint32_t r, uint32_t s,
                       bool is_first);
int64_t orr_jitter_meet(OrrJitter *j, const OrrExec *x, uint32_t place);
/* The transfer of @place ends for rank @r now; @is_first: of the parts of its item. */
void orr_jitter_deliver(OrrJitter *j, const OrrExec *x, uint32_t place, uint32_t r, uint32_t s,
                        bool is_first);

#endif
