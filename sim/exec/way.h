/* The way back through a pass that was taken as a whole; private to sim/exec. */
#ifndef ORR_EXEC_WAY_H
#define ORR_EXEC_WAY_H

#include "sim/exec/cause.h"
#include "sim/exec/pass.h"

/* An item of a pass. */
typedef struct {
    uint32_t member, lane, item;
} OrrPassSpot;

/* Moves to what the item waited for in the pass. False: for nothing in it; then @at names the begin
 * by member and lane (that of the last to come, for a collective). */
bool orr_exec__pass_back(const OrrExec *x, const OrrPassWork *w, OrrPassSpot *at);
int64_t orr_exec__pass_start(const OrrExec *x, const OrrPassWork *w, const OrrPassSpot *at);
int64_t orr_exec__pass_end(const OrrPassWork *w, const OrrPassSpot *at);
/* Item @index, since the beginning, of a stream of rank @r. */
void orr_exec__pass_find(const OrrExec *x, const OrrPassWork *w, uint32_t r, uint32_t s,
                         uint32_t index, OrrPassSpot *at);

/* The pass is evaluated, and some of it holds: to be called before orr_exec__way, which returns the
 * record for what such an item leads back to. */
void orr_exec__ways_begin(OrrExec *x, OrrPassWork *w);
uint32_t orr_exec__way(OrrExec *x, OrrPassWork *w, OrrPassSpot at);
/* The record for what leads back to the begin of a lane of a member. */
uint32_t orr_exec__way_to(OrrExec *x, OrrPassWork *w, uint32_t member, uint32_t lane);

/* Evaluates the pass of a record once more, after the run. */
OrrPassWork *orr_exec__pass_again(const OrrExec *x, const OrrCause *way);

#endif
